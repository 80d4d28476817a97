//! What every world must satisfy, as a check that tests of a new world can call.

use super::{Channel, ChannelValues, Evolution, Factored, Joint, LARGEST_LOCAL_SPACE, StartLaw, World};
use crate::base::error::ensure;
use crate::base::sampler::{outcome, write_thresholds};
use crate::base::stream::{Place, Purpose, Sequence, Stream};

/// A value of every agent, below what `size` says of it.
fn random_joint(words: &mut Sequence, n: usize, size: impl Fn(usize) -> usize) -> Vec<u8> {
    (0..n).map(|i| (words.next_u32() as usize % size(i)) as u8).collect()
}

/// A draw of every agent.
fn random_draws(words: &mut Sequence, n: usize) -> Vec<u32> {
    (0..n).map(|_| words.next_u32() >> 1).collect()
}

/// Whether the start law is one, and allows the start state that was drawn.
fn check_start_law(world: &dyn World, factored: &dyn Factored, drawn: &[u8]) -> Result<(), String> {
    let n = drawn.len();
    let is_law = |law: &[f64]| {
        law.iter().all(|p| (0.0..=1.0 + 1e-9).contains(p)) && (law.iter().sum::<f64>() - 1.0).abs() <= 1e-8
    };
    match factored.start_law() {
        None => Ok(()),
        Some(StartLaw::Product { local }) => {
            ensure(local.len() == n, || format!("start_law has {} laws for {n} agents", local.len()))?;
            for (i, law) in local.iter().enumerate() {
                ensure(law.len() == world.states(i) && is_law(law), || {
                    format!("start_law of agent {i} is no law over {} states", world.states(i))
                })?;
                ensure(law[usize::from(drawn[i])] != 0.0, || {
                    format!("agent {i} starts in state {}, which start_law excludes", drawn[i])
                })?;
            }
            Ok(())
        }
        Some(StartLaw::Joint { p }) => {
            let joint = drawn.iter().enumerate();
            let number = joint.fold(0, |number, (i, &s)| number * world.states(i) + usize::from(s));
            let size = (0..n).try_fold(1usize, |size, i| size.checked_mul(world.states(i)));
            ensure(size == Some(p.len()) && is_law(&p), || {
                "start_law is no law over the joint states".to_string()
            })?;
            ensure(p[number] != 0.0, || format!("joint state {number} was drawn, which start_law excludes"))
        }
    }
}

