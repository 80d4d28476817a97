//! Every claim with its verdict as a drawing: a row per group, a square per claim.

use std::fmt::Write;

use phalanx::base::text::no_tags;

use super::{Report, counts};
use crate::claims::{CLAIMS, Judged, Verdict};
use crate::distinct;

const SQUARE: usize = 26;
const NAMES: usize = 170;
const WIDTH: usize = 920;
/// Where counts begin, and the height of a line of them.
const COUNTS: usize = 190;
const LINE: usize = SQUARE + 8;

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
    let counted = report.claims_apart().into_iter().zip(["claims of the paper", "published results"]);
    let counted: Vec<_> = counted.filter(|(claims, _)| !claims.is_empty()).collect();
    let top = 10 + counted.len() * LINE;
    let height = top + groups.len() * (SQUARE + 6) + 10;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"DejaVu Sans, Verdana, Arial, sans-serif\" font-size=\"13\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for (row, (claims, what)) in counted.iter().enumerate() {
        line_of_counts(&mut text, 8 + row * LINE, claims, what);
    }
    for (row, group) in groups.iter().enumerate() {
        let y = top + row * (SQUARE + 6) + 4;
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

/// How many of the claims have each verdict.
fn line_of_counts(text: &mut String, y: usize, claims: &[&Judged], what: &str) {
    let base = y + 17;
    let number = claims.len();
    let _ = writeln!(
        text,
        "<text x=\"10\" y=\"{base}\" fill=\"#222222\" font-weight=\"bold\">{number} {what}:</text>"
    );
    let mut x = COUNTS;
    for (verdict, count) in counts(claims.iter().copied()).into_iter().filter(|(_, count)| *count > 0) {
        let label = format!("{count} {}", verdict.word_of_many());
        square(text, (x, y), verdict, "");
        let _ = writeln!(text, "<text x=\"{}\" y=\"{base}\" fill=\"#222222\">{label}</text>", x + SQUARE + 5);
        x += SQUARE + 20 + 8 * label.len();
    }
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
