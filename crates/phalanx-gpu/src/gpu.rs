//! A device that programs run on.

use std::sync::Arc;

use crate::cuda::{self, Cuda};
use crate::emulator::Emulator;
use crate::error::size;
use crate::{GpuError, Memory, Result};

/// A device. Clones are the same device.
#[derive(Debug, Clone)]
pub struct Gpu {
    pub(crate) backend: Arc<Backend>,
}

#[derive(Debug)]
pub(crate) enum Backend {
    Cuda(Cuda),
    Emulator(Emulator),
}

/// What is known of a device without using it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceDescription {
    /// Its number, from 0.
    pub number: usize,
    /// Its name, as the driver says it.
    pub name: String,
    /// Bytes of memory.
    pub memory: u64,
    /// Compute capability, e.g. `[9, 0]`.
    pub capability: [i32; 2],
}

/// The devices of this machine; an error where there is no driver.
pub fn devices() -> Result<Vec<DeviceDescription>> {
    cuda::devices()
}

impl Gpu {
    /// The CUDA device of that number.
    pub fn open(number: usize) -> Result<Self> {
        Ok(Gpu { backend: Arc::new(Backend::Cuda(Cuda::open(number)?)) })
    }

    /// Kernels compiled as C, on the processor: for tests where there is no device.
    pub fn emulated() -> Result<Self> {
        Ok(Gpu { backend: Arc::new(Backend::Emulator(Emulator::new()?)) })
    }

    /// Whether it is an emulation.
    pub fn is_emulated(&self) -> bool {
        matches!(&*self.backend, Backend::Emulator(_))
    }

    /// Its name, and so many bytes of memory, in words.
    pub fn describe(&self, bytes: u64) -> String {
        let name = match &*self.backend {
            Backend::Cuda(cuda) => cuda.name(),
            Backend::Emulator(_) => "an emulation of a GPU",
        };
        format!("{name}, {} of its memory", size(bytes))
    }

    /// Bytes of memory that are free.
    pub fn free_memory(&self) -> Result<u64> {
        match &*self.backend {
            Backend::Cuda(cuda) => cuda.free_memory(),
            Backend::Emulator(_) => Ok(u64::MAX),
        }
    }

    /// Most bytes of memory that the threads of a block can share.
    pub fn shared_memory(&self) -> usize {
        match &*self.backend {
            Backend::Cuda(cuda) => cuda.shared_memory(),
            Backend::Emulator(_) => 227 << 10,
        }
    }

    /// Blocks that can run side by side, about.
    pub fn multiprocessors(&self) -> usize {
        match &*self.backend {
            Backend::Cuda(cuda) => cuda.multiprocessors(),
            Backend::Emulator(_) => 132,
        }
    }

    /// So many bytes, all 0.
    pub fn memory(&self, bytes: usize) -> Result<Memory> {
        let free = self.free_memory()?;
        if bytes as u64 > free {
            return Err(GpuError::OutOfMemory { needed: bytes as u64, free });
        }
        Memory::new(self.clone(), bytes)
    }

    /// Waits until everything that was asked for is done.
    pub fn synchronize(&self) -> Result<()> {
        match &*self.backend {
            Backend::Cuda(cuda) => cuda.synchronize(),
            Backend::Emulator(_) => Ok(()),
        }
    }
}