/// Whether the rewards of a channel keep their range.
fn check_range(name: &str, [low, high]: [f64; 2], rewards: &[f32]) -> Result<(), String> {
    let beyond = rewards.iter().position(|&reward| !(low..=high).contains(&f64::from(reward)));
    beyond.map_or(Ok(()), |i| {
        Err(format!("channel {name}: agent {i} earns {}, not {low} to {high}", rewards[i]))
    })
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
        let ChannelValues::Sampled { range } = channel.values else { continue };
        let name = &channel.name;
        for _ in 0..32 {
            let s = random_joint(words, n, |i| world.states(i));
            let a = random_joint(words, n, |i| world.actions(i));
            let draws = random_draws(words, n);
            let mut together = vec![f32::NAN; n];
            factored.sample_rewards(place, 0..n, &s, &a, &draws, &mut together);
            check_range(name, range, &together)?;
            for agent in (0..n).step_by(n.div_ceil(64)) {
                let mut alone = [f32::NAN];
                factored.sample_rewards(place, agent..agent + 1, &s, &a, &draws[agent..=agent], &mut alone);
                ensure(alone[0] == together[agent], || {
                    format!("channel {name}: rewards depend on how the agents are split")
                })?;
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
            ensure((1..=LARGEST_LOCAL_SPACE).contains(&size), || {
                format!("agent {i} has {size} {what}; 1 to {LARGEST_LOCAL_SPACE} are allowed")
            })?;
        }
    }
    for Channel { name, values } in world.channels() {
        match values {
            &ChannelValues::Sampled { range: [low, high] } => {
                let is_range = low.is_finite() && high.is_finite() && low <= high;
                ensure(is_range, || format!("channel {name}: [{low}, {high}] is no range"))?;
            }
            ChannelValues::Table(tables) => {
                for i in 0..n {
                    let (found, expected) = (tables.row(i).len(), world.states(i) * world.actions(i));
                    ensure(found == expected, || {
                        format!("channel {name}: agent {i} has {found} entries, not {expected}")
                    })?;
                }
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
    ensure(halves == states, || "start depends on how the agents are split".to_string())?;
    check_start_law(world, factored, &states)?;
    let all_draws = random_draws(&mut words, n);
    for agent in (0..n).step_by(n.div_ceil(64)) {
        let parents = factored.parents(agent);
        ensure(parents.is_sorted_by(|a, b| a < b) && parents.iter().all(|&p| (p as usize) < n), || {
            format!("agent {agent}: parents {parents:?} are not ascending agents below {n}")
        })?;
        let size = world.states(agent);
        ensure(usize::from(states[agent]) < size, || {
            format!("agent {agent} starts in state {} of {size}", states[agent])
        })?;
        let step = |s: &[u8], a: &[u8], draw: u32| {
            let mut next = [255];
            factored.step(agent..agent + 1, s, a, &[draw], &mut next);
            next[0]
        };
        for trial in 0..32 {
            let mut s = random_joint(&mut words, n, |i| world.states(i));
            let mut a = random_joint(&mut words, n, |i| world.actions(i));
            let pick = |joint: &[u8]| parents.iter().map(|&p| joint[p as usize]).collect::<Vec<_>>();
            let draw = words.next_u32() >> 1;
            let next = step(&s, &a, draw);
            ensure(usize::from(next) < size, || format!("agent {agent}: step gives state {next} of {size}"))?;
            if factored.knows_law() {
                let mut law = vec![f64::NAN; size];
                factored.transition(agent, &pick(&s), &pick(&a), &mut law);
                let total: f64 = law.iter().sum();
                ensure(law.iter().all(|p| (0.0..=1.0).contains(p)) && (total - 1.0).abs() <= 1e-9, || {
                    format!("agent {agent}: transition law {law:?} sums to {total}")
                })?;
                let mut thresholds = vec![0; law.len() - 1];
                write_thresholds(&law, &mut thresholds);
                let expected = outcome(&thresholds, draw);
                ensure(next == expected, || {
                    format!(
                        "agent {agent}, trial {trial}: step gives {next}, the law {law:?} gives {expected} \
                         for draw {draw}"
                    )
                })?;
            }
            let mut together = vec![255; n];
            factored.step(0..n, &s, &a, &all_draws, &mut together);
            ensure(step(&s, &a, all_draws[agent]) == together[agent], || {
                format!("agent {agent}: step depends on how the agents are split")
            })?;
            let fresh_s = random_joint(&mut words, n, |i| world.states(i));
            let fresh_a = random_joint(&mut words, n, |i| world.actions(i));
            for j in (0..n).filter(|&j| !parents.contains(&(j as u32))) {
                (s[j], a[j]) = (fresh_s[j], fresh_a[j]);
            }
            ensure(step(&s, &a, draw) == next, || {
                format!("agent {agent}: its next state changes with agents that are not its parents")
            })?;
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
                ensure(shared.iter().all(|x| x.is_finite()), || format!("step {step} shows {shared:?}"))?;
                seen.push((states, shared));
            }
            let actions = random_joint(&mut words, n, |i| world.actions(i));
            let draws = random_draws(&mut words, n);
            let outcomes = twice.each_mut().map(|episode| {
                let mut rewards = vec![f32::NAN; ranges.len() * n];
                (episode.step(&actions, &draws, &mut rewards), rewards)
            });
            ensure(seen[0] == seen[1] && outcomes[0] == outcomes[1], || {
                format!("two episodes from one place differ at step {step}")
            })?;
            let [(ended, rewards), _] = outcomes;
            for (&(name, range), rewards) in ranges.iter().zip(rewards.chunks_exact(n)) {
                check_range(name, range, rewards)?;
            }
            if ended {
                break;
            }
        }
    }
    Ok(())
}
