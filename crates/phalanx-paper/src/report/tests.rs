//! Reports on folders that are made by hand.

use std::path::Path;

use super::write;
use crate::catalogue::{self, Experiment};
use crate::context::Record;
use crate::sheet::Sheet;

fn record(id: &str) -> Record {
    Record {
        id: id.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        commit: "abc".into(),
        command: format!("phalanx paper {id}"),
        seeds: vec![1, 2],
        length: "whole".into(),
        wall_s: 130.0,
        cores: 2,
        complete: true,
        definition: catalogue::find(id).and_then(Experiment::definition),
    }
}

/// Preset and settings as the catalogue has them, as rows name them.
fn trained(id: &str, method: &str, setting: &str) -> [String; 2] {
    let known = catalogue::setting(id, method, setting);
    known.map_or(["wireless".into(), "kappa=1".into()], |known| [known.preset.clone(), known.set.join(" ")])
}

/// The folder of an experiment with two settings and two seeds each.
fn experiment(root: &Path, record: &Record, rows: &[(&str, u64, &str)]) {
    let folder = root.join(&record.id);
    std::fs::create_dir_all(folder.join("figures")).unwrap();
    let mut sheet = Sheet::new("method,setting,preset,set,seed,status,return,violation_total,commit");
    for (setting, seed, return_) in rows {
        let status = if return_.is_empty() { "failed: a <wrong> step" } else { "finished" };
        let (seed, [preset, set]) = (seed.to_string(), trained(&record.id, "ours", setting));
        let cells = ["ours", setting, &preset, &set, &seed, status, return_, "0.1", "c0ffee"];
        sheet.push(cells.map(String::from).into());
    }
    std::fs::write(folder.join("results.csv"), sheet.to_csv()).unwrap();
    std::fs::write(folder.join("figures/curves.svg"), "<svg xmlns='http://www.w3.org/2000/svg'/>").unwrap();
    std::fs::write(folder.join("figures/curves.png"), "not taken").unwrap();
    std::fs::write(folder.join("experiment.json"), serde_json::to_string(record).unwrap()).unwrap();
}

fn texts(root: &Path) -> [String; 3] {
    write(root, "def").unwrap();
    ["claims.json", "REPORT.md", "report.html"].map(|name| std::fs::read_to_string(root.join(name)).unwrap())
}

const ROWS: [(&str, u64, &str); 4] =
    [("κ = 0", 1, "1.0"), ("κ = 0", 2, "1.1"), ("κ = 1", 1, "5.0"), ("κ = 1", 2, "5.1")];

#[test]
fn a_claim_goes_from_a_sheet_into_all_three_files() {
    let folder = tempfile::tempdir().unwrap();
    experiment(folder.path(), &record("wireless-kappa"), &ROWS);
    let [json, markdown, page] = texts(folder.path());
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let claims = document["claims"].as_array().unwrap();
    let claim = claims.iter().find(|claim| claim["id"] == "wireless.communication-critical").unwrap();
    assert_eq!(claim["verdict"], "holds");
    assert_eq!(claim["judgements"][0]["findings"][0]["estimate"]["seeds"], 2);
    assert_eq!(document["evidence"], true);
    assert_eq!(document["counts"]["holds"], 1);
    assert_eq!(document["experiments"][0]["seeds"], serde_json::json!([1, 2]));
    assert!(markdown.contains("| `wireless.communication-critical` |") && markdown.contains("| **holds** |"));
    assert!(markdown.contains("(wireless-kappa/figures/curves.png)"));
    assert!(markdown.contains("c0ffee") && page.contains("c0ffee"), "who trained them");
    let picture = std::fs::read_to_string(folder.path().join("claims.svg")).unwrap();
    assert!(picture.contains("<title>wireless.communication-critical: holds."));
    let published = claims.iter().filter(|claim| claim["id"].as_str().unwrap().starts_with("published."));
    let published = published.count();
    let own = claims.len() - published;
    for words in [format!(">{own} claims of the paper:<"), format!(">{published} published results:<")] {
        assert!(picture.contains(&words), "{words}: {picture}");
    }
    assert!(!markdown.contains("published points"), "nothing of the published code was run");
    assert!(page.contains("data-verdict=\"holds\" id=\"claim-wireless.communication-critical\""));
    assert!(page.contains("data:image/svg+xml;base64,") && !page.contains("data:image/png"));
    assert!(!markdown.contains("is evidence"));
}

