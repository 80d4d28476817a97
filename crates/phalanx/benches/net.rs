//! Networks against the machine: how much of the matrix-product peak a training step reaches.
//!
//! `cargo bench -p phalanx --bench net [seconds]`. The peak is the best of a few square `gemm` products that
//! fit the cache (up to AVX2: with AVX-512 in `gemm` tests would compute exact values by other products than
//! the program), measured in turns with the steps, because the clock of a shared machine wanders. Medians are
//! printed, and beside them the best: the two agree on a machine that does nothing else.

use std::cell::RefCell;
use std::hint::black_box;
use std::time::Instant;

use phalanx::base::stream::{Place, Purpose, Sequence, Stream};
use phalanx::neural::{Adam, Architecture, Batch, Chain, Net, Rows, Symbols, Tape};
use rayon::prelude::*;

fn main() {
    let seconds = std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(3.0);
    println!(
        "{:<58}{:>12}{:>9}{:>8}{:>8}{:>15}{:>9}{:>8}{:>8}",
        "", "median", "GFLOP/s", "peak", "share", "best", "GFLOP/s", "peak", "share"
    );
    for threads in [1, 2] {
        training("actor: 25 agents, batch 360", &actor(), 360, 1, threads, seconds);
        training("critic: 25 agents, 8 minibatches of 64", &critic(), 64, 8, threads, seconds);
    }
    online(seconds);
    acting(seconds);
}

fn actor() -> Net {
    net(Some(Rows { count: 3, width: 9, hidden: 32 }), vec![], &[128, 32], 5)
}

fn critic() -> Net {
    let symbols = vec![Symbols { slots: 9, vocabulary: 6, dimension: 8 }];
    net(Some(Rows { count: 2, width: 9, hidden: 32 }), symbols, &[128, 32], 1)
}

fn net(rows: Option<Rows>, symbols: Vec<Symbols>, hidden: &[usize], outputs: usize) -> Net {
    Net::new(Architecture { rows, symbols, hidden: hidden.to_vec(), outputs }, "bench").expect("usable sizes")
}

fn sequence(agent: u32) -> Sequence {
    Stream::new(1).sequence(Place { purpose: Purpose::PolicyInit, iteration: 0, trajectory: 0 }, agent)
}

/// An agent with its samples.
struct Agent {
    w: Vec<f32>,
    first: Vec<f32>,
    second: Vec<f32>,
    rows: Vec<f32>,
    symbols: Vec<u8>,
    d_outputs: Vec<f32>,
    step: u64,
}

impl Agent {
    fn new(net: &Net, samples: usize, id: u32) -> Self {
        let mut sequence = sequence(id);
        let w: Vec<f32> = net.initialise(1.0, &mut sequence);
        let zeros = vec![0.0; w.len()];
        let mut symbols = Vec::new();
        for _ in 0..samples {
            for group in &net.architecture().symbols {
                symbols
                    .extend((0..group.slots).map(|_| (sequence.uniform() * group.vocabulary as f64) as u8));
            }
        }
        Agent {
            first: zeros.clone(),
            second: zeros,
            rows: (0..samples * net.row_inputs()).map(|_| sequence.normal() as f32).collect(),
            symbols,
            d_outputs: (0..samples * net.outputs()).map(|_| 1e-3 * sequence.normal() as f32).collect(),
            step: 0,
            w,
        }
    }

    fn batch(&self, net: &Net, size: usize, minibatch: usize) -> Batch<'_, f32> {
        let (rows, symbols) = (size * net.row_inputs(), size * net.symbol_inputs());
        Batch {
            size,
            rows: &self.rows[minibatch * rows..][..rows],
            symbols: &self.symbols[minibatch * symbols..][..symbols],
        }
    }

    /// Forward, backward and Adam for all minibatches, with the thread's own buffers.
    fn train(&mut self, net: &Net, size: usize, minibatches: usize) {
        thread_local! {
            static BUFFERS: RefCell<(Tape<f32>, Vec<f32>)> = RefCell::default();
        }
        BUFFERS.with_borrow_mut(|(tape, gradient)| {
            gradient.resize(net.parameters(), 0.0);
            for m in 0..minibatches {
                let batch = self.batch(net, size, m);
                let d_outputs = &self.d_outputs[m * size * net.outputs()..][..size * net.outputs()];
                black_box(net.forward(&self.w, batch, tape));
                net.backward(&self.w, batch, tape, d_outputs, gradient);
                self.step += 1;
                let (first, second) = (&mut self.first, &mut self.second);
                Adam::new(1e-4).descend(self.step, &mut self.w, gradient, first, second);
            }
        });
    }
}

/// Operations of a forward and backward pass of one sample as the layers are defined: 2 a weight, forward, to
/// the weights and to the data, not to the data of the layer of the rows.
fn operations(net: &Net) -> f64 {
    let architecture = net.architecture();
    let mut total = 0;
    if let Some(rows) = architecture.rows {
        total += 2 * 2 * rows.count * rows.width * rows.hidden;
    }
    for tensor in net.tensors() {
        if tensor.name.ends_with(".weight") && !tensor.name.starts_with("rows") {
            total += 3 * 2 * tensor.range.len();
        }
    }
    total as f64
}

