//! The page as it is served: made anew when the run's files change, and judged once when the run is finished.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use phalanx::base::text;
use phalanx::run::Registry;
use serde_json::{Value, json};

use super::http::Answer;
use crate::on_threads;
use crate::report::{self, CONFIG, Document, Judging, ProblemPart};
use crate::threads::cannot_make;

/// The page is not made more often than this.
const MAKE_EVERY: Duration = Duration::from_millis(1000);

const SCRIPT: &str = include_str!("live.js");

/// What browsers are given.
pub struct LivePage {
    run: PathBuf,
    registry: Registry,
    threads: Option<usize>,
    page: Mutex<Page>,
}

/// Lengths and times of files, by which it is known whether they have changed.
type State = Vec<(u64, Option<SystemTime>)>;

/// The page as it was when the run's files were as they are.
struct Page {
    /// How many were made before.
    number: usize,
    state: State,
    at: Instant,
    problem: Problem,
    /// Without what went wrong since it was made.
    document: Document,
    whole: Arc<str>,
    main: Arc<str>,
}

/// That of the run, as long as its configuration is the same.
#[derive(Clone)]
struct Problem {
    state: State,
    part: Arc<ProblemPart>,
}

impl Page {
    fn new(state: State, problem: Problem, document: Document) -> Self {
        let empty: Arc<str> = "".into();
        let (whole, main) = (empty.clone(), empty);
        let mut page = Page { number: 0, state, at: Instant::now(), problem, document, whole, main };
        page.write(&page.document.clone());
        page
    }

    /// Another document is shown from now on.
    fn show(&mut self, document: Document) {
        self.number += 1;
        self.write(&document);
        self.document = document;
    }

    /// The last document stays, with a warning.
    fn show_warning(&mut self, warning: &str) {
        self.number += 1;
        self.document.value["judging"] = Value::Null;
        let mut document = self.document.clone();
        document.warn(&text::shown(warning));
        self.write(&document);
    }

    fn write(&mut self, document: &Document) {
        self.whole = report::whole(document, SCRIPT).into();
        self.main = report::main_part(document).into();
    }
}

impl LivePage {
    /// Of the run in a folder; fails where there is nothing to show.
    pub fn new(run: &Path, registry: &Registry, threads: Option<usize>) -> anyhow::Result<Arc<Self>> {
        let (state, before) = (state(run), config_state(run));
        let (problem, document) = on_threads(threads, || {
            let problem = Problem { state: before, part: Arc::new(ProblemPart::of(run, registry)?) };
            let document = Document::of(run, &problem.part, Judging::default())?;
            anyhow::Ok((problem, document))
        })??;
        let page = Mutex::new(Page::new(state, problem, document));
        let live = Arc::new(LivePage { run: run.into(), registry: registry.clone(), threads, page });
        live.judge_if_finished(&mut live.locked());
        Ok(live)
    }

    fn locked(&self) -> MutexGuard<'_, Page> {
        self.page.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a browser is given for a path; `tag`: the version that it has.
    pub fn answer(self: &Arc<Self>, path: &str, tag: Option<&str>) -> Answer {
        let mut page = self.locked();
        self.refresh(&mut page);
        let text = match path {
            "/" => page.whole.clone(),
            "/main" => page.main.clone(),
            _ => return Answer::NotFound,
        };
        let version = format!("\"{}-{}\"", std::process::id(), page.number);
        if tag == Some(&*version) { Answer::Unchanged } else { Answer::Page { text, version } }
    }

    /// Makes the page anew if the run has gone on. Where it cannot be made, it stays as it was, says so, and
    /// is not tried again before a file changes.
    fn refresh(self: &Arc<Self>, page: &mut Page) {
        let state = state(&self.run);
        if page.state == state || page.at.elapsed() < MAKE_EVERY {
            return;
        }
        let made = self.make(&page.problem);
        (page.state, page.at) = (state, Instant::now());
        match made {
            Ok((problem, document)) => {
                page.problem = problem;
                page.show(document);
                self.judge_if_finished(page);
            }
            Err(error) => page.show_warning(&format!(
                "The run's files cannot be shown as they are now: {error}. Below is what they said before."
            )),
        }
    }

    fn make(&self, problem: &Problem) -> anyhow::Result<(Problem, Document)> {
        on_threads(self.threads, || {
            let before = config_state(&self.run);
            let problem = if problem.state == before {
                problem.clone()
            } else {
                let part = Arc::new(ProblemPart::of(&self.run, &self.registry)?);
                Problem { state: before, part }
            };
            let document = Document::of(&self.run, &problem.part, Judging::default())?;
            Ok((problem, document))
        })?
    }

    /// Judges the policy of a finished run on the side; its verdicts are shown when they are there.
    fn judge_if_finished(self: &Arc<Self>, page: &mut Page) {
        if !page.document.is_finished {
            return;
        }
        let unjudged = page.document.clone();
        let episodes = Judging::default().episodes;
        page.document.value["judging"] = json!(format!(
            "The policy is being judged on up to {episodes} fresh episodes. Verdicts and an episode will appear here."
        ));
        page.show(page.document.clone());
        let (live, number) = (self.clone(), page.number);
        let judge = move || {
            let judged = live.judged(&unjudged);
            let mut page = live.locked();
            // The run may be another one by now.
            if page.number == number {
                page.document = unjudged;
                match judged {
                    Ok(document) => page.show(document),
                    Err(error) => page.show_warning(&cannot_be_judged(&error)),
                }
            }
        };
        if let Err(error) = thread::Builder::new().name("judge".into()).spawn(judge) {
            page.show_warning(&cannot_be_judged(&cannot_make(1, "threads", &error).into()));
        }
    }

    fn judged(&self, document: &Document) -> anyhow::Result<Document> {
        let mut document = document.clone();
        on_threads(self.threads, || document.judge(&self.run, &self.registry, Judging::default()))??;
        Ok(document)
    }
}

fn cannot_be_judged(error: &anyhow::Error) -> String {
    format!("The policy cannot be judged: {error}")
}

fn state(run: &Path) -> State {
    state_of(run, &["metrics.csv", "meta.json", "outcome.json", "policy.safetensors", CONFIG])
}

fn config_state(run: &Path) -> State {
    state_of(run, &[CONFIG])
}

fn state_of(run: &Path, names: &[&str]) -> State {
    let of = |name: &&str| match run.join(name).metadata() {
        Ok(data) => (data.len(), data.modified().ok()),
        Err(_) => (0, None),
    };
    names.iter().map(of).collect()
}
