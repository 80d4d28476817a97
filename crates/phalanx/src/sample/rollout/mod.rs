//! Simulated trajectories. Paper: alg:pdac line 3, alg:subroutine lines 2 and 4.

mod by_pieces;
mod columns;
mod lockstep;

use std::sync::OnceLock;

use crate::Result;
use crate::base::stream::{Place, Purpose, Stream};
use crate::distributed::Halo;
use crate::policy::Policy;
use crate::world::{Evolution, Trajectory, World};
use by_pieces::ByPieces;
use lockstep::Lockstep;

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
    let mut jobs: Vec<_> = requests.iter().zip(trajectories).collect();
    jobs.iter_mut().for_each(|(request, trajectory)| trajectory.set_origin(*stream, request.place));
    // Longest first, or the last one would keep everybody waiting.
    jobs.sort_by_key(|(_, trajectory)| std::cmp::Reverse(trajectory.room()));
    match world.evolution() {
        // Simulated whole, by one process: a run over several refuses such worlds.
        Evolution::Joint(joint) => {
            debug_assert_eq!(halo.peers().count(), 1);
            let lockstep = Lockstep { world, joint, policy: policy.acting(), stream };
            side_by_side(jobs, lockstep.at_once(), world.is_serial(), |jobs| {
                lockstep.run(jobs);
                Ok(())
            })
        }
        Evolution::Factored(factored) => {
            let pieces = ByPieces::new(world, factored, policy, stream, halo);
            side_by_side(jobs, pieces.at_once(), world.is_serial(), |jobs| pieces.run(jobs))
        }
    }
}

/// A trajectory to be filled.
type Job<'a> = (&'a Request, &'a mut Trajectory);

/// Runs so many jobs at a time, group after group; single ones on whichever thread is free next, unless they
/// are serial.
fn side_by_side<'a>(
    mut jobs: Vec<Job<'a>>,
    at_once: usize,
    is_serial: bool,
    run: impl Fn(&mut [Job<'a>]) -> Result<()> + Sync,
) -> Result<()> {
    if at_once > 1 || is_serial {
        return jobs.chunks_mut(at_once).try_for_each(run);
    }
    let failed = OnceLock::new();
    let (run, failure) = (&run, &failed);
    rayon::scope_fifo(|scope| {
        for mut job in jobs {
            scope.spawn_fifo(move |_| {
                if let Err(error) = run(std::slice::from_mut(&mut job)) {
                    let _ = failure.set(error);
                }
            });
        }
    });
    failed.into_inner().map_or(Ok(()), Err)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{ActAlone, Parameterisation, Tabular};
    use crate::world::{Factored, Line, Start};

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
        trajectory.set_origin(*stream, request.place);
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
        split.set_origin(stream, request(0).place);
        let mut wide = ByPieces::new(&world, &world, &policy, &stream, halo);
        wide.piece = 16;
        wide.run(&mut [(&request(0), &mut split)]).unwrap();
        assert_eq!(whole, [split]);
    }
}
