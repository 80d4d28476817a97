//! Worlds that somebody else plays, step by step: many copies of one world in one object.

mod actions;
mod layout;
mod play;

use std::sync::Arc;

use numpy::{
    PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArray,
};
use phalanx::base::limits::check_memory;
use phalanx::run::Config;
use phalanx::world::pistonball::physics::Ball;
use phalanx::world::pistonball::{Game, MAX_CYCLES};
use phalanx::world::{Evolution, PistonballSpec, World};
use phalanx_pictures::render::{Board, Moment};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::config::Configuration;
use crate::errors::{bad, exception, without_lock};
use crate::own::links;
use crate::session::agent_prefix;
use actions::{Actions, Space};
use layout::{Layout, Observed};
use play::{Play, Standing};

/// More threads than this are a mistake.
const MOST_THREADS: usize = 1024;

/// Steps are numbered in pairs, with 32 bits.
const MOST_CYCLES: usize = u32::MAX as usize;

/// Copies of one world, all of the same rules. Python around it gives seeds, and begins episodes again.
#[pyclass(module = "phalanx._phalanx")]
pub struct Games {
    config: Config,
    world: Arc<dyn World>,
    /// Which game of pistons; none in other worlds.
    game: Option<Game>,
    continuous: bool,
    /// Steps after which an episode is cut.
    #[pyo3(get, set)]
    max_cycles: usize,
    layout: Layout,
    copies: Vec<Play>,
    /// Names of the agents.
    #[pyo3(get)]
    names: Vec<Py<PyString>>,
    /// Names of the channels.
    #[pyo3(get)]
    channels: Vec<Py<PyString>>,
    /// Which of them is `reward`.
    reward: Option<usize>,
    pool: Option<ThreadPool>,
    /// The process that the pool's threads live in.
    process: u32,
    board: Option<Board>,
}

/// Observations, channels, terminations and truncations.
type Stepped<'py> = (
    Bound<'py, PyAny>,
    Vec<Bound<'py, PyArray2<f64>>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<bool>>,
);

/// Observations, rewards, terminations, truncations and infos by agent, and whether the episode is over.
type SteppedAgents<'py> = (Dict<'py>, Dict<'py>, Dict<'py>, Dict<'py>, Dict<'py>, bool);
type Dict<'py> = Bound<'py, PyDict>;

#[pymethods]
impl Games {
    #[new]
    fn new(
        py: Python<'_>,
        config: &Bound<'_, Configuration>,
        copies: usize,
        max_cycles: Option<usize>,
        continuous: bool,
        threads: usize,
    ) -> PyResult<Self> {
        let config = config.get().0.clone();
        let game = config.world.settings_of::<PistonballSpec>().map(|spec| spec.game);
        if continuous && game != Some(Game::Pettingzoo) {
            let message = "is for pistonball with game = \"pettingzoo\": other actions are numbers";
            return Err(bad("continuous", message));
        }
        let (world, layout) = without_lock(py, || {
            let world = phalanx::run::world(&config)?;
            // One that is simulated whole in Python.
            if world.is_serial() && matches!(world.evolution(), Evolution::Joint(_)) {
                let message = "is an environment already; play in the one that it was made of";
                return Err(phalanx::Error::config("source", message));
            }
            let layout = Layout::new(&*world, config.kappa)?;
            let bytes = Play::bytes(&*world, &layout).saturating_mul(copies as u128);
            check_memory(bytes, "copies", &format!("{copies} copies of {} agents", world.graph().agents()))?;
            Ok((world, layout))
        })?;
        let max_cycles = max_cycles.unwrap_or(if game.is_some() { MAX_CYCLES } else { config.horizon });
        if !(1..=MOST_CYCLES).contains(&max_cycles) {
            return Err(bad("max_cycles", format!("{max_cycles}; allowed are 1 to {MOST_CYCLES}")));
        }
        let prefix = agent_prefix(&config.world);
        let name = |i| PyString::new(py, &format!("{prefix}_{i}")).unbind();
        let channels = world.channels();
        Ok(Games {
            names: (0..world.graph().agents()).map(name).collect(),
            channels: channels.iter().map(|channel| PyString::intern(py, &channel.name).unbind()).collect(),
            reward: channels.iter().position(|channel| channel.name == "reward"),
            copies: (0..copies).map(|_| Play::new(&*world, &layout)).collect(),
            max_cycles,
            pool: pool(threads.min(copies))?,
            process: std::process::id(),
            board: None,
            config,
            world,
            game,
            continuous,
            layout,
        })
    }

