//! One run of many.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use phalanx::Error;
use phalanx::run::{self, Ending, Provenance, ResumeOutcome, RunFolder, RunStatus, Session};

use super::progress::Progress;
use super::{Finish, Job};

/// Begins or resumes a run and trains it to its end.
pub fn carry_out(job: &Job, stop: &AtomicBool, provenance: &Provenance, progress: &Progress) -> Finish {
    match attempt(job, stop, provenance, progress) {
        Ok(finish) => finish,
        Err(Error::InUse { .. }) => Finish::Busy,
        Err(error) => Finish::Failed(error.to_string()),
    }
}

fn attempt(
    job: &Job,
    stop: &AtomicBool,
    provenance: &Provenance,
    progress: &Progress,
) -> phalanx::Result<Finish> {
    let (mut session, mut folder, elapsed) = match open(job, provenance, progress)? {
        Opened::Done(finish) => return Ok(finish),
        Opened::Ready(session, folder, elapsed) => (session, folder, elapsed),
    };
    progress.begin(job, session.algorithm().iteration());
    let train =
        || run::train(&mut session, &mut folder, elapsed, stop, |summary| progress.advance(job, summary));
    match catch_unwind(AssertUnwindSafe(train)) {
        // What was written, not what is in memory: a later call must find the same numbers to the last digit.
        Ok(Ok(Ending::Finished(..))) => finished(job),
        Ok(Ok(Ending::Stopped { .. })) => Ok(Finish::Stopped),
        Ok(Err(error)) => Err(error),
        Err(panic) => {
            let reason = words_of(&*panic);
            folder.fail(&reason);
            Ok(Finish::Failed(reason))
        }
    }
}

enum Opened {
    Done(Finish),
    Ready(Box<Session>, Box<RunFolder>, Duration),
}

fn open(job: &Job, provenance: &Provenance, progress: &Progress) -> phalanx::Result<Opened> {
    if !job.folder.join("config.toml").exists() {
        let session = Session::new(&job.config)?;
        for warning in session.warnings() {
            progress.note(&format!("warning: {}: {warning}", job.name));
        }
        match RunFolder::create(&job.folder, &session, provenance.clone()) {
            Ok(folder) => return Ok(Opened::Ready(Box::new(session), Box::new(folder), Duration::ZERO)),
            // Another process may have begun it in the meantime; then it is looked at once more.
            Err(error) if matches!(RunFolder::standing(&job.folder, &job.config)?, RunStatus::Free) => {
                return Err(error);
            }
            Err(_) => {}
        }
    }
    match RunFolder::resume(&job.folder, job.config.registry())? {
        ResumeOutcome::Finished => finished(job).map(Opened::Done),
        ResumeOutcome::Ready { session, folder, elapsed, notes } => {
            for note in notes {
                progress.note(&format!("note: {}: {note}", job.name));
            }
            Ok(Opened::Ready(session, folder, elapsed))
        }
    }
}

fn finished(job: &Job) -> phalanx::Result<Finish> {
    let outcome = RunFolder::outcome(&job.folder)?;
    let outcome = outcome.ok_or_else(|| Error::file(&job.folder, "is finished but has no outcome.json"))?;
    Ok(Finish::Done(Box::new(outcome)))
}

/// What a panic says.
pub fn words_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("no message"))
}
