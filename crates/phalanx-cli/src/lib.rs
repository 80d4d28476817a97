//! Command line of Phalanx: commands, progress and tables. The mathematics is in the `phalanx` library.

#![forbid(unsafe_code)]

mod agents;
mod batch;
mod bench;
mod certify;
mod check;
mod completions;
mod devices;
mod eval;
mod exact;
mod export;
#[doc(hidden)]
pub mod in_memory;
mod links;
mod loss;
mod man;
mod new;
mod paper;
mod progress;
mod render;
mod replay;
mod report;
mod shell;
mod stop;
mod sweep;
mod table;
mod target;
mod threads;
mod train;
mod usage;
mod watch;

pub use train::provenance;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use phalanx::base::key::{KAPPA, SEED};
use phalanx::base::text;
use phalanx::run::{Config, Evaluator, Registry, preset};
use phalanx_pictures::plot;
use threads::on_threads;

/// Safe policies for many agents on a graph.
#[derive(Parser)]
#[command(name = "phalanx", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train a policy and evaluate it.
    Train(train::TrainArgs),
    /// Continue an interrupted run.
    Resume(train::ResumeArgs),
    /// Run a grid of settings, or random settings, with several seeds each.
    Sweep(sweep::SweepArgs),
    /// Evaluate a policy on fresh episodes: is every agent safe, and how sure is that?
    Eval(eval::EvalArgs),
    /// Run every agent of a run as its own process, over UDP, with the environment beside them.
    Agents(agents::AgentsArgs),
    /// Train until every agent is judged safe with a stated confidence, and write a certificate; or check
    /// one.
    Certify(certify::CertifyArgs),
    /// Write a run's policy for other programs, with a card that says what it is worth.
    Export(export::ExportArgs),
    /// Write the estimated occupancy measures of a run's policy (an expert for apprenticeship learning).
    Occupancy(eval::OccupancyArgs),
    /// Print exact values of a small model: occupancies, Q, gradients, stationarity, certificates.
    Exact(exact::ExactArgs),
    /// Say which assumptions of the theory hold, what its bounds are worth, and what to change; for small
    /// graphs.
    Check(check::CheckArgs),
    /// Plot a run (into its own folder), or several runs together, as SVG and PNG.
    Plot(PlotArgs),
    /// Write one page about a run, for a browser: verdicts, curves, an episode, settings.
    Report(report::ReportArgs),
    /// Show that page in a browser of this machine, kept up to date while the run trains.
    Watch(watch::WatchArgs),
    /// Draw an episode of a policy: an animated GIF, or PNGs.
    Render(render::RenderArgs),
    /// Simulate a recorded game again, action by action.
    Replay(replay::ReplayArgs),
    /// Write starter files: a problem of your own, or a road network.
    New(new::NewArgs),
    /// Print a configuration with every setting resolved.
    Config(Source),
    /// List the built-in presets.
    Presets,
    /// List the GPUs of this machine.
    Devices(devices::DevicesArgs),
    /// Reproduce the paper's experiments, and say which of its claims hold.
    Paper(paper::PaperArgs),
    /// Measure the speed of simulation alone.
    Bench(bench::BenchArgs),
    /// Print the script with which a shell completes commands and flags.
    Completions(completions::CompletionsArgs),
    /// Write manual pages: of the program, and of every command.
    Man(man::ManArgs),
}

#[derive(clap::Args)]
struct PlotArgs {
    /// Folders of the runs.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<std::path::PathBuf>,
    /// Folder for the figures of several runs together.
    #[arg(long, value_name = "DIR", default_value = "plots")]
    out: std::path::PathBuf,
    /// Draw what the policies achieve against the probability that a message is lost, e.g. 0,0.1,0.2,0.3
    #[arg(long, value_name = "P,P,…", value_delimiter = ',')]
    loss: Vec<f64>,
    /// Episodes that each is evaluated on.
    #[arg(long, default_value_t = 1000, requires = "loss")]
    episodes: usize,
}