    /// `line`, `pistonball`, …
    #[getter]
    fn kind(&self) -> &str {
        self.config.world.kind()
    }

    #[getter]
    fn kappa(&self) -> usize {
        self.config.kappa
    }

    /// Links, the smaller agent first.
    #[getter]
    fn graph(&self) -> Vec<(u32, u32)> {
        links(self.world.graph())
    }

    /// |S_i|.
    #[getter]
    fn states(&self) -> Vec<usize> {
        (0..self.names.len()).map(|i| self.world.states(i)).collect()
    }

    /// |A_i|.
    #[getter]
    fn action_counts(&self) -> Vec<usize> {
        (0..self.names.len()).map(|i| self.world.actions(i)).collect()
    }

    /// κ-hop neighbourhoods.
    #[getter]
    fn groups(&self) -> Vec<Vec<u32>> {
        self.layout.groups.iter().map(<[u32]>::to_vec).collect()
    }

    /// Whether agents see numbers, not states.
    #[getter]
    fn has_views(&self) -> bool {
        self.layout.has_views()
    }

    /// How many numbers every agent sees.
    #[getter]
    fn sizes(&self) -> Vec<usize> {
        (0..self.names.len()).map(|i| self.layout.size(i)).collect()
    }

    /// Begins episodes of any world but pistonball in the copies `which`, each of a seed and a number.
    fn begin(
        &mut self,
        py: Python<'_>,
        which: PyReadonlyArray1<'_, i64>,
        seeds: PyReadonlyArray1<'_, u64>,
        episodes: PyReadonlyArray1<'_, u64>,
    ) -> PyResult<()> {
        let (which, seeds, episodes) = (which.as_slice()?, seeds.as_slice()?, episodes.as_slice()?);
        let (world, layout, copies) = (&*self.world, &self.layout, &mut self.copies);
        without_lock(py, || {
            for (&c, (&seed, &episode)) in which.iter().zip(seeds.iter().zip(episodes)) {
                copies[c as usize].begin(world, layout, seed, episode);
            }
            Ok(())
        })
    }

