//! Verdicts that stand although there are many tests: Holm's correction.
//!
//! A claim holds only if all its tests hold, so that more tests make *holds* harder, never easier: nothing is
//! corrected there. It fails if any of them fails, and among many one may do so by chance. So the tests of a
//! panel that fail are put in the order of their chances, and the k-th of m stands only if its chance, if the
//! claim just held, is at most that of one side of an interval, divided by m − k + 1. The others are
//! undecided.

use super::verdict::{Finding, MISS, Verdict};

/// Takes back what does not stand. `panel` has findings of one panel; what is tested more than once counts
/// once.
pub fn correct(panel: &mut [&mut Finding]) {
    let mut tests: Vec<(f64, String)> = panel
        .iter()
        .filter_map(|finding| finding.chances.map(|[_, against]| (against, finding.test.clone())))
        .collect();
    tests.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    tests.dedup();
    let count = tests.len();
    let standing =
        tests.iter().enumerate().take_while(|(k, (chance, _))| *chance <= MISS / (count - k) as f64);
    let standing: Vec<&str> = standing.map(|(_, (_, test))| test.as_str()).collect();
    for finding in panel {
        let is_judged = finding.verdict == Verdict::Fails && finding.chances.is_some();
        if is_judged && !standing.contains(&finding.test.as_str()) {
            finding.verdict = Verdict::Undecided;
            finding.numbers += &format!("; fails alone, but not among the {count} tests of its panel");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(test: &str, verdict: Verdict, against: f64) -> Finding {
        Finding { chances: Some([0.5, against]), ..Finding::plain(test.into(), verdict, String::new()) }
    }

    #[test]
    fn each_failure_has_to_stand_among_the_rest() {
        let mut findings = [
            finding("a", Verdict::Fails, 0.001),
            finding("b", Verdict::Fails, 0.02),
            finding("c", Verdict::Holds, 0.9),
            finding("a", Verdict::Fails, 0.001),
            finding("d", Verdict::Fails, 0.007),
            Finding::plain("computed".into(), Verdict::Fails, String::new()),
        ];
        correct(&mut findings.iter_mut().collect::<Vec<_>>());
        let verdicts: Vec<Verdict> = findings.iter().map(|finding| finding.verdict).collect();
        // Four tests: 0.001 ≤ 0.025/4, 0.007 ≤ 0.025/3, 0.02 > 0.025/2.
        use Verdict::{Fails, Holds, Undecided};
        assert_eq!(verdicts, [Fails, Undecided, Holds, Fails, Fails, Fails]);
        assert!(findings[1].numbers.contains("among the 4 tests"));
    }

    #[test]
    fn one_that_falls_takes_the_next_ones_with_it() {
        let mut findings = [finding("a", Verdict::Fails, 0.02), finding("b", Verdict::Fails, 0.022)];
        correct(&mut findings.iter_mut().collect::<Vec<_>>());
        assert!(findings.iter().all(|finding| finding.verdict == Verdict::Undecided));
    }
}
