//! Shows what an input comes to, and tries it: `cargo run -p phalanx-fuzz --bin reproduce -- TARGET FILE`.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Instant;

use phalanx_fuzz::{TARGETS, find};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, file] = &arguments[..] else {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("usage: reproduce TARGET FILE; targets are {}", names.join(", "));
        return ExitCode::from(2);
    };
    match (find(name), std::fs::read(file)) {
        (Some(target), Ok(input)) => {
            let begin = Instant::now();
            let verdict = target.show(&input);
            println!("{verdict:?} after {:.3} s", begin.elapsed().as_secs_f64());
            ExitCode::SUCCESS
        }
        (None, _) => {
            eprintln!("error: `{name}` is no target");
            ExitCode::from(2)
        }
        (_, Err(error)) => {
            eprintln!("error: {file}: {error}");
            ExitCode::from(2)
        }
    }
}
