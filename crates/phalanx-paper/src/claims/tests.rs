//! Judging on literal sheets: what holds, fails, is undecided and is missing.

use super::test::Column;
use super::{CLAIMS, Claim, Evidence, Judged, Rows, Test, Verdict, judge, judge_claims};
use crate::catalogue;
use crate::frontier::{ALL_BOUNDS, NOTHING_IN_COMMON};
use crate::setting::{LITERAL, OURS};
use crate::sheet::Sheet;

/// A sheet of returns: method, setting, and one value per seed; NaN is a run that failed.
fn returns(rows: &[(&str, &str, &[f64])]) -> Sheet {
    let mut sheet = Sheet::new("method,setting,seed,status,return");
    for (method, setting, values) in rows {
        for (k, value) in values.iter().enumerate() {
            let status = if value.is_nan() { "failed: diverged" } else { "finished" };
            let value = if value.is_nan() { String::new() } else { value.to_string() };
            let seed = (k + 1).to_string();
            sheet.push(vec![method.to_string(), setting.to_string(), seed, status.into(), value]);
        }
    }
    sheet
}

fn evidence(id: &str, sheet: Sheet) -> Evidence {
    Evidence { sheets: [(id.to_string(), sheet)].into() }
}

impl From<&str> for Column {
    fn from(name: &str) -> Self {
        Column(name.into())
    }
}

fn a() -> Rows {
    Rows::setting("trial", "a")
}

fn b() -> Rows {
    Rows::setting("trial", "b")
}

/// Rows of a method, whatever its setting; all rows of an experiment with none.
fn of_method(experiment: &str, method: &str) -> Rows {
    let cells = if method.is_empty() { String::new() } else { format!("method = \"{method}\"") };
    toml::from_str(&format!("experiment = \"{experiment}\"\nwhere = {{ {cells} }}")).unwrap()
}

fn verdict(test: &Test, a: &[f64], b: &[f64]) -> Verdict {
    let sheet = returns(&[(OURS, "a", a), (OURS, "b", b)]);
    test.judge(&evidence("trial", sheet), OURS).verdict
}

#[test]
fn more_is_told_from_less() {
    let test = Test::Above { column: "return".into(), more: a(), less: b(), by: 0.0 };
    assert_eq!(verdict(&test, &[5.0, 5.1, 5.2], &[1.0, 1.1, 1.2]), Verdict::Holds);
    assert_eq!(verdict(&test, &[1.0, 1.1, 1.2], &[5.0, 5.1, 5.2]), Verdict::Fails);
    assert_eq!(verdict(&test, &[1.0, 3.0], &[1.5, 2.5]), Verdict::Undecided);
    assert_eq!(verdict(&test, &[5.0], &[1.0]), Verdict::Undecided, "a seed is no evidence");
    assert_eq!(verdict(&test, &[], &[1.0]), Verdict::Missing);
    assert_eq!(test.judge(&Evidence::default(), OURS).numbers, "no results of trial");
    let clearly = Test::Above { column: "return".into(), more: a(), less: b(), by: 0.1 };
    assert_eq!(verdict(&clearly, &[10.5, 10.55, 10.6], &[10.0, 10.0, 10.0]), Verdict::Fails);
    assert_eq!(verdict(&clearly, &[11.5, 11.55, 11.6], &[10.0, 10.0, 10.0]), Verdict::Holds);
}

#[test]
fn comparable_needs_the_whole_interval_inside_the_margin() {
    let test = Test::Comparable { column: "return".into(), one: a(), other: b(), share: 0.05 };
    assert_eq!(verdict(&test, &[100.0, 101.0, 100.5], &[100.0, 102.0, 101.0]), Verdict::Holds);
    assert_eq!(verdict(&test, &[80.0, 81.0, 80.5], &[100.0, 101.0, 100.5]), Verdict::Fails);
    assert_eq!(verdict(&test, &[90.0, 110.0, 100.0], &[100.0, 101.0, 100.5]), Verdict::Undecided);
    assert_eq!(test.words(), "return of a is within 5 % of that of b", "the margin is said");
}

