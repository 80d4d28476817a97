//! What every world must satisfy, as a check that tests of a new world can call.

use super::{ChannelValues, Evolution, Factored, Joint, LARGEST_LOCAL_SPACE, StartLaw, World};
use crate::base::sampler::{outcome, write_thresholds};
use crate::base::stream::{Place, Purpose, Sequence, Stream};

/// Whether the start law is one, and allows the start state that was drawn.
fn check_start_law(world: &dyn World, factored: &dyn Factored, drawn: &[u8]) -> Result<(), String> {
    let n = drawn.len();
    let is_law = |law: &[f64]| {
        law.iter().all(|p| (0.0..=1.0 + 1e-9).contains(p)) && (law.iter().sum::<f64>() - 1.0).abs() <= 1e-8
    };
    match factored.start_law() {
        None => Ok(()),
        Some(StartLaw::Product { local }) => {
            if local.len() != n {
                return Err(format!("start_law has {} laws for {n} agents", local.len()));
            }
            for (i, law) in local.iter().enumerate() {
                if law.len() != world.states(i) || !is_law(law) {
                    return Err(format!("start_law of agent {i} is no law over {} states", world.states(i)));
                }
                if law[usize::from(drawn[i])] == 0.0 {
                    return Err(format!("agent {i} starts in state {}, which start_law excludes", drawn[i]));
                }
            }
            Ok(())
        }
        Some(StartLaw::Joint { p }) => {
            let joint = drawn.iter().enumerate();
            let number = joint.fold(0, |number, (i, &s)| number * world.states(i) + usize::from(s));
            let size = (0..n).try_fold(1usize, |size, i| size.checked_mul(world.states(i)));
            if size != Some(p.len()) || !is_law(&p) {
                return Err("start_law is no law over the joint states".into());
            }
            if p[number] == 0.0 {
                return Err(format!("joint state {number} was drawn, which start_law excludes"));
            }
            Ok(())
        }
    }
}

/// Whether rewards that are recorded while simulating keep their range and do not depend on how the agents
/// are split.
fn check_sampled_rewards(
    world: &dyn World,
    factored: &dyn Factored,
    words: &mut Sequence,
) -> Result<(), String> {
    let n = world.graph().agents();
    for (place, channel) in world.channels().iter().enumerate() {
        let ChannelValues::Sampled { range: [low, high] } = channel.values else { continue };
        let name = &channel.name;
        for _ in 0..32 {
            let mut random = |size: usize| (words.next_u32() as usize % size) as u8;
            let s: Vec<u8> = (0..n).map(|i| random(world.states(i))).collect();
            let a: Vec<u8> = (0..n).map(|i| random(world.actions(i))).collect();
            let draws: Vec<u32> = (0..n).map(|_| words.next_u32() >> 1).collect();
            let mut together = vec![f32::NAN; n];
            factored.sample_rewards(place, 0..n, &s, &a, &draws, &mut together);
            if let Some(i) = (0..n).find(|&i| !(low..=high).contains(&f64::from(together[i]))) {
                return Err(format!("channel {name}: agent {i} earns {}, not {low} to {high}", together[i]));
            }
            for agent in (0..n).step_by(n.div_ceil(64)) {
                let mut alone = [f32::NAN];
                factored.sample_rewards(place, agent..agent + 1, &s, &a, &draws[agent..=agent], &mut alone);
                if alone[0] != together[agent] {
                    return Err(format!("channel {name}: rewards depend on how the agents are split"));
                }
            }
        }
    }
    Ok(())
}

