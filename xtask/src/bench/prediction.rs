//! What the cost model says of a cluster that nobody has measured.

use super::model::{Costs, WITH_FIRST};
use super::worlds::{EPIDEMIC, LINE, World};

/// Hosts with a process each, and the network between them.
struct Cluster {
    hosts: usize,
    cores: usize,
    /// Bytes a second, and seconds a message.
    bandwidth: f64,
    latency: f64,
    /// Of a host, in bytes.
    memory: f64,
}

/// 25 Gbit/s and 20 µs: plain Ethernet.
const CLUSTER: Cluster =
    Cluster { hosts: 100, cores: 32, bandwidth: 25e9 / 8.0, latency: 20e-6, memory: 128e9 };

const AGENTS: usize = 100_000_000;

/// Agents whose sums are sent as one, and the bytes of these sums.
const GROUP: (usize, usize) = (256, 56);

/// Bytes an agent of the whole network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Memory {
    /// In training, for an agent of one's own.
    pub agent: f64,
    /// At the first process, which looks at the whole network at the start and has the whole policy at the end.
    pub first: f64,
    /// At another process, which looks at the whole network at the start.
    pub other: f64,
}

/// Seconds an iteration, by cause.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Times {
    shared: f64,
    serial: f64,
    messages: f64,
    halo: f64,
    gather: f64,
}

impl Times {
    fn sum(&self) -> f64 {
        self.shared + self.serial + self.messages + self.halo + self.gather
    }
}

/// Prints seconds an iteration and memory of 10^8 agents, κ = 1.
pub fn run(costs: &Costs, memory: impl Fn(&World) -> Memory) {
    let Cluster { hosts, cores, bandwidth, latency, memory: room } = CLUSTER;
    println!(
        "\n{AGENTS} agents, κ = 1, on {hosts} hosts of {cores} cores and {:.0} GB, {:.0} Gbit/s, {:.0} µs: an extrapolation\n",
        room / 1e9,
        8e-9 * bandwidth,
        1e6 * latency
    );
    println!("| seconds an iteration | line | epidemic |\n|---|---:|---:|");
    let worlds = [LINE, EPIDEMIC];
    let times = worlds.map(|world| predict(&world, costs, &CLUSTER));
    let row = |name: &str, of: &dyn Fn(&Times) -> f64| {
        let cells = times.map(|times| times.map_or("–".into(), |times| format!("{:.4}", of(&times))));
        println!("| {name} | {} |", cells.join(" | "));
    };
    row("work that threads share", &|times| times.shared);
    row("work that they do not", &|times| times.serial);
    row("messages", &|times| times.messages);
    row("bytes over borders", &|times| times.halo);
    row("sums at the first process", &|times| times.gather);
    row("together", &Times::sum);
    println!("\n| GB | line | epidemic |\n|---|---:|---:|");
    let memory = worlds.map(|world| memory(&world));
    let row = |name: &str, of: &dyn Fn(&Memory) -> f64| {
        let cells = memory
            .map(|memory| 1e-9 * of(&memory))
            .map(|x| if x.is_nan() { "–".into() } else { format!("{x:.1}") });
        println!("| {name} | {} |", cells.join(" | "));
    };
    let (all, each) = (AGENTS as f64, AGENTS as f64 / hosts as f64);
    row("a host in training", &|memory| memory.agent * each);
    row("a host at the start", &|memory| memory.other * all);
    row("the first host at its largest", &|memory| memory.first * all);
}

/// None if the world was not measured.
fn predict(world: &World, costs: &Costs, cluster: &Cluster) -> Option<Times> {
    let work = AGENTS as f64 / cluster.hosts as f64 * world.pairs as f64;
    let others = (cluster.hosts - 1) as f64;
    let star = WITH_FIRST as f64 * (cluster.latency + costs.message * others);
    Some(Times {
        shared: costs.agent_step((world.name, 1))? * work / cluster.cores as f64,
        serial: costs.serial((world.name, 1)) * work,
        // Both neighbours at once. Work in the meantime is not counted: it may hide some of this.
        messages: world.exchanges() as f64 * (cluster.latency + costs.message) + star,
        // To be made and read, as on the measured machine, and carried.
        halo: world.halo_bytes(AGENTS, 1) as f64 * (costs.byte + 1.0 / cluster.bandwidth),
        gather: (AGENTS / GROUP.0 * GROUP.1) as f64 / cluster.bandwidth,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_by_hand() {
        let costs = Costs {
            agent_step: vec![(("line", 1), 1e-8)],
            serial: vec![(("line", 1), 1e-10)],
            message: 0.0,
            byte: 0.0,
        };
        let times = predict(&LINE, &costs, &CLUSTER).unwrap();
        assert!((times.shared - 1e-8 * 1e6 * 1126.0 / 32.0).abs() < 1e-12);
        assert!((times.serial - 0.1126).abs() < 1e-12);
        assert!((times.messages - (1002.0 + 10.0) * 20e-6).abs() < 1e-12);
        assert!((times.halo - (2.0 * 2.0 * 1126.0 + 2.0 * 8.0 * 2.0 * 625.0) / 3.125e9).abs() < 1e-12);
        assert!(
            (times.sum() - times.shared - times.serial - times.messages - times.halo - times.gather).abs()
                < 1e-12
        );
        assert_eq!(predict(&EPIDEMIC, &costs, &CLUSTER), None);
    }
}
