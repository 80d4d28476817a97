//! Pages in Chromium. Without it tests say that they were skipped; `cargo xtask test` installs it where it
//! can.

use std::process::{Command, Output};

use tempfile::TempDir;

/// Opens an address; nothing but this machine can be reached. The browser's log is on standard error. None
/// without a browser.
pub fn open(address: &str, extra: &[String]) -> Option<Output> {
    let profile = TempDir::new().unwrap();
    let mut command = Command::new("chromium");
    command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
    command.args(["--window-size=1300,1600", "--enable-logging=stderr", "--v=0"]);
    command.arg("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1");
    command.arg(format!("--user-data-dir={}", profile.path().display()));
    command.args(extra).arg(address);
    match command.output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("chromium: {error}"),
    }
}

/// What stands in `name="…"` behind `from`.
pub fn attribute(page: &str, from: &str, name: &str) -> String {
    let behind = page.split_once(from).unwrap_or_else(|| panic!("no {from}")).1;
    let tag = behind.split_once('>').unwrap().0;
    let value = tag.split_once(&format!("{name}=\"")).unwrap_or_else(|| panic!("no {name} in {tag}")).1;
    value.split_once('"').unwrap().0.into()
}