#[test]
fn bounds_and_differences() {
    let at_most = Test::AtMost { column: "return".into(), which: a(), bound: 1.0 };
    assert_eq!(verdict(&at_most, &[0.5, 0.6, 0.7], &[]), Verdict::Holds);
    assert_eq!(verdict(&at_most, &[1.5, 1.4, 1.3], &[]), Verdict::Fails);
    assert_eq!(verdict(&at_most, &[0.5, 0.9, 1.1], &[]), Verdict::Undecided);
    let more_than = Test::MoreThan { column: "return".into(), which: a(), bound: 1.0 };
    assert_eq!(verdict(&more_than, &[1.5, 1.4, 1.3], &[]), Verdict::Holds);
    assert_eq!(verdict(&more_than, &[0.5, 0.9, 1.1], &[]), Verdict::Undecided);
    let not_above =
        |margin| Test::NotAbove { column: "return".into(), which: a(), than: b(), by: 0.0, margin };
    assert_eq!(verdict(&not_above(0.0), &[0.0, 0.0], &[0.0, 0.0]), Verdict::Holds);
    assert_eq!(verdict(&not_above(0.0), &[1.0, 1.05, 1.1], &[0.0, 0.0]), Verdict::Fails);
    // Beside a reference of 0, where a share of it allows nothing.
    let small = [0.0, 0.05, 0.1];
    assert_eq!(verdict(&not_above(0.0), &small, &[0.0, 0.0, 0.0]), Verdict::Undecided);
    assert_eq!(verdict(&not_above(0.3), &small, &[0.0, 0.0, 0.0]), Verdict::Holds);
    assert!(not_above(0.3).words().ends_with("is not above that of b by more than 0.3"));
    let either = Test::OneOf { tests: vec![at_most, more_than] };
    assert_eq!(verdict(&either, &[1.5, 1.4, 1.3], &[]), Verdict::Holds);
    assert_eq!(verdict(&either, &[0.5, 0.9, 1.1], &[]), Verdict::Undecided);
}

#[test]
fn sometimes_needs_one_trapped_seed_and_never_needs_many() {
    let test = Test::SomeSeedTrapped { column: "return".into(), which: a(), of: b(), rate: 0.2 };
    let verdict = |a: &[f64], b: &[f64]| verdict(&test, a, b);
    assert_eq!(verdict(&[10.0, 10.0, 3.0], &[10.0]), Verdict::Holds);
    assert_eq!(verdict(&[10.0, 10.0, 8.5], &[10.0]), Verdict::Undecided, "plain spread");
    assert_eq!(verdict(&[6.0, 6.0, 6.0], &[10.0]), Verdict::Holds, "all of them, against the other setting");
    // Most are trapped less far below; sizes count where returns are negative.
    assert_eq!(verdict(&[-10.0, -10.0, -10.5], &[-10.0]), Verdict::Undecided);
    assert_eq!(verdict(&[-10.0, -10.0, -13.0], &[-10.0]), Verdict::Holds);
    // 0.8^13 is above 5 %, 0.8^14 is not.
    assert_eq!(verdict(&[10.0; 5], &[10.0]), Verdict::Undecided);
    assert_eq!(verdict(&[10.0; 13], &[10.0]), Verdict::Undecided);
    assert_eq!(verdict(&[10.0; 14], &[10.0]), Verdict::Fails);
    let failed = [&[10.0; 20][..], &[f64::NAN]].concat();
    assert_eq!(verdict(&failed, &[10.0]), Verdict::Undecided, "who diverged may have been trapped");
    let sheet = returns(&[(OURS, "a", &[10.0; 20]), (OURS, "b", &[10.0])]);
    let finding = test.judge(&evidence("trial", sheet), OURS);
    assert!(finding.numbers.ends_with("at most 14 % of the runs (95 %)"), "{}", finding.numbers);
    let chance = 0.8f64.powi(20) / 2.0;
    assert!((finding.chances.unwrap()[1] - chance).abs() < 1e-12, "it stands among the tests of its panel");
}

