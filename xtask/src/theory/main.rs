//! `cargo xtask theory`: the numbers and figures of `docs/theory.md`, by running `phalanx`.

mod experiments;
mod lab;

use std::time::Instant;

use anyhow::Result;

fn main() -> Result<()> {
    let begin = Instant::now();
    let mut lab = lab::Lab::new()?;
    lab.paper("truncation", &[("results", "truncation"), ("counterexample", "counterexample")])?;
    lab.paper("rate", &[("results", "rate")])?;
    experiments::limit(&mut lab)?;
    experiments::drift(&mut lab)?;
    experiments::multipliers(&mut lab)?;
    lab.draw()?;
    println!("docs/theory is new; it took {:.0} s", begin.elapsed().as_secs_f64());
    Ok(())
}
