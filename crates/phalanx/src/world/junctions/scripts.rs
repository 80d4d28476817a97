//! Controllers that are known, to compare with.
//!
//! A name may go on with `:K`, the first K phases alone, and with `@S`, so many seconds: `cycle:4@30`.

use std::sync::Arc;

use super::Fixed;
use super::counters::ones;
use super::layout::Site;
use super::shared::Numbers;
use crate::world::ScriptedPolicy;

/// Names of the controllers.
pub const NAMES: [&str; 11] = [
    "constant1",
    "fixed-time",
    "cycle",
    "safe-cycle",
    "max-pressure",
    "efficient-max-pressure",
    "advanced-max-pressure",
    "longest-queue",
    "near-queue",
    "shielded-max-pressure",
    "shielded-near-queue",
];

/// Seconds of green after which `fixed-time` goes on.
const FIXED_GREEN: u32 = 15;

/// Weight of what waits behind a movement where queues before it are equal. Tuned: of some forty ways to
/// decide between equal queues, it alone gives all reference numbers of this controller.
const TIE: f64 = 1e-9;

/// A controller.
#[derive(Debug)]
pub struct Controller {
    fixed: Arc<Fixed>,
    rule: Rule,
    /// How many phases it uses.
    phases: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Rule {
    /// The same phase always.
    Constant(usize),
    /// Phases in turn, each green for so many seconds at least.
    FixedTime(u32),
    /// Phases in turn, each for so many seconds with its yellow.
    Cycle(u32),
    /// The same in an order that breaks no rule.
    SafeCycle(u32),
    /// The phase with most pressure.
    Most(Pressure),
    /// The same, but the phase stays as long as vehicles come at least as strong.
    Advanced,
    /// The same among phases after which rules can still be kept.
    Shielded(Pressure),
}

/// What is counted for a phase: vehicles that wait before its green movements, less what waits behind them.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Pressure {
    /// All lanes of the road behind.
    Sum,
    /// Their mean.
    Mean,
    /// Nothing behind, but for ties.
    Queue,
    /// All vehicles near the stop line, and nothing behind.
    Near,
}

impl Controller {
    /// None if there is none of that name; fails with the reason where it cannot be had here.
    pub fn new(fixed: &Arc<Fixed>, name: &str) -> Result<Option<Self>, String> {
        let (name, seconds) = number_behind(name, '@')?;
        let (name, phases) = number_behind(name, ':')?;
        let decision = fixed.timing.decision;
        let rule = match name {
            "fixed-time" => Rule::FixedTime(seconds.unwrap_or(FIXED_GREEN)),
            "cycle" => Rule::Cycle(seconds.unwrap_or(decision)),
            "safe-cycle" => Rule::SafeCycle(seconds.unwrap_or(decision)),
            "max-pressure" => Rule::Most(Pressure::Sum),
            "efficient-max-pressure" => Rule::Most(Pressure::Mean),
            "longest-queue" => Rule::Most(Pressure::Queue),
            "near-queue" => Rule::Most(Pressure::Near),
            "advanced-max-pressure" => Rule::Advanced,
            "shielded-max-pressure" => Rule::Shielded(Pressure::Mean),
            "shielded-near-queue" => Rule::Shielded(Pressure::Near),
            _ => match name.strip_prefix("constant").and_then(whole::<usize>) {
                // Phase 0 stands between phases.
                Some(phase) => Rule::Constant(phase.wrapping_sub(1)),
                None => return Ok(None),
            },
        };
        let is_timed = matches!(rule, Rule::FixedTime(_) | Rule::Cycle(_) | Rule::SafeCycle(_));
        let is_whole = matches!(rule, Rule::SafeCycle(_) | Rule::Shielded(_) | Rule::Constant(_));
        let most = fixed.layout.phases;
        let phases = phases.map_or(most, |phases| phases as usize);
        if !is_timed && seconds.is_some() {
            return Err("takes no seconds behind `@`".into());
        }
        if is_whole && phases != most {
            return Err("takes no number of phases behind `:`".into());
        }
        if !(1..=most).contains(&phases) {
            return Err(format!("{phases} phases; allowed are 1 to {most}"));
        }
        match rule {
            Rule::Constant(phase) if phase >= most => {
                return Err(format!("there is no such phase; allowed are 1 to {most}"));
            }
            Rule::SafeCycle(_) | Rule::Shielded(_) => fixed.shield().map(|_| ()).map_err(String::clone)?,
            _ => {}
        }
        Ok(Some(Controller { fixed: fixed.clone(), rule, phases }))
    }