/// A difference that is shown holds, however small; one that is too small to be worth naming fails.
#[test]
fn small_differences_of_returns_are_none() {
    let test = Test::Above { column: "return".into(), more: a(), less: b(), by: 0.0 };
    assert!(test.words().ends_with("(less than 2 % is no effect)"), "{}", test.words());
    let near = |by: f64| [99.9, 100.0, 100.1].map(|value| value + by);
    assert_eq!(verdict(&test, &near(1.0), &near(0.0)), Verdict::Holds);
    assert_eq!(verdict(&test, &near(0.1), &near(0.0)), Verdict::Fails);
    assert_eq!(verdict(&test, &[98.0, 100.0, 102.0], &near(0.0)), Verdict::Undecided);
    let sheet = returns(&[(OURS, "a", &near(0.1)), (OURS, "b", &near(0.0))]);
    let numbers = test.judge(&evidence("trial", sheet), OURS).numbers;
    assert!(numbers.contains("; less 2 % of the second: -1.900 ["), "{numbers}");
}

/// The margin is a share of a mean that is itself uncertain.
#[test]
fn margins_have_the_error_of_what_they_are_shares_of() {
    let test = Test::Above { column: "return".into(), more: a(), less: b(), by: 1.0 };
    let judge = |b: [f64; 3]| verdict(&test, &[24.0, 24.1, 23.9], &b);
    assert_eq!(judge([10.0, 10.01, 9.99]), Verdict::Holds);
    // 24 − 10 is above 10 without the error of the second 10.
    assert_eq!(judge([9.0, 10.0, 11.0]), Verdict::Undecided);
    let negative = Test::NotAbove { column: "return".into(), which: a(), than: b(), by: 0.1, margin: 0.0 };
    assert_eq!(verdict(&negative, &[-9.5, -9.5], &[-10.0, -10.0]), Verdict::Holds, "of its size");
}

#[test]
fn losses_are_shares() {
    let rows = |experiment, method| of_method(experiment, method);
    let test = Test::LargerLoss {
        column: "return".into(),
        larger: [rows("one", "alone"), rows("one", "whole")],
        smaller: [rows("two", "alone"), rows("two", "whole")],
    };
    // Half of 2 is lost in one, a tenth of 100 in the other.
    let one = returns(&[("alone", "", &[1.0, 1.02]), ("whole", "", &[2.0, 2.0])]);
    let two = returns(&[("alone", "", &[90.0, 91.0]), ("whole", "", &[100.0, 100.0])]);
    let sheets = [("one".to_string(), one), ("two".to_string(), two)].into();
    assert_eq!(test.judge(&Evidence { sheets }, "all").verdict, Verdict::Holds);
}

#[test]
fn computed_numbers_have_no_seeds() {
    let mut sheet = Sheet::new("kappa,error,bound");
    for (kappa, error, bound) in [("0", "8", "9"), ("1", "2", "1"), ("2", "1e-12", "0.1")] {
        sheet.push([kappa, error, bound].map(String::from).into());
    }
    let evidence = evidence("trial", sheet);
    let rows = || of_method("trial", "");
    let judge = |test: Test| test.judge(&evidence, "all");
    let bounded = Test::Bounded { which: rows(), column: "error".into(), bound: "bound".into() };
    assert_eq!(judge(bounded.clone()).verdict, Verdict::Fails);
    assert_eq!(judge(bounded).numbers, "not in 1 of 3 rows; the worst has 2.000 against 1.000");
    let first =
        Test::Bounded { which: rows().with("kappa", "0.0"), column: "error".into(), bound: "bound".into() };
    assert_eq!(judge(first).verdict, Verdict::Holds);
    let decays = |share| Test::Decays { which: rows(), column: "error".into(), share };
    assert_eq!(judge(decays(0.5)).verdict, Verdict::Holds);
    assert_eq!(judge(decays(0.1)).verdict, Verdict::Fails);
    // From 9 − 0 to 0.1 − 2, and from 0 − 9 to 2 − 0.1.
    let within = |high| Test::Within { which: rows(), column: "error".into(), low: 0.0, high, refused: None };
    assert_eq!(judge(within(8.0)).verdict, Verdict::Holds);
    assert_eq!(judge(within(7.0)).verdict, Verdict::Fails);
}

