//! Every claim with its verdict as a drawing: a row per group, a square per claim.

use std::fmt::Write;

use phalanx::base::text::no_tags;

use super::{Report, counts};
use crate::claims::{CLAIMS, Judged, Verdict};
use crate::distinct;

const SQUARE: usize = 26;
const NAMES: usize = 170;
const WIDTH: usize = 760;
const TOP: usize = 40;

/// Colour and sign of a verdict; signs alone tell them apart, too.
fn look(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Holds => ("#009e73", "✓"),
        Verdict::Fails => ("#d55e00", "✗"),
        Verdict::Undecided => ("#e69f00", "?"),
        Verdict::Vacuous => ("#56b4e9", "∅"),
        Verdict::NotComparable => ("#cc79a7", "≠"),
        Verdict::Missing => ("#bbbbbb", "–"),
    }
}

/// As SVG.
pub fn svg(report: &Report) -> String {
    let groups = distinct(report.claims.iter().map(Judged::group));
    let height = TOP + groups.len() * (SQUARE + 6) + 10;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"DejaVu Sans, Verdana, Arial, sans-serif\" font-size=\"13\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    let mut x = 10;
    for (verdict, count) in counts(&report.claims).into_iter().filter(|(_, count)| *count > 0) {
        let label = format!("{count} {}", verdict.word_of_many());
        square(&mut text, (x, 8), verdict, "");
        let _ = writeln!(text, "<text x=\"{}\" y=\"25\" fill=\"#222222\">{label}</text>", x + SQUARE + 5);
        x += SQUARE + 25 + 8 * label.len();
    }
    for (row, group) in groups.iter().enumerate() {
        let y = TOP + row * (SQUARE + 6) + 4;
        let name = no_tags(CLAIMS.groups.get(*group).map_or(group, String::as_str));
        let _ = writeln!(text, "<text x=\"10\" y=\"{}\" fill=\"#222222\">{name}</text>", y + 17);
        let members = report.claims.iter().filter(|claim| claim.group() == *group);
        for (k, claim) in members.enumerate() {
            let title = format!("{}: {}. {}", claim.id, claim.verdict.word(), claim.sentence);
            square(&mut text, (NAMES + k * (SQUARE + 4), y), claim.verdict, &no_tags(&title));
        }
    }
    text + "</svg>\n"
}

/// Writing to memory cannot fail.
fn square(text: &mut String, (x, y): (usize, usize), verdict: Verdict, title: &str) {
    let (colour, sign) = look(verdict);
    let (middle, base) = (x + SQUARE / 2, y + 18);
    let _ = writeln!(
        text,
        "<g><title>{title}</title><rect x=\"{x}\" y=\"{y}\" width=\"{SQUARE}\" height=\"{SQUARE}\" rx=\"4\" fill=\"{colour}\"/>\
         <text x=\"{middle}\" y=\"{base}\" text-anchor=\"middle\" fill=\"#ffffff\" font-weight=\"bold\">{sign}</text></g>"
    );
}
