//! One run of many.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use phalanx::Error;
use phalanx::distributed::SingleProcess;
use phalanx::run::{Ending, Provenance, ResumeOutcome, Run, RunFolder, RunStatus, Session};

use super::progress::Progress;
use super::{Job, JobOutcome};

/// What every run of a batch shares.
pub struct Shared<'a> {
    pub stop: &'a Arc<AtomicBool>,
    pub provenance: &'a Provenance,
    pub progress: Progress,
}

impl Shared<'_> {
    /// Begins or resumes a run and trains it to its end.
    pub fn run_job(&self, job: &Job) -> JobOutcome {
        match self.attempt(job) {
            Ok(outcome) => outcome,
            Err(Error::InUse { .. }) => JobOutcome::Busy,
            Err(error) => JobOutcome::Failed(error.to_string()),
        }
    }

    fn attempt(&self, job: &Job) -> phalanx::Result<JobOutcome> {
        let Some(mut run) = self.open(job)? else { return finished(job) };
        self.progress.begin(job, run.session().algorithm().iteration());
        let train = || run.train(self.stop, |summary| self.progress.advance(job, summary));
        match catch_unwind(AssertUnwindSafe(train)) {
            // What was written, not what is in memory: a later call must find the same numbers to the last
            // digit.
            Ok(Ok(Ending::Finished(_))) => finished(job),
            Ok(Ok(Ending::Stopped { .. })) => Ok(JobOutcome::Stopped),
            Ok(Err(error)) => Err(error),
            Err(panic) => {
                let reason = words_of(&*panic);
                run.fail(&reason);
                Ok(JobOutcome::Failed(reason))
            }
        }
    }

    /// The run, begun or resumed; none if it is finished.
    fn open(&self, job: &Job) -> phalanx::Result<Option<Run>> {
        if !job.folder.join("config.toml").exists() {
            let session = Session::new(&job.config)?;
            for warning in session.warnings() {
                self.progress.note(&format!("warning: {}: {warning}", job.name));
            }
            match Run::begin(session, &job.folder, self.provenance.clone()) {
                Ok(run) => return Ok(Some(run)),
                // Another process may have begun it in the meantime; then it is looked at once more.
                Err(error) if matches!(RunFolder::status(&job.folder, &job.config)?, RunStatus::Absent) => {
                    return Err(error);
                }
                Err(_) => {}
            }
        }
        match Run::resume(&job.folder, job.config.registry(), Arc::new(SingleProcess))? {
            ResumeOutcome::Finished => Ok(None),
            ResumeOutcome::Ready { run, notes } => {
                for note in notes {
                    self.progress.note(&format!("note: {}: {note}", job.name));
                }
                Ok(Some(*run))
            }
        }
    }
}

fn finished(job: &Job) -> phalanx::Result<JobOutcome> {
    let outcome = RunFolder::outcome(&job.folder)?;
    let outcome = outcome.ok_or_else(|| Error::file(&job.folder, "is finished but has no outcome.json"))?;
    Ok(JobOutcome::Done(Box::new(outcome)))
}

/// What a panic says.
pub fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("no message"))
}
