//! Do networks learn as well on the card? Their results agree up to rounding only, so whole trainings are
//! compared: the difference of returns over seeds, which share their first policy and their draws.

use std::fmt::Write;

use anyhow::{Context, Result, ensure};

use super::GpuArgs;
use super::trainer::{Trainer, number};

const NAME: &str = "returns of networks";
const SETTINGS: &str = "paper/wireless --set evaluation.episodes=2000 --threads 1";
const SEEDS: usize = 10;
/// Student's quantile for a two-sided interval of 95 % with SEEDS − 1 degrees of freedom.
const QUANTILE: f64 = 2.262_157;
/// Widest interval, as a share of the mean return.
const WIDEST: f64 = 0.02;

/// Adds the interval to the report; fails if it does not hold 0, or is too wide to say anything.
pub fn compare(trainer: &Trainer, args: &GpuArgs, report: &mut String) -> Result<()> {
    if args.quick || !args.wants(NAME) {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let run = |device: &str, seed: usize| folder.path().join(format!("{device}-{seed}"));
    let train = |device: &str, seed: usize| -> Result<f64> {
        let out = run(device, seed);
        trainer.train(&format!("{SETTINGS} --seed {seed}"), device, &out)?;
        number(&out, "return")
    };
    let card = &trainer.device;
    // The processor's runs side by side, one thread each.
    let on_cpu = std::thread::scope(|scope| {
        let runs: Vec<_> = (1..=SEEDS).map(|seed| scope.spawn(move || train("cpu", seed))).collect();
        runs.into_iter().map(|run| run.join().ok().context("a run broke off")?).collect::<Result<Vec<f64>>>()
    })?;
    let on_card = (1..=SEEDS).map(|seed| train(card, seed)).collect::<Result<Vec<f64>>>()?;
    let differences: Vec<f64> = on_card.iter().zip(&on_cpu).map(|(card, cpu)| card - cpu).collect();
    let (mean, half) = interval(&differences);
    let typical = on_cpu.iter().sum::<f64>() / SEEDS as f64;
    let wide = 2.0 * half / typical;
    println!("{NAME}: {mean:.4} ± {half:.4}, {:.2} % of {typical:.3} wide", 100.0 * wide);
    let list = |numbers: &[f64]| numbers.iter().map(|x| format!("{x:.4}")).collect::<Vec<_>>().join(", ");
    write!(
        report,
        "\n## Networks, over seeds\n\n`train {SETTINGS} --seed 1` to {SEEDS}, closing evaluation.\n\n\
         | device | return by seed |\n|---|---|\n| cpu | {} |\n| {card} | {} |\n\n\
         Difference: {mean:.4}, 95 % interval {:.4} to {:.4} (paired t), {:.2} % of the mean return wide.\n",
        list(&on_cpu),
        list(&on_card),
        mean - half,
        mean + half,
        100.0 * wide
    )?;
    ensure!(mean.abs() <= half, "{NAME}: they differ by {mean:.4} ± {half:.4}");
    ensure!(wide <= WIDEST, "{NAME}: the interval is {:.1} % wide", 100.0 * wide);
    Ok(())
}

/// Mean, and half the width of its interval.
fn interval(numbers: &[f64]) -> (f64, f64) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let squares: f64 = numbers.iter().map(|x| (x - mean) * (x - mean)).sum();
    (mean, QUANTILE * (squares / (count - 1.0) / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_by_hand() {
        let (mean, half) = interval(&[1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0]);
        assert!(mean.abs() < 1e-12 && (half - QUANTILE / 3.0).abs() < 1e-12, "{mean} {half}");
    }
}