    /// Begins games of pistons in the copies `which`: heights `[copy][piston]`, and x, y and angular velocity
    /// of the ball.
    fn drop(
        &mut self,
        which: PyReadonlyArray1<'_, i64>,
        heights: PyReadonlyArray2<'_, f64>,
        balls: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<()> {
        let heights = heights.as_slice()?.chunks_exact(self.names.len());
        let starts = heights.zip(balls.as_slice()?.chunks_exact(3));
        for (&c, (heights, ball)) in which.as_slice()?.iter().zip(starts) {
            let ball = Ball { x: ball[0], y: ball[1], vx: 0.0, vy: 0.0, angle: 0.0, omega: ball[2] };
            self.copies[c as usize].drop(&self.layout, heights, ball, self.game == Some(Game::Paper));
        }
        Ok(())
    }

    /// What agents of the copies `which` see, `[copy][agent][number]`.
    fn observe<'py>(&self, py: Python<'py>, which: PyReadonlyArray1<'_, i64>) -> PyResult<Bound<'py, PyAny>> {
        let which = which.as_slice()?;
        if self.layout.has_views() {
            self.observe_as::<f32>(py, which)
        } else {
            self.observe_as::<u8>(py, which)
        }
    }

    /// One step of all copies.
    fn step<'py>(&mut self, py: Python<'py>, actions: &Bound<'py, PyUntypedArray>) -> PyResult<Stepped<'py>> {
        self.check_playing()?;
        let space = if self.continuous { Space::Continuous } else { Space::Discrete(&*self.world) };
        let actions = Actions::read(actions, &self.copies, self.names.len(), space)?;
        self.revive_pool()?;
        let stepped = if self.layout.has_views() {
            self.step_as::<f32>(py, &actions)
        } else {
            self.step_as::<u8>(py, &actions)
        };
        // A world of somebody's own may have failed in some copies after others had moved on.
        let observations = stepped.inspect_err(|_| self.abandon())?;
        let agents = self.names.len();
        let channel =
            |k: usize| self.array(py, agents, |copy| Ok(&copy.earned[k * agents..(k + 1) * agents]));
        let channels = (0..self.channels.len()).map(channel).collect::<PyResult<_>>()?;
        let max_cycles = self.max_cycles;
        let terminations = PyArray1::from_iter(py, self.copies.iter().map(|copy| copy.terminated));
        let truncations = PyArray1::from_iter(py, self.copies.iter().map(|copy| copy.truncated(max_cycles)));
        Ok((observations, channels, terminations, truncations))
    }

    /// What agents of the only copy see.
    fn observe_agents<'py>(&self, py: Python<'py>) -> PyResult<Dict<'py>> {
        let (copy, dict) = (&self.copies[0], PyDict::new(py));
        for (i, name) in self.names.iter().enumerate() {
            if self.layout.has_views() {
                dict.set_item(name, PyArray1::from_slice(py, self.layout.of(&copy.seen, i)))?;
            } else {
                let group = self.layout.groups.row(i).iter();
                dict.set_item(name, PyArray1::from_iter(py, group.map(|&m| copy.states[m as usize])))?;
            }
        }
        Ok(dict)
    }

    /// One step of the only copy, by agent.
    fn step_agents<'py>(
        &mut self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
    ) -> PyResult<SteppedAgents<'py>> {
        self.check_playing()?;
        let Games { world, layout, max_cycles, copies, names, continuous, .. } = &mut *self;
        let space = if *continuous { Space::Continuous } else { Space::Discrete(&**world) };
        let [copy] = &mut copies[..] else { return Err(bad("step_agents", "is for one copy")) };
        let moves = Actions::read_dict(actions, names, space, copy)?;
        let stepped = without_lock(py, || {
            copy.step(&**world, layout, moves.of(0, names.len()), *max_cycles);
            Ok(())
        });
        stepped.inspect_err(|_| self.abandon())?;
        let (copy, agents) = (&self.copies[0], self.names.len());
        let (terminated, truncated) = (copy.terminated, copy.truncated(self.max_cycles));
        let earned = &copy.earned;
        let [rewards, terminations, truncations, infos] = std::array::from_fn(|_| PyDict::new(py));
        for (i, name) in self.names.iter().enumerate() {
            let name = name.bind(py);
            rewards.set_item(name, self.reward.map_or(0.0, |k| earned[k * agents + i]))?;
            terminations.set_item(name, terminated)?;
            truncations.set_item(name, truncated)?;
            let info = PyDict::new(py);
            for (k, channel) in self.channels.iter().enumerate() {
                if Some(k) != self.reward {
                    info.set_item(channel, earned[k * agents + i])?;
                }
            }
            infos.set_item(name, info)?;
        }
        Ok((self.observe_agents(py)?, rewards, terminations, truncations, infos, terminated || truncated))
    }

    /// Everybody's local state, `[copy][agent]`.
    fn joint_states<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u8>>> {
        self.check_begun()?;
        self.array(py, self.names.len(), |copy| Ok(&copy.states))
    }

    /// How many numbers agents of a joint world share.
    #[getter]
    fn shared_size(&self) -> usize {
        match self.world.evolution() {
            Evolution::Factored(_) => 0,
            Evolution::Joint(joint) => joint.shared(),
        }
    }

    /// What agents of a joint world share, `[copy][number]`.
    fn shared<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        self.check_begun()?;
        self.array(py, self.shared_size(), |copy| Ok(&copy.shared))
    }

    /// Names of what the world measures of an episode.
    #[getter]
    fn measure_names(&self) -> Vec<&'static str> {
        self.world.measures().to_vec()
    }

    /// What it measures of the episodes so far, `[copy][measure]`.
    fn measures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        self.check_begun()?;
        self.array(py, self.world.measures().len(), |copy| Ok(copy.measures(&*self.world)))
    }

    /// y of every piston, then x, y, vx, vy, angle and ω of the ball, `[copy][number]`.
    fn physics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        self.check_begun()?;
        self.array(py, self.names.len() + 6, |copy| {
            let Some(physics) = copy.physics() else { return Err(bad("ball", "is of pistonball")) };
            let Ball { x, y, vx, vy, angle, omega } = physics.ball();
            Ok([physics.heights(), &[x, y, vx, vy, angle, omega]].concat())
        })
    }

    /// The present moment of the first copy, with what its agents did and earned to get there, as
    /// `[row][column][colour]`.
    fn render<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyArray3<u8>>> {
        self.check_begun()?;
        let board = match self.board.take() {
            Some(board) => board,
            None => Board::of(&self.config).map_err(|error| exception(&error))?,
        };
        let board = self.board.insert(board);
        let (copy, agents) = (&self.copies[0], self.names.len());
        let rewards =
            self.reward.map(|k| copy.earned[k * agents..(k + 1) * agents].iter().map(|&r| r as f32));
        let rewards: Vec<f32> = rewards.into_iter().flatten().collect();
        let moment = Moment {
            states: &copy.states,
            actions: (copy.steps > 0).then_some(&copy.actions),
            rewards: &rewards,
            shared: &copy.shared,
            scene: copy.scene(),
        };
        let pixels = without_lock(py, || board.draw(&moment))?;
        let (width, height) = board.size();
        PyArray1::from_vec(py, pixels).reshape([height, width, 3])
    }
}

