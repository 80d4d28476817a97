//! How much of a target's own source files its inputs reach.

use std::path::{Path, PathBuf};

use phalanx_fuzz::Target;

// The compiler's coverage pass puts a counter for every edge into one section, and its address (with a word
// of flags) into another, in the same order. The linker names their ends.
unsafe extern "C" {
    static __start___sancov_cntrs: u8;
    static __stop___sancov_cntrs: u8;
    static __start___sancov_pcs: [usize; 2];
}

/// The counters of the last input.
fn counters() -> &'static [u8] {
    let (begin, end) = (&raw const __start___sancov_cntrs, &raw const __stop___sancov_cntrs);
    // SAFETY: both are ends of one section of bytes that lives as long as the process. Counters change only
    // while an input runs, and this is called in between.
    unsafe { std::slice::from_raw_parts(begin, end.offset_from_unsigned(begin)) }
}

/// Where the edges are in memory.
fn addresses() -> impl Iterator<Item = usize> {
    let first = &raw const __start___sancov_pcs;
    // SAFETY: the section has as many pairs as there are counters, and never changes.
    (0..counters().len()).map(move |k| unsafe { (*first.add(k))[0] })
}

/// Edges of the target's own files that were reached so far, of all there.
pub struct Coverage {
    /// Numbers of the edges, and whether they were reached.
    edges: Vec<(usize, bool)>,
    file: PathBuf,
}

impl Coverage {
    /// None reached yet; counts go to `file`.
    pub fn new(target: &Target, file: PathBuf) -> Self {
        Coverage { edges: own_edges(target).unwrap_or_default(), file }
    }

    /// Adds those of the last input. Writes all counts: libFuzzer ends a process without telling it.
    pub fn add(&mut self) {
        let counters = counters();
        self.edges.iter_mut().for_each(|(edge, reached)| *reached |= counters[*edge] > 0);
        let reached = self.edges.iter().filter(|(_, reached)| *reached).count();
        // What cannot be written is missed where it is read.
        let _ = std::fs::write(&self.file, format!("{reached} {}", self.edges.len()));
    }
}

/// The edges in a target's own files, or in what was inlined there.
fn own_edges(target: &Target) -> Option<Vec<(usize, bool)>> {
    let program = std::env::current_exe().ok()?;
    let loader = addr2line::Loader::new(&program).ok()?;
    let base = base(&program)?;
    let is_own = |address: usize| {
        let mut frames = loader.find_frames(address.wrapping_sub(base) as u64).ok()?;
        while let Some(frame) = frames.next().ok()? {
            let file = frame.location.and_then(|location| location.file).unwrap_or_default();
            if let Some((_, ours)) = file.split_once("crates/") {
                return target.reads.iter().any(|part| ours.starts_with(part)).then_some(());
            }
        }
        None
    };
    let own = addresses().enumerate().filter(|(_, address)| is_own(*address).is_some());
    Some(own.map(|(edge, _)| (edge, false)).collect())
}

/// Where the program was loaded.
fn base(program: &Path) -> Option<usize> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with(program.to_string_lossy().as_ref()))?;
    usize::from_str_radix(line.split('-').next()?, 16).ok()
}
