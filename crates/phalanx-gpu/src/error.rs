//! What can go wrong on a device.

/// What went wrong, with what can be done about it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// There is no driver, or no device.
    #[error("{0}")]
    NoDevice(String),
    /// The device's memory is not enough.
    #[error("the GPU has {} of memory free, and {} are needed; use fewer agents or a smaller batch", size(*.free), size(*.needed))]
    OutOfMemory {
        /// Bytes that are wanted.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// Kernel text that does not compile.
    #[error("a kernel does not compile: {0}")]
    Compile(String),
    /// The device failed at something.
    #[error("the GPU failed while {doing}: {reason}")]
    Failed {
        /// At what.
        doing: &'static str,
        /// The driver's words.
        reason: String,
    },
}

/// Results of this crate.
pub type Result<T> = std::result::Result<T, GpuError>;

/// Bytes in words.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
