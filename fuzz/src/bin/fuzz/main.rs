//! The targets with libFuzzer: `PHALANX_FUZZ_TARGET` names one, `PHALANX_FUZZ_STATISTICS` a file for counts,
//! `PHALANX_FUZZ_COVERAGE` one for how much of the target's own files is reached, `PHALANX_FUZZ_ARTIFACTS` a
//! folder for inputs that take too long.
#![no_main]

mod coverage;
mod slow;

use std::alloc::System;
use std::cell::RefCell;
use std::path::PathBuf;

use cap::Cap;
use coverage::Coverage;
use libfuzzer_sys::fuzz_target;
use phalanx_fuzz::statistics::Kept;
use phalanx_fuzz::{TARGETS, Target, find};
use slow::Watch;

/// No input may make a reader ask for more: beyond, an allocation fails, which ends the process.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, 1 << 30);

/// The target, its counts, and what it reaches if somebody asks.
struct Fuzzer {
    target: &'static Target,
    kept: Kept,
    coverage: Option<Coverage>,
    /// Where inputs that take too long are left.
    watch: Option<Watch>,
}

thread_local! {
    static FUZZER: RefCell<Fuzzer> = RefCell::new({
        let file = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let target = target();
        Fuzzer {
            target,
            kept: Kept::new(file("PHALANX_FUZZ_STATISTICS")),
            coverage: file("PHALANX_FUZZ_COVERAGE").map(|file| Coverage::new(target, file)),
            watch: file("PHALANX_FUZZ_ARTIFACTS").map(Watch::new),
        }
    });
}

/// The target that is asked for; if there is none, ends the process with a line of all that there are.
fn target() -> &'static Target {
    find(&std::env::var("PHALANX_FUZZ_TARGET").unwrap_or_default()).unwrap_or_else(|| {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("targets: {}", names.join(" "));
        std::process::exit(2)
    })
}

fuzz_target!(|input: &[u8]| {
    FUZZER.with_borrow_mut(|fuzzer| {
        fuzzer.watch.iter().for_each(|watch| watch.begin(input));
        fuzzer.kept.run(fuzzer.target, input);
        fuzzer.watch.iter().for_each(Watch::end);
        fuzzer.coverage.iter_mut().for_each(Coverage::add);
    });
});
