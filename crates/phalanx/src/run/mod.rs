//! Runs: configuration → checked → built; the loop around an algorithm, and what it leaves behind.

mod agents;
mod assess;
mod build;
pub mod check;
mod checkpoint;
mod config;
mod evaluate;
mod events;
mod folder;
mod multipliers;
mod outcome;
pub mod preset;
mod registry;
mod session;
mod standing;
mod train;
mod truth;

pub use agents::{AgentsOutput, MOST_LISTED, WORST_LISTED, least_slack};
pub use assess::{Assessment, ConstraintAssessment, Interval, Verdict, assess, assessment_horizon};
pub use build::{problem, resolve, world};
pub use config::{
    ActorConfig, Algorithm, CheckpointConfig, Config, ConstraintConfig, CriticConfig, CriticKind,
    CriticStart, CriticStep, Difference, DualConfig, EvaluationConfig, NetworkConfig, OutputConfig,
    PolicyConfig, StepRuleKind, UtilityConfig, WorldConfig,
};
pub use evaluate::{Evaluation, evaluate};
pub use folder::{Provenance, Resumed, RunFolder};
pub use outcome::Outcome;
pub use registry::Registry;
pub use session::Session;
pub use standing::Standing;
pub use train::{Ending, PartEnding, ResumedPart, resume_part, train, train_part};
pub use truth::{Evaluated, QUICK_JOINT_SPACE, Truth};
