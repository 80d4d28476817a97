//! Where Algorithm 1 runs: on the processor or on a GPU.

use phalanx_gpu::{DeviceDescription, Gpu, GpuError};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// `device`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceChoice {
    /// The processor.
    #[default]
    Cpu,
    /// The first CUDA device; of several ranks, each takes the one of its number.
    Cuda,
    /// A CUDA device if there is one, the configuration can run on it, and an iteration has at least
    /// [`WORTH_A_GPU`] agent-steps; else the processor.
    Auto,
    /// The kernels of a CUDA device, compiled as C and run on the processor: slow, for tests of kernels.
    Emulated,
}

/// Agent-steps per iteration from which `auto` takes a GPU: below, the processor is done before the kernels
/// of an iteration have started.
pub const WORTH_A_GPU: u128 = 1_000_000;

/// Name of the key.
pub const DEVICE: &str = "device";

impl DeviceChoice {
    /// Whether it is the processor's own code.
    pub fn is_cpu(&self) -> bool {
        *self == DeviceChoice::Cpu
    }

    /// By its name in the configuration.
    pub fn from_name(name: &str) -> Result<Self> {
        [DeviceChoice::Cpu, DeviceChoice::Cuda, DeviceChoice::Auto, DeviceChoice::Emulated]
            .into_iter()
            .find(|choice| choice.name() == name)
            .ok_or_else(|| Error::config(DEVICE, format!("`{name}`; allowed are `cpu`, `cuda` and `auto`")))
    }

    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            DeviceChoice::Cpu => "cpu",
            DeviceChoice::Cuda => "cuda",
            DeviceChoice::Auto => "auto",
            DeviceChoice::Emulated => "emulated",
        }
    }

    /// The device; none for the processor. `agent_steps` is the work of an iteration. Ranks share out the
    /// devices in turn.
    pub(super) fn open(self, agent_steps: u128, rank: usize) -> Result<Option<Gpu>> {
        let open = || Gpu::open(if rank == 0 { 0 } else { rank % phalanx_gpu::devices()?.len().max(1) });
        match self {
            DeviceChoice::Cpu => Ok(None),
            DeviceChoice::Cuda => open().map(Some).map_err(failure),
            DeviceChoice::Emulated => Gpu::emulated().map(Some).map_err(failure),
            DeviceChoice::Auto if agent_steps < WORTH_A_GPU => Ok(None),
            DeviceChoice::Auto => Ok(open().ok()),
        }
    }
}

/// The GPUs of this machine; an error where there is no driver.
pub fn devices() -> Result<Vec<DeviceDescription>> {
    phalanx_gpu::devices().map_err(failure)
}

/// What a device says, as an error of the library.
pub(crate) fn failure(error: GpuError) -> Error {
    match error {
        GpuError::NoDevice(message) => Error::config(DEVICE, message),
        error @ GpuError::OutOfMemory { .. } => Error::config(DEVICE, error.to_string()),
        error => Error::Device { message: error.to_string() },
    }
}

/// Something cannot run on a GPU; `what` is the setting to change.
pub(super) fn refused(field: &str, what: impl std::fmt::Display) -> Error {
    Error::config(field, format!("{what} with device = \"cuda\"; use device = \"cpu\""))
}