fn claim() -> Claim {
    let tests = vec![Test::Above { column: "return".into(), more: a(), less: b(), by: 0.0 }];
    let [id, place, sentence, why] = ["trial.more", "fig:exp", "a is better.", "known"].map(String::from);
    let (about, not_comparable) = (OURS.into(), String::new());
    Claim { id, place, sentence, tests, about, not_comparable, vacuous: None, why }
}

fn judged(evidence: &Evidence) -> Judged {
    judge_claims(&[claim()], evidence).remove(0)
}

#[test]
fn the_authors_runs_are_judged_beside_ours_where_there_are_rows() {
    let ours: [(&str, &str, &[f64]); 2] = [(OURS, "a", &[2.0, 2.1]), (OURS, "b", &[1.0, 1.1])];
    let alone = judged(&evidence("trial", returns(&ours)));
    assert_eq!((alone.verdict, alone.judgements.len(), alone.why.as_str()), (Verdict::Holds, 1, ""));
    // One of the two settings is not enough for a second verdict.
    let half = [ours[0], ours[1], (LITERAL, "a", &[0.0, 0.1])];
    assert_eq!(judged(&evidence("trial", returns(&half))).judgements.len(), 1);
    let both = [half[0], half[1], half[2], (LITERAL, "b", &[1.0, 1.1])];
    let both = judged(&evidence("trial", returns(&both)));
    assert_eq!((both.verdict, both.judgements[1].verdict), (Verdict::Holds, Verdict::Fails));
    assert_eq!(both.why, "known", "one of the verdicts needs a reason");
}

#[test]
fn a_claim_about_the_papers_own_runs_is_judged_by_them() {
    let mut sheet = returns(&[(OURS, "a", &[2.0, 2.1]), (OURS, "b", &[1.0, 1.1])]);
    let about_theirs = Claim { about: LITERAL.into(), ..claim() };
    let alone =
        judge_claims(std::slice::from_ref(&about_theirs), &evidence("trial", sheet.clone())).remove(0);
    assert_eq!((alone.verdict, alone.judgements[1].verdict), (Verdict::Missing, Verdict::Holds));
    sheet.rows.extend(returns(&[(LITERAL, "a", &[1.0, 1.1]), (LITERAL, "b", &[2.0, 2.1])]).rows);
    let judged = judge_claims(&[about_theirs], &evidence("trial", sheet)).remove(0);
    let methods: Vec<&str> = judged.judgements.iter().map(|judgement| judgement.method.as_str()).collect();
    assert_eq!((judged.verdict, methods), (Verdict::Fails, vec![LITERAL, OURS]));
}

#[test]
fn what_cannot_be_repeated_is_not_compared() {
    let sheet = returns(&[(OURS, "a", &[2.0, 2.1]), (OURS, "b", &[1.0, 1.1])]);
    let unknown = Claim { not_comparable: "the threshold is not published".into(), ..claim() };
    let judged = judge_claims(std::slice::from_ref(&unknown), &evidence("trial", sheet)).remove(0);
    assert_eq!(
        (judged.verdict, judged.why.as_str()),
        (Verdict::NotComparable, "the threshold is not published")
    );
    assert_eq!(judged.judgements[0].verdict, Verdict::Holds, "what was found stands there");
    assert_eq!(judge_claims(&[unknown], &Evidence::default())[0].verdict, Verdict::Missing);
}

#[test]
fn seeds_that_failed_are_named() {
    let rows: [(&str, &str, &[f64]); 2] = [(OURS, "a", &[2.0, f64::NAN, 2.1]), (OURS, "b", &[1.0, 1.1])];
    let judged = judged(&evidence("trial", returns(&rows)));
    assert_eq!(judged.judgements[0].findings[0].absent, ["a, seed 2: failed: diverged"]);
    assert_eq!(judged.verdict, Verdict::Undecided);
}

#[test]
fn without_results_every_claim_is_missing() {
    let judged = judge(&Evidence::default());
    assert!(judged.iter().all(|claim| claim.verdict == Verdict::Missing && claim.why.is_empty()));
    assert!(judged.len() > 50);
}