fn training(name: &str, net: &Net, size: usize, minibatches: usize, threads: usize, seconds: f64) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
    let mut agents: Vec<Agent> = (0..25).map(|i| Agent::new(net, size * minibatches, i)).collect();
    let operations = (agents.len() * minibatches * size) as f64 * operations(net);
    let mut peak = Peak::new(threads);
    let (mut times, mut peaks) = (Vec::new(), Vec::new());
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < seconds {
        peaks.push(peak.measure(&pool));
        let start = Instant::now();
        pool.install(|| agents.par_iter_mut().for_each(|agent| agent.train(net, size, minibatches)));
        times.push(start.elapsed().as_secs_f64());
    }
    assert!(agents.iter().all(|agent| agent.w.iter().all(|w| w.is_finite())));
    print!("{:<58}", format!("{name}, {threads} thread(s)"));
    let fastest = peaks.iter().fold(0.0, |a: f64, &b| a.max(b));
    for (time, peak) in [(median(&mut times), median(&mut peaks)), (times[0], fastest)] {
        let rate = operations / time * 1e-9;
        print!("{:>9.2} ms{rate:>9.1}{peak:>8.1}{:>6.0} %   ", time * 1e3, 100.0 * rate / peak);
    }
    println!();
}

/// Square products of `gemm`, one on each thread.
struct Peak {
    sizes: Vec<usize>,
    operands: Vec<[Vec<f32>; 3]>,
}

impl Peak {
    fn new(threads: usize) -> Self {
        let sizes = vec![128, 192, 256];
        let operands = vec![[vec![1.0; 256 * 256], vec![1.0; 256 * 256], vec![0.0; 256 * 256]]; threads];
        Peak { sizes, operands }
    }

    /// The best rate among the sizes, in 10⁹ operations per second for all threads together.
    fn measure(&mut self, pool: &rayon::ThreadPool) -> f64 {
        let mut best: f64 = 0.0;
        for &n in &self.sizes {
            // About as long as a step, so that both lose as much to whatever else the machine does.
            let count = (1 << 28) / (n * n * n) + 1;
            let start = Instant::now();
            pool.scope(|scope| {
                for [a, b, c] in &mut self.operands {
                    scope.spawn(move |_| (0..count).for_each(|_| square(n, a, b, c)));
                }
            });
            let operations = (2 * n * n * n * count * self.operands.len()) as f64;
            best = best.max(operations / start.elapsed().as_secs_f64() * 1e-9);
        }
        best
    }
}

fn square(n: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    assert!(a.len() >= n * n && b.len() >= n * n && c.len() >= n * n);
    let s = n as isize;
    let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
    // SAFETY: all three hold n² numbers, and the strides say so.
    unsafe {
        gemm::gemm(
            n,
            n,
            n,
            c,
            s,
            1,
            false,
            a,
            s,
            1,
            b,
            s,
            1,
            0.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// 500 steps for each of 20 networks, one after the other.
fn online(seconds: f64) {
    let group = Symbols { slots: 3, vocabulary: 2, dimension: 4 };
    let net = net(None, vec![group; 2], &[32], 1);
    let mut agents: Vec<Agent> = (0..20).map(|i| Agent::new(&net, 501, i)).collect();
    let rewards: Vec<f32> = (0..500).map(|k| (k % 3) as f32 * 0.1).collect();
    let (mut times, mut tape) = (Vec::new(), Tape::default());
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < seconds {
        let start = Instant::now();
        for agent in &mut agents {
            let chain =
                Chain { rows: &[], symbols: &agent.symbols, rewards: &rewards, gamma: 0.9, eta: 1e-3 };
            black_box(net.td(&mut agent.w, None, chain, &mut tape));
        }
        times.push(start.elapsed().as_secs_f64());
    }
    let name = "online TD: 20 nets, 500 steps each, 1 thread(s)";
    println!("{name:<58}{:>9.2} ms{:>37.2} ms", median(&mut times) * 1e3, times[0] * 1e3);
}

/// Forward passes of few samples.
fn acting(seconds: f64) {
    let net = net(None, vec![Symbols { slots: 3, vocabulary: 4, dimension: 4 }], &[32], 2);
    for size in [1, 2, 4, 8] {
        let agent = Agent::new(&net, size, 0);
        let (batch, mut tape) = (agent.batch(&net, size, 0), Tape::default());
        let mut times = Vec::new();
        let begin = Instant::now();
        while begin.elapsed().as_secs_f64() < seconds / 4.0 {
            let start = Instant::now();
            for _ in 0..1000 {
                black_box(net.forward(black_box(&agent.w), batch, &mut tape));
            }
            times.push(start.elapsed().as_secs_f64() / 1000.0);
        }
        let name = format!("forward: 3 symbols to 32 to 2, batch {size}, 1 thread(s)");
        println!("{name:<58}{:>9.0} ns{:>37.0} ns", median(&mut times) * 1e9, times[0] * 1e9);
    }
}

/// Sorts, too.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