fn draw(args: &PlotArgs, registry: &Registry) -> anyhow::Result<()> {
    let files = match &args.runs[..] {
        runs if !args.loss.is_empty() => loss::draw(runs, &args.loss, args.episodes, &args.out, registry)?,
        [run] => plot::plot_run(run)?,
        runs => plot::plot_runs(runs, &args.out)?,
    };
    for file in files {
        print(&format!("{}\n", file.display()));
    }
    Ok(())
}

/// Where a configuration comes from.
#[derive(clap::Args)]
struct Source {
    /// Preset (see `phalanx presets`) or TOML file.
    #[arg(value_name = "PRESET|FILE.toml")]
    source: String,
    /// Change a setting, e.g. --set dual.kind=proximal --set constraint.0.at_least=0.3
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
}

impl Source {
    /// The configuration, with `seed` on top if given.
    fn load(&self, seed: Option<u64>, registry: &Registry) -> phalanx::Result<Config> {
        let mut settings = self.sets.iter().map(|set| set_pair(set)).collect::<phalanx::Result<Vec<_>>>()?;
        if let Some(seed) = seed.filter(|&seed| i64::try_from(seed).is_err()) {
            let message = format!("{seed}; at most {} is possible", i64::MAX);
            return Err(phalanx::Error::argument("seed", message));
        }
        let seed = seed.map(|seed| seed.to_string());
        settings.extend(seed.as_deref().map(|seed| (SEED, seed)));
        Config::open(&self.source)?.with_registry(registry.clone()).with_all(settings)
    }
}

/// A setting of `--set`.
fn set_pair(set: &str) -> phalanx::Result<(&str, &str)> {
    let (key, value) = set.split_once('=').ok_or_else(|| {
        let message = format!("`{set}` has no `=`; write KEY=VALUE, e.g. {KAPPA}=2");
        phalanx::Error::argument("set", message)
    })?;
    Ok((key.trim(), value.trim()))
}

/// The run in the folder `source`, with its trained policy; none if it is no folder.
fn open_run(source: &str, sets: &[String], registry: &Registry) -> phalanx::Result<Option<Evaluator>> {
    let run = Path::new(source);
    if !run.is_dir() {
        return Ok(None);
    }
    let pairs = sets.iter().map(|set| set_pair(set)).collect::<phalanx::Result<Vec<_>>>()?;
    Evaluator::from_run_in(run, registry, &pairs).map(Some)
}

/// Runs the command line of this process; every command knows the worlds in `registry` by their names. Exit
/// status: 0 fine, 1 the run failed, 2 bad input.
pub fn main_with(registry: Registry) -> ExitCode {
    ExitCode::from(main_of(std::env::args_os(), &registry))
}

/// As [`main_with`], with the arguments (the program's name first) of another program, which may go on
/// afterwards: returns the exit status.
pub fn main_of(arguments: impl IntoIterator<Item = OsString>, registry: &Registry) -> u8 {
    // A panic is a bug, which the message above it says; scripts get the status of a failed run.
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let command_line = std::panic::AssertUnwindSafe(|| match Cli::try_parse_from(&arguments) {
        Ok(cli) => run(&cli, registry),
        Err(_) if arguments.len() <= 1 => usage::first_steps(),
        Err(error) => usage::report(&error),
    });
    std::panic::catch_unwind(command_line).unwrap_or(1)
}

