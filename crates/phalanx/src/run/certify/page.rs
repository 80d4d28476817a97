//! A certificate as a page that people read.

use std::fmt::Write;

use super::Certificate;

/// Rows of the table of constraints.
const MOST_ROWS: usize = 1_000;

/// The page.
pub(super) fn html(certificate: &Certificate) -> String {
    let Certificate { confidence, episodes, horizon, seed, version, attempt, error, .. } = certificate;
    let percent = 100.0 * confidence;
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Certificate</title>\n<style>body{{font:16px/1.5 \
         sans-serif;max-width:60em;margin:2em auto;padding:0 1em}}table{{border-collapse:collapse}}td,th{{padding:.2em \
         .8em;text-align:right;border-bottom:1px solid #ddd}}td:nth-child(2),th:nth-child(2){{text-align:left}}pre{{background:\
         #f6f6f6;padding:1em;overflow:auto}}</style></head><body>\n<h1>All {} constraints hold, with {percent} % \
         confidence</h1>\n<p>{}</p>\n<table>\n",
        certificate.constraints.len(),
        escaped(&certificate.statement)
    );
    for (what, value) in [
        ("episodes", format!("{episodes} of {horizon} steps, seed {seed}")),
        ("attempt", format!("{attempt}, with an error of {error:.2e}")),
        (
            "objective",
            format!(
                "{:.6} ({:.6} to {:.6})",
                certificate.objective, certificate.objective_lower, certificate.objective_upper
            ),
        ),
        ("policy", format!("{}, CRC-32C {:08x}", certificate.policy, certificate.policy_crc32c)),
        ("program", format!("phalanx {version}")),
    ] {
        let _ = writeln!(page, "<tr><th>{what}</th><td>{}</td></tr>", escaped(&value));
    }
    page += "</table>\n<h2>Constraints</h2>\n<table><tr><th>agent</th><th>constraint</th><th>value</th><th>interval (all \
             together)</th><th>bound</th></tr>\n";
    for c in certificate.constraints.iter().take(MOST_ROWS) {
        let relation = if c.bound == "at_least" { "≥" } else { "≤" };
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{:.5}</td><td>{:.5} to {:.5}</td><td>{relation} {}</td></tr>",
            c.agent,
            escaped(&c.constraint),
            c.value,
            c.lower,
            c.upper,
            c.threshold
        );
    }
    if certificate.constraints.len() > MOST_ROWS {
        let rest = certificate.constraints.len() - MOST_ROWS;
        let _ = writeln!(page, "<tr><td colspan=\"5\">and {rest} more in certificate.json</td></tr>");
    }
    let _ = write!(
        page,
        "</table>\n<h2>Check it</h2>\n<pre>phalanx certify --check certificate.json\nphalanx certify --check certificate.json \
         --fresh 7</pre>\n<p>The first command repeats the recorded episodes and compares every number; the second judges on \
         new ones.</p>\n<h2>Configuration</h2>\n<pre>{}</pre>\n</body></html>\n",
        escaped(&certificate.config)
    );
    page
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
