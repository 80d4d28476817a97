//! Episodes to draw: all that pictures ask of the library. Each world's steps become plain data here.

use phalanx::run::{Assessment, Evaluator, assessment_horizon};
use phalanx::sample::episode_events::decide;
use phalanx::utility::problem::Problem;
use phalanx::world::{
    EpidemicModel, EpidemicSpec, Evolution, LineSettings, PistonballSpec, Place, PlatoonSpec, Purpose,
    Trajectory, Wireless, World,
};
use phalanx::{Error, Result};

use super::epidemic::{self, EpidemicFilm};
use super::film::{self, Film, Step};
use super::graph_map::GraphMap;
use super::junctions::{self, JunctionsFilm, RoadMap};
use super::line::{self, LineFilm};
use super::pistonball::{self, Margin, Margins, PistonballFilm, PistonballStep};
use super::platoon::{self, PlatoonFilm, PlatoonStep};
use super::raster::Raster;
use super::reel::SHEET_SCALE;
use super::states::StatesFilm;
use super::still;
use super::verdicts::{AgentMap, Ground, VerdictMap};
use super::wireless::{self, CORNERS, Outcome, Sending, WirelessFilm, WirelessStep};

/// A trajectory is kept whole while it is drawn.
const MOST_AGENT_STEPS: usize = 1 << 30;
/// Episodes over which a policy's margins are estimated, and how long that may take.
const MARGIN_EPISODES: usize = 64;
const MOST_MARGIN_STEPS: usize = 1 << 22;

/// Runs the evaluator's episode number `k`, from 0, over `steps` steps. Also whether it ended with the last
/// step, so that there are no more.
pub fn film_of(evaluator: &Evaluator, k: u32, seed: u64, steps: usize) -> Result<(Box<dyn Film>, bool)> {
    let agents = evaluator.world().graph().agents();
    if agents.saturating_mul(steps) > MOST_AGENT_STEPS {
        let message = format!("{steps} steps of {agents} agents; {} are possible", MOST_AGENT_STEPS / agents);
        return Err(Error::argument("steps", message));
    }
    let run = || evaluator.episode(k, seed, steps);
    let mut ended = false;
    let world = &evaluator.config().world;
    let film: Box<dyn Film> = if world.settings_of::<LineSettings>().is_some() {
        Box::new(line_film(evaluator, &run()?))
    } else if let Some(spec) = world.settings_of() {
        Box::new(wireless_film(evaluator, &Wireless::new(spec)?, &run()?))
    } else if world.settings_of::<PistonballSpec>().is_some() {
        let film = pistonball_film(evaluator, &run()?, margins(evaluator, seed));
        ended = film.is_solved;
        Box::new(film)
    } else if world.settings_of::<PlatoonSpec>().is_some() {
        Box::new(platoon_film(evaluator, &run()?))
    } else if let Some(spec) = world.settings_of() {
        Box::new(epidemic_film(evaluator, spec, &run()?))
    } else if let Some(map) = junctions::map_of(evaluator.world()) {
        Box::new(junctions_film(evaluator, map, &run()?))
    } else {
        Box::new(states_film(evaluator, &run()?))
    };
    Ok((film, ended))
}

/// Fails where [`verdict_map`] would: before an assessment that may take long.
pub fn check_map(evaluator: &Evaluator) -> Result<()> {
    let agents = &evaluator.problem().agents;
    if agents.iter().all(|agent| agent.constraints.is_empty() && agent.tails.is_empty()) {
        return Err(Error::argument("map", "there are no constraints to judge"));
    }
    Ok(())
}

/// The verdicts of an assessment on the world's roads, or on its graph, as a PNG.
pub fn verdict_map(evaluator: &Evaluator, assessment: &Assessment, title: &str) -> anyhow::Result<Vec<u8>> {
    check_map(evaluator)?;
    let world = evaluator.world();
    let verdicts = VerdictMap::new(ground(world), world.graph().agents(), assessment);
    let verdicts = verdicts.ok_or_else(|| Error::argument("map", "nothing was judged"))?;
    still::encode(&Raster::default().draw(&film::single(&verdicts, title), SHEET_SCALE)?)
}