#[test]
fn where_the_published_code_does_not_come_out_as_published_is_said() {
    let folder = tempfile::tempdir().unwrap();
    experiment(folder.path(), &record("wireless-kappa"), &ROWS);
    let columns = "method,setting,preset,set,seed,status,return,violation_total,published_return,\
         published_violation,commit";
    let mut sheet = Sheet::new(columns);
    for (setting, published) in [("κ = 0", "1.05"), ("κ = 1", "9")] {
        let [preset, set] = trained("wireless-kappa", "authors", setting);
        for (seed, return_) in [("1", "1.0"), ("2", "1.1")] {
            let names = ["authors", setting, &preset, &set, seed, "finished"];
            let cells = [&names[..], &[return_, "0.1", published, "0.1", "c0ffee"]].concat();
            sheet.push(cells.into_iter().map(String::from).collect());
        }
    }
    std::fs::write(folder.path().join("wireless-kappa/results.csv"), sheet.to_csv()).unwrap();
    let [_, markdown, page] = texts(folder.path());
    for text in [&markdown, &page] {
        assert!(text.contains("reproduces 1 of 2 published points"), "{text}");
        assert!(text.contains("The return alone is missed in 1, the violation alone in 0, both in 0."));
    }
    assert!(markdown.contains("| no: return |") && markdown.contains("| yes |"), "{markdown}");
}

#[test]
fn what_is_missing_is_named_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = ROWS;
    rows[3].2 = "";
    experiment(folder.path(), &record("wireless-kappa"), &rows);
    let unfinished = Record { complete: false, ..record("wireless-eta") };
    experiment(folder.path(), &unfinished, &ROWS);
    for text in texts(folder.path()) {
        assert!(text.contains("ours, κ = 1, seed 2: failed: a"), "{text}");
        assert!(text.contains("begun, but not complete") && text.contains("synthetic-kappa"), "{text}");
    }
    let [_, _, page] = texts(folder.path());
    assert!(page.contains("a &lt;wrong&gt; step") && !page.contains("<wrong>"));
}

#[test]
fn settings_without_runs_are_named() {
    let folder = tempfile::tempdir().unwrap();
    experiment(folder.path(), &record("wireless-kappa"), &ROWS[..2]);
    let [_, markdown, _] = texts(folder.path());
    assert!(markdown.contains("wireless-kappa: no runs of authors: κ = 0; ours: κ = 1; authors: κ = 1"));
}

#[test]
fn runs_with_other_settings_do_not_count() {
    let folder = tempfile::tempdir().unwrap();
    experiment(folder.path(), &record("wireless-kappa"), &ROWS);
    let file = folder.path().join("wireless-kappa/results.csv");
    let text = std::fs::read_to_string(&file).unwrap().replacen("kappa=1", "kappa=2", 1);
    std::fs::write(&file, text).unwrap();
    let [_, markdown, _] = texts(folder.path());
    assert!(markdown.contains("made with other settings") && !markdown.contains("| **holds** |"));
}

#[test]
fn an_empty_folder_has_a_report_too() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("not/there");
    let [json, ..] = texts(&root);
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let missing = ["counts", "published"].map(|whose| document[whose]["missing"].as_u64().unwrap() as usize);
    assert_eq!(missing.iter().sum::<usize>(), document["claims"].as_array().unwrap().len());
    assert_eq!(document["experiments"].as_array().unwrap().len(), 0);
    assert_eq!(document["missing"][0]["reason"], "not made");
}

