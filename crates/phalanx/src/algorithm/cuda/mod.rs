//! Algorithm 1 on a GPU: an iteration is a handful of kernels, and nothing but its summary crosses the bus.
//!
//! The host has built everything ([`PrimalDual`]); its state is copied to the card before the first iteration
//! and back when somebody asks for it ([`Algorithm::settle_fields`]). For tables, every sum is formed in the
//! processor's order and no product is fused with a sum: results are the same, bit for bit.
//!
//! Where several ranks have a part of the graph each, the stages of an iteration have pieces, between which
//! ranks tell each other what they must know ([`borders`]); there is one piece per stage otherwise.

mod borders;
mod complaints;
mod device;
mod evaluation;
mod linear;
mod metrics;
mod neural;
mod part;
mod rows;
mod shape;
mod simulation;
mod support;
mod tables;
mod update;
mod utilities;

use std::time::Duration;

use phalanx_gpu::{Gpu, Launch, Layout, Marks, Program, Recording};

pub(crate) use self::borders::card_depth;
use self::borders::{Borders, Piece};
use self::device::failure;
pub use self::device::{DEVICE, DeviceChoice, WORTH_A_GPU, devices};
pub use self::evaluation::EvaluationDevice;
pub(crate) use self::evaluation::{CardEpisodes, EpisodeNumbers, EpisodePlan};
use self::part::{CardCritic, CardPolicy};
use self::rows::Mirror;
use self::shape::{COMPLAINTS, METRICS, Shape};
use self::simulation::Simulation;
use super::primal_dual::PrimalDual;
use super::update::Stage;
use super::{Algorithm, Progress, Summary};
use crate::base::elementary;
use crate::base::fields::Fields;
use crate::distributed::{Halo, ProcessTraffic, Traffic, TrafficBound};
use crate::learn::optimizer::{OptimizerKind, StepSize};
use crate::policy::Policy;
use crate::world::Evolution;
use crate::{Error, Ragged, Result};
pub use phalanx_gpu::DeviceDescription;

/// Algorithm 1 on a card.
pub struct CudaPrimalDual {
    host: PrimalDual,
    shape: Shape,
    critic: Box<dyn CardCritic>,
    program: Program,
    /// The pieces of every stage, in the order of [`Stage`].
    stages: Vec<Vec<Piece<Recording>>>,
    /// Borders with other ranks, if there are any.
    borders: Option<Borders>,
    refresh: Recording,
    marks: Marks,
    mirrors: Vec<Mirror>,
    /// The host's state is newer than the card's.
    host_is_newer: bool,
    /// Policy and multipliers of the host are older, and all of its state.
    policy_is_older: bool,
    fields_are_older: bool,
    /// The device and the memory that is used there.
    description: String,
    /// The text of its kernels.
    source: String,
    /// Nothing has been learnt: all but θ and the multipliers is 0.
    is_fresh: bool,
}

/// Wraps what the host has built if it is to run on a card. With `auto`, what cannot run there, or has no
/// room there, runs on the processor.
pub(super) fn on_device(host: PrimalDual) -> Result<Box<dyn Algorithm>> {
    let choice = host.plan.device;
    let mut built = built(&host, choice);
    if choice == DeviceChoice::Auto && !all_have_one(&host.halo, matches!(built, Ok(Some(_))))? {
        built = built.map(|_| None);
    }
    match built {
        Err(Error::Config { .. }) if choice == DeviceChoice::Auto => Ok(Box::new(host)),
        Err(error) => Err(error),
        Ok(None) => Ok(Box::new(host)),
        Ok(Some(built)) => Ok(Box::new(CudaPrimalDual::new(host, built)?)),
    }
}

/// Whether all ranks have a card: what they tell each other is not what processors do.
fn all_have_one(halo: &Halo, has_one: bool) -> Result<bool> {
    let mut count = [u64::from(has_one)];
    halo.fold(&mut count, |a, b| a + b)?;
    Ok(count[0] as usize == halo.peers().count())
}

