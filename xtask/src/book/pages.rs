//! The pages that mdBook made: every link, picture and anchor of them is looked up.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::REPOSITORY;

/// Turns `repository:PATH` into links to the repository, read at `repository` or in this checkout, and fails
/// if anything leads nowhere. Returns how many links and pictures there are.
pub fn settle(root: &Path, book: &Path, repository: Option<&str>) -> Result<usize> {
    let mut pages = BTreeMap::new();
    for path in files(book)?.into_iter().filter(|path| path.extension().is_some_and(|end| end == "html")) {
        let text = std::fs::read_to_string(&path)?;
        pages.insert(path, text);
    }
    let anchors: BTreeMap<&PathBuf, BTreeSet<String>> =
        pages.iter().map(|(path, text)| (path, attributes(text, "id").collect())).collect();
    let (mut count, mut wrong) = (0, Vec::new());
    for (page, text) in &pages {
        let folder = page.parent().unwrap_or(book);
        for link in attributes(text, "href").chain(attributes(text, "src")) {
            let is_elsewhere =
                ["https://", "http://", "mailto:", "data:"].iter().any(|at| link.starts_with(at));
            // What search engines are told of the page that stands for all missing ones.
            if is_elsewhere || link == "/" {
                continue;
            }
            count += 1;
            let leads = match link.strip_prefix(REPOSITORY) {
                Some(path) => root.join(path).exists(),
                None => {
                    let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
                    let path = if file.is_empty() { page.clone() } else { inside(folder, file) };
                    let has_anchor = || anchors.get(&path).is_some_and(|found| found.contains(anchor));
                    path.is_file() && path.starts_with(book) && (anchor.is_empty() || has_anchor())
                }
            };
            if !leads {
                wrong.push(format!("{}: {link}", page.strip_prefix(book).unwrap_or(page).display()));
            }
        }
    }
    ensure!(wrong.is_empty(), "these links lead nowhere:\n{}", wrong.join("\n"));
    for (page, text) in pages.iter().filter(|(_, text)| text.contains(REPOSITORY)) {
        let to = match repository {
            Some(url) => format!("\"{}/", url.trim_end_matches('/')),
            None => format!("\"{}", upwards(page, root)?),
        };
        std::fs::write(page, text.replace(&format!("\"{REPOSITORY}"), &to))?;
    }
    Ok(count)
}

/// The way from a page up to the root of the repository.
fn upwards(page: &Path, root: &Path) -> Result<String> {
    match page.strip_prefix(root) {
        Ok(path) => Ok("../".repeat(path.components().count() - 1)),
        Err(_) => Ok(format!("file://{}/", root.display())),
    }
}

/// All files in a folder and the folders in it.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in folder.read_dir()? {
        let path = entry?.path();
        match path.is_dir() {
            true => found.extend(files(&path)?),
            false => found.push(path),
        }
    }
    Ok(found)
}

/// Where a link leads from a folder, without `..`.
fn inside(folder: &Path, link: &str) -> PathBuf {
    let mut path = folder.to_path_buf();
    for part in link.split('/') {
        match part {
            ".." => {
                path.pop();
            }
            "." | "" => {}
            part => path.push(percent_decoded(part)),
        }
    }
    path
}

/// The values of an attribute, wherever a tag has it.
fn attributes<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = String> + 'a {
    let mark = format!(" {name}=\"");
    let tags = text.split('<').skip(1).filter_map(|rest| rest.split('>').next());
    tags.filter_map(move |tag| {
        let (_, rest) = tag.split_once(mark.as_str())?;
        let value = rest.split('"').next()?.replace("&amp;", "&");
        Some(percent_decoded(&value))
    })
}

/// `%CE%BA` as κ.
fn percent_decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        let digits = [rest.clone().next(), rest.clone().nth(1)];
        let decoded = match (byte, digits) {
            (b'%', [Some(high), Some(low)]) => {
                u8::from_str_radix(&String::from_utf8_lossy(&[high, low]), 16).ok()
            }
            _ => None,
        };
        if decoded.is_some() {
            rest.nth(1);
        }
        bytes.push(decoded.unwrap_or(byte));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A book of two pages, one of which has this link.
    fn settled(link: &str) -> Result<String> {
        let folder = tempfile::tempdir()?;
        let book = folder.path().join("target/book");
        std::fs::create_dir_all(book.join("deep"))?;
        std::fs::write(folder.path().join("README.md"), "")?;
        std::fs::write(book.join("deep/a.html"), format!("<p id=\"here\"><a href=\"{link}\">x</a>"))?;
        std::fs::write(book.join("b.html"), "<h1 id=\"κ\">")?;
        settle(folder.path(), &book, None)?;
        Ok(std::fs::read_to_string(book.join("deep/a.html"))?)
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        for fine in ["#here", "../b.html", "../b.html#κ", "../b.html#%CE%BA", "https://x.org/none"] {
            assert!(settled(fine).is_ok(), "{fine}");
        }
        for wrong in ["#there", "b.html", "../b.html#here", "../../../README.md", "repository:none.md"] {
            assert!(settled(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn links_to_the_repository_are_settled() {
        assert!(settled("repository:README.md").unwrap().contains("href=\"../../../README.md\""));
    }
}