fn run(cli: &Cli, registry: &Registry) -> u8 {
    stop::let_writes_fail();
    let done = match &cli.command {
        Command::Train(args) => train::train(args, registry),
        Command::Resume(args) => train::resume(args, registry),
        Command::Sweep(args) => sweep::sweep(args, registry),
        Command::Plot(args) => on_threads(None, || draw(args, registry)).and_then(std::convert::identity),
        Command::Render(args) => {
            on_threads(None, || render::render(args, registry)).and_then(std::convert::identity)
        }
        Command::Report(args) => report::run(args, registry),
        Command::Watch(args) => watch::run(args, registry),
        Command::Replay(args) => replay::replay(args),
        Command::New(args) => new::run(args),
        Command::Eval(args) => eval::eval(args, registry),
        Command::Agents(args) => agents::run(args, registry),
        Command::Certify(args) => certify::run(args, registry),
        Command::Export(args) => export::run(args, registry),
        Command::Occupancy(args) => eval::occupancy(args, registry),
        Command::Exact(args) => exact::exact(args),
        Command::Check(args) => check::check(args, registry),
        Command::Config(source) => {
            let resolved = source.load(None, registry).and_then(|config| phalanx::run::resolve(&config));
            resolved.map(|config| print(&config.to_toml())).map_err(Into::into)
        }
        Command::Presets => {
            list_presets();
            Ok(())
        }
        Command::Devices(args) => devices::devices(args),
        Command::Paper(args) => paper::paper(args, registry),
        Command::Bench(args) => bench::run(args),
        Command::Completions(args) => {
            completions::completions(args);
            Ok(())
        }
        Command::Man(args) => man::man(args),
    };
    let Err(error) = done else { return 0 };
    let cause = error.downcast_ref::<phalanx::Error>();
    // What went wrong comes first; a context says what can be done about it.
    let said = |cause: &phalanx::Error| match cause {
        // What is an argument of the library is a flag here.
        phalanx::Error::Argument { .. } => format!("--{cause}"),
        cause => cause.to_string(),
    };
    let message = match cause.map(said) {
        Some(said) if cause.map(ToString::to_string) != Some(error.to_string()) => format!("{said}; {error}"),
        Some(said) => said,
        None => error.to_string(),
    };
    if is_quiet() {
        // `mpirun` ends all processes as soon as one fails: the one that reports must come first.
        std::thread::sleep(std::time::Duration::from_millis(500));
    } else {
        say_error(&message);
    }
    let bad_input = cause.is_some_and(phalanx::Error::is_bad_input);
    if bad_input { 2 } else { 1 }
}

/// Whether errors are another process's to report.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Whether another process reports errors.
fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Leaves the reporting of errors to another process, or not.
#[cfg(feature = "mpi")]
fn be_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

fn list_presets() {
    let width = preset::names().map(str::len).max().unwrap_or(0);
    for name in preset::names() {
        print(&format!("{name:width$}  {}\n", preset::description(name).unwrap_or_default()));
    }
}

/// One line on standard error about a failure.
fn say_error(message: &str) {
    say(&format!("error: {message}"));
}

/// One line on standard error. Where it cannot be written to, nobody is told.
fn say(message: &str) {
    // At once: what other processes write must not come between.
    let line = text::shown(message) + "\n";
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Writes to standard output; a reader that has gone away is no error.
fn print(text: &str) {
    print_to_reader(text);
}

/// The same; returns whether there is still a reader.
fn print_to_reader(text: &str) -> bool {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => true,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => false,
        Err(error) => {
            say_error(&format!("cannot write to standard output: {error}"));
            std::process::exit(1);
        }
    }
}

/// A bar that counts iterations; hidden where there is no terminal.
fn progress_bar(iterations: usize, template: &str, is_hidden: bool) -> ProgressBar {
    let target = if is_hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(8) };
    let bar = ProgressBar::with_draw_target(Some(iterations as u64), target);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Refuses a flag's value that is not in its range.
fn check_range<T: PartialOrd + Display>(
    flag: &'static str,
    value: T,
    range: RangeInclusive<T>,
) -> phalanx::Result<()> {
    if range.contains(&value) {
        return Ok(());
    }
    let message = format!("{value}; allowed are {} to {}", range.start(), range.end());
    Err(phalanx::Error::argument(flag, message))
}