/// What is on the card, if there is to be one. What cannot run there is found before a card is looked for.
fn built(host: &PrimalDual, choice: DeviceChoice) -> Result<Option<Built>> {
    if choice.is_cpu() {
        return Ok(None);
    }
    support::check(host)?;
    support::check_sizes_over_ranks(host)?;
    let [steps, _] = host.steps();
    let rank = host.halo.peers().rank();
    let gpu = choice.open(steps as u128 * host.world.graph().total() as u128, rank)?;
    gpu.map(|gpu| Described::new(host, &gpu)?.build(&gpu)).transpose()
}

/// Everything that the card is told, before it is told.
struct Described {
    layout: Layout,
    shape: Shape,
    policy: Box<dyn CardPolicy>,
    critic: Box<dyn CardCritic>,
    simulation: Simulation,
    borders: Option<Borders>,
}

impl Described {
    fn new(host: &PrimalDual, gpu: &Gpu) -> Result<Self> {
        let shape = Shape::new(host);
        let (policy, critic) = support::parts(host, &shape, gpu)?;
        let Evolution::Factored(factored) = host.world.evolution() else {
            return Err(support::joint());
        };
        let kernel = factored.kernel().ok_or_else(support::no_kernel)?;
        let observed = host.policy.groups();
        let simulation = Simulation::new(&shape, &kernel, factored, &observed, &*policy, gpu);

        let mut layout = Layout::default();
        shape.add_to(&mut layout, host);
        kernel.add_to(&mut layout);
        simulation.add_to(&mut layout, &shape, &kernel);
        layout.text(elementary::C_TEXT);
        layout.text(include_str!("kernels/common.cu"));
        layout.text(kernel.text.clone());
        policy.add_to(&mut layout);
        layout.text(include_str!("kernels/simulate.cu"));
        layout.text(include_str!("../../utility/utilities.cu"));
        utilities::add_to(&mut layout, &shape, host)?;
        layout.text(include_str!("kernels/visits.cu"));
        layout.text(include_str!("kernels/occupancy.cu"));
        update::add_to(&mut layout, &shape, host, &*policy);
        critic.add_to(&mut layout);
        layout.text(include_str!("kernels/update.cu"));
        let of_part = || Borders::new(host.halo.clone(), host.world.graph(), &shape, &critic.told());
        let borders = shape.part.is_some().then(of_part);
        borders.iter().for_each(|borders| borders.add_to(&mut layout));
        Ok(Described { layout, shape, policy, critic, simulation, borders })
    }

    /// Puts it on the card.
    fn build(self, gpu: &Gpu) -> Result<Built> {
        let Described { layout, shape, policy, critic, simulation, borders } = self;
        let (description, source) = (gpu.describe(layout.bytes()), layout.source());
        let program = layout.build(gpu).map_err(failure)?;
        Ok(Built { program, description, source, shape, policy, critic, simulation, borders })
    }
}

/// What is on the card.
struct Built {
    program: Program,
    description: String,
    source: String,
    shape: Shape,
    policy: Box<dyn CardPolicy>,
    critic: Box<dyn CardCritic>,
    simulation: Simulation,
    borders: Option<Borders>,
}

impl Built {
    /// The pieces of every stage.
    fn stages(&self) -> [Vec<Piece<Vec<Launch>>>; Stage::COUNT] {
        let Built { shape, policy, critic, simulation, borders, .. } = self;
        let whole = |launches: Vec<Launch>| vec![Piece::Kernels(launches)];
        let update = [vec![Launch::over("ascend", policy.parameters())], policy.refresh()].concat();
        let gradient = [critic.values(), policy.gradient()].concat();
        let step = |k: usize| simulation.step(k, shape, &**policy);
        let [sampling, gradient, update] = match borders {
            Some(borders) => [
                borders.simulation(shape, simulation.begin(shape), step),
                borders.with_values(gradient),
                whole(update),
            ],
            None => [
                whole(simulation.launches(shape, &**policy)),
                whole(gradient),
                whole([update, metrics::folds(shape)].concat()),
            ],
        };
        [
            sampling,
            whole(utilities::launches(shape)),
            whole(critic.learn()),
            whole(vec![Launch::over("update_duals", shape.agents)]),
            gradient,
            update,
        ]
    }
}

