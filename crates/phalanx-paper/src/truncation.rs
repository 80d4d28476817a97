//! `truncation`: the error of the truncated gradient against κ_q beside its two bounds, and models on which
//! the lemma's bound is wrong. Paper: lemma:truncated_grad.

use phalanx::exact::{Case, Input, report};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::context::{ByLength, ExperimentContext};
use super::drawing::{Panel, Style, log, side_by_side};
use super::models;
use super::on_one_thread;
use super::sheet::{Sheet, optional};
use phalanx_pictures::plot::Values;
use phalanx_pictures::plot::canvas::{Axis, Figure};

/// Of the lines.
const GAMMA: f64 = 0.99;

/// Writes `results.csv`, `counterexample.csv`, the models that they are about, `figures/truncation` and
/// `figures/counterexample`.
pub fn make(context: &ExperimentContext<'_>) -> anyhow::Result<()> {
    let sizes = ByLength { whole: (7, 6), quick: (5, 4), cut: (3, 3) };
    let &(agents, radii) = sizes.of(context.reproduction.length);
    // The same with four agents, for the optimum over all policies and the theorem's step size.
    let mut small = models::line(4, 0.8, 0.0);
    small["input"]["algorithm"] = json!({ "T": 1, "eta_mu": 100.0, "eta_theta": 0.1 });
    write(context, "line4", &small)?;
    let lines = lines(context, agents)?;
    context.sheet("results.csv", &lines)?;
    let family = family(context, radii)?;
    context.sheet("counterexample.csv", &family)?;
    context.figures(vec![
        ("truncation", line_figure(agents, &lines)),
        ("counterexample", family_figure(&family)),
    ])
}

/// A model beside the results, for `phalanx exact` and `phalanx check`.
fn write(context: &ExperimentContext<'_>, name: &str, model: &Value) -> anyhow::Result<()> {
    context.write(&format!("models/{name}.json"), format!("{model}\n").as_bytes())
}

/// What is kept of a model's exact report; none where there is no such bound.
#[derive(Debug, Serialize, Deserialize)]
struct Errors {
    fixed: f64,
    averaged: f64,
    td: Option<f64>,
    lemma: Option<f64>,
    certificate: Option<f64>,
    dq: Option<f64>,
    dq_lemma: Option<f64>,
    dq_certificate: Option<f64>,
}

impl Errors {
    /// Everything about a model with multipliers of `mu`.
    fn of(model: &Value, mu: f64) -> anyhow::Result<Self> {
        let input: Input = serde_json::from_value(model["input"].clone())?;
        let gamma = input.model.gamma.unwrap_or_default();
        let case = Case::new(input)?;
        let report = on_one_thread(|| report(&case))??;
        let (decay, certificate) = (&report["decay"], &report["closed_loop"]);
        let lemma = decay["best_c0phi"]
            .as_f64()
            .zip(decay["M_pi"].as_f64())
            .map(|(q, scores)| (1.0 + mu) * scores * q / (1.0 - gamma));
        Ok(Errors {
            fixed: gradient_error(&report, "fixed").unwrap_or(f64::NAN),
            averaged: gradient_error(&report, "avg").unwrap_or(f64::NAN),
            td: gradient_error(&report, "td_occupancy"),
            lemma,
            certificate: certificate["grad_certified"].as_f64(),
            dq: certificate["dQf_actual"][0].as_f64(),
            dq_lemma: decay["best_c0phi"].as_f64(),
            dq_certificate: certificate["dQf_certified"][0].as_f64(),
        })
    }
}

/// The largest error over agents of a truncated gradient; none if the report does not have it.
fn gradient_error(report: &Value, kind: &str) -> Option<f64> {
    let rows = |key: &str| -> Option<Vec<Vec<f64>>> { serde_json::from_value(report[key].clone()).ok() };
    let (whole, cut) = (rows("grad_true")?, rows(&format!("grad_trunc_{kind}"))?);
    let error =
        |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    Some(whole.iter().zip(&cut).map(error).fold(0.0, f64::max))
}

