//! The map with what an evaluation says of every junction.

use phalanx::run::{Assessment, Verdict};

use super::map::{Crossing, RoadMap};
use super::{SMALL, corner, number_beside};
use crate::plot::canvas::Colour;
use crate::render::film::{Entry, Film};
use crate::render::shape::{Anchor, CROSS, Pen, Point, Shape, TICK};

/// Distance between neighbours from which on the constraint in most danger is written beside a junction.
const LABELLED: f32 = 100.0;

/// What an assessment says of every junction, at its own confidence.
#[derive(Debug, Clone)]
pub struct VerdictMap {
    map: RoadMap,
    /// None of a junction without constraints.
    pub(super) verdicts: Vec<Option<Verdict>>,
    /// Value and bound of each junction's constraint with the least slack.
    labels: Vec<String>,
    episodes: usize,
    confidence: f64,
}

impl VerdictMap {
    /// The verdicts of an assessment on a map of its world. None if nothing was judged.
    pub fn new(map: RoadMap, assessment: &Assessment) -> Option<Self> {
        let n = map.junctions.len();
        let mut labels: Vec<(f64, String)> = vec![(f64::INFINITY, String::new()); n];
        let mut verdicts = vec![None; n];
        let judged = assessment.constraints.iter().map(|c| {
            let sign = if c.bound == "at_least" { "≥" } else { "≤" };
            (c.agent, c.slack, format!("{} ({sign} {})", rounded(c.utility.value), rounded(c.threshold)))
        });
        let tails = assessment.tails.iter().map(|tail| {
            let text = format!("{} (≤ {})", rounded(tail.cvar.value), rounded(tail.threshold));
            (tail.agent, tail.threshold - tail.cvar.value, text)
        });
        let all = assessment.agents(n);
        for (agent, slack, text) in judged.chain(tails) {
            verdicts[agent] = Some(all[agent]);
            if slack < labels[agent].0 || labels[agent].1.is_empty() {
                labels[agent] = (slack, text);
            }
        }
        let Assessment { episodes, confidence, .. } = *assessment;
        let labels = labels.into_iter().map(|(_, text)| text).collect();
        let found = VerdictMap { map, verdicts, labels, episodes, confidence };
        found.verdicts.iter().any(Option::is_some).then_some(found)
    }

    fn count(&self, wanted: Option<Verdict>) -> usize {
        self.verdicts.iter().filter(|&&verdict| verdict == wanted).count()
    }

    fn is_labelled(&self) -> bool {
        self.map.nearest >= LABELLED
    }
}

/// Three digits at most behind the point.
fn rounded(number: f64) -> String {
    let text = format!("{number:.3}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    text.replace('-', "−")
}

/// A verdict by colour and by sign.
fn seal(centre: Point, radius: f32, verdict: Option<Verdict>) -> Vec<Shape> {
    let (fill, sign) = match verdict {
        Some(Verdict::Safe) => (Colour::of_series(1), Some(TICK)),
        Some(Verdict::Unsafe) => (Colour::ALARM, Some(CROSS)),
        Some(Verdict::Undecided) => (Colour::PAPER, None),
        None => (Colour::QUIET.tint(0.3), None),
    };
    let edge = if verdict == Some(Verdict::Undecided) { Colour::INK } else { fill };
    let mut shapes =
        vec![Shape::Disc { centre, radius, fill: Some(fill), outline: Some(Pen::new(edge, 1.4)) }];
    let pen = Pen::new(Colour::PAPER, 0.2 * radius);
    shapes.extend(sign.into_iter().flat_map(|sign| Shape::sign(sign, centre, 0.95 * radius, pen)));
    if verdict == Some(Verdict::Undecided) {
        let size = 1.4 * radius;
        let at = (centre.0, centre.1 + 0.36 * size);
        let (content, anchor) = ("?".into(), Anchor::Middle);
        shapes.push(Shape::Text { at, content, size, bold: true, anchor, colour: Colour::INK });
    }
    shapes
}

fn label_beside(there: &Crossing, label: &str) -> Shape {
    let at = corner(there, 1.0, -1.0);
    Shape::text((at.0 + 1.0, at.1), label, SMALL + 1.0, Anchor::Start, Colour::INK)
}

impl Film for VerdictMap {
    fn steps(&self) -> usize {
        1
    }

    fn size(&self) -> (f32, f32) {
        self.map.size
    }

    fn draw(&self, _step: usize) -> Vec<Shape> {
        let mut shapes = self.map.roads();
        for (number, there) in self.map.junctions.iter().enumerate() {
            shapes.extend(seal(there.centre, there.radius.min(14.0), self.verdicts[number]));
            if self.map.is_numbered {
                shapes.push(number_beside(there, number));
            }
            if self.is_labelled() {
                shapes.push(label_beside(there, &self.labels[number]));
            }
        }
        shapes
    }

    fn status(&self, _step: usize) -> String {
        let [safe, broken, open] =
            [Verdict::Safe, Verdict::Unsafe, Verdict::Undecided].map(|verdict| self.count(Some(verdict)));
        format!("{safe} safe, {broken} unsafe, {open} undecided")
    }

    fn legend(&self) -> Vec<Entry> {
        let sign = |verdict| seal((0.0, 0.0), 7.0, verdict);
        let mut entries = vec![
            Entry { sign: sign(Some(Verdict::Safe)), label: "safe" },
            Entry { sign: sign(Some(Verdict::Unsafe)), label: "unsafe" },
            Entry { sign: sign(Some(Verdict::Undecided)), label: "undecided: not shown to be either" },
        ];
        if self.count(None) > 0 {
            entries.push(Entry { sign: sign(None), label: "no constraint" });
        }
        if self.is_labelled() {
            let text = Shape::text((0.0, 3.5), "1 (≤ 2)", SMALL, Anchor::Middle, Colour::INK);
            entries.push(Entry { sign: vec![text], label: "estimate and bound with the least slack" });
        }
        entries
    }

    fn note(&self) -> Option<String> {
        let percent = 100.0 * self.confidence;
        Some(format!("all verdicts together with {percent} % confidence, over {} episodes", self.episodes))
    }
}
