//! The book as pages: mdBook makes them of the chapters that `docs/book/src/SUMMARY.md` lists.
//!
//! The chapters are written for two readers, GitHub and mdBook, and stand where they belong: most of them in
//! `docs/book/src`, some elsewhere in `docs`. What only one of the two understands is settled before mdBook
//! sees it: a copy of every chapter goes to `target/book-source`, with formulas as MathML and with links that
//! fit where the copy stands (`chapter`). Afterwards every link of the pages is looked up (`pages`).

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{run, target};

mod chapter;
mod formula;
mod pages;

/// What `cargo xtask book` takes.
#[derive(clap::Args, Default)]
pub struct BookArgs {
    /// Where the repository can be read, `https://…/blob/main` for instance: links that leave the book begin
    /// with it. Without it they lead to the files of this checkout.
    #[arg(long, value_name = "URL")]
    repository: Option<String>,
}

/// The version of mdBook whose pages are checked.
const MDBOOK: &str = "0.5.4";

/// The chapters that stand beside the summary, from the root of the repository.
const SOURCE: &str = "docs/book/src";

/// Begins links to files of the repository that are not in the book; mdBook leaves them as they are.
const REPOSITORY: &str = "repository:";

/// Builds the book into `target/book` and looks up its links.
pub fn build(args: &BookArgs) -> Result<()> {
    let (root, target) = (std::path::absolute(".")?, target()?);
    let (copy, book) = (target.join("book-source"), target.join("book"));
    let mdbook = mdbook(&target)?;
    for folder in [&copy, &book] {
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
    }
    let chapters = chapter::copy(&root, &copy)?;
    render(&mdbook, &copy, &book)?;
    let links = pages::settle(&root, &book, args.repository.as_deref())?;
    let from = book.join("index.html");
    println!("{}: {chapters} chapters, {links} links and pictures lead somewhere", from.display());
    Ok(())
}

/// mdBook, which is compiled once into the folder of builds. Without its server, its watcher and its search,
/// and without optimisation: the book is made in seconds either way.
pub fn mdbook(target: &Path) -> Result<PathBuf> {
    let tools = target.join("tools");
    let program = tools.join("bin/mdbook");
    let version = || Command::new(&program).arg("--version").output();
    if version().is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim().ends_with(MDBOOK)) {
        return Ok(program);
    }
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut install = Command::new(cargo);
    install.args(["install", "mdbook", "--version", MDBOOK, "--locked", "--no-default-features", "--debug"]);
    install.arg("--force").arg("--root").arg(&tools).env("CARGO_TARGET_DIR", tools.join("build"));
    // Cargo would otherwise look at this repository's settings of profiles, which are for other code.
    install.env("CARGO_PROFILE_DEV_DEBUG", "false").env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
    run(&mut install).context("mdBook cannot be built")?;
    // What was compiled is needed no more.
    let _ = std::fs::remove_dir_all(tools.join("build"));
    Ok(program)
}

/// Runs mdBook; a warning of it is an error here.
fn render(mdbook: &Path, copy: &Path, book: &Path) -> Result<()> {
    let output = Command::new(mdbook).arg("build").arg(copy).arg("--dest-dir").arg(book).output();
    let output = output.with_context(|| format!("cannot start {}", mdbook.display()))?;
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let is_fine = !said.lines().any(|line| line.contains("WARN") || line.contains("ERROR"));
    ensure!(output.status.success() && is_fine, "mdBook says\n{said}");
    Ok(())
}
