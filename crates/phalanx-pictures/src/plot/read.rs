//! Reading the CSV files of a run folder.
//!
//! Every error names the file, the line and what to do about it: these files may be cut short by a killed run
//! or edited by hand.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use phalanx::base::files;
use phalanx::run::checksums;
use phalanx::{Error, Result};

/// The columns of `metrics.csv` that are drawn, one entry per iteration. An empty cell is a NaN.
#[allow(missing_docs)]
#[derive(Debug, Default)]
pub struct Metrics {
    pub iteration: Vec<f64>,
    /// NaN throughout if the world has no return.
    pub return_: Vec<f64>,
    pub objective: Vec<f64>,
    pub violation_total: Vec<f64>,
    pub violation_max: Vec<f64>,
    pub mu_mean: Vec<f64>,
    pub mu_largest: Vec<f64>,
}

impl Metrics {
    /// Reads `<run>/metrics.csv`, which must have a row.
    pub fn read(run: &Path) -> Result<Self> {
        let path = run.join("metrics.csv");
        Metrics::parse(&contents(&path)?, &path)
    }

    /// The same of a run that may have only just begun: `None` if it has no row yet, or no file.
    pub fn read_if_any(run: &Path) -> Result<Option<Self>> {
        let path = run.join("metrics.csv");
        if !path.exists() {
            return Ok(None);
        }
        let bytes = contents(&path)?;
        let mut ends = (0..bytes.len()).filter(|&at| bytes[at] == b'\n');
        // The first row may be half written.
        let whole = match (ends.next(), ends.next()) {
            (Some(header), None) => &bytes[..=header],
            _ => &bytes[..],
        };
        let metrics = Metrics::columns(whole, &path)?;
        Ok((!metrics.iteration.is_empty()).then_some(metrics))
    }

    /// The same from bytes at hand; `path` is what errors call them.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self> {
        let metrics = Metrics::columns(bytes, path)?;
        if metrics.iteration.is_empty() {
            let message = "has no rows, so there is nothing to draw; train for at least one iteration";
            return Err(Error::file(path, message));
        }
        Ok(metrics)
    }

    fn columns(bytes: &[u8], path: &Path) -> Result<Self> {
        let names = "iteration,return,objective,violation_total,violation_max,mu_mean,mu_largest";
        let [iteration, return_, objective, violation_total, violation_max, mu_mean, mu_largest] =
            read_columns(bytes, path, names)?;
        Ok(Metrics { iteration, return_, objective, violation_total, violation_max, mu_mean, mu_largest })
    }

    /// Whether any iteration has a return.
    pub fn has_return(&self) -> bool {
        self.return_.iter().any(|value| value.is_finite())
    }
}

/// Reads the iteration, X, Y and E from `<run>/metrics.csv`; `None` if it does not have them: only runs
/// without sampling do.
pub fn stationarity(run: &Path) -> Result<Option<[Vec<f64>; 4]>> {
    let path = run.join("metrics.csv");
    let mut header = String::new();
    let read = File::open(&path).and_then(|file| BufReader::new(file).read_line(&mut header));
    // What is wrong with the file is said where the other columns are read.
    if read.is_err() || !header.trim_end().ends_with(",X,Y,E") {
        return Ok(None);
    }
    read_columns(&contents(&path)?, &path, "iteration,X,Y,E").map(Some)
}

/// The named columns of a file of numbers. A return that is not there is a NaN.
pub(super) fn read_columns<const N: usize>(
    bytes: &[u8],
    path: &Path,
    names: &'static str,
) -> Result<[Vec<f64>; N]> {
    let mut columns = [const { Vec::new() }; N];
    read_rows::<N>(bytes, path, names, |cells| {
        for (column, cell) in columns.iter_mut().zip(cells) {
            let is_missing = cell.column == "return" && cell.text.is_empty();
            column.push(if is_missing { f64::NAN } else { cell.number()? });
        }
        Ok(())
    })?;
    Ok(columns)
}

/// One row of `agents.csv`: how far an agent is on the safe side of one constraint.
#[derive(Debug, PartialEq)]
pub struct Margin {
    pub agent: u64,
    pub constraint: String,
    /// Distance of the value from its threshold, positive on the safe side.
    pub slack: f64,
}

/// Reads `<run>/agents.csv`; no rows if the run has no constraints, `None` if it has not been written: that
/// happens at the end of a run.
pub fn margins(run: &Path) -> Result<Option<Vec<Margin>>> {
    let path = run.join("agents.csv");
    if !path.exists() {
        return Ok(None);
    }
    parse_margins(&contents(&path)?, &path).map(Some)
}

