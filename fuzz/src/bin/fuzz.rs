//! The targets with libFuzzer: `PHALANX_FUZZ_TARGET` names one, `PHALANX_FUZZ_STATISTICS` a file for counts.
#![no_main]

use std::alloc::System;
use std::cell::RefCell;

use cap::Cap;
use libfuzzer_sys::fuzz_target;
use phalanx_fuzz::statistics::Kept;
use phalanx_fuzz::{TARGETS, Target, find};

/// No input may make a reader ask for more: beyond, an allocation fails, which ends the process.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, 1 << 30);

thread_local! {
    static KEPT: RefCell<(&'static Target, Kept)> = RefCell::new((
        target(),
        Kept::new(std::env::var_os("PHALANX_FUZZ_STATISTICS").map(Into::into)),
    ));
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
    KEPT.with_borrow_mut(|(target, kept)| kept.run(target, input));
});