impl Games {
    /// An array with a row per copy.
    fn array<'py, 's, T: numpy::Element + Copy, R: AsRef<[T]>>(
        &'s self,
        py: Python<'py>,
        width: usize,
        row: impl Fn(&'s Play) -> PyResult<R>,
    ) -> PyResult<Bound<'py, PyArray2<T>>> {
        let mut values = Vec::with_capacity(self.copies.len() * width);
        for copy in &self.copies {
            values.extend_from_slice(row(copy)?.as_ref());
        }
        PyArray1::from_vec(py, values).reshape([self.copies.len(), width])
    }

    /// Makes new threads in a forked process, where the old ones are not.
    fn revive_pool(&mut self) -> PyResult<()> {
        if let Some(old) = self.pool.take_if(|_| self.process != std::process::id()) {
            let threads = old.current_num_threads();
            // Ending it would wait for threads that are not there.
            std::mem::forget(old);
            (self.pool, self.process) = (pool(threads)?, std::process::id());
        }
        Ok(())
    }

    /// Copies that are not at the same step any more cannot go on.
    fn abandon(&mut self) {
        self.copies.iter_mut().for_each(|copy| copy.standing = Standing::NotBegun);
    }

    fn check_begun(&self) -> PyResult<()> {
        if self.copies.iter().any(|copy| copy.standing == Standing::NotBegun) {
            return Err(bad("reset", "nothing has begun; call reset() first"));
        }
        Ok(())
    }

    fn check_playing(&self) -> PyResult<()> {
        self.check_begun()?;
        if self.copies.iter().any(|copy| copy.standing == Standing::Over) {
            return Err(bad("step", "the episode is over; call reset() to begin another one"));
        }
        Ok(())
    }

    fn observe_as<'py, T: Observed>(&self, py: Python<'py>, which: &[i64]) -> PyResult<Bound<'py, PyAny>> {
        let (agents, widest) = (self.names.len(), self.layout.widest);
        let array = PyArray3::<T>::zeros(py, [which.len(), agents, widest], false);
        let mut writer = array.try_readwrite()?;
        let out = writer.as_slice_mut()?;
        for (&c, out) in which.iter().zip(out.chunks_exact_mut(agents * widest)) {
            let copy = &self.copies[c as usize];
            T::write(&self.layout, &copy.states, &copy.seen, out);
        }
        Ok(array.into_any())
    }

    fn step_as<'py, T: Observed + Send>(
        &mut self,
        py: Python<'py>,
        actions: &Actions,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (agents, widest) = (self.names.len(), self.layout.widest);
        let array = PyArray3::<T>::zeros(py, [self.copies.len(), agents, widest], false);
        let mut writer = array.try_readwrite()?;
        let out = writer.as_slice_mut()?;
        let Games { world, layout, max_cycles, pool, copies, .. } = self;
        let one = |(c, (copy, out)): (usize, (&mut Play, &mut [T]))| {
            copy.step(&**world, layout, actions.of(c, agents), *max_cycles);
            T::write(layout, &copy.states, &copy.seen, out);
        };
        without_lock(py, || {
            let size = agents * widest;
            match pool {
                None => copies.iter_mut().zip(out.chunks_exact_mut(size)).enumerate().for_each(one),
                Some(pool) => pool.install(|| {
                    copies.par_iter_mut().zip(out.par_chunks_exact_mut(size)).enumerate().for_each(one);
                }),
            }
            Ok(())
        })?;
        Ok(array.into_any())
    }
}

/// Threads of their own, if more than one.
fn pool(threads: usize) -> PyResult<Option<ThreadPool>> {
    if threads <= 1 {
        return Ok(None);
    }
    if threads > MOST_THREADS {
        return Err(bad("threads", format!("{threads}; allowed are 1 to {MOST_THREADS}")));
    }
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map(Some).map_err(|error| bad("threads", format!("{threads}: {error}")))
}