/// The same from bytes at hand; `path` is what errors call them.
pub fn parse_margins(bytes: &[u8], path: &Path) -> Result<Vec<Margin>> {
    let mut margins = Vec::new();
    read_rows(bytes, path, "agent,constraint,value,bound,threshold", |cells| {
        let [agent, constraint, value, bound, threshold] = cells;
        let (value, threshold) = (value.number()?, threshold.number()?);
        let slack = match bound.text {
            b"at_least" => value - threshold,
            b"at_most" => threshold - value,
            _ => return Err(bound.refused("allowed are `at_least` and `at_most`")),
        };
        margins.push(Margin { agent: agent.index()?, constraint: constraint.words(), slack });
        Ok(())
    })?;
    Ok(margins)
}

/// How one constraint's slack is spread over the agents, from `agents-summary.csv`.
#[derive(Debug, PartialEq)]
pub struct Spread {
    pub constraint: String,
    /// Agents that have it.
    pub count: u64,
    /// Those that break it.
    pub violated: u64,
    /// The slack that a share of them stays below, as (percent, slack).
    pub quantiles: Vec<(f64, f64)>,
}

/// Columns of `agents-summary.csv`; from the fifth on they are quantiles.
const SUMMARY: &str =
    "quantity,constraint,count,negative,min,p0.1,p1,p5,p10,p25,p50,p75,p90,p95,p99,p99.9,max";
/// The shares that quantiles stand for, in percent.
const PERCENT: [f64; 13] = [0.0, 0.1, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 100.0];

/// Reads the slacks of `<run>/agents-summary.csv`; none if there is no such file: earlier versions did not
/// write it.
pub fn spreads(run: &Path) -> Result<Vec<Spread>> {
    let path = run.join("agents-summary.csv");
    if !path.exists() {
        return Ok(Vec::new());
    }
    parse_spreads(&contents(&path)?, &path)
}

/// The same from bytes at hand; `path` is what errors call them.
pub fn parse_spreads(bytes: &[u8], path: &Path) -> Result<Vec<Spread>> {
    let mut spreads = Vec::new();
    read_rows::<17>(bytes, path, SUMMARY, |[quantity, constraint, count, negative, quantiles @ ..]| {
        if quantity.text == b"slack" {
            let point = |(percent, cell): (f64, &Cell<'_>)| Ok((percent, cell.number()?));
            let quantiles = PERCENT.into_iter().zip(quantiles).map(point).collect::<Parsed<_>>()?;
            let (constraint, all, violated) = (constraint.words(), count.agents()?, negative.agents()?);
            if violated > all {
                return Err(negative.refused(&format!("at most `count`, which is {all}, are possible")));
            }
            let (count, violated) = (u64::from(all), u64::from(violated));
            spreads.push(Spread { constraint, count, violated, quantiles });
        }
        Ok(())
    })?;
    Ok(spreads)
}

/// What a cell says, or why it is wrong.
type Parsed<T> = std::result::Result<T, String>;

/// A cell with its name, for messages.
struct Cell<'a> {
    column: &'static str,
    text: &'a [u8],
}

impl Cell<'_> {
    fn words(&self) -> String {
        String::from_utf8_lossy(self.text).into_owned()
    }

    fn number(&self) -> Parsed<f64> {
        self.parsed("it must be a number")
    }

    fn index(&self) -> Parsed<u64> {
        self.parsed("it must be a whole number")
    }

    /// A number of agents: they are counted in 32 bits, so that sums over constraints fit into 64.
    fn agents(&self) -> Parsed<u32> {
        self.parsed("it must be a number of agents")
    }

    fn parsed<T: std::str::FromStr>(&self, wanted: &str) -> Parsed<T> {
        let parsed = std::str::from_utf8(self.text).ok().and_then(|text| text.trim().parse().ok());
        parsed.ok_or_else(|| self.refused(wanted))
    }

    fn refused(&self, wanted: &str) -> String {
        let shown: String = self.words().chars().take(40).collect();
        format!("`{}` is `{shown}`; {wanted}", self.column)
    }
}

/// Says of a file that it is none of a run.
fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Error {
    let advice = "name the folder of a run, as `phalanx train` prints it";
    Error::file(path, format!("cannot be read ({error}); {advice}"))
}

