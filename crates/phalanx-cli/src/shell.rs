//! Words of commands that are shown to be pasted into a shell.

use std::path::Path;

/// Characters that mean nothing to any shell.
const PLAIN: &str = "/._-+:,@%=";
/// A backslash is one of them where it separates folders.
const SEPARATOR: char = std::path::MAIN_SEPARATOR;

/// The path as an argument that is never taken for a flag.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    quoted_word(&if text.starts_with('-') { format!("./{text}") } else { text })
}

/// The word in quotes, where a shell would read it as something else.
pub fn quoted_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || PLAIN.contains(c) || c == SEPARATOR;
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into();
    }
    // No file's name has a double quote where a single one does not quote.
    if cfg!(windows) { format!("\"{word}\"") } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_reads_the_path_that_was_meant() {
        assert_eq!(quoted(Path::new("runs/synthetic-seed1")), "runs/synthetic-seed1");
        assert_eq!(quoted(Path::new("/tmp/κ=1.5")), "/tmp/κ=1.5");
        for path in ["my runs/a", "it's", "$HOME", "~", "a;b", "a\\b", "*", "\"", "(1)", "#x", "a&b", ""] {
            let script = format!("printf %s {}", quoted(Path::new(path)));
            let printed = Command::new("sh").args(["-c", &script]).output().unwrap().stdout;
            assert_eq!(String::from_utf8(printed).unwrap(), path, "{script}");
        }
        assert_eq!(quoted(Path::new("--out")), "./--out");
    }
}
