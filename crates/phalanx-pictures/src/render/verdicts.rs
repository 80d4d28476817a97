//! The agents on the world's roads or on the graph, and what an evaluation says of every one.

use phalanx::run::{Assessment, Verdict};

use super::film::{Entry, Film};
use super::graph_map::GraphMap;
use super::junctions::RoadMap;
use super::shape::{Anchor, CROSS, Pen, Point, Shape, TICK};
use crate::plot::canvas::Colour;

/// Distance between neighbours from which on the constraint in most danger is written beside an agent.
const LABELLED: f32 = 100.0;
/// Signs are no larger than this.
const LARGEST: f32 = 14.0;
const SMALL: f32 = 9.0;

/// Where agents are.
#[derive(Debug, Clone)]
pub enum Ground {
    Roads(RoadMap),
    Graph(GraphMap),
}

/// Where an agent is.
struct Spot {
    agent: usize,
    centre: Point,
    radius: f32,
}

impl Ground {
    fn size(&self) -> Point {
        match self {
            Ground::Roads(map) => map.size,
            Ground::Graph(map) => map.size,
        }
    }

    /// What is below the signs.
    fn background(&self) -> Vec<Shape> {
        match self {
            Ground::Roads(map) => map.roads(),
            Ground::Graph(map) => map.lines().collect(),
        }
    }

    fn spots(&self) -> Vec<Spot> {
        match self {
            Ground::Roads(map) => {
                let spots = map.junctions.iter().enumerate();
                spots
                    .map(|(agent, there)| Spot { agent, centre: there.centre, radius: there.radius })
                    .collect()
            }
            Ground::Graph(map) => {
                let spots = map.agents.iter().zip(&map.places);
                spots.map(|(&agent, &centre)| Spot { agent, centre, radius: map.radius }).collect()
            }
        }
    }

    fn numbers(&self) -> Vec<Shape> {
        match self {
            Ground::Roads(map) if map.is_numbered => map.numbers().collect(),
            Ground::Roads(_) => Vec::new(),
            Ground::Graph(map) => map.numbers().collect(),
        }
    }

    /// Whether there is room for a value beside each agent.
    fn is_labelled(&self) -> bool {
        matches!(self, Ground::Roads(map) if map.nearest >= LABELLED)
    }

    fn note(&self) -> Option<String> {
        match self {
            Ground::Roads(_) => None,
            Ground::Graph(map) => map.note(),
        }
    }
}

/// The agents and who talks to whom, before anything is judged.
#[derive(Debug, Clone)]
pub struct AgentMap {
    pub ground: Ground,
    pub agents: usize,
    pub links: usize,
}

impl Film for AgentMap {
    fn steps(&self) -> usize {
        1
    }

    fn size(&self) -> (f32, f32) {
        self.ground.size()
    }

    fn draw(&self, _step: usize) -> Vec<Shape> {
        let mut shapes = self.ground.background();
        let outline = Some(Pen::new(Colour::INK, 1.4));
        shapes.extend(self.ground.spots().into_iter().map(|Spot { centre, radius, .. }| {
            let radius = radius.min(LARGEST);
            Shape::Disc { centre, radius, fill: Some(Colour::PAPER), outline }
        }));
        shapes.extend(self.ground.numbers());
        shapes
    }

    fn status(&self, _step: usize) -> String {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let AgentMap { agents, links, .. } = *self;
        format!("{agents} agent{}, {links} link{}", plural(agents), plural(links))
    }

    fn legend(&self) -> Vec<Entry> {
        Vec::new()
    }

    fn note(&self) -> Option<String> {
        self.ground.note()
    }
}

/// What an assessment says of every agent, at its own confidence.
#[derive(Debug, Clone)]
pub struct VerdictMap {
    ground: Ground,
    /// None of an agent without constraints.
    pub(super) verdicts: Vec<Option<Verdict>>,
    /// Value and bound of each agent's constraint with the least slack.
    labels: Vec<String>,
    episodes: usize,
    confidence: f64,
}

impl VerdictMap {
    /// The verdicts of an assessment of so many agents. None if nothing was judged.
    pub fn new(ground: Ground, agents: usize, assessment: &Assessment) -> Option<Self> {
        let mut labels: Vec<(f64, String)> = vec![(f64::INFINITY, String::new()); agents];
        let mut verdicts = vec![None; agents];
        let judged = assessment.constraints.iter().map(|c| {
            let sign = if c.bound == "at_least" { "≥" } else { "≤" };
            (c.agent, c.slack, format!("{} ({sign} {})", rounded(c.utility.value), rounded(c.threshold)))
        });
        let tails = assessment.tails.iter().map(|tail| {
            let text = format!("{} (≤ {})", rounded(tail.cvar.value), rounded(tail.threshold));
            (tail.agent, tail.threshold - tail.cvar.value, text)
        });
        let all = assessment.agents(agents);
        for (agent, slack, text) in judged.chain(tails) {
            verdicts[agent] = Some(all[agent]);
            if slack < labels[agent].0 || labels[agent].1.is_empty() {
                labels[agent] = (slack, text);
            }
        }
        let Assessment { episodes, confidence, .. } = *assessment;
        let labels = labels.into_iter().map(|(_, text)| text).collect();
        let found = VerdictMap { ground, verdicts, labels, episodes, confidence };
        found.verdicts.iter().any(Option::is_some).then_some(found)
    }

    fn count(&self, wanted: Option<Verdict>) -> usize {
        self.verdicts.iter().filter(|&&verdict| verdict == wanted).count()
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

/// To the upper right of an agent.
fn label_beside(Spot { centre: (x, y), radius, .. }: &Spot, label: &str) -> Shape {
    let aside = 0.71 * radius + 2.5;
    Shape::text((x + aside + 1.0, y - aside), label, SMALL + 1.0, Anchor::Start, Colour::INK)
}

impl Film for VerdictMap {
    fn steps(&self) -> usize {
        1
    }

    fn size(&self) -> (f32, f32) {
        self.ground.size()
    }

    fn draw(&self, _step: usize) -> Vec<Shape> {
        let mut shapes = self.ground.background();
        for spot in self.ground.spots() {
            shapes.extend(seal(spot.centre, spot.radius.min(LARGEST), self.verdicts[spot.agent]));
            if self.ground.is_labelled() {
                shapes.push(label_beside(&spot, &self.labels[spot.agent]));
            }
        }
        shapes.extend(self.ground.numbers());
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
        if self.ground.is_labelled() {
            let text = Shape::text((0.0, 3.5), "1 (≤ 2)", SMALL, Anchor::Middle, Colour::INK);
            entries.push(Entry { sign: vec![text], label: "estimate and bound with the least slack" });
        }
        entries
    }

    fn note(&self) -> Option<String> {
        let percent = 100.0 * self.confidence;
        let judged =
            format!("all verdicts together with {percent} % confidence, over {} episodes", self.episodes);
        Some(match self.ground.note() {
            Some(left_out) => format!("{judged}; {left_out}"),
            None => judged,
        })
    }
}