fn contents(path: &Path) -> Result<Vec<u8>> {
    if !path.exists() {
        return Err(unreadable(path, &std::io::Error::from(std::io::ErrorKind::NotFound)));
    }
    let bytes = files::read(path)?;
    checksums::check_path(path)?;
    Ok(bytes)
}

/// Calls `row` with the columns `names`, which commas separate, of every line below the header.
fn read_rows<const N: usize>(
    bytes: &[u8],
    path: &Path,
    names: &'static str,
    mut row: impl FnMut(&[Cell<'_>; N]) -> Parsed<()>,
) -> Result<()> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
    let mut record = csv::ByteRecord::new();
    if !reader.read_byte_record(&mut record).map_err(|error| unreadable(path, &error))? {
        return Err(Error::file(path, "is empty; train the run again"));
    }
    let columns = record.len();
    let mut places = [("", 0); N];
    for (place, name) in places.iter_mut().zip(names.split(',')) {
        let found = record.iter().position(|field| field == name.as_bytes()).ok_or_else(|| {
            let message = format!("line 1: no column `{name}`; the file must begin with the header of a run");
            Error::file(path, message)
        })?;
        *place = (name, found);
    }
    let mut rows = 0;
    while reader.read_byte_record(&mut record).map_err(|error| unreadable(path, &error))? {
        let is_cut_short = reader.position().byte() == bytes.len() as u64 && !bytes.ends_with(b"\n");
        let done = if record.len() == columns {
            row(&places.map(|(column, place)| Cell { column, text: &record[place] }))
        } else if record.len() < columns && is_cut_short && rows > 0 {
            // A run that is being written, or was killed, ends anywhere in a row.
            break;
        } else {
            Err(format!("{} columns instead of {columns}", record.len()))
        };
        let line = record.position().map_or(0, csv::Position::line);
        let advice = "correct or delete the line, or train the run again";
        done.map_err(|message| Error::file(path, format!("line {line}: {message} ({advice})")))?;
        rows += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "iteration,return,objective,violation_total,violation_max,violation_mean,mu_mean,\
                          mu_largest,gradient_norm,agent_steps,comm_bytes\n";
    const AGENTS: &str = "agent,constraint,value,bound,threshold,dual,violation\n";

    fn folder(name: &str, text: impl AsRef<[u8]>) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(name), text).unwrap();
        folder
    }

    fn metrics_of(text: impl AsRef<[u8]>) -> Result<Metrics> {
        Metrics::read(folder("metrics.csv", text).path())
    }

    /// What the user reads.
    fn message(text: impl AsRef<[u8]>) -> String {
        metrics_of(text).unwrap_err().to_string()
    }

    #[test]
    fn columns_are_found_by_name() {
        let text =
            "mu_largest,mu_mean,iteration,return,objective,violation_total,violation_max\n8,7,0,1,2,3,4\n";
        let metrics = metrics_of(text).unwrap();
        assert_eq!((metrics.iteration[0], metrics.return_[0], metrics.mu_largest[0]), (0.0, 1.0, 8.0));
    }

    #[test]
    fn an_empty_return_and_numbers_that_are_none_are_accepted() {
        let metrics = metrics_of(format!("{HEADER}0,,NaN,inf,-inf,0,0,0,0,1,1\r\n")).unwrap();
        assert!(!metrics.has_return());
        assert!(metrics.objective[0].is_nan() && metrics.violation_total[0].is_infinite());
    }

    #[test]
    fn errors_name_the_file_the_line_and_the_remedy() {
        let good = "0,1,2,0,0,0,0,0,0,1,1\n";
        let wrong_number = message(format!("{HEADER}{good}1,1,abc,0,0,0,0,0,0,1,1\n"));
        for part in ["metrics.csv", "line 3", "`objective` is `abc`", "must be a number", "delete the line"] {
            assert!(wrong_number.contains(part), "{wrong_number}");
        }
        let short = message(format!("{HEADER}{good}1,1\n{good}"));
        assert!(short.contains("line 3: 2 columns instead of 11"), "{short}");
        let long = message(format!("{HEADER}{good}{}", good.trim_end().to_string() + ",7"));
        assert!(long.contains("line 3: 12 columns instead of 11"), "{long}");
        let empty_cell = message(format!("{HEADER}0,1,,0,0,0,0,0,0,1,1\n"));
        assert!(empty_cell.contains("line 2: `objective` is ``"), "{empty_cell}");
        assert!(message(HEADER).contains("no rows"));
        assert!(message("").contains("is empty"));
        assert!(message("a,b\n1,2\n").contains("line 1: no column `iteration`"));
        let missing = Metrics::read(Path::new("/nowhere")).unwrap_err();
        assert!(missing.to_string().contains("/nowhere/metrics.csv") && missing.is_bad_input(), "{missing}");
    }

    #[test]
    fn numbers_of_agents_that_no_run_has_are_refused() {
        let row = |count: &str, negative: &str| {
            let text = format!("{SUMMARY}\nslack,g,{count},{negative}{}\n", ",0".repeat(13));
            parse_spreads(text.as_bytes(), Path::new("agents-summary.csv")).map_err(|error| error.to_string())
        };
        assert_eq!(row("7", "2").unwrap()[0].violated, 2);
        assert!(row("18446744073709551615", "0").unwrap_err().contains("must be a number of agents"));
        assert!(row("7", "8").unwrap_err().contains("`negative` is `8`; at most `count`, which is 7"));
    }

    #[test]
    fn a_run_that_has_just_begun_has_no_metrics_yet() {
        let read = |text: &str| Metrics::read_if_any(folder("metrics.csv", text).path());
        let row = "0,1,2,0,0,0,0,0,0,1,1\n";
        assert!(Metrics::read_if_any(Path::new("/nowhere")).unwrap().is_none());
        assert!(read(HEADER).unwrap().is_none());
        assert!(read(&format!("{HEADER}0,1,2")).unwrap().is_none(), "half a row");
        assert_eq!(read(&format!("{HEADER}{row}1,1")).unwrap().unwrap().iteration, [0.0]);
        // What is damaged is no beginning.
        for text in ["", "abc\n", "a,b\n1,2\n", &format!("{HEADER}{row}1,x,2,0,0,0,0,0,0,1,1\n")] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_last_row_that_is_still_being_written_is_left_out() {
        let good = "0,1,2,0,0,0,0,0,0,1,1\n";
        assert_eq!(metrics_of(format!("{HEADER}{good}1,1,2,0.")).unwrap().iteration, [0.0]);
        assert_eq!(metrics_of(format!("{HEADER}{}", good.trim_end())).unwrap().iteration, [0.0]);
        assert!(message(format!("{HEADER}1,1,2,0.")).contains("line 2: 4 columns"));
    }

    #[test]
    fn slack_has_the_sign_of_safety() {
        let text = format!(
            "{AGENTS}0,entropy,0.7,at_least,0.5,0,0\n1,\"a, \"\"b\"\"\nc\",0.9,at_most,0.5,0,0.4\n\
             2,x,1,at_most,2,0,0\n"
        );
        let margins = margins(folder("agents.csv", text).path()).unwrap().unwrap();
        let found: Vec<_> = margins.iter().map(|m| (m.agent, m.constraint.as_str(), m.slack)).collect();
        assert_eq!(found, [(0, "entropy", 0.7 - 0.5), (1, "a, \"b\"\nc", 0.5 - 0.9), (2, "x", 1.0)]);
    }

    #[test]
    fn a_wrong_bound_and_a_wrong_agent_are_named() {
        let margins_of = |row: &str| margins(folder("agents.csv", format!("{AGENTS}{row}")).path());
        let bound = margins_of("0,x,1,near,2,0,0\n").unwrap_err().to_string();
        assert!(bound.contains("line 2: `bound` is `near`; allowed are"), "{bound}");
        let agent = margins_of("-1,x,1,at_most,2,0,0\n").unwrap_err().to_string();
        assert!(agent.contains("line 2: `agent` is `-1`; it must be a whole number"), "{agent}");
        // The line count goes on behind a field with a line end in it.
        let behind = margins_of("0,\"x\ny\",1,at_most,2,0,0\n1,x,?,at_most,2,0,0\n").unwrap_err().to_string();
        assert!(behind.contains("line 4: `value` is `?`"), "{behind}");
        assert_eq!(margins(Path::new("/nowhere")).unwrap(), None);
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let pieces: [&[u8]; 9] =
            [b"\"", b",", b"\n", b"\r\n", b"1e999", b"-0", b"\xff\xfe", b"at_least", AGENTS.as_bytes()];
        let mut state = 1_u64;
        for _ in 0..2000 {
            let mut text = Vec::new();
            for _ in 0..40 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                text.extend(pieces[(state >> 33) as usize % pieces.len()]);
            }
            let _ = margins(folder("agents.csv", &text).path());
        }
    }
}