#[test]
fn claims_have_names_of_their_own_and_ask_for_settings_that_exist() {
    let claims = &CLAIMS.all;
    for (k, claim) in claims.iter().enumerate() {
        assert!(claims[..k].iter().all(|other| other.id != claim.id), "{}", claim.id);
        assert!(!claim.tests.is_empty(), "{}", claim.id);
        for rows in claim.tests.iter().flat_map(Test::rows) {
            let Some(experiment) = catalogue::find(rows.id()) else { continue };
            if experiment.settings.is_empty() {
                continue;
            }
            // Pairs of methods, where they are compared at equal violation.
            let mut sheet = Sheet::new("method,setting,other,bound");
            for setting in &experiment.settings {
                for other in &experiment.settings {
                    let cells = [&setting.method, &setting.name, &other.method, ALL_BOUNDS];
                    sheet.push(cells.map(String::from).into());
                }
            }
            let found = evidence(&rows.experiment, sheet).rows(rows, &claim.about).is_ok();
            assert!(found, "{}: {rows:?}", claim.id);
        }
    }
}

/// A panel whose published figures are 10 and 0.5.
fn panel(returns: &[f64], violations: &[f64]) -> Judged {
    let mut sheet =
        Sheet::new("method,setting,seed,return,violation_total,published_return,published_violation,counts");
    for (k, (return_, violation)) in returns.iter().zip(violations).enumerate() {
        let cells = [OURS.to_string(), "κ = 1".into(), k.to_string()];
        let numbers = [*return_, *violation, 10.0, 0.5].map(|number| number.to_string());
        sheet.push([&cells[..], &numbers, &["true".to_string()]].concat());
    }
    let judged = judge(&evidence("synthetic-kappa", sheet));
    judged.into_iter().find(|claim| claim.id == "published.synthetic-kappa").unwrap()
}

#[test]
fn published_figures_are_reached_by_means() {
    assert_eq!(panel(&[10.0, 10.2], &[0.0, 0.9]).verdict, Verdict::Holds);
    assert_eq!(panel(&[10.0, 10.2, 10.1], &[0.7, 0.8, 0.9]).verdict, Verdict::Fails);
    assert_eq!(panel(&[9.0, 10.2], &[0.0, 0.0]).verdict, Verdict::Undecided);
    assert_eq!(panel(&[10.2], &[0.0]).verdict, Verdict::Undecided);
    let short = panel(&[9.0, 9.0], &[0.0, 0.0]);
    assert_eq!((short.verdict, short.why.as_str()), (Verdict::Fails, "Not reached: κ = 1."));
    assert_eq!(panel(&[9.0, 10.2], &[0.0, 0.0]).why, "Undecided: κ = 1.");
    let failed = panel(&[10.1, 10.2, f64::NAN], &[0.0, 0.0, f64::NAN]);
    assert_eq!(failed.verdict, Verdict::Undecided, "what is left reaches nothing");
    let crossing = &panel(&[9.9, 10.3], &[0.0, 0.0]).judgements[0].findings[0].numbers;
    assert!(crossing.contains("published 10.00 (in the interval)"), "{crossing}");
}

