//! How much of a target's own source files its inputs reach.

use std::path::{Path, PathBuf};

use phalanx_fuzz::Target;

// The compiler's coverage pass puts a counter for every edge into one section, and its address (with a word of
// flags) into another, in the same order. The linker names their ends.
unsafe extern "C" {
    static __start___sancov_cntrs: u8;
    static __stop___sancov_cntrs: u8;
    static __start___sancov_pcs: [usize; 2];
}

/// The counters of the last input.
fn counters() -> &'static [u8] {
    let (begin, end) = (&raw const __start___sancov_cntrs, &raw const __stop___sancov_cntrs);
    // SAFETY: both are ends of one section of bytes that lives as long as the process. Counters change only while
    // an input runs, and this is called in between.
    unsafe { std::slice::from_raw_parts(begin, end.offset_from_unsigned(begin)) }
}

/// Where the edges are in memory.
fn addresses() -> impl Iterator<Item = usize> {
    let first = &raw const __start___sancov_pcs;
    // SAFETY: the section has as many pairs as there are counters, and never changes.
    (0..counters().len()).map(move |k| unsafe { (*first.add(k))[0] })
}

/// Edges reached so far; written to a file when the process ends.
pub struct Coverage {
    target: &'static Target,
    reached: Vec<bool>,
    file: PathBuf,
}

impl Coverage {
    /// None reached yet.
    pub fn new(target: &'static Target, file: PathBuf) -> Self {
        Coverage { target, reached: vec![false; counters().len()], file }
    }

    /// Adds those of the last input.
    pub fn add(&mut self) {
        self.reached.iter_mut().zip(counters()).for_each(|(reached, count)| *reached |= *count > 0);
    }

    /// Edges of the target's files that were reached, and all of them.
    fn counts(&self) -> Option<[usize; 2]> {
        let program = std::env::current_exe().ok()?;
        let loader = addr2line::Loader::new(&program).ok()?;
        let base = base(&program)?;
        let mut counts = [0; 2];
        for (address, &reached) in addresses().zip(&self.reached) {
            if self.is_own(&loader, (address - base) as u64) {
                counts[0] += usize::from(reached);
                counts[1] += 1;
            }
        }
        Some(counts)
    }

    /// Whether an edge is in one of the target's files, or in what was inlined there.
    fn is_own(&self, loader: &addr2line::Loader, address: u64) -> bool {
        let Ok(mut frames) = loader.find_frames(address) else { return false };
        while let Ok(Some(frame)) = frames.next() {
            let file = frame.location.and_then(|location| location.file).unwrap_or_default();
            if let Some((_, ours)) = file.split_once("crates/") {
                return self.target.reads.iter().any(|part| ours.starts_with(part));
            }
        }
        false
    }
}

impl Drop for Coverage {
    fn drop(&mut self) {
        if let Some([reached, all]) = self.counts() {
            // What cannot be written is missed where it is read.
            let _ = std::fs::write(&self.file, format!("{reached} {all}"));
        }
    }
}

/// Where the program was loaded.
fn base(program: &Path) -> Option<usize> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with(program.to_string_lossy().as_ref()))?;
    usize::from_str_radix(line.split('-').next()?, 16).ok()
}