/// Checks that `step` samples from `transition`, reads the parents only, that rewards keep their range, and
/// that sizes and start law fit: what every world must satisfy. Meant for tests of a new world; looks at no
/// more than 64 agents.
///
/// # Errors
/// The first broken promise, in words.
pub fn check(world: &dyn World) -> Result<(), String> {
    let n = world.graph().agents();
    for i in 0..n {
        for (what, size) in [("states", world.states(i)), ("actions", world.actions(i))] {
            if size == 0 || size > LARGEST_LOCAL_SPACE {
                return Err(format!("agent {i} has {size} {what}; 1 to {LARGEST_LOCAL_SPACE} are allowed"));
            }
        }
    }
    for channel in world.channels() {
        let ChannelValues::Sampled { range: [low, high] } = channel.values else { continue };
        if !(low.is_finite() && high.is_finite() && low <= high) {
            return Err(format!("channel {}: [{low}, {high}] is no range", channel.name));
        }
    }
    for channel in world.channels() {
        let Some(tables) = channel.tables() else { continue };
        for i in 0..n {
            let (found, expected) = (tables.row(i).len(), world.states(i) * world.actions(i));
            if found != expected {
                return Err(format!(
                    "channel {}: agent {i} has {found} entries, not {expected}",
                    channel.name
                ));
            }
        }
    }
    match world.evolution() {
        Evolution::Factored(factored) => check_factored(world, factored),
        Evolution::Joint(joint) => check_joint(world, joint),
    }
}

fn check_factored(world: &dyn World, factored: &dyn Factored) -> Result<(), String> {
    let n = world.graph().agents();
    let stream = Stream::new(0x5eed);
    let place = |trajectory| Place { purpose: Purpose::EvaluationStart, iteration: 0, trajectory };
    let mut words = stream.sequence(place(1), u32::MAX);
    let mut states = vec![0; n];
    factored.start(&stream, place(0), 0..n, &mut states);
    let mut halves = vec![0; n];
    factored.start(&stream, place(0), 0..n / 2, &mut halves[..n / 2]);
    factored.start(&stream, place(0), n / 2..n, &mut halves[n / 2..]);
    if halves != states {
        return Err("start depends on how the agents are split".into());
    }
    check_start_law(world, factored, &states)?;
    let all_draws: Vec<u32> = (0..n).map(|_| words.next_u32() >> 1).collect();
    let random_joint = |words: &mut Sequence, sizes: &dyn Fn(usize) -> usize| -> Vec<u8> {
        (0..n).map(|i| (words.next_u32() as usize % sizes(i)) as u8).collect()
    };
    for agent in (0..n).step_by(n.div_ceil(64)) {
        let parents = factored.parents(agent);
        if !parents.is_sorted_by(|a, b| a < b) || parents.iter().any(|&p| p as usize >= n) {
            return Err(format!("agent {agent}: parents {parents:?} are not ascending agents below {n}"));
        }
        if usize::from(states[agent]) >= world.states(agent) {
            return Err(format!(
                "agent {agent} starts in state {} of {}",
                states[agent],
                world.states(agent)
            ));
        }
        for trial in 0..32 {
            let mut s = random_joint(&mut words, &|i| world.states(i));
            let mut a = random_joint(&mut words, &|i| world.actions(i));
            let pick = |joint: &[u8]| parents.iter().map(|&p| joint[p as usize]).collect::<Vec<_>>();
            let draw = words.next_u32() >> 1;
            let mut next = [255];
            factored.step(agent..agent + 1, &s, &a, &[draw], &mut next);
            if usize::from(next[0]) >= world.states(agent) {
                return Err(format!(
                    "agent {agent}: step gives state {} of {}",
                    next[0],
                    world.states(agent)
                ));
            }
            if factored.knows_law() {
                let mut law = vec![f64::NAN; world.states(agent)];
                factored.transition(agent, &pick(&s), &pick(&a), &mut law);
                let total: f64 = law.iter().sum();
                if law.iter().any(|p| !(0.0..=1.0).contains(p)) || (total - 1.0).abs() > 1e-9 {
                    return Err(format!("agent {agent}: transition law {law:?} sums to {total}"));
                }
                let mut thresholds = vec![0; law.len() - 1];
                write_thresholds(&law, &mut thresholds);
                if next[0] != outcome(&thresholds, draw) {
                    return Err(format!(
                        "agent {agent}, trial {trial}: step gives {}, the law {law:?} gives {} for draw {draw}",
                        next[0],
                        outcome(&thresholds, draw)
                    ));
                }
            }
            let together = {
                let mut next = vec![255; n];
                factored.step(0..n, &s, &a, &all_draws, &mut next);
                next[agent]
            };
            let mut alone = [255];
            factored.step(agent..agent + 1, &s, &a, &all_draws[agent..=agent], &mut alone);
            if alone[0] != together {
                return Err(format!("agent {agent}: step depends on how the agents are split"));
            }
            let (fresh_s, fresh_a) = (
                random_joint(&mut words, &|i| world.states(i)),
                random_joint(&mut words, &|i| world.actions(i)),
            );
            for j in (0..n).filter(|&j| !parents.contains(&(j as u32))) {
                (s[j], a[j]) = (fresh_s[j], fresh_a[j]);
            }
            let mut elsewhere = [255];
            factored.step(agent..agent + 1, &s, &a, &[draw], &mut elsewhere);
            if elsewhere != next {
                return Err(format!(
                    "agent {agent}: its next state changes with agents that are not its parents"
                ));
            }
        }
    }
    check_sampled_rewards(world, factored, &mut words)
}

