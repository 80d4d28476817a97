//! Episodes with the agents' actions, and what came of them.

use std::time::{Duration, Instant};

use phalanx::run::Evaluator;
use phalanx_agent::conductor::Conductor;
use phalanx_agent::counts::Counts;
use phalanx_agent::message::Clock;
use serde::Serialize;

use super::AgentsArgs;

/// What came of all episodes.
#[derive(Serialize)]
pub struct Report {
    source: String,
    agents: usize,
    seed: u64,
    episodes: u32,
    steps: u32,
    real_time: bool,
    joint_steps: u64,
    wall_s: f64,
    steps_per_s: f64,
    /// Undiscounted, mean over agents and episodes, if the world has the channel `reward`.
    #[serde(rename = "return")]
    return_: Option<f64>,
    actions: u64,
    /// Actions other than those of `phalanx eval` at the same place.
    other_actions: u64,
    /// Actions that did not come in time.
    missed: u64,
    /// Agents that did not tell what became of their messages.
    silent_agents: usize,
    messages: Messages,
}

/// What became of messages.
#[derive(Serialize)]
struct Messages {
    /// Of all agents together.
    agents: Counts,
    world: Counts,
}

/// Runs all episodes, says farewell, and compares with the evaluation.
pub fn run(args: &AgentsArgs, evaluator: &Evaluator, conductor: &mut Conductor) -> anyhow::Result<Report> {
    let n = evaluator.world().graph().agents();
    let steps = args.steps.unwrap_or(evaluator.config().horizon as u32);
    let (mut actions, mut time, mut earned) = (vec![0; n], Duration::ZERO, None);
    let (mut taken, mut other_actions) = (Vec::with_capacity(steps as usize * n), 0);
    for number in 0..args.episodes {
        taken.clear();
        let mut episode = evaluator.stepped(number, args.seed)?;
        let start = Instant::now();
        for step in 0..steps {
            conductor.step(Clock { episode: number, step }, episode.states(), &mut actions)?;
            episode.step(&actions);
            taken.extend_from_slice(&actions);
        }
        time += start.elapsed();
        earned = episode.return_().map(|return_| earned.unwrap_or(0.0) + return_);
        let expected = evaluator.episode(number, args.seed, steps as usize)?;
        for (k, row) in taken.chunks_exact(n).enumerate() {
            let differs = |(i, action): &(usize, &u8)| expected.actions(*i)[k] != **action;
            other_actions += row.iter().enumerate().filter(differs).count() as u64;
        }
    }
    let counts = conductor.farewell()?;
    let joint_steps = u64::from(args.episodes) * u64::from(steps);
    Ok(Report {
        source: args.source.display().to_string(),
        agents: n,
        seed: args.seed,
        episodes: args.episodes,
        steps,
        real_time: args.real_time,
        joint_steps,
        wall_s: time.as_secs_f64(),
        steps_per_s: joint_steps as f64 / time.as_secs_f64(),
        return_: earned.map(|earned: f64| earned / f64::from(args.episodes)),
        actions: joint_steps * n as u64,
        other_actions,
        missed: conductor.missed,
        silent_agents: counts.iter().filter(|counts| counts.is_none()).count(),
        messages: Messages {
            agents: counts.iter().flatten().fold(Counts::default(), |all, counts| all.with(counts)),
            world: conductor.counts,
        },
    })
}

impl Report {
    /// For people.
    pub fn in_words(&self) -> String {
        let Report { agents, episodes, steps, joint_steps, wall_s, steps_per_s, .. } = self;
        let mut text = format!(
            "{agents} agents, {episodes} episodes of {steps} steps: {joint_steps} joint steps in {wall_s:.2} s, \
             {steps_per_s:.0} per second\n"
        );
        if let Some(return_) = self.return_ {
            text += &format!("return    {return_:.4}, mean over agents and episodes\n");
        }
        text += &match self.other_actions {
            0 => format!("actions   {}, all as `phalanx eval` takes them\n", self.actions),
            other => {
                format!("actions   {}, of which {other} other than `phalanx eval` takes\n", self.actions)
            }
        };
        if self.real_time {
            let incomplete = self.messages.agents.incomplete;
            text += &format!(
                "deadline  {} actions too late, {incomplete} before everybody was heard\n",
                self.missed
            );
        }
        for (name, counts) in [("agents", &self.messages.agents), ("world", &self.messages.world)] {
            let Counts { sent, resent, received, malformed, foreign, late, early, repeated, .. } = counts;
            text += &format!(
                "{name:<9} {sent} messages sent ({resent} again), {received} received, {} dropped: {malformed} \
                 malformed, {foreign} foreign, {late} late, {early} early, {repeated} repeated\n",
                counts.dropped()
            );
        }
        if self.silent_agents > 0 {
            text += &format!("{} agents did not tell what became of their messages\n", self.silent_agents);
        }
        text
    }
}
