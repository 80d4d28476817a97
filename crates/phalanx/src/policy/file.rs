//! `policy.safetensors`. Tables: one f64 tensor `theta.<i>` an agent, of shape `[∏ S_{N_i^κ}, A_i]`; linear policies:
//! the same with one row a feature; networks: one f32 tensor a layer, `theta.<i>.<layer>`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, View};

use super::Policy;
use crate::durable::{self, little_endian};
use crate::{Error, Ragged, Result};

/// One row of θ, borrowed for writing.
struct ThetaView<'a> {
    shape: Vec<usize>,
    values: &'a [f64],
    single: bool,
}

impl View for ThetaView<'_> {
    fn dtype(&self) -> Dtype {
        if self.single { Dtype::F32 } else { Dtype::F64 }
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        if self.single {
            return Cow::Owned(self.values.iter().flat_map(|&x| (x as f32).to_le_bytes()).collect());
        }
        little_endian(self.values)
    }

    fn data_len(&self) -> usize {
        self.values.len() * if self.single { 4 } else { 8 }
    }
}

/// Writes θ; the metadata say the kind of policy.
pub fn save(policy: &dyn Policy, path: &Path) -> Result<()> {
    let single = policy.is_single();
    let tensors = (0..policy.agents()).flat_map(|i| {
        let mut rest = policy.theta().row(i);
        policy.tensors(i).into_iter().map(move |(name, shape)| {
            let (values, tail) = rest.split_at(shape.iter().product());
            rest = tail;
            (name, ThetaView { shape, values, single })
        })
    });
    let metadata = HashMap::from([("policy".to_string(), policy.kind().to_string())]);
    durable::replace(path, |temporary| {
        safetensors::serialize_to_file(tensors, Some(metadata), temporary).map_err(std::io::Error::other)?;
        durable::readable_by_all(temporary)
    })
}

/// θ as [`save`] wrote it for a policy of the same kind and shapes as `policy`.
pub fn load(policy: &dyn Policy, path: &Path) -> Result<Ragged<f64>> {
    let bytes = std::fs::read(path).map_err(|e| Error::file(path, format!("cannot be read: {e}")))?;
    let tensors = SafeTensors::deserialize(&bytes)
        .map_err(|e| Error::file(path, format!("is not a whole safetensors file: {e}")))?;
    let (_, header) = SafeTensors::read_metadata(&bytes)
        .map_err(|e| Error::file(path, format!("is not a whole safetensors file: {e}")))?;
    let found = header.metadata().as_ref().and_then(|metadata| metadata.get("policy")).map(String::as_str);
    if found != Some(policy.kind()) {
        let found = found.unwrap_or("unknown");
        let message = format!("is a policy of kind `{found}`, but `{}` is needed", policy.kind());
        return Err(Error::file(path, message));
    }
    let expected = (0..policy.agents()).map(|i| policy.tensors(i).len()).sum::<usize>();
    if tensors.len() != expected {
        let message = format!("has {} tensors, but this model has {expected}", tensors.len());
        return Err(Error::file(path, message));
    }
    let dtype = if policy.is_single() { Dtype::F32 } else { Dtype::F64 };
    let mut theta = policy.theta().clone();
    for i in 0..policy.agents() {
        let mut rest = theta.row_mut(i);
        for (name, shape) in policy.tensors(i) {
            let tensor = tensors.tensor(&name).map_err(|e| Error::file(path, format!("{name}: {e}")))?;
            if tensor.dtype() != dtype || tensor.shape() != shape {
                let found = (tensor.dtype(), tensor.shape());
                let message = format!(
                    "{name} is {:?} of shape {:?}, but this model needs {dtype:?} of shape {shape:?}",
                    found.0, found.1
                );
                return Err(Error::file(path, message));
            }
            let (values, tail) = rest.split_at_mut(shape.iter().product());
            rest = tail;
            read_numbers(tensor.data(), dtype, values);
            if let Some(bad) = values.iter().find(|x| !x.is_finite()) {
                return Err(Error::file(path, format!("{name} holds {bad}")));
            }
            let is_law =
                |law: &[f64]| law.iter().all(|&p| p >= 0.0) && (law.iter().sum::<f64>() - 1.0).abs() < 1e-9;
            let laws = values.chunks_exact(policy.actions(i));
            if let Some(x) = laws.into_iter().position(|law| policy.is_direct() && !is_law(law)) {
                return Err(Error::file(path, format!("{name}, row {x}: the probabilities do not sum to 1")));
            }
        }
    }
    Ok(theta)
}

fn read_numbers(bytes: &[u8], dtype: Dtype, out: &mut [f64]) {
    if dtype == Dtype::F32 {
        let words = bytes.as_chunks::<4>().0;
        out.iter_mut().zip(words).for_each(|(x, word)| *x = f64::from(f32::from_le_bytes(*word)));
    } else {
        let words = bytes.as_chunks::<8>().0;
        out.iter_mut().zip(words).for_each(|(x, word)| *x = f64::from_le_bytes(*word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Parameterisation, Tabular};
    use crate::stream::Stream;
    use crate::world::{Line, Start};

    #[test]
    fn what_is_saved_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.safetensors");
        let world = Line::new(4, Start::Uniform, 0.0).unwrap();
        let make = |kappa, std| {
            Tabular::new(&world, kappa, Parameterisation::Softmax, std, &Stream::new(3)).unwrap()
        };
        let saved = make(1, 1.0);
        save(&saved, &path).unwrap();
        assert_eq!(&load(&make(1, 0.0), &path).unwrap(), saved.theta());
        let message = load(&make(2, 0.0), &path).unwrap_err().to_string();
        assert!(message.contains("[4, 2]") && message.contains("[8, 2]"), "{message}");
        let direct = Tabular::new(&world, 1, Parameterisation::Direct, 0.0, &Stream::new(3)).unwrap();
        let message = load(&direct, &path).unwrap_err().to_string();
        assert!(message.contains("kind `softmax`, but `direct`"), "{message}");
        std::fs::write(&path, &std::fs::read(&path).unwrap()[..50]).unwrap();
        assert!(load(&saved, &path).unwrap_err().to_string().contains("safetensors"));
    }
}