/// The agents on the world's roads, or on its graph, as a PNG.
pub fn agent_map(world: &dyn World, title: &str) -> anyhow::Result<Vec<u8>> {
    let graph = world.graph();
    let ends: usize = (0..graph.agents()).map(|agent| graph.neighbours(agent).len()).sum();
    let map = AgentMap { ground: ground(world), agents: graph.agents(), links: ends / 2 };
    still::encode(&Raster::default().draw(&film::single(&map, title), SHEET_SCALE)?)
}

fn ground(world: &dyn World) -> Ground {
    match junctions::map_of(world) {
        Some(roads) => Ground::Roads(roads),
        None => Ground::Graph(GraphMap::of(world.graph())),
    }
}

/// Worlds of this kind cannot be drawn.
pub fn no_pictures(kind: &str) -> Error {
    let message =
        format!("`{kind}` has no pictures; line, wireless, pistonball, platoon, epidemic and junctions have");
    Error::config("world.kind", message)
}

/// By step: what states and actions earned, by the world's table of rewards, mean over all agents.
fn tabled_rewards(world: &dyn World, trajectory: &Trajectory) -> Vec<f64> {
    let agents = world.graph().agents();
    let mut rewards = vec![0.0; trajectory.steps()];
    for channel in world.channels().iter().filter(|channel| channel.name == "reward") {
        for i in 0..agents {
            let row = channel.tables().map_or(&[][..], |tables| tables.row(i));
            let pairs = trajectory.states(i).iter().zip(trajectory.actions(i));
            for (reward, (&s, &a)) in rewards.iter_mut().zip(pairs) {
                *reward +=
                    row.get(usize::from(s) * world.actions(i) + usize::from(a)).copied().unwrap_or(0.0);
            }
        }
    }
    rewards.iter().map(|reward| reward / agents as f64).collect()
}

fn line_film(evaluator: &Evaluator, trajectory: &Trajectory) -> LineFilm {
    let agents = evaluator.world().graph().agents();
    let drawn = 0..agents.min(line::MOST_AGENTS);
    let status = |_, reward: f64| format!("reward so far {reward:.2} per agent");
    LineFilm { agents, steps: steps(evaluator, trajectory, drawn, status) }
}

/// All steps of the agents that are drawn. `status` is told the step, from 0, and the reward up to and
/// including it, mean over all agents.
fn steps(
    evaluator: &Evaluator,
    trajectory: &Trajectory,
    drawn: impl Iterator<Item = usize> + Clone,
    status: impl Fn(usize, f64) -> String,
) -> Vec<Step> {
    let rewards = tabled_rewards(evaluator.world(), trajectory);
    let kept = kept_by_agent(evaluator.problem(), trajectory, drawn.clone());
    let mut reward = 0.0;
    let step = |k: usize| {
        reward += rewards[k];
        Step {
            states: drawn.clone().map(|i| trajectory.states(i)[k]).collect(),
            actions: drawn.clone().map(|i| trajectory.actions(i)[k]).collect(),
            kept: kept.iter().map(|kept| kept[k]).collect(),
            status: status(k, reward),
        }
    };
    (0..trajectory.steps()).map(step).collect()
}

fn states_film(evaluator: &Evaluator, trajectory: &Trajectory) -> StatesFilm {
    let world = evaluator.world();
    let map = GraphMap::of(world.graph());
    let status = |_, reward: f64| format!("reward so far {reward:.2} per agent").replace('-', "−");
    let steps = steps(evaluator, trajectory, map.agents.iter().copied(), status);
    let states = (0..world.graph().agents()).map(|i| world.states(i)).max().unwrap_or(1);
    StatesFilm { map, states, steps }
}

