//! Small neural networks, one per agent, at the speed of the machine.
//!
//! A [`Bank`] holds the neural networks of all agents: parameters, Adam's moments, gradient steps. A [`Net`]
//! knows sizes and offsets; the parameters of a neural network are one slice, so that they are saved,
//! averaged, clipped and stepped as one. [`Net::forward`] and [`Net::backward`] take a batch for one neural
//! network and run on one thread: the caller spreads agents over threads, and results cannot depend on how.
//! Both are written over products and a few other operations; [`Net::td`], one sample at a time, has a fused
//! kernel of its own.
//!
//! ```
//! use phalanx::neural::{Adam, Architecture, Batch, Loss, Net, Symbols, Tape};
//! use phalanx::base::stream::{Place, Purpose, Stream};
//!
//! // Learn the exclusive or of two bits.
//! let architecture = Architecture {
//!     rows: None,
//!     symbols: vec![Symbols { slots: 2, vocabulary: 2, dimension: 4 }],
//!     hidden: vec![16],
//!     outputs: 1,
//! };
//! let net = Net::new(architecture, "critic.network")?;
//! let place = Place { purpose: Purpose::PolicyInit, iteration: 0, trajectory: 0 };
//! let mut w: Vec<f32> = net.initialise(1.0, &mut Stream::new(1).sequence(place, 0));
//! let batch = Batch { size: 4, rows: &[], symbols: &[0, 0, 0, 1, 1, 0, 1, 1] };
//! let targets = [0.0, 1.0, 1.0, 0.0];
//! let (mut tape, mut d_outputs) = (Tape::default(), [0.0; 4]);
//! let mut gradient = vec![0.0; w.len()];
//! let (mut first, mut second) = (vec![0.0; w.len()], vec![0.0; w.len()]);
//! let mut loss = 1.0;
//! for step in 1..=200 {
//!     let outputs = net.forward(&w, batch, &mut tape);
//!     loss = Loss::Squared.evaluate(outputs, &targets, &mut d_outputs);
//!     net.backward(&w, batch, &mut tape, &d_outputs, &mut gradient);
//!     Adam::new(0.02).descend(step, &mut w, &gradient, &mut first, &mut second);
//! }
//! assert!(loss < 1e-3);
//! # Ok::<(), phalanx::Error>(())
//! ```

mod architecture;
mod bank;
mod heads;
mod init;
mod kernel;
mod lanes;
mod matrix;
mod online;
mod ops;
mod optimizer;
mod pass;
mod portable;
mod real;
mod samples;
#[cfg(test)]
mod tests;
mod transpose;

pub use architecture::{Architecture, Net, Rows, Symbols, Tensor};
pub use bank::{AgentNetworks, Bank, BankPart, BankSettings, NetworkMut, Training};
pub use heads::{Loss, softmax};
pub use lanes::Lanes;
pub use online::{Chain, Target};
pub(crate) use optimizer::BETA;
pub use optimizer::{Adam, AdamStep, Descent, OptimizerKind, adam, clip, polyak, sgd};
pub use pass::{Batch, Tape};
pub use real::Real;
pub use samples::{Inputs, Minibatches, shuffle};