impl CudaPrimalDual {
    fn new(host: PrimalDual, built: Built) -> Result<Self> {
        let stages = built.stages();
        let Built { program, description, source, shape, policy, critic, borders, .. } = built;
        let record = |launches: &[Launch]| program.record(launches).map_err(failure);
        let piece = |piece: Piece<Vec<Launch>>| match piece {
            Piece::Kernels(launches) => record(&launches).map(Piece::Kernels),
            Piece::Exchange(crossing) => Ok(Piece::Exchange(crossing)),
        };
        let stage = |pieces: Vec<Piece<Vec<Launch>>>| pieces.into_iter().map(piece).collect();
        let mut mirrors = policy.mirrors();
        if host.optimizer.kind() == OptimizerKind::Sgd {
            mirrors.retain(|mirror| mirror.field == "theta");
        }
        mirrors.extend(critic.mirrors());
        let most = (shape.utilities() - 1).max(1);
        let row = shape.max_cells() + shape.channels;
        mirrors.extend([
            Mirror::by_entry("dual.mu", "mu", most),
            Mirror::by_entry("dual.integral", "integral", most),
            Mirror::by_entry("occupancy", "running", row),
        ]);
        Ok(CudaPrimalDual {
            stages: stages.into_iter().map(stage).collect::<Result<_>>()?,
            borders,
            refresh: record(&policy.refresh())?,
            marks: program.marks(Stage::COUNT + 1).map_err(failure)?,
            mirrors,
            host_is_newer: true,
            policy_is_older: false,
            fields_are_older: false,
            description,
            source,
            is_fresh: true,
            critic,
            program,
            shape,
            host,
        })
    }

    /// Copies the host's state to the card. Before anything is learnt, most of it is 0 there and here.
    fn upload(&mut self) -> Result<()> {
        let is_fresh = self.is_fresh;
        let fields = self.host.fields();
        for mirror in &self.mirrors {
            let Some((_, field)) = fields.iter().find(|(name, _)| *name == mirror.field) else { continue };
            if !is_fresh || !mirror.begins_at_zero(field) {
                mirror.upload(field, self.program.array(mirror.array))?;
            }
        }
        self.refresh.run().map_err(failure)?;
        (self.host_is_newer, self.is_fresh) = (false, false);
        Ok(())
    }

    /// Copies some of the card's state to the host.
    fn download(&mut self, wanted: impl Fn(&Mirror) -> bool) -> Result<()> {
        let mut fields = self.host.fields();
        for mirror in self.mirrors.iter().filter(|mirror| wanted(mirror)) {
            if let Some((_, field)) = fields.iter_mut().find(|(name, _)| *name == mirror.field) {
                mirror.download(field, self.program.array(mirror.array))?;
            }
        }
        Ok(())
    }

    /// The numbers that change from iteration to iteration, in the order of [`update::add_to`].
    fn begin_iteration(&mut self) -> Vec<u64> {
        let host = &mut self.host;
        let (t, plan) = (host.progress.iteration as usize, &host.plan);
        let total = plan.iterations;
        let eta = *plan.actor.eta_theta * plan.actor.schedule.factor(t, total);
        let (rate, correction) = match host.optimizer.begin(eta).0 {
            StepSize::Sgd(eta) => (eta, [0.0; 2]),
            StepSize::Adam(step) => (step.rate(), step.correction()),
        };
        let running = host.running.advance_weight();
        let numbers = [
            plan.dual.schedule.factor(t, total),
            plan.actor.entropy_at(t, total),
            rate,
            correction[0],
            correction[1],
            running,
        ];
        let mut bits = vec![t as u64];
        bits.extend(numbers.map(f64::to_bits));
        bits.extend(self.critic.begin_iteration(&mut *host.critic));
        bits
    }

