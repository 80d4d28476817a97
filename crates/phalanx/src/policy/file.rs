//! `policy.safetensors`. Tables: one f64 tensor `theta.<i>` an agent, of shape `[∏ S_{N_i^κ}, A_i]`; linear
//! policies: the same with one row per feature; neural networks: one f32 tensor per layer,
//! `theta.<i>.<layer>`; shared ones: the same with the number of a kind in place of an agent's.
//!
//! A tensor per agent is too much for large graphs: a million names are a header of 100 MB, the most that
//! the format allows. Above [`MOST_NAMED`] agents tables and linear policies have all rows of θ in one tensor
//! `theta`; agent i's are `theta[offsets[i]..offsets[i + 1]]`, with `theta.columns[i]` = A_i columns.

use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors};

use super::Policy;
use crate::base::durable::{self, little_endian};
use crate::base::error::ensure;
use crate::base::files;
use crate::base::tensor::{self, Numbers, find, not_whole, read_numbers};
use crate::{Error, Ragged, Result};

/// Agents that have tensors of their own at most.
pub const MOST_NAMED: usize = 10_000;

/// What θ is written as: single precision if the policy computes in it.
fn dtype_of(policy: &dyn Policy) -> Dtype {
    if policy.is_single() { Dtype::F32 } else { Dtype::F64 }
}

/// Some of θ.
fn numbers_of_theta(shape: Vec<usize>, values: &[f64], dtype: Dtype) -> Numbers<'_> {
    let data = match dtype {
        Dtype::F32 => values.iter().flat_map(|&x| (x as f32).to_le_bytes()).collect(),
        _ => little_endian(values),
    };
    Numbers { shape, dtype, data }
}

fn numbers_of_counts(counts: &[usize]) -> Numbers<'static> {
    Numbers::list(Dtype::U64, counts.iter().flat_map(|&count| (count as u64).to_le_bytes()).collect())
}

/// Writes θ; the metadata say the kind of policy.
pub fn save(policy: &dyn Policy, path: &Path) -> Result<()> {
    // Layers of neural networks have shapes of their own, and far fewer agents can have one.
    save_as(policy, path, policy.agents() > MOST_NAMED && !policy.is_single())
}

/// Writes θ as one tensor for all agents if `is_flat`, else as tensors of its own for every agent.
fn save_as(policy: &dyn Policy, path: &Path, is_flat: bool) -> Result<()> {
    let metadata = HashMap::from([("policy".to_string(), policy.kind().to_string())]);
    let (theta, dtype) = (policy.theta(), dtype_of(policy));
    durable::replace(path, |temporary| {
        if is_flat {
            let tensors = [
                (FLAT, numbers_of_theta(vec![theta.data().len()], theta.data(), dtype)),
                (OFFSETS, numbers_of_counts(theta.offsets())),
                (COLUMNS, numbers_of_counts(policy.action_counts())),
            ];
            return tensor::write(temporary, tensors, Some(metadata));
        }
        let tensors = theta.iter().enumerate().flat_map(|(i, mut rest)| {
            policy.tensors(i).into_iter().map(move |(name, shape)| {
                let (values, tail) = rest.split_at(shape.iter().product());
                rest = tail;
                (name, numbers_of_theta(shape, values, dtype))
            })
        });
        tensor::write(temporary, tensors, Some(metadata))
    })
}

const FLAT: &str = "theta";
const OFFSETS: &str = "theta.offsets";
const COLUMNS: &str = "theta.columns";

/// θ as [`save`] wrote it for a policy of the same kind and shapes as `policy`.
pub fn load(policy: &dyn Policy, path: &Path) -> Result<Ragged<f64>> {
    let bytes = files::read(path)?;
    from_bytes(policy, &bytes, path)
}

/// As [`load`], from bytes at hand; `path` is what errors call them.
pub fn from_bytes(policy: &dyn Policy, bytes: &[u8], path: &Path) -> Result<Ragged<f64>> {
    let tensors = SafeTensors::deserialize(bytes).map_err(|e| not_whole(path, e))?;
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| not_whole(path, e))?;
    let found = header.metadata().as_ref().and_then(|metadata| metadata.get("policy")).map(String::as_str);
    ensure(found == Some(policy.kind()), || {
        let found = found.unwrap_or("unknown");
        Error::file(path, format!("is a policy of kind `{found}`, but `{}` is needed", policy.kind()))
    })?;
    let theta = if tensors.tensor(OFFSETS).is_ok() {
        load_flat(policy, path, &tensors)?
    } else {
        load_named(policy, path, &tensors)?
    };
    check_numbers(policy, path, &theta)?;
    Ok(theta)
}