#[test]
fn runs_that_name_no_commit_do_not_count() {
    let folder = tempfile::tempdir().unwrap();
    experiment(folder.path(), &record("wireless-kappa"), &ROWS);
    let file = folder.path().join("wireless-kappa/results.csv");
    let text = std::fs::read_to_string(&file).unwrap().replacen("commit", "other", 1);
    std::fs::write(&file, text).unwrap();
    let [json, markdown, _] = texts(folder.path());
    assert!(json.contains("made by an earlier program") && markdown.contains("made by an earlier program"));
    assert!(
        markdown.contains("| `wireless.communication-critical` |") && !markdown.contains("| **holds** |")
    );
}

/// What is computed has no commits in its rows: it counts if this program computes the same.
#[test]
fn computed_experiments_of_earlier_programs_do_not_count() {
    let judged = |definition: Option<String>| {
        let folder = tempfile::tempdir().unwrap();
        experiment(folder.path(), &Record { definition, ..record("cost") }, &ROWS);
        let document: serde_json::Value = serde_json::from_str(&texts(folder.path())[0]).unwrap();
        let missing = document["missing"].as_array().unwrap();
        let found = missing.iter().find(|it| it["id"] == "cost");
        found.map(|it| it["reason"].as_str().unwrap().to_string())
    };
    assert_eq!(judged(record("cost").definition), None);
    for earlier in [None, Some("00000000".to_string())] {
        assert!(judged(earlier).unwrap().starts_with("made by an earlier program"));
    }
}

#[test]
fn a_table_of_other_runs_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    experiment(folder.path(), &record("table"), &ROWS);
    let [json, ..] = texts(folder.path());
    assert!(json.contains("made of other runs than those that are here"), "{json}");
}

#[test]
fn shortened_runs_are_no_evidence() {
    let folder = tempfile::tempdir().unwrap();
    let quick = Record { length: "quick".into(), ..record("wireless-kappa") };
    experiment(folder.path(), &quick, &ROWS);
    let [json, markdown, page] = texts(folder.path());
    assert!(json.contains("\"evidence\": false"));
    assert!(markdown.contains("**Nothing in this report is evidence: training runs were shortened (quick)."));
    assert!(page.contains("<strong>Nothing in this report is evidence"));
}

#[test]
fn another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let old = Record { version: "0.0.1".into(), ..record("wireless-kappa") };
    experiment(folder.path(), &old, &ROWS);
    let error = write(folder.path(), "def").unwrap_err().to_string();
    assert!(error.contains("made by phalanx 0.0.1"), "{error}");
}

#[test]
fn the_tuning_budget_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    // How the settings of the catalogue were found is always said.
    let [_, _, page] = texts(folder.path());
    assert!(page.contains("id=\"tuning\""));
    std::fs::write(folder.path().join("tuning.csv"), "method,runs\nMAPPO-L,12\n").unwrap();
    let [_, _, page] = texts(folder.path());
    assert!(page.contains("<td>MAPPO-L</td><td>12</td>"));
    std::fs::write(folder.path().join("tuning.md"), "Twelve runs each.\n").unwrap();
    let [_, _, page] = texts(folder.path());
    assert!(page.contains("Twelve runs each."));
}

#[test]
fn frames_become_a_replay() {
    let folder = tempfile::tempdir().unwrap();
    experiment(folder.path(), &record("visual-wireless"), &ROWS);
    let frames = folder.path().join("visual-wireless/frames");
    std::fs::create_dir(&frames).unwrap();
    for k in 1..=3 {
        std::fs::write(frames.join(format!("step-{k:04}.png")), [k]).unwrap();
    }
    let [_, markdown, page] = texts(folder.path());
    assert!(page.contains("id=\"replay-visual-wireless\" data-frame=\"1\"") && page.contains("max=\"3\""));
    assert!(page.contains("[\"data:image/png;base64,AQ==\",\"data:image/png;base64,Ag==\","));
    assert!(markdown.contains("A replay of 3 steps"));
}