/// By one test, of the means over the bounds; the bounds stand beside it.
#[test]
fn methods_are_compared_at_equal_violation_over_all_bounds() {
    let equal = |returns: &str, missing: &str, status: &str| {
        let mut sheet =
            Sheet::new("bound,method,other,difference,low,high,returns,returns_other,missing,status");
        for (bound, difference) in [("1", "0.5"), ("2", "-0.5"), (ALL_BOUNDS, "")] {
            let numbers = [bound, OURS, "b", difference, "-0.6", "0.6", returns, "10 10.1 9.9"];
            sheet.push([&numbers[..], &[missing, status]].concat().into_iter().map(String::from).collect());
        }
        let rows: Rows = toml::from_str("experiment = \"bounds/equal\"").unwrap();
        Test::AtEqualViolation { which: rows }.judge(&evidence("bounds/equal", sheet), OURS)
    };
    let holds = equal("11 11.1 10.9", "", "read");
    assert_eq!(holds.verdict, Verdict::Holds, "although one bound is on the other side");
    assert!(
        holds.numbers.ends_with("; bound 1: 0.500 [-0.600, 0.600]; bound 2: -0.500 [-0.600, 0.600]"),
        "{}",
        holds.numbers
    );
    assert_eq!(equal("9 9.1 8.9", "", "read").verdict, Verdict::Fails);
    assert_eq!(equal("9.95 9.9 10", "", "read").verdict, Verdict::Fails, "no difference worth naming");
    assert_eq!(equal("9 10 12", "", "read").verdict, Verdict::Undecided);
    let failed = equal("11 11.1 10.9", "b, seed 3", "read");
    assert_eq!((failed.verdict, failed.absent.contains(&"b, seed 3".into())), (Verdict::Undecided, true));
    assert_eq!(equal("", "", NOTHING_IN_COMMON).verdict, Verdict::Undecided);
}

#[test]
fn single_numbers_are_compared_as_they_are() {
    let test = Test::Larger { column: "return".into(), larger: a(), smaller: b(), by: 0.2 };
    assert_eq!(verdict(&test, &[1.25], &[1.0]), Verdict::Holds);
    assert_eq!(verdict(&test, &[1.15], &[1.0]), Verdict::Fails);
    assert_eq!(verdict(&test, &[1.25, 1.25], &[1.0]), Verdict::Undecided, "these are several");
}

/// Of the same run, two numbers are compared run by run.
#[test]
fn runs_are_compared_with_themselves() {
    let mut sheet = Sheet::new("method,setting,seed,status,before,after");
    for (seed, before, after) in [("1", "1", "1.1"), ("2", "5", "5.1"), ("3", "9", "9.11")] {
        sheet.push([OURS, "a", seed, "finished", before, after].map(String::from).into());
    }
    let test = Test::Rises { which: a(), from: "before".into(), to: "after".into() };
    let finding = test.judge(&evidence("trial", sheet), OURS);
    assert_eq!(finding.verdict, Verdict::Holds, "{}", finding.numbers);
    assert!(finding.numbers.ends_with("3 seeds, in pairs"), "{}", finding.numbers);
}

/// Of two tests, one of which is enough, each has half of the error.
#[test]
fn one_of_several_tests_must_be_surer() {
    let above = |bound| Test::MoreThan { column: "return".into(), which: a(), bound };
    let returns = [1.0, 1.1, 1.2, 1.3];
    // The interval ends at 0.945, with half of the error on each side at 0.88.
    assert_eq!(verdict(&above(0.92), &returns, &[]), Verdict::Holds);
    let either = |bound| Test::OneOf { tests: vec![above(bound), above(2.0)] };
    assert_eq!(verdict(&either(0.92), &returns, &[]), Verdict::Undecided);
    assert_eq!(verdict(&either(0.8), &returns, &[]), Verdict::Holds);
}

/// Two claims of a panel, of which one fails by little and the other by nothing that stands among both.
#[test]
fn failures_stand_among_the_tests_of_their_panel() {
    let rows = |name: &str| Rows::setting("trial", name);
    let claims = ["a", "b", "c"].map(|name| {
        let tests = vec![Test::AtMost { column: "return".into(), which: rows(name), bound: 0.0 }];
        Claim { id: format!("trial.{name}"), tests, ..claim() }
    });
    // t = 4.0 with 4 degrees of freedom: one-sided 0.008 ≤ 0.025/3; t = 3.0: 0.02 > 0.025/2.
    let values = |t: f64| [-2.0, -1.0, 0.0, 1.0, 2.0].map(|x: f64| x + t * 0.5f64.sqrt());
    let [strong, weak, none] = [4.0, 3.0, -9.0].map(values);
    let sheet = returns(&[(OURS, "a", &strong), (OURS, "b", &weak), (OURS, "c", &none)]);
    let judged = judge_claims(&claims, &evidence("trial", sheet.clone()));
    let verdicts: Vec<Verdict> = judged.iter().map(|claim| claim.verdict).collect();
    assert_eq!(verdicts, [Verdict::Fails, Verdict::Undecided, Verdict::Holds]);
    let alone = judge_claims(&claims[1..2], &evidence("trial", sheet));
    assert_eq!(alone[0].verdict, Verdict::Fails);
}

