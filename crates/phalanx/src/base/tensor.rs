//! Numbers as tensors of safetensors files.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, View};

use crate::base::durable::from_little_endian;
use crate::base::error::ensure;
use crate::{Error, Result};

/// Numbers to be written as one tensor.
pub(crate) struct Numbers<'a> {
    pub shape: Vec<usize>,
    pub dtype: Dtype,
    pub data: Cow<'a, [u8]>,
}

impl<'a> Numbers<'a> {
    /// A list of numbers.
    pub fn list(dtype: Dtype, data: Cow<'a, [u8]>) -> Self {
        Numbers { shape: vec![data.len() * 8 / dtype.bitsize()], dtype, data }
    }
}

impl View for Numbers<'_> {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.data)
    }

    fn data_len(&self) -> usize {
        self.data.len()
    }
}

/// Writes a file, for its owner and all others to read, as the other files of a run are.
pub(crate) fn write<'a, N: AsRef<str> + Ord + std::fmt::Display>(
    path: &Path,
    tensors: impl IntoIterator<Item = (N, Numbers<'a>)>,
    metadata: Option<HashMap<String, String>>,
) -> std::io::Result<()> {
    safetensors::serialize_to_file(tensors, metadata, path).map_err(std::io::Error::other)?;
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    Ok(())
}

/// Says of a file that it is cut off or something else.
pub(crate) fn not_whole(path: &Path, error: safetensors::SafeTensorError) -> Error {
    Error::file(path, format!("is not a whole safetensors file: {error}"))
}

/// The tensor `name`, if it is of this kind and shape.
pub(crate) fn find<'a>(
    tensors: &SafeTensors<'a>,
    path: &Path,
    name: &str,
    dtype: Dtype,
    shape: &[usize],
) -> Result<&'a [u8]> {
    let tensor = tensors.tensor(name).map_err(|e| Error::file(path, format!("{name}: {e}")))?;
    let found = (tensor.dtype(), tensor.shape());
    ensure(found == (dtype, shape), || {
        let needed = format!("this model needs {dtype:?} of shape {shape:?}");
        Error::file(path, format!("{name} is {:?} of shape {:?}, but {needed}", found.0, found.1))
    })?;
    Ok(tensor.data())
}

/// Numbers of a tensor in single or double precision.
pub(crate) fn read_numbers(bytes: &[u8], dtype: Dtype, out: &mut [f64]) {
    if dtype == Dtype::F32 {
        out.iter_mut().zip(from_little_endian::<f32>(bytes)).for_each(|(x, number)| *x = f64::from(number));
    } else {
        out.iter_mut().zip(from_little_endian(bytes)).for_each(|(x, number)| *x = number);
    }
}
