//! Simulated trajectories. Paper: alg:pdac line 3, alg:subroutine lines 2 and 4.

mod by_pieces;
mod columns;
mod lockstep;
mod per_trajectory;

use std::ops::Range;

use crate::base::sampler::uniform;
use crate::base::stream::{Place, Purpose, Stream};
use crate::distributed::Halo;
use crate::policy::{Acting, Policy};
use crate::world::{Evolution, Factored, World, sampled_channels};
use crate::{Error, Result};

use crate::world::Trajectory;
use by_pieces::ByPieces;
use lockstep::Lockstep;
use per_trajectory::Simulation;

/// Where a trajectory starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartFrom {
    /// The world's law ρ.
    World,
    /// Every local state equally likely, agents independent (alg:subroutine's ρ₀). Joint worlds start by
    /// their own law: what is shared has no uniform law.
    Uniform,
}

/// One trajectory to simulate.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// Where its numbers come from.
    pub place: Place,
    /// Purpose of its start states.
    pub start_purpose: Purpose,
    /// Where it starts.
    pub start: StartFrom,
}

impl Request {
    fn start_place(&self) -> Place {
        Place { purpose: self.start_purpose, ..self.place }
    }
}

/// From this many agents on, one trajectory keeps all threads busy; below, threads take a trajectory each.
pub const SPLIT_AGENTS: usize = 1 << 15;

/// Simulates every requested trajectory under `policy`.
///
/// Each trajectory is filled until there is no more room, or its episode ends. The numbers drawn depend on
/// the place, the agent and the step alone, so the order of work does not matter. Neighbouring processes do
/// the same at the same time; afterwards the columns of ghosts are complete, except for rewards.
pub fn simulate(
    world: &dyn World,
    policy: &dyn Policy,
    stream: &Stream,
    requests: &[Request],
    trajectories: &mut [Trajectory],
    halo: &Halo,
) -> Result<()> {
    assert_eq!(requests.len(), trajectories.len());
    let agents = world.graph().agents();
    let mut jobs: Vec<_> = requests.iter().zip(trajectories).collect();
    // Longest first, or the last one would keep everybody waiting.
    jobs.sort_by_key(|(_, trajectory)| std::cmp::Reverse(trajectory.room()));
    let (sampled, acting) = (&sampled_channels(world)[..], policy.acting());
    let lockstep = Lockstep { world, policy: acting, stream, sampled };
    let piece = by_pieces::piece(policy);
    let by_pieces = |factored| ByPieces { world, factored, policy: acting, stream, sampled, piece, halo };
    match (world.evolution(), acting) {
        (Evolution::Factored(factored), _) if halo.is_distributed() => {
            by_pieces(factored).run(&mut jobs)?;
        }
        (Evolution::Joint(_), _) if halo.is_distributed() => {
            return Err(Error::argument("mpi", "a world that is simulated whole cannot be shared out"));
        }
        (_, Acting::Together(_)) => lockstep.run(&mut jobs),
        (Evolution::Joint(_), Acting::Alone(_)) => {
            each(jobs, world.is_serial(), |job| lockstep.run(std::slice::from_mut(job)));
        }
        (Evolution::Factored(factored), _) if agents >= SPLIT_AGENTS && !world.is_serial() => {
            let pieces = by_pieces(factored);
            for jobs in jobs.chunks_mut(by_pieces::side_by_side(agents, sampled.len())) {
                pieces.run(jobs)?;
            }
        }
        (Evolution::Factored(factored), Acting::Alone(policy)) => {
            let simulation = Simulation { world, factored, policy, stream, sampled };
            each(jobs, world.is_serial(), |(request, trajectory)| simulation.run(request, trajectory));
        }
    }
    Ok(())
}

/// Runs every job: on whichever thread is free next, or one after the other.
fn each<J: Send>(mut jobs: Vec<J>, is_serial: bool, work: impl Fn(&mut J) + Sync) {
    if is_serial {
        return jobs.iter_mut().for_each(work);
    }
    let work = &work;
    rayon::scope_fifo(|scope| {
        for mut job in jobs {
            scope.spawn_fifo(move |_| work(&mut job));
        }
    });
}