    /// The phase with the largest number, the first of equals.
    fn best(&self, site: &Site, allowed: u32, number: impl Fn(usize) -> f64) -> usize {
        let mut best = (0, f64::NEG_INFINITY);
        for phase in 0..self.phases.min(site.green.len()) {
            let found = number(phase);
            if allowed >> phase & 1 == 1 && found > best.1 {
                best = (phase, found);
            }
        }
        best.0
    }

    fn choose(&self, junction: usize, site: &Site, numbers: Numbers<'_>) -> usize {
        let (now, count) = (numbers.phase(), self.phases.min(site.green.len()));
        let next = |is_due: bool| if is_due { (now + 1) % count } else { now };
        let shield = || self.fixed.shield().ok();
        match self.rule {
            Rule::Constant(phase) => phase.min(site.green.len() - 1),
            Rule::FixedTime(seconds) => next(numbers.age() >= seconds as f32),
            Rule::Cycle(seconds) => next(numbers.elapsed() >= seconds as f32),
            Rule::SafeCycle(seconds) => {
                let is_due = numbers.elapsed() >= seconds as f32;
                shield().filter(|_| is_due).map_or(now, |shield| shield.safe_successor(junction, now))
            }
            Rule::Most(kind) => self.best(site, u32::MAX, |phase| pressure(site, numbers, phase, kind)),
            Rule::Advanced => {
                let number = |phase| pressure(site, numbers, phase, Pressure::Mean);
                let best = self.best(site, u32::MAX, number);
                let lights = ones(site.green[now]);
                let coming: f64 = lights.map(|movement| f64::from(numbers.movement(movement).driving)).sum();
                if coming >= number(best) { now } else { best }
            }
            Rule::Shielded(kind) => {
                let counters = numbers.counters(site);
                let allowed = shield().map_or(u32::MAX, |shield| shield.allowed(junction, site, &counters));
                self.best(site, allowed, |phase| pressure(site, numbers, phase, kind))
            }
        }
    }
}

impl ScriptedPolicy for Controller {
    fn act(&self, agent: usize, _state: u8, shared: &[f32]) -> u8 {
        let site = &self.fixed.layout.junctions[agent];
        self.choose(agent, site, self.fixed.format.of(shared, agent)) as u8
    }
}

/// Of a phase.
fn pressure(site: &Site, numbers: Numbers<'_>, phase: usize, kind: Pressure) -> f64 {
    let movements = ones(site.green[phase]).map(|movement| {
        let found = numbers.movement(movement);
        let [before, behind] = [found.waiting, found.exit_waiting].map(f64::from);
        match kind {
            Pressure::Sum => before - behind,
            Pressure::Mean => before - behind / site.movements[movement].exit.len() as f64,
            Pressure::Queue => before - TIE * behind,
            Pressure::Near => f64::from(found.near),
        }
    });
    movements.sum()
}

/// A number that is written with digits alone.
fn whole<N: std::str::FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// A name and the number behind a sign, if there is one. Fails if it is no number.
fn number_behind(name: &str, sign: char) -> Result<(&str, Option<u32>), String> {
    let Some((name, number)) = name.split_once(sign) else { return Ok((name, None)) };
    let parsed = whole(number);
    let parsed = parsed.ok_or_else(|| {
        format!(
            "`{number}` behind `{sign}` is no whole number; phases come before seconds, as in `cycle:4@30`"
        )
    })?;
    Ok((name, Some(parsed)))
}
