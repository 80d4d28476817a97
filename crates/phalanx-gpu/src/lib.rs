//! Programs on a CUDA device.
//!
//! Nothing of CUDA is needed to build this crate: the driver and NVRTC are loaded when a device is asked for.
//! It knows nothing of learning. A [`Layout`] collects what a program reads and writes (arrays, numbers,
//! kernel text); [`Layout::build`] puts it on a device and compiles it; a [`Recording`] is a sequence of
//! kernels that is run again and again.
//!
//! Kernel text keeps to what C99 and CUDA C have in common, with the macros of `prelude.cu` for the rest.
//! Where there is no device, [`Gpu::emulated`] compiles the same text with a C compiler and runs it on the
//! processor, thread by thread: slow, and bit for bit what the device does in double precision.
//!
//! ```no_run
//! use phalanx_gpu::{Gpu, Launch, Layout};
//!
//! let mut layout = Layout::default();
//! layout.array_from("x", &[1.0f64, 2.0, 3.0]);
//! layout.number("count", 3);
//! layout.now("factor", "double");
//! layout.text("KERNEL(scale) { long i = THREAD; if (i < run->count) run->x[i] *= now->factor; }");
//! let program = layout.build(&Gpu::open(0)?)?;
//! program.set_now(&[2.5f64.to_bits()])?;
//! program.record(&[Launch::over("scale", 3)])?.run()?;
//! let mut x = [0.0f64; 3];
//! program.array("x").read(0, &mut x)?;
//! assert_eq!(x, [2.5, 5.0, 7.5]);
//! # Ok::<(), phalanx_gpu::GpuError>(())
//! ```

mod cache;
mod cuda;
mod emulator;
mod error;
mod gpu;
mod layout;
mod memory;
mod program;

pub use cuda::{compile_ptx, nvrtc_is_present};
pub use error::{GpuError, Result};
pub use gpu::{DeviceDescription, Gpu, devices};
pub use layout::{Element, Layout};
pub use memory::Memory;
pub use program::{Launch, Marks, Program, Recording};