/// Draws of two steps, `[action, world]` each.
type Draws = [Vec<u32>; 4];

/// The draws of actions and of transitions at a step, from those of its pair of steps.
fn of_step(draws: &Draws, step: usize) -> [&[u32]; 2] {
    match draws {
        [act, move_on, _, _] if step.is_multiple_of(2) => [act, move_on],
        [_, _, act, move_on] => [act, move_on],
    }
}

/// Start states of some agents of a factored world.
fn start(
    world: &dyn World,
    factored: &dyn Factored,
    stream: &Stream,
    request: &Request,
    agents: Range<usize>,
    states: &mut [u8],
) {
    let place = request.start_place();
    match request.start {
        StartFrom::World => factored.start(stream, place, agents, states),
        StartFrom::Uniform => {
            for (agent, state) in agents.zip(states) {
                let draw = stream.words(place, world.graph().global_id(agent), 0)[0] >> 1;
                *state = uniform(world.states(agent), draw);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{ActAlone, Parameterisation, Tabular};
    use crate::world::{Line, Start};

    fn request(iteration: u32) -> Request {
        Request {
            place: Place { purpose: Purpose::Batch, iteration, trajectory: 2 },
            start_purpose: Purpose::BatchStart,
            start: StartFrom::World,
        }
    }

    /// The same trajectory, one agent and one step at a time, straight from the definition.
    fn by_definition(
        world: &Line,
        policy: &Tabular,
        stream: &Stream,
        request: Request,
        steps: usize,
    ) -> Trajectory {
        let agents = world.graph().agents();
        let mut trajectory = Trajectory::new(agents, steps);
        let mut states = vec![0; agents];
        let start = Place { purpose: request.start_purpose, ..request.place };
        world.start(stream, start, 0..agents, &mut states);
        for k in 0..steps {
            let (mut actions, mut next) = (vec![0; agents], vec![0; agents]);
            let word = |i: usize, w| stream.words(request.place, i as u32, k as u32 / 2)[k % 2 * 2 + w] >> 1;
            for i in 0..agents {
                policy.act(i..i + 1, &states, &[word(i, 0)], &mut actions[i..=i]);
            }
            for i in 0..agents {
                world.step(i..i + 1, &states, &actions, &[word(i, 1)], &mut next[i..=i]);
                let (s, a) = trajectory.pair_mut(i, k);
                (*s, *a) = (states[i], actions[i]);
            }
            states = next;
        }
        trajectory
    }

    #[test]
    fn fast_simulation_is_the_definition() {
        for (agents, steps) in [(3, 1), (10, 125), (70, 131)] {
            let world = Line::new(agents, Start::Uniform, 0.1).unwrap();
            let stream = Stream::new(4);
            let policy = Tabular::new(&world, 1, Parameterisation::Softmax, 1.0, &stream).unwrap();
            let mut fast = [Trajectory::new(agents, steps)];
            simulate(&world, &policy, &stream, &[request(6)], &mut fast, &Halo::single(agents)).unwrap();
            assert_eq!(fast[0], by_definition(&world, &policy, &stream, request(6), steps));
        }
    }

    #[test]
    fn splitting_a_trajectory_over_threads_changes_nothing() {
        let world = Line::new(1000, Start::Uniform, 0.1).unwrap();
        let stream = Stream::new(5);
        let policy = Tabular::new(&world, 1, Parameterisation::Softmax, 1.0, &stream).unwrap();
        let mut whole = [Trajectory::new(1000, 150)];
        let halo = &Halo::single(1000);
        simulate(&world, &policy, &stream, &[request(0)], &mut whole, halo).unwrap();
        let mut split = Trajectory::new(1000, 150);
        let wide = ByPieces {
            world: &world,
            factored: &world,
            policy: policy.acting(),
            stream: &stream,
            sampled: &[],
            piece: 16,
            halo,
        };
        wide.run(&mut [(&request(0), &mut split)]).unwrap();
        assert_eq!(whole, [split]);
    }
}
