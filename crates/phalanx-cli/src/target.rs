//! Where pictures go, and in which form.

use std::path::{Path, PathBuf};

use phalanx::{Error, Result};

/// What is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An animated GIF.
    Animation(PathBuf),
    /// Steps in one PNG.
    Sheet(PathBuf),
    /// A folder with a PNG per step.
    Frames(PathBuf),
}

impl Target {
    /// By the ending of `out`; without it, `episode.gif` in the plots of the run that `source` is, or here.
    pub fn of(out: Option<&Path>, source: &str) -> Result<Target> {
        let Some(out) = out else {
            let folder = Path::new(source);
            let folder = if folder.is_dir() { folder.join("plots") } else { PathBuf::new() };
            return Ok(Target::Animation(folder.join("episode.gif")));
        };
        let is_folder = out.is_dir() || out.to_string_lossy().ends_with(std::path::is_separator);
        let ending = out.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            _ if is_folder => Ok(Target::Frames(out.into())),
            Some("gif") => Ok(Target::Animation(out.into())),
            Some("png") => Ok(Target::Sheet(out.into())),
            _ => {
                let allowed = "FILE.gif (animation), FILE.png (one picture) and DIR/ (a PNG per step)";
                let message = format!("`{}` has no known ending; allowed are {allowed}", out.display());
                Err(Error::argument("out", message))
            }
        }
    }

    /// The file, or the folder of many.
    pub fn path(&self) -> &Path {
        let (Target::Animation(path) | Target::Sheet(path) | Target::Frames(path)) = self;
        path
    }

    /// The folder that must exist.
    pub fn folder(&self) -> &Path {
        match self {
            Target::Frames(folder) => folder,
            file => file.path().parent().unwrap_or(Path::new("")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_says_what_is_written() {
        let target = |out: &str| Target::of(Some(Path::new(out)), "synthetic");
        assert_eq!(target("a/b.gif").unwrap(), Target::Animation("a/b.gif".into()));
        assert_eq!(target("b.PNG").unwrap(), Target::Sheet("b.PNG".into()));
        assert_eq!(target("frames.gif/").unwrap(), Target::Frames("frames.gif/".into()));
        for out in ["a.mp4", "frames", ".gif", "a.gif.", ""] {
            let message = target(out).unwrap_err().to_string();
            assert!(message.contains(out) && message.contains("FILE.gif"), "{message}");
        }
    }

    #[test]
    fn runs_get_the_animation_among_their_plots() {
        let run = tempfile::tempdir().unwrap();
        let target = Target::of(None, run.path().to_str().unwrap()).unwrap();
        assert_eq!(target, Target::Animation(run.path().join("plots/episode.gif")));
        assert_eq!(Target::of(None, "synthetic").unwrap(), Target::Animation("episode.gif".into()));
        // A folder needs no slash once it is there.
        assert_eq!(Target::of(Some(run.path()), "synthetic").unwrap(), Target::Frames(run.path().into()));
    }
}