fn load_named(policy: &dyn Policy, path: &Path, tensors: &SafeTensors<'_>) -> Result<Ragged<f64>> {
    let expected = (0..policy.theta().rows()).map(|row| policy.tensors(row).len()).sum::<usize>();
    ensure(tensors.len() == expected, || {
        Error::file(path, format!("has {} tensors, but this model has {expected}", tensors.len()))
    })?;
    let dtype = dtype_of(policy);
    let mut theta = policy.theta().clone();
    for row in 0..theta.rows() {
        let mut rest = theta.row_mut(row);
        for (name, shape) in policy.tensors(row) {
            let bytes = find(tensors, path, &name, dtype, &shape)?;
            let (values, tail) = rest.split_at_mut(shape.iter().product());
            rest = tail;
            read_numbers(bytes, dtype, values);
        }
    }
    Ok(theta)
}

fn load_flat(policy: &dyn Policy, path: &Path, tensors: &SafeTensors<'_>) -> Result<Ragged<f64>> {
    let expected = policy.theta();
    let same = |name: &str, counts: &[usize]| {
        let bytes = find(tensors, path, name, Dtype::U64, &[counts.len()])?;
        let found = durable::from_little_endian::<u64>(bytes);
        match found.zip(counts).enumerate().find(|(_, (found, count))| *found != **count as u64) {
            None => Ok(()),
            Some((i, (found, count))) => {
                Err(Error::file(path, format!("{name}[{i}] is {found}, but this model needs {count}")))
            }
        }
    };
    same(OFFSETS, expected.offsets())?;
    same(COLUMNS, policy.action_counts())?;
    let dtype = dtype_of(policy);
    let bytes = find(tensors, path, FLAT, dtype, &[expected.data().len()])?;
    let mut theta = Ragged::zeros_like(expected);
    read_numbers(bytes, dtype, theta.data_mut());
    Ok(theta)
}

/// Whether all of θ are finite, and laws where they must be.
fn check_numbers(policy: &dyn Policy, path: &Path, theta: &Ragged<f64>) -> Result<()> {
    let is_law = |law: &[f64]| law.iter().all(|&p| p >= 0.0) && (law.iter().sum::<f64>() - 1.0).abs() < 1e-9;
    for (i, row) in theta.iter().enumerate() {
        if let Some(bad) = row.iter().find(|x| !x.is_finite()) {
            return Err(Error::file(path, format!("theta.{i} holds {bad}")));
        }
        if policy.is_direct()
            && let Some(x) = row.chunks_exact(policy.actions(i)).position(|law| !is_law(law))
        {
            return Err(Error::file(path, format!("theta.{i}, row {x}: the probabilities do not sum to 1")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::stream::Stream;
    use crate::policy::{Parameterisation, Tabular};
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

    #[test]
    fn both_layouts_hold_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.safetensors");
        let make = |n, kappa, kind, std| {
            let world = Line::new(n, Start::Uniform, 0.0).unwrap();
            Tabular::new(&world, kappa, kind, std, &Stream::new(3)).unwrap()
        };
        for kind in [Parameterisation::Softmax, Parameterisation::Direct] {
            let saved = make(7, 1, kind, 1.0);
            for is_flat in [false, true] {
                save_as(&saved, &path, is_flat).unwrap();
                assert_eq!(&load(&make(7, 1, kind, 0.0), &path).unwrap(), saved.theta(), "{is_flat}");
            }
            // More agents, and more neighbours.
            let message = load(&make(8, 1, kind, 0.0), &path).unwrap_err().to_string();
            assert!(
                message.contains("theta.offsets is U64 of shape [8], but") && message.contains("[9]"),
                "{message}"
            );
            let message = load(&make(7, 2, kind, 0.0), &path).unwrap_err().to_string();
            assert!(message.contains("theta.offsets[1] is 8, but this model needs 16"), "{message}");
        }
        let mut laws = make(7, 1, Parameterisation::Direct, 0.0);
        laws.theta_mut().row_mut(3)[4] = 0.7;
        for is_flat in [false, true] {
            save_as(&laws, &path, is_flat).unwrap();
            assert!(load(&laws, &path).unwrap_err().to_string().contains("theta.3, row 2"));
        }
        let mut broken = make(7, 1, Parameterisation::Softmax, 0.0);
        broken.theta_mut().row_mut(5)[0] = f64::NAN;
        save_as(&broken, &path, true).unwrap();
        assert!(load(&broken, &path).unwrap_err().to_string().contains("theta.5 holds NaN"));
    }

    #[test]
    fn large_networks_have_one_tensor() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.safetensors");
        for (n, tensors) in [(MOST_NAMED, MOST_NAMED), (MOST_NAMED + 1, 3)] {
            let world = Line::new(n, Start::Uniform, 0.0).unwrap();
            let policy = Tabular::new(&world, 0, Parameterisation::Softmax, 1.0, &Stream::new(3)).unwrap();
            save(&policy, &path).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            assert_eq!(SafeTensors::deserialize(&bytes).unwrap().len(), tensors);
            assert_eq!(&load(&policy, &path).unwrap(), policy.theta());
        }
    }
}