fn epidemic_film(evaluator: &Evaluator, spec: &EpidemicSpec, trajectory: &Trajectory) -> EpidemicFilm {
    let graph = evaluator.world().graph();
    let map = GraphMap::of(graph);
    let mut infected = vec![0; trajectory.steps()];
    for i in 0..graph.agents() {
        for (count, &state) in infected.iter_mut().zip(trajectory.states(i)) {
            *count += usize::from(state == epidemic::INFECTED);
        }
    }
    let status = |k: usize, reward: f64| {
        epidemic::status(infected[k] as f64 / graph.agents() as f64, reward / (k + 1) as f64)
    };
    let steps = steps(evaluator, trajectory, map.agents.iter().copied(), status);
    EpidemicFilm { map, has_recovered: spec.model == EpidemicModel::Sirs, steps }
}

fn wireless_film(evaluator: &Evaluator, world: &Wireless, trajectory: &Trajectory) -> WirelessFilm {
    let (film, drawn) = wireless_part(world);
    let users = world.constants().grid.users();
    let kept = kept_by_agent(evaluator.problem(), trajectory, drawn.iter().copied());
    let sending = |user: usize, k: usize| {
        let is_empty = trajectory.states(user)[k] == 0;
        let is_paid = trajectory.rewards(0, user)[k] > 0.0;
        sending(world, user, |other| trajectory.actions(other)[k], is_empty, is_paid)
    };
    let (mut delivered, mut collided) = (0, 0);
    let step = |k: usize| {
        for outcome in (0..users).filter_map(|user| sending(user, k)).map(|sending| sending.outcome) {
            delivered += usize::from(outcome == Outcome::Delivered);
            collided += usize::from(outcome == Outcome::Collided);
        }
        let chance = |&i: &usize| {
            let mut law = vec![0.0; evaluator.world().actions(i)];
            evaluator.policy().law(i, trajectory, k, &mut law);
            law.get(usize::from(trajectory.actions(i)[k])).map_or(0.0, |&share| share as f32)
        };
        let queue = |&i: &usize| queue(world, i, trajectory.states(i)[k]);
        WirelessStep {
            queues: drawn.iter().map(queue).collect(),
            sends: drawn.iter().map(|&i| sending(i, k)).collect(),
            chances: drawn.iter().map(chance).collect(),
            kept: kept.iter().map(|kept| kept[k]).collect(),
            delivered,
            collided,
        }
    };
    WirelessFilm { steps: (0..trajectory.steps()).map(step).collect(), ..film }
}

/// A film of the part that is drawn, without steps, and the numbers of the users in it.
pub fn wireless_part(world: &Wireless) -> (WirelessFilm, Vec<usize>) {
    let grid = world.constants().grid;
    let [rows, columns] = [grid.rows, grid.columns].map(|side| side.min(wireless::MOST_A_SIDE));
    let row = |row: usize| (0..columns).map(move |column| row * grid.columns + column);
    let film = WirelessFilm { rows, columns, grid: (grid.rows, grid.columns), steps: Vec::new() };
    (film, (0..rows).flat_map(row).collect())
}

/// The packets of a user in a state, the earliest deadline first.
pub fn queue(world: &Wireless, user: usize, state: u8) -> Vec<bool> {
    (0..world.constants().deadline[user]).map(|bit| state >> bit & 1 == 1).collect()
}

/// What becomes of a user's action, by everybody's; `is_empty`: it has no packet, `is_paid`: it has its
/// reward.
pub fn sending(
    world: &Wireless,
    user: usize,
    action: impl Fn(usize) -> u8,
    is_empty: bool,
    is_paid: bool,
) -> Option<Sending> {
    let to = *CORNERS.get(usize::from(action(user).checked_sub(1)?))?;
    let outcome = match world.constants().grid.contenders(user, action(user)) {
        None => Outcome::NoAccessPoint,
        Some(contenders) if contenders.iter().any(|&(other, same)| action(other) == same) => {
            Outcome::Collided
        }
        Some(_) if is_empty => Outcome::Empty,
        Some(_) if is_paid => Outcome::Delivered,
        Some(_) => Outcome::Failed,
    };
    Some(Sending { to, outcome })
}

