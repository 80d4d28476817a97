//! Does a world's kernel text do what its Rust does, draw by draw?

use std::fmt::Write;

use crate::contract::worlds;
use phalanx::base::stream::{Place, Purpose, Sequence, Stream};
use phalanx::world::{Evolution, World, WorldKernel, sampled_channels};
use phalanx_agent::elementary;
use phalanx_gpu::{Gpu, Launch, Layout, Program, compile_ptx, nvrtc_is_present};

/// Joint states, actions and draws that every world is tried on.
const MOMENTS: usize = 20;

/// How the test lets text read a moment.
const READS: &str = "
#define READ_ARGS const u8 *px_states, const u8 *px_actions
#define READ_PASS px_states, px_actions
#define STATE(agent) ((u32)px_states[agent])
#define ACTION(agent) ((u32)px_actions[agent])
";

const TRY: &str = "
KERNEL(try_start) {
    const long long agent = THREAD;
    if (agent < AGENTS) run->states[agent] = (u8)world_start(run, agent, run->words + 4 * agent);
}
KERNEL(try_step) {
    const long long agent = THREAD;
    if (agent < AGENTS) run->next[agent] = (u8)world_step(run, agent, run->states, run->actions, run->draws[agent]);
}
";

const TRY_REWARD: &str = "
KERNEL(try_reward) {
    const long long agent = THREAD;
    if (agent < AGENTS) run->rewards[agent] = world_reward(run, agent, run->states, run->actions, run->draws[agent], x);
}
";

fn layout(kernel: &WorldKernel, agents: usize, has_rewards: bool) -> Layout {
    let mut layout = Layout::default();
    layout.constant("AGENTS", format!("{agents}ll"));
    layout.array::<u32>("words", 4 * agents);
    layout.array::<u8>("states", agents);
    layout.array::<u8>("actions", agents);
    layout.array::<u32>("draws", agents);
    layout.array::<u8>("next", agents);
    layout.array::<f32>("rewards", agents);
    kernel.add_to(&mut layout);
    let mut text = format!("{}\n{READS}\n{}\n{TRY}", elementary::C_TEXT, kernel.text);
    if has_rewards {
        text.write_str(TRY_REWARD).unwrap();
    }
    layout.text(text);
    layout
}

fn read<T: bytemuck::Pod>(program: &Program, name: &str, count: usize) -> Vec<T> {
    let mut numbers = vec![T::zeroed(); count];
    program.array(name).read(0, &mut numbers).unwrap();
    numbers
}

fn random(words: &mut Sequence, sizes: impl Iterator<Item = usize>) -> Vec<u8> {
    sizes.map(|size| (words.next_u32() as usize % size) as u8).collect()
}

fn compare(name: &str, world: &dyn World, kernel: &WorldKernel, gpu: &Gpu) {
    let Evolution::Factored(factored) = world.evolution() else { return };
    let (n, channels) = (world.graph().agents(), sampled_channels(world));
    let program = layout(kernel, n, !channels.is_empty()).build(gpu).unwrap();
    let start = program.record(&[Launch::over("try_start", n)]).unwrap();
    let step = program.record(&[Launch::over("try_step", n)]).unwrap();
    let stream = Stream::new(7);
    let mut random_words =
        stream.sequence(Place { purpose: Purpose::Evaluation, iteration: 0, trajectory: 0 }, 0);
    for moment in 0..MOMENTS {
        let place = Place { purpose: Purpose::BatchStart, iteration: 3, trajectory: moment as u32 };
        let words: Vec<u32> = (0..n).flat_map(|i| stream.words(place, i as u32, 0)).collect();
        program.array("words").write(0, &words).unwrap();
        start.run().unwrap();
        let mut expected = vec![0; n];
        factored.start(&stream, place, 0..n, &mut expected);
        assert_eq!(read::<u8>(&program, "states", n), expected, "{name}: start");

        let states = random(&mut random_words, (0..n).map(|i| world.states(i)));
        let actions = random(&mut random_words, (0..n).map(|i| world.actions(i)));
        let draws: Vec<u32> = (0..n).map(|_| random_words.next_u32() >> 1).collect();
        program.array("states").write(0, &states).unwrap();
        program.array("actions").write(0, &actions).unwrap();
        program.array("draws").write(0, &draws).unwrap();
        step.run().unwrap();
        let mut expected = vec![0; n];
        factored.step(0..n, &states, &actions, &draws, &mut expected);
        assert_eq!(read::<u8>(&program, "next", n), expected, "{name}: step");
        for (number, &channel) in channels.iter().enumerate() {
            let reward = program.record(&[Launch::over("try_reward", n).with(number, 0)]).unwrap();
            reward.run().unwrap();
            let mut expected = vec![0.0; n];
            factored.sample_rewards(channel, 0..n, &states, &actions, &draws, &mut expected);
            assert_eq!(read::<f32>(&program, "rewards", n), expected, "{name}: channel {channel}");
        }
    }
}

#[test]
fn text_does_what_the_world_does() {
    let Ok(gpu) = Gpu::emulated() else { return eprintln!("skipped: no C compiler") };
    let mut tried = 0;
    for (name, world) in worlds() {
        let Evolution::Factored(factored) = world.evolution() else { continue };
        let Some(kernel) = factored.kernel() else { continue };
        compare(&name, &*world, &kernel, &gpu);
        tried += 1;
    }
    assert!(tried >= 23, "{tried} worlds have text");
}

/// The same text is CUDA C too, wherever its compiler can be had.
#[test]
fn text_compiles_for_a_device() {
    if !nvrtc_is_present() {
        return eprintln!("skipped: libnvrtc is not found");
    }
    for (name, world) in worlds() {
        let Evolution::Factored(factored) = world.evolution() else { continue };
        let Some(kernel) = factored.kernel() else { continue };
        let n = world.graph().agents();
        let source = layout(&kernel, n, !sampled_channels(&*world).is_empty()).source();
        compile_ptx(&source, "compute_90").unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}
