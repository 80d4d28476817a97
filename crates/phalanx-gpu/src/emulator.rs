//! Kernels on the processor: the same text, compiled by a C compiler and run thread by thread.

use std::ffi::c_void;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use libloading::Library;

use crate::program::Launch;
use crate::{GpuError, Result};

/// Stands in for a device.
#[derive(Debug)]
pub struct Emulator {
    compiler: String,
    /// One launch at a time: kernels share static memory.
    turn: Mutex<()>,
    launches: AtomicU64,
}

/// For tests, in programs with debug assertions only: after so many launches the device is lost.
const LOST_AFTER: &str = "PHALANX_LOST_AFTER";

/// A compiled program.
#[derive(Debug)]
pub struct Compiled {
    library: Library,
}

type LaunchKernel =
    unsafe extern "C" fn(*mut c_void, i32, i32, i32, i32, *const c_void, *const c_void, i32, i32);

/// Whether this processor fuses products with sums, and the compiler has to be told.
fn has_fma() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Numbers the files of this process.
static NEXT: AtomicU32 = AtomicU32::new(0);

impl Emulator {
    pub fn new() -> Result<Self> {
        let compiler = std::env::var("CC").unwrap_or_else(|_| "gcc".into());
        let answers = Command::new(&compiler).arg("--version").output();
        if !answers.is_ok_and(|output| output.status.success()) {
            return Err(GpuError::NoDevice(format!("no C compiler `{compiler}` is installed here")));
        }
        Ok(Emulator { compiler, turn: Mutex::new(()), launches: AtomicU64::new(0) })
    }

    pub fn load(&self, text: &str) -> Result<Compiled> {
        let wrong = |what: String| GpuError::Compile(what);
        let name = format!("phalanx-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let [source, object] = ["c", "so"].map(|end| std::env::temp_dir().join(format!("{name}.{end}")));
        let whole = format!("{}\n{text}", include_str!("emulator.c"));
        std::fs::write(&source, whole).map_err(|error| wrong(error.to_string()))?;
        let output = Command::new(&self.compiler)
            // Products that the text fuses with sums are then one instruction instead of a call.
            .args(has_fma().then_some("-mfma"))
            // Some compilers check by default that jumps go up a stack; those between threads do not.
            .args([
                "-std=gnu11",
                "-O2",
                "-U_FORTIFY_SOURCE",
                "-ffp-contract=off",
                "-fPIC",
                "-shared",
                "-w",
                "-o",
            ])
            .args([&object, &source])
            .arg("-lm")
            .output();
        let remove = |path: &PathBuf| drop(std::fs::remove_file(path));
        let output = output.map_err(|error| wrong(error.to_string()))?;
        if !output.status.success() {
            remove(&source);
            return Err(wrong(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        // SAFETY: the library was just compiled from our own text and has no initialisers.
        let library = unsafe { Library::new(&object) };
        remove(&source);
        remove(&object);
        library.map(|library| Compiled { library }).map_err(|error| wrong(error.to_string()))
    }

    pub fn has(&self, compiled: &Compiled, kernel: &str) -> bool {
        // SAFETY: the symbol is only looked for.
        unsafe { compiled.library.get::<*mut c_void>(kernel.as_bytes()) }.is_ok()
    }

    pub fn launch(&self, compiled: &Compiled, launch: &Launch, run: u64, now: u64) -> Result<()> {
        self.is_there()?;
        let _turn = self.turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let missing = |error: libloading::Error| GpuError::Compile(error.to_string());
        // SAFETY: both symbols have these types: the first is a function of `emulator.c`, the second a
        // kernel, whose address alone is passed on.
        unsafe {
            let start = compiled.library.get::<LaunchKernel>(b"px_launch").map_err(missing)?;
            let kernel = compiled.library.get::<unsafe extern "C" fn()>(launch.kernel.as_bytes());
            let kernel = *kernel.map_err(missing)? as *mut c_void;
            let [gx, gy] = launch.grid.map(|size| size as i32);
            let (run, now) = (run as *const c_void, now as *const c_void);
            start(kernel, gx, gy, launch.block as i32, launch.shared as i32, run, now, launch.x, launch.y);
        }
        Ok(())
    }

    /// Fails once the device is lost.
    fn is_there(&self) -> Result<()> {
        let before = self.launches.fetch_add(1, Ordering::Relaxed);
        let last = std::env::var(LOST_AFTER).ok().filter(|_| cfg!(debug_assertions));
        match last.and_then(|last| last.parse().ok()) {
            Some(last) if before >= last => {
                Err(GpuError::Failed { doing: "starting a kernel", reason: "the device is lost".into() })
            }
            _ => Ok(()),
        }
    }

    pub fn copy_in(&self, address: u64, bytes: &[u8]) {
        // SAFETY: `Memory` has checked that so many bytes at `address` are its own.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
    }

    pub fn copy_out(&self, address: u64, bytes: &mut [u8]) {
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), bytes.len()) };
    }
}
