//! What is possible: no band reaches beyond it.

use phalanx::run::Config;
use phalanx::world::{ChannelValues, World};

/// Least and largest return of an episode, mean over agents, by what a step can pay.
pub fn returns(world: &dyn World, config: &Config) -> [f64; 2] {
    let Some(channel) = world.channels().iter().find(|channel| channel.name == "reward") else {
        return super::UNLIMITED;
    };
    let [least, most] = match &channel.values {
        ChannelValues::Sampled { range } => *range,
        ChannelValues::Table(tables) => {
            let mean = |best: fn(f64, f64) -> f64| {
                let of_agent = |agent: usize| tables.row(agent).iter().copied().reduce(best).unwrap_or(0.0);
                (0..tables.rows()).map(of_agent).sum::<f64>() / tables.rows().max(1) as f64
            };
            [mean(f64::min), mean(f64::max)]
        }
    };
    // Episodes may end early, which pays nothing more.
    let steps = config.horizon as f64;
    [least.min(0.0) * steps, most.max(0.0) * steps]
}
