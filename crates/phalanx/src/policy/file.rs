//! `policy.safetensors`: one f64 tensor `theta.<i>` an agent, of shape `[∏ S_{N_i^κ}, A_i]`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, View};

use super::{Parameterisation, Tabular};
use crate::durable::{self, little_endian};
use crate::{Error, Result};

/// One row of θ, borrowed for writing.
struct ThetaView<'a> {
    shape: [usize; 2],
    values: &'a [f64],
}

impl View for ThetaView<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F64
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        little_endian(self.values)
    }

    fn data_len(&self) -> usize {
        self.values.len() * 8
    }
}

impl Tabular {
    /// Writes θ; the metadata say the parameterisation.
    pub fn save(&self, path: &Path) -> Result<()> {
        let tensors = (0..self.agents()).map(|i| {
            let values = self.theta().row(i);
            let shape = [values.len() / self.actions(i), self.actions(i)];
            (format!("theta.{i}"), ThetaView { shape, values })
        });
        let kind = match self.parameterisation() {
            Parameterisation::Softmax => "softmax",
            Parameterisation::Direct => "direct",
        };
        let metadata = HashMap::from([("policy".to_string(), kind.to_string())]);
        durable::replace(path, |temporary| {
            safetensors::serialize_to_file(tensors, Some(metadata), temporary).map_err(std::io::Error::other)
        })
    }

    /// Replaces θ by what [`Tabular::save`] wrote for a policy of the same shapes.
    pub fn load(&mut self, path: &Path) -> Result<()> {
        let bytes = std::fs::read(path).map_err(|e| Error::file(path, format!("cannot be read: {e}")))?;
        let tensors = SafeTensors::deserialize(&bytes)
            .map_err(|e| Error::file(path, format!("is not a whole safetensors file: {e}")))?;
        let mut theta = self.theta().clone();
        for i in 0..self.agents() {
            let name = format!("theta.{i}");
            let tensor = tensors.tensor(&name).map_err(|e| Error::file(path, format!("{name}: {e}")))?;
            let row = theta.row_mut(i);
            let expected = [row.len() / self.actions(i), self.actions(i)];
            if tensor.dtype() != Dtype::F64 || tensor.shape() != expected {
                return Err(Error::file(
                    path,
                    format!(
                        "{name} is {:?} of shape {:?}, but this model needs F64 of shape {expected:?}",
                        tensor.dtype(),
                        tensor.shape()
                    ),
                ));
            }
            for (x, bytes) in row.iter_mut().zip(tensor.data().chunks_exact(8)) {
                let mut word = [0; 8];
                word.copy_from_slice(bytes);
                *x = f64::from_le_bytes(word);
            }
            if let Some(bad) = row.iter().find(|x| !x.is_finite()) {
                return Err(Error::file(path, format!("{name} holds {bad}")));
            }
        }
        self.update(|own| *own = theta);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        saved.save(&path).unwrap();
        let mut loaded = make(1, 0.0);
        loaded.load(&path).unwrap();
        assert_eq!(loaded.theta(), saved.theta());
        let message = make(2, 0.0).load(&path).unwrap_err().to_string();
        assert!(message.contains("[4, 2]") && message.contains("[8, 2]"), "{message}");
        std::fs::write(&path, &std::fs::read(&path).unwrap()[..50]).unwrap();
        assert!(loaded.load(&path).unwrap_err().to_string().contains("safetensors"));
    }
}
