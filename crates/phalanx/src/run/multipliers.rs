//! `multipliers.safetensors`: μ at the end of a run, one tensor `mu` of f64, agent by agent.

use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors};

use super::checksums;
use crate::base::durable::{self, little_endian};
use crate::base::files;
use crate::base::tensor::{self, Numbers};
use crate::utility::problem::Problem;
use crate::{Error, Ragged, Result};

pub(super) const FILE: &str = "multipliers.safetensors";

/// Writes the multipliers of a run.
pub(super) fn write(folder: &Path, mu: &Ragged<f64>) -> Result<()> {
    durable::replace(&folder.join(FILE), |temporary| {
        tensor::write(temporary, [("mu", Numbers::list(Dtype::F64, little_endian(mu.data())))], None)
    })
}

/// The multipliers of a finished run; none if it is not finished.
pub(super) fn read(folder: &Path, problem: &Problem) -> Result<Option<Ragged<f64>>> {
    let path = folder.join(FILE);
    if !path.exists() {
        return Ok(None);
    }
    let mu = from_bytes(&files::read(&path)?, &path, problem)?;
    checksums::check(folder, FILE)?;
    Ok(Some(mu))
}

/// The multipliers in bytes at hand; `path` is what errors call them.
pub(super) fn from_bytes(bytes: &[u8], path: &Path, problem: &Problem) -> Result<Ragged<f64>> {
    let tensors = SafeTensors::deserialize(bytes).map_err(|e| tensor::not_whole(path, e))?;
    let mut mu = Ragged::zeros(problem.agents.iter().map(|agent| agent.constraints.len()));
    let data = tensor::find(&tensors, path, "mu", Dtype::F64, &[mu.data().len()])?;
    tensor::read_numbers(data, Dtype::F64, mu.data_mut());
    if let Some(bad) = mu.data().iter().find(|x| !x.is_finite()) {
        return Err(Error::file(path, format!("mu holds {bad}")));
    }
    Ok(mu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Config, Evaluator};

    #[test]
    fn what_is_written_is_read_and_what_does_not_fit_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let evaluator = Evaluator::new(&Config::preset("synthetic").unwrap()).unwrap();
        assert_eq!(read(folder.path(), evaluator.problem()).unwrap(), None);
        let mu = Ragged::from_rows((0..10).map(|i| [f64::from(i)]));
        write(folder.path(), &mu).unwrap();
        assert_eq!(read(folder.path(), evaluator.problem()).unwrap(), Some(mu));
        let refused = |mu: Ragged<f64>| {
            write(folder.path(), &mu).unwrap();
            read(folder.path(), evaluator.problem()).unwrap_err().to_string()
        };
        let message = refused(Ragged::from_rows([[1.0]]));
        assert!(message.contains("shape [1], but this model needs F64 of shape [10]"), "{message}");
        assert!(refused(Ragged::from_rows([[f64::NAN; 10]])).contains("mu holds NaN"));
        std::fs::write(folder.path().join(FILE), "x").unwrap();
        let message = read(folder.path(), evaluator.problem()).unwrap_err().to_string();
        assert!(message.contains("not a whole safetensors file"), "{message}");
    }
}