fn pistonball_film(evaluator: &Evaluator, trajectory: &Trajectory, margins: Margins) -> PistonballFilm {
    let (steps, pistons) = (trajectory.steps(), evaluator.world().graph().agents());
    let firsts = pistonball::windows(pistons, (0..steps).map(|k| trajectory.global_state(k)[0]));
    let mut reward = 0.0;
    let step = |(k, first): (usize, usize)| {
        let drawn = first..first + pistonball::drawn(pistons);
        let law = |i: usize| {
            let mut law = [0.0; 3];
            evaluator.policy().law(i, trajectory, k, &mut law);
            law.map(|share| share as f32)
        };
        let earned: f64 = (0..pistons).map(|i| f64::from(trajectory.rewards(0, i)[k])).sum();
        reward += earned / pistons as f64;
        // x, y, vx, vy, ω and angle of the ball.
        let ball = trajectory.global_state(k);
        PistonballStep {
            first,
            levels: drawn.clone().map(|i| trajectory.states(i)[k]).collect(),
            actions: drawn.clone().map(|i| trajectory.actions(i)[k]).collect(),
            laws: drawn.map(law).collect(),
            ball: (ball[0], ball[1]),
            angle: ball[5],
            reward,
        }
    };
    let steps = firsts.into_iter().enumerate().map(step).collect();
    PistonballFilm { pistons, steps, is_solved: trajectory.ended(), margins }
}

fn platoon_film(evaluator: &Evaluator, trajectory: &Trajectory) -> PlatoonFilm {
    let vehicles = evaluator.world().graph().agents();
    let (mut driven, mut earned) = (0.0, 0.0);
    let step = |k: usize| {
        let sum: f64 = (0..vehicles).map(|i| f64::from(trajectory.rewards(0, i)[k])).sum();
        earned += sum;
        let shared = trajectory.global_state(k);
        driven += shared[0] * platoon::SECONDS;
        let step = PlatoonStep {
            driven,
            actions: (0..vehicles).map(|i| trajectory.actions(i)[k]).collect(),
            status: format!("reward so far {:.1} per step", earned / (k + 1) as f64),
            ..PlatoonStep::of_shared(shared)
        };
        step.of_first(platoon::MOST_VEHICLES)
    };
    PlatoonFilm { vehicles, steps: (0..trajectory.steps()).map(step).collect() }
}

/// Vehicles are in no trajectory: its actions once more, on the same departures, bring the same traffic.
fn junctions_film(evaluator: &Evaluator, map: RoadMap, trajectory: &Trajectory) -> JunctionsFilm {
    let world = evaluator.world();
    let agents = world.graph().agents();
    let kept = kept_by_agent(evaluator.problem(), trajectory, 0..agents);
    let mut film = JunctionsFilm::new(map, trajectory.steps());
    if let (Evolution::Joint(joint), Some((stream, place))) = (world.evolution(), trajectory.origin()) {
        let start = Place { purpose: Purpose::EvaluationStart, ..place };
        let mut episode = joint.begin(&stream, start);
        let mut rewards = vec![0.0; trajectory.channels() * agents];
        for k in 0..trajectory.steps() {
            let actions: Vec<u8> = (0..agents).map(|i| trajectory.actions(i)[k]).collect();
            let kept: Vec<Option<bool>> = kept.iter().map(|kept| kept[k]).collect();
            film.add(&mut *episode, &actions, &mut rewards, &kept);
        }
    }
    film
}

