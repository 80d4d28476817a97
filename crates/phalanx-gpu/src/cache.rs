//! Compiled kernels, kept from one start to the next.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

/// The last line of a whole file.
const END: &str = "// end of phalanx kernels\n";

/// Where kernels are kept: `PHALANX_CACHE`, or `phalanx` in the user's cache folder.
fn folder() -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    of("PHALANX_CACHE")
        .or_else(|| Some(of("XDG_CACHE_HOME")?.join("phalanx")))
        .or_else(|| Some(of("HOME")?.join(".cache/phalanx")))
}

fn path(text: &str, options: &[String]) -> Option<PathBuf> {
    let hash = |salt: u32| {
        let mut hasher = DefaultHasher::new();
        (salt, text, options).hash(&mut hasher);
        hasher.finish()
    };
    Some(folder()?.join(format!("kernels-{:016x}{:016x}.ptx", hash(1), hash(2))))
}

/// What was compiled from this text with these options before, if it is still there, whole.
pub fn find(text: &str, options: &[String]) -> Option<String> {
    fs::read_to_string(path(text, options)?).ok().filter(|ptx| ptx.ends_with(END))
}

/// Keeps what was compiled. That it cannot be kept is no reason to stop.
pub fn keep(text: &str, options: &[String], ptx: &str) {
    let Some(path) = path(text, options) else { return };
    let part = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = path.parent().map_or(Ok(()), fs::create_dir_all);
    let written = written.and_then(|()| fs::write(&part, format!("{ptx}\n{END}")));
    if written.and_then(|()| fs::rename(&part, &path)).is_err() {
        let _ = fs::remove_file(&part);
    }
}
