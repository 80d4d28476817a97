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

/// Begins or resumes a run and trains it to its end.
pub fn run_job(
    job: &Job,
    stop: &Arc<AtomicBool>,
    provenance: &Provenance,
    progress: &Progress,
) -> JobOutcome {
    match attempt(job, stop, provenance, progress) {
        Ok(outcome) => outcome,
        Err(Error::InUse { .. }) => JobOutcome::Busy,
        Err(error) => JobOutcome::Failed(error.to_string()),
    }
}

fn attempt(
    job: &Job,
    stop: &Arc<AtomicBool>,
    provenance: &Provenance,
    progress: &Progress,
) -> phalanx::Result<JobOutcome> {
    let Some(mut run) = open(job, provenance, progress)? else { return finished(job) };
    progress.begin(job, run.session().algorithm().iteration());
    match catch_unwind(AssertUnwindSafe(|| run.train(stop, |summary| progress.advance(job, summary)))) {
        // What was written, not what is in memory: a later call must find the same numbers to the last digit.
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
fn open(job: &Job, provenance: &Provenance, progress: &Progress) -> phalanx::Result<Option<Run>> {
    if !job.folder.join("config.toml").exists() {
        let session = Session::new(&job.config)?;
        for warning in session.warnings() {
            progress.note(&format!("warning: {}: {warning}", job.name));
        }
        match Run::begin(session, &job.folder, provenance.clone()) {
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
                progress.note(&format!("note: {}: {note}", job.name));
            }
            Ok(Some(*run))
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