/// The policy's margins, as `phalanx eval` with the same seed and so many episodes has them.
fn margins(evaluator: &Evaluator, seed: u64) -> Margins {
    if evaluator.problem().constraint_count() == 0 {
        return Margins::None;
    }
    let agents = evaluator.world().graph().agents();
    let Ok(length) = assessment_horizon(evaluator.problem(), evaluator.config().horizon) else {
        return Margins::LeftOut;
    };
    let cost = agents.saturating_mul(2 * MARGIN_EPISODES).saturating_mul(length);
    if cost > MOST_MARGIN_STEPS {
        return Margins::LeftOut;
    }
    let Ok(assessment) = evaluator.assess(MARGIN_EPISODES, seed, 0.99) else { return Margins::LeftOut };
    let mut of_pistons = vec![None; agents];
    let verdicts = assessment.agents(agents);
    for constraint in &assessment.constraints {
        let margin: &mut Option<Margin> = &mut of_pistons[constraint.agent];
        let slack = margin.map_or(constraint.slack, |other| other.slack.min(constraint.slack));
        *margin = Some(Margin { slack, verdict: verdicts[constraint.agent] });
    }
    Margins::Known { of_pistons, episodes: assessment.episodes }
}

/// By agent and step: whether the agent's constraints hold at the occupancy of its states and actions up to
/// and including the step; none if it has no constraints, or one without a value there.
fn kept_by_agent(
    problem: &Problem,
    trajectory: &Trajectory,
    agents: impl Iterator<Item = usize>,
) -> Vec<Vec<Option<bool>>> {
    // By step: what the problem's scaling multiplies the γ^k of all steps up to and including it by.
    let scales: Vec<f64> =
        (1..=trajectory.steps()).map(|steps| problem.occupancy_weights(steps, 1)[0]).collect();
    let kept_so_far = |agent: usize| {
        let (states, actions) = (trajectory.states(agent), trajectory.actions(agent));
        let local = &problem.agents[agent];
        let mut visits = vec![0.0; problem.row_length(agent)];
        let mut power = 1.0;
        let kept = scales.iter().enumerate().map(|(k, scale)| {
            visits[usize::from(states[k]) * local.space.actions + usize::from(actions[k])] += power;
            for (channel, total) in (0..trajectory.channels()).zip(&mut visits[local.space.cells()..]) {
                *total += power * f64::from(trajectory.rewards(channel, agent)[k]);
            }
            power *= problem.gamma;
            let mut occupancy: Vec<f64> = visits.iter().map(|visits| scale * visits).collect();
            // Of this one episode, events have a share of 0 or 1.
            let happened = |event| decide(event, trajectory, agent, local.space.actions, k + 1).happened;
            occupancy.extend(local.events.iter().map(|event| f64::from(u8::from(happened(event)))));
            let slack = local.constraints.iter().map(|constraint| constraint.slack(&occupancy, local.space));
            let smallest = slack.reduce(|a, b| if a.is_nan() { a } else { b.min(a) });
            smallest.filter(|slack| !slack.is_nan()).map(|slack| slack >= 0.0)
        });
        kept.collect()
    };
    agents.map(kept_so_far).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use phalanx::run::Config;

    #[test]
    fn an_entropy_is_kept_once_both_states_were_seen_often_enough() {
        // The entropy of a state with a share of 1/6 is 0.45, of 1/7 0.41, of 2/10 0.50; γ changes them by
        // less than 0.03.
        let config = Config::preset("synthetic").unwrap().with("constraint.0.at_least", "0.43").unwrap();
        let evaluator = Evaluator::new(&config).unwrap();
        let states = [0, 0, 0, 1, 0, 0, 0, 0, 0, 1];
        let mut trajectory = Trajectory::for_world(evaluator.world(), states.len());
        for (k, state) in states.into_iter().enumerate() {
            *trajectory.pair_mut(3, k).0 = state;
        }
        let kept = &kept_by_agent(evaluator.problem(), &trajectory, 3..4)[0];
        let expected = [0, 0, 0, 1, 1, 1, 0, 0, 0, 1].map(|kept| Some(kept == 1));
        assert_eq!(kept[..], expected);
    }
}