    fn run_stages(&mut self, now: &[u64]) -> Result<()> {
        self.program
            .array("complaints")
            .write(0, &[u32::MAX; COMPLAINTS.len() + METRICS])
            .map_err(failure)?;
        self.program.set_now(now).map_err(failure)?;
        for (k, stage) in self.stages.iter().enumerate() {
            self.marks.set(k).map_err(failure)?;
            for piece in stage {
                match (piece, &mut self.borders) {
                    (Piece::Kernels(kernels), _) => kernels.run().map_err(failure)?,
                    (Piece::Exchange(crossing), Some(borders)) => {
                        borders.exchange(*crossing, &self.program)?;
                    }
                    (Piece::Exchange(_), None) => {}
                }
            }
        }
        self.marks.set(Stage::COUNT).map_err(failure)
    }
}

impl Algorithm for CudaPrimalDual {
    /// One iteration of Algorithm 1, lines 3 to 9, on the card.
    fn step(&mut self) -> Result<Summary> {
        self.prepare()?;
        self.host.progress.start();
        let sent = self.host.halo.peers().sent();
        let now = self.begin_iteration();
        (self.policy_is_older, self.fields_are_older) = (true, true);
        self.run_stages(&now)?;
        let summary = self.summary()?;
        let shape = &self.shape;
        let [sampled, chains] = [shape.batch * shape.batch_room, shape.chains * shape.chain_room];
        let host = &mut self.host;
        host.exchange.sampled(sampled + chains);
        host.exchange.record_q_messages(shape.batch, shape.batch * shape.horizon);
        host.progress.agent_steps += (shape.total * (sampled + chains - shape.chains)) as u64;
        for k in 0..Stage::COUNT {
            let seconds = self.marks.seconds(k).map_err(failure)?;
            host.progress.stage_times[k] += Duration::from_secs_f64(seconds);
        }
        if let Some(borders) = &self.borders {
            host.process_traffic = ProcessTraffic::gather(&host.halo, sent, borders.bound(shape))?;
        }
        host.progress.iteration += 1;
        Ok(summary)
    }

    fn prepare(&mut self) -> Result<()> {
        if self.host_is_newer { self.upload() } else { Ok(()) }
    }

    fn settle(&mut self) -> Result<()> {
        if self.policy_is_older {
            self.download(|mirror| ["theta", "dual.mu"].contains(&mirror.field))?;
            self.host.policy.refresh();
            self.policy_is_older = false;
        }
        Ok(())
    }

    fn settle_fields(&mut self) -> Result<()> {
        self.settle()?;
        if self.fields_are_older {
            self.download(|mirror| !["theta", "dual.mu"].contains(&mirror.field))?;
            self.fields_are_older = false;
        }
        Ok(())
    }

    fn kernels(&self) -> Option<&str> {
        Some(&self.source)
    }

    fn device(&self) -> Option<String> {
        Some(self.description.clone())
    }

    fn fields(&mut self) -> Fields<'_> {
        self.host.fields()
    }

    fn restored(&mut self) {
        self.host.restored();
        (self.host_is_newer, self.is_fresh) = (true, false);
        (self.policy_is_older, self.fields_are_older) = (false, false);
    }

    fn policy(&self) -> &dyn Policy {
        self.host.policy()
    }

    fn policy_mut(&mut self) -> &mut dyn Policy {
        self.host_is_newer = true;
        self.host.policy_mut()
    }

    fn mu(&self) -> &Ragged<f64> {
        self.host.mu()
    }

    fn progress(&self) -> &Progress {
        self.host.progress()
    }

    fn traffic(&self) -> Traffic {
        self.host.traffic()
    }

    fn traffic_bound(&self) -> TrafficBound {
        self.host.traffic_bound()
    }

    fn process_traffic(&self) -> &[ProcessTraffic] {
        self.host.process_traffic()
    }
}
