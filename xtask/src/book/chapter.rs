//! Chapters as mdBook gets them.
//!
//! A chapter of `docs/book/src` stands at the top of the book, any other one at its path in the repository
//! (`docs/theory.md`). A link leads from where a file stands in the repository to where another one does. If
//! that one is a chapter, the link is written anew for the book; a picture is copied; any other file is no
//! part of the book, and its link becomes `repository:PATH`.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::{REPOSITORY, SOURCE, formula};

/// Ends of the names of files that are shown on a page.
const PICTURES: [&str; 3] = ["png", "gif", "svg"];

/// Copies summary, settings, chapters and pictures to `copy`; returns how many chapters there are.
pub fn copy(root: &Path, copy: &Path) -> Result<usize> {
    let summary = read(&root.join(SOURCE).join("SUMMARY.md"))?;
    let mut book = Book { root, out: copy.join("src"), chapters: BTreeSet::new() };
    for target in targets(&summary) {
        book.chapters.insert(normal(&Path::new(SOURCE).join(target)));
    }
    write(&copy.join("book.toml"), read(&root.join("docs/book/book.toml"))?.as_bytes())?;
    write(&copy.join("book.css"), read(&root.join("docs/book/book.css"))?.as_bytes())?;
    let source = Path::new(SOURCE).join("SUMMARY.md");
    write(&book.out.join("SUMMARY.md"), book.relinked(&source, &summary)?.as_bytes())?;
    for chapter in &book.chapters {
        let text = read(&root.join(chapter))?;
        let text = book.prepared(chapter, &text).with_context(|| chapter.display().to_string())?;
        write(&book.out.join(place(chapter)), text.as_bytes())?;
    }
    Ok(book.chapters.len())
}

struct Book<'a> {
    root: &'a Path,
    /// Where copies go.
    out: PathBuf,
    /// Paths from the root of the repository.
    chapters: BTreeSet<PathBuf>,
}

impl Book<'_> {
    /// A chapter with formulas and links of the book; fenced blocks stay as they are.
    fn prepared(&self, chapter: &Path, text: &str) -> Result<String> {
        let mut out = String::new();
        let mut prose = String::new();
        let mut is_code = false;
        for line in text.split_inclusive('\n') {
            let is_fence = line.trim_start().starts_with("```");
            if is_code || is_fence {
                out += &self.relinked(chapter, &formula::replace(&std::mem::take(&mut prose))?)?;
                out += line;
            } else {
                prose += line;
            }
            is_code ^= is_fence;
        }
        ensure!(!is_code, "the last block is not closed");
        Ok(out + &self.relinked(chapter, &formula::replace(&prose)?)?)
    }

    /// `text` with its links as they are in the book.
    fn relinked(&self, chapter: &Path, text: &str) -> Result<String> {
        let mut pieces = text.split("](");
        let mut out = pieces.next().unwrap_or_default().to_string();
        for piece in pieces {
            let (target, rest) = piece.split_once(')').context("a link is not closed")?;
            out += &format!("]({}){rest}", self.link(chapter, target)?);
        }
        Ok(out)
    }

    fn link(&self, chapter: &Path, target: &str) -> Result<String> {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        if file.is_empty() || file.contains("://") {
            return Ok(target.to_string());
        }
        let path = normal(&chapter.parent().unwrap_or(Path::new("")).join(file));
        let is_picture = path.extension().is_some_and(|end| PICTURES.iter().any(|picture| end == *picture));
        ensure!(self.root.join(&path).exists(), "{target}: there is no {}", path.display());
        if !self.chapters.contains(&path) && !is_picture {
            return Ok(format!("{REPOSITORY}{}", path.display()));
        }
        if is_picture {
            let copied = self.out.join(place(&path));
            write(&copied, &std::fs::read(self.root.join(&path))?)?;
        }
        let ups = place(chapter).components().count() - 1;
        let anchor = if anchor.is_empty() { String::new() } else { format!("#{anchor}") };
        Ok(format!("{}{}{anchor}", "../".repeat(ups), place(&path).display()))
    }
}

/// What stands in `](…)`.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// Where a file of the repository stands in the book.
fn place(path: &Path) -> &Path {
    path.strip_prefix(SOURCE).unwrap_or(path)
}

/// The path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    std::fs::write(path, bytes).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_those_of_the_book() {
        let root = tempfile::tempdir().unwrap();
        for file in ["docs/book/src/a.md", "docs/book/src/b.md", "docs/c.md", "docs/d/e.png", "README.md"] {
            write(&root.path().join(file), b"").unwrap();
        }
        let chapters = ["docs/book/src/a.md", "docs/book/src/b.md", "docs/c.md"].map(PathBuf::from);
        let book = Book { root: root.path(), out: root.path().join("out"), chapters: chapters.into() };
        let (a, c) = (Path::new("docs/book/src/a.md"), Path::new("docs/c.md"));
        let cases = [
            (a, "b.md#x", "b.md#x"),
            (a, "#x", "#x"),
            (a, "https://x.org/y.md", "https://x.org/y.md"),
            (a, "../../c.md#x", "docs/c.md#x"),
            (a, "../../d/e.png", "docs/d/e.png"),
            (a, "../../../README.md#x", "repository:README.md"),
            (c, "book/src/a.md", "../a.md"),
            (c, "d/e.png", "../docs/d/e.png"),
        ];
        for (from, target, wanted) in cases {
            assert_eq!(book.link(from, target).unwrap(), wanted);
        }
        assert!(root.path().join("out/docs/d/e.png").exists());
        assert!(book.link(a, "c.md").is_err());
    }
}
