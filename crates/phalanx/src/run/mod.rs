//! Runs: configuration → checked → built; the loop around an algorithm, and what it leaves behind.

mod agents;
mod assess;
mod build;
pub mod certify;
pub mod check;
mod checkpoint;
pub mod checksums;
mod config;
mod evaluate;
mod events;
mod exact_evaluation;
pub mod export;
mod folder;
#[doc(hidden)]
pub mod in_memory;
mod job;
mod meta;
mod multipliers;
mod outcome;
mod portable;
pub mod preset;
mod session;
mod status;
mod stepped;
mod train;
mod usual_states;

#[doc(inline)]
pub use crate::distributed::{Communicator, SingleProcess};
#[doc(inline)]
pub use crate::learn::agent_metrics::Violations;
pub use crate::world::Registry;
pub use agents::{AgentsOutput, MOST_LISTED, WORST_LISTED, least_slack};
pub use assess::{
    Assessment, ConstraintAssessment, EventCount, Interval, TailAssessment, UntilDecided, Verdict,
    assessment_horizon,
};
pub use build::{problem, resolve, world};
pub use config::{
    CheckpointConfig, Config, ConstraintConfig, Difference, EvaluationConfig, GraphConfig, OutputConfig,
    UtilityConfig, WorldConfig,
};
pub use evaluate::{AssessmentProgress, Evaluation, Evaluator};
pub use exact_evaluation::{ExactEvaluation, QUICK_JOINT_SPACE};
pub use folder::RunFolder;
pub use job::{Job, JobOutcome};
pub use meta::Provenance;
pub use outcome::Outcome;
pub use portable::portable;
pub use session::Session;
pub use status::RunStatus;
pub use stepped::SteppedEpisode;
pub use train::{Ending, ResumeOutcome, Run, RunResults};