#[test]
fn a_comparison_that_was_refused_supports_a_claim() {
    let mut sheet = Sheet::new("world,kappa,relative,status");
    for row in
        [["small", "1", "0.3", "measured"], ["large", "1", "", "measured"], ["large", "9", "", "refused: x"]]
    {
        sheet.push(row.map(String::from).into());
    }
    let mut itself_refused = sheet.clone();
    itself_refused.push(["larger", "1", "", "refused: x"].map(String::from).into());
    let rows = of_method("trial", "").with("kappa", "1");
    let judge = |sheet: &Sheet, refused: Option<&str>| {
        let refused = refused.map(String::from);
        let test =
            Test::Within { which: rows.clone(), column: "relative".into(), low: 0.0, high: 0.5, refused };
        test.judge(&evidence("trial", sheet.clone()), OURS)
    };
    assert_eq!(judge(&sheet, None).verdict, Verdict::Undecided);
    assert_eq!(judge(&itself_refused, Some("world")).verdict, Verdict::Undecided);
    let found = judge(&sheet, Some("world"));
    assert_eq!(found.verdict, Verdict::Holds);
    assert!(
        found.absent.is_empty() && found.numbers.ends_with("1 more where the comparison itself was refused")
    );
}

#[test]
fn an_order_is_an_upper_bound() {
    let judge = |power: f64, share: f64| {
        let mut sheet = Sheet::new("T,E");
        for t in [10.0, 100.0, 1000.0f64] {
            sheet.push(vec![t.to_string(), (3.0 * t.powf(power)).to_string()]);
        }
        let (column, along) = ("E".into(), "T".into());
        Test::Order { which: of_method("trial", ""), column, along, exponent: 0.5, share }
            .judge(&evidence("trial", sheet), OURS)
            .verdict
    };
    assert_eq!(judge(-0.5, 0.01), Verdict::Holds);
    assert_eq!(judge(-1.0, 0.01), Verdict::Holds, "faster is better");
    assert_eq!(judge(-0.4, 0.2), Verdict::Fails, "10^0.1 is a factor of 1.26");
    assert_eq!(judge(-0.4, 0.3), Verdict::Holds);
}

#[test]
fn what_would_hold_anyway_is_vacuous() {
    let at_most = |bound| Test::AtMost { column: "return".into(), which: a(), bound };
    let claims = [99.0, 0.1].map(|bound| Claim { vacuous: Some(at_most(bound)), ..claim() });
    let verdicts = |a: [f64; 2]| -> Vec<Verdict> {
        let sheet = returns(&[(OURS, "a", &a), (OURS, "b", &[2.0, 2.1])]);
        judge_claims(&claims, &evidence("trial", sheet)).iter().map(|claim| claim.verdict).collect()
    };
    assert_eq!(verdicts([3.0, 3.1]), [Verdict::Vacuous, Verdict::Holds]);
    // What is wrong has content, whatever else would be true.
    assert_eq!(verdicts([1.0, 1.1]), [Verdict::Fails, Verdict::Fails]);
}

/// One of several fails if all do, by the chance of the weakest; it has to stand among its panel, too.
#[test]
fn failures_of_one_of_several_have_chances() {
    let at_most = |bound| Test::AtMost { column: "return".into(), which: a(), bound };
    let either = Test::OneOf { tests: vec![at_most(0.0), at_most(0.5)] };
    let sheet = || evidence("trial", returns(&[(OURS, "a", &[1.0, 1.1, 1.2])]));
    let found = either.judge(&sheet(), OURS);
    let alone = [0.0, 0.5].map(|bound| at_most(bound).judge(&sheet(), OURS).chances.unwrap()[1]);
    assert_eq!(found.verdict, Verdict::Fails);
    assert_eq!(found.chances.unwrap()[1], alone[0].max(alone[1]));
}
