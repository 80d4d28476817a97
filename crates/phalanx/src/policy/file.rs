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
        let metadata = HashMap::from([("policy".to_string(), self.kind().to_string())]);
        durable::replace(path, |temporary| {
            safetensors::serialize_to_file(tensors, Some(metadata), temporary)
                .map_err(std::io::Error::other)?;
            durable::readable_by_all(temporary)
        })
    }

    fn kind(&self) -> &'static str {
        match self.parameterisation() {
            Parameterisation::Softmax => "softmax",
            Parameterisation::Direct => "direct",
        }
    }

    /// Replaces θ by what [`Tabular::save`] wrote for a policy of the same shapes.
    pub fn load(&mut self, path: &Path) -> Result<()> {
        let bytes = std::fs::read(path).map_err(|e| Error::file(path, format!("cannot be read: {e}")))?;
        let tensors = SafeTensors::deserialize(&bytes)
            .map_err(|e| Error::file(path, format!("is not a whole safetensors file: {e}")))?;
        let (_, header) = SafeTensors::read_metadata(&bytes)
            .map_err(|e| Error::file(path, format!("is not a whole safetensors file: {e}")))?;
        let found =
            header.metadata().as_ref().and_then(|metadata| metadata.get("policy")).map(String::as_str);
        if found != Some(self.kind()) {
            let found = found.unwrap_or("unknown");
            return Err(Error::file(
                path,
                format!("is a policy of kind `{found}`, but `{}` is needed", self.kind()),
            ));
        }
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
            let is_law =
                |law: &[f64]| law.iter().all(|&p| p >= 0.0) && (law.iter().sum::<f64>() - 1.0).abs() < 1e-9;
            let direct = self.parameterisation() == Parameterisation::Direct;
            if let Some(x) = row.chunks_exact(self.actions(i)).position(|law| direct && !is_law(law)) {
                return Err(Error::file(path, format!("{name}, row {x}: the probabilities do not sum to 1")));
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
        let mut direct = Tabular::new(&world, 1, Parameterisation::Direct, 0.0, &Stream::new(3)).unwrap();
        let message = direct.load(&path).unwrap_err().to_string();
        assert!(message.contains("kind `softmax`, but `direct`"), "{message}");
        std::fs::write(&path, &std::fs::read(&path).unwrap()[..50]).unwrap();
        assert!(loaded.load(&path).unwrap_err().to_string().contains("safetensors"));
    }
}
