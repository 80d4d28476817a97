//! Memory of a device.

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use crate::gpu::{Backend, Gpu};
use crate::{GpuError, Result};

/// A piece of a device's memory, given back when it is dropped.
#[derive(Debug)]
pub struct Memory {
    gpu: Gpu,
    address: u64,
    bytes: usize,
    /// What the emulator has instead, in words, so that every type is aligned.
    host: Option<Box<[u64]>>,
}

impl Memory {
    pub(crate) fn new(gpu: Gpu, bytes: usize) -> Result<Self> {
        let (address, host) = match &*gpu.backend {
            Backend::Cuda(cuda) => (cuda.allocate(bytes.max(1))?, None),
            Backend::Emulator(_) => {
                let mut words = vec![0u64; bytes.div_ceil(8).max(1)].into_boxed_slice();
                (words.as_mut_ptr() as u64, Some(words))
            }
        };
        Ok(Memory { gpu, address, bytes, host })
    }

    /// Where it lies on the device.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn check<T>(&self, at: usize, count: usize) -> Result<()> {
        let end = (at + count).checked_mul(size_of::<T>());
        if end.is_none_or(|end| end > self.bytes) {
            let reason = format!("{count} numbers at {at} are beyond {} bytes", self.bytes);
            return Err(GpuError::Failed { doing: "copying", reason });
        }
        Ok(())
    }

    /// Writes numbers from element `at` on, after everything that was asked for before.
    pub fn write<T: Pod>(&self, at: usize, numbers: &[T]) -> Result<()> {
        self.check::<T>(at, numbers.len())?;
        let (bytes, address) = (cast_slice(numbers), self.address + (at * size_of::<T>()) as u64);
        match &*self.gpu.backend {
            Backend::Cuda(cuda) => cuda.upload(address, bytes),
            Backend::Emulator(emulator) => {
                emulator.copy_in(address, bytes);
                Ok(())
            }
        }
    }

    /// Reads numbers from element `at` on, after everything that was asked for before.
    pub fn read<T: Pod>(&self, at: usize, numbers: &mut [T]) -> Result<()> {
        self.check::<T>(at, numbers.len())?;
        let address = self.address + (at * size_of::<T>()) as u64;
        match &*self.gpu.backend {
            Backend::Cuda(cuda) => cuda.download(address, cast_slice_mut(numbers)),
            Backend::Emulator(emulator) => {
                emulator.copy_out(address, cast_slice_mut(numbers));
                Ok(())
            }
        }
    }

    /// Sets every byte to 0.
    pub fn clear(&self) -> Result<()> {
        match &*self.gpu.backend {
            Backend::Cuda(cuda) => cuda.clear(self.address, self.bytes),
            Backend::Emulator(emulator) => {
                emulator.copy_in(self.address, &vec![0; self.bytes]);
                Ok(())
            }
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let (Backend::Cuda(cuda), None) = (&*self.gpu.backend, &self.host) {
            cuda.free(self.address);
        }
    }
}