/// Whether episodes are what their place in the stream makes them, and stay within sizes and ranges.
fn check_joint(world: &dyn World, joint: &dyn Joint) -> Result<(), String> {
    let n = world.graph().agents();
    let stream = Stream::new(0x5eed);
    let ranges: Vec<(&str, [f64; 2])> = (world.channels().iter())
        .filter_map(|channel| match channel.values {
            ChannelValues::Sampled { range } => Some((channel.name.as_str(), range)),
            ChannelValues::Table(_) => None,
        })
        .collect();
    for trajectory in 0..8 {
        let place = Place { purpose: Purpose::EvaluationStart, iteration: 0, trajectory };
        let mut twice = [joint.begin(&stream, place), joint.begin(&stream, place)];
        let mut words = stream.sequence(place, u32::MAX);
        for step in 0..64 {
            let mut seen = Vec::new();
            for episode in &mut twice {
                let (mut states, mut shared) = (vec![255; n], vec![f32::NAN; joint.shared()]);
                episode.observe(&mut states, &mut shared);
                if let Some(i) = (0..n).find(|&i| usize::from(states[i]) >= world.states(i)) {
                    return Err(format!("agent {i} is in state {} of {}", states[i], world.states(i)));
                }
                if shared.iter().any(|x| !x.is_finite()) {
                    return Err(format!("step {step} shows {shared:?}"));
                }
                seen.push((states, shared));
            }
            let actions: Vec<u8> =
                (0..n).map(|i| (words.next_u32() as usize % world.actions(i)) as u8).collect();
            let draws: Vec<u32> = (0..n).map(|_| words.next_u32() >> 1).collect();
            let outcomes = twice.each_mut().map(|episode| {
                let mut rewards = vec![f32::NAN; ranges.len() * n];
                (episode.step(&actions, &draws, &mut rewards), rewards)
            });
            if seen[0] != seen[1] || outcomes[0] != outcomes[1] {
                return Err(format!("two episodes from one place differ at step {step}"));
            }
            let [(ended, rewards), _] = outcomes;
            for ((name, [low, high]), rewards) in ranges.iter().zip(rewards.chunks_exact(n)) {
                if let Some(i) = (0..n).find(|&i| !(*low..=*high).contains(&f64::from(rewards[i]))) {
                    return Err(format!(
                        "channel {name}: agent {i} earns {}, not {low} to {high}",
                        rewards[i]
                    ));
                }
            }
            if ended {
                break;
            }
        }
    }
    Ok(())
}