/// The paper's line, on which the decay assumption fails, and a mixed one, on which it holds.
fn lines(context: &ExperimentContext<'_>, agents: usize) -> anyhow::Result<Sheet> {
    let mut sheet = Sheet::new("mixing,kappa_q,fixed,averaged,td,lemma,certificate");
    for (mixing, name) in [(0.3, format!("line{agents}-mixed")), (0.0, format!("line{agents}"))] {
        let mut model = models::line(agents, GAMMA, mixing);
        write(context, &name, &model)?;
        // With the last one nothing is cut off.
        for kappa_q in 0..agents {
            model["input"]["kappa_q"] = json!(kappa_q);
            let errors = context.part(&format!("{name}-{kappa_q}"), || Errors::of(&model, 1.0))?;
            let Errors { fixed, averaged, td, lemma, certificate, .. } = errors;
            let found = [Some(fixed), Some(averaged), td, lemma, certificate];
            sheet.push([Some(mixing), Some(kappa_q as f64)].into_iter().chain(found).map(optional).collect());
        }
    }
    Ok(sheet)
}

/// A family of models that satisfy the lemma's conditions but not its bound.
fn family(context: &ExperimentContext<'_>, radii: usize) -> anyhow::Result<Sheet> {
    let mut sheet = Sheet::new("kappa,error,lemma,certificate,dq,dq_lemma,dq_certificate");
    for kappa in 1..=radii {
        let model = models::counterexample(kappa);
        let name = format!("lemma-kappa{kappa}");
        write(context, &name, &model)?;
        let errors = context.part(&name, || Errors::of(&model, 0.0))?;
        let Errors { fixed, lemma, certificate, dq, dq_lemma, dq_certificate, .. } = errors;
        let found = [Some(kappa as f64), Some(fixed), lemma, certificate, dq, dq_lemma, dq_certificate];
        sheet.push(found.map(optional).into());
    }
    Ok(sheet)
}

fn line_figure(agents: usize, table: &Sheet) -> Figure {
    let panel = |mixing: f64, what: &str| {
        // Where nothing is cut off, what is left is rounding: there is no place for it on a logarithmic axis.
        let is_drawn = |row: &[String]| {
            table.number(row, "mixing") == mixing && table.number(row, "kappa_q") < (agents - 1) as f64
        };
        let curve =
            |label: &str, column: &str, style| table.curve(label, ("kappa_q", column), style, is_drawn);
        Panel {
            x: Axis::new("κ_q", Values::Whole),
            y: log(what),
            curves: vec![
                curve("error with fixed other agents", "fixed", Style::Marked),
                curve("error with averaged other agents", "averaged", Style::Marked),
                curve("bound of the lemma", "lemma", Style::Dashed),
                curve("certificate", "certificate", Style::Dashed),
            ],
        }
    };
    side_by_side(
        "Error of the truncated gradient",
        format!(
            "line of {agents} agents, γ = {GAMMA}, policies of the own state; largest error over agents; at κ_q = {} it is 0",
            agents - 1
        ),
        &[panel(0.3, "mixing 0.3: the assumption holds"), panel(0.0, "the paper's line: it fails")],
    )
}

fn family_figure(table: &Sheet) -> Figure {
    let panel = |what: &str, columns: [&str; 3]| {
        let curve = |label: &str, column: &str, style| table.curve(label, ("kappa", column), style, |_| true);
        Panel {
            x: Axis::new("κ = κ_q", Values::Whole),
            y: log(what),
            curves: vec![
                curve("measured", columns[0], Style::Marked),
                curve("bound of the lemma", columns[1], Style::Dashed),
                curve("certificate", columns[2], Style::Dashed),
            ],
        }
    };
    let below = |row: &&Vec<String>| table.number(row, "lemma") < table.number(row, "error");
    let broken = table.rows.iter().find(below).map_or(String::new(), |row| {
        format!("; from κ = {} on the error is above the lemma's bound", table.text(row, "kappa"))
    });
    side_by_side(
        "A policy that carries influence over κ hops at once",
        format!("line of κ + 2 agents, γ = 0.9; agent 0 copies the state of agent κ{broken}"),
        &[
            panel("error of the truncated gradient", ["error", "lemma", "certificate"]),
            panel("error of agent 0's truncated Q", ["dq", "dq_lemma", "dq_certificate"]),
        ],
    )
}
