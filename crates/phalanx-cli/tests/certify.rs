//! Certificates: when there is one, when there is none, and when one was changed.

use std::path::Path;
use std::process::{Command, Output};

use phalanx::base::sealed;

const SEEN: &str = "--set iterations=60 --episodes 300 --threads 1";

fn phalanx(arguments: &str, folder: &Path) -> Output {
    let arguments = arguments.split_whitespace();
    Command::new(env!("CARGO_BIN_EXE_phalanx")).args(arguments).current_dir(folder).output().unwrap()
}

/// The message of a command that ends with this status.
fn ends(arguments: &str, folder: &Path, status: i32) -> String {
    let output = phalanx(arguments, folder);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{arguments}: {said}");
    said
}

#[test]
fn a_certificate_is_repeated_and_changes_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let make = format!("certify synthetic {SEEN} --set constraint.0.at_least=0.1 --out signed");
    ends(&make, folder, 0);
    for name in ["certificate.json", "certificate.html", "policy.safetensors", "attempt-1/outcome.json"] {
        assert!(folder.join("signed").join(name).is_file(), "{name}");
    }
    ends("certify --check signed/certificate.json", folder, 0);
    ends("certify --check signed/certificate.json --fresh 5", folder, 0);
    // The same once more, from what is there, is the same certificate.
    let path = folder.join("signed/certificate.json");
    let text = std::fs::read_to_string(&path).unwrap();
    ends(&make, folder, 0);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    let other = make.replace("at_least=0.1", "at_least=0.2");
    assert!(ends(&other, folder, 2).contains("--out: signed holds attempts with other settings"));

    // Changed by hand, and changed so that its checksum fits.
    let edited = text.replace("\"threshold\": 0.1", "\"threshold\": 0.3");
    assert_ne!(edited, text);
    std::fs::write(&path, &edited).unwrap();
    assert!(ends("certify --check signed/certificate.json", folder, 2).contains("is damaged"));
    let content = edited.rsplit_once(",\n  \"crc32c\"").unwrap().0;
    std::fs::write(&path, sealed::seal(&format!("{content}\n}}"))).unwrap();
    let said = ends("certify --check signed/certificate.json", folder, 2);
    assert!(said.contains("its episodes give other numbers"), "{said}");
    std::fs::write(&path, &text).unwrap();
    let policy = folder.join("signed/policy.safetensors");
    let mut bytes = std::fs::read(&policy).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&policy, bytes).unwrap();
    assert!(
        ends("certify --check signed/certificate.json", folder, 2)
            .contains("not the policy that was certified")
    );
}

#[test]
fn what_cannot_be_kept_has_no_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Beyond all occupancies: found before anything is trained.
    let said = ends("certify synthetic --set constraint.0.at_least=0.7 --out none", folder, 1);
    assert!(said.contains("infeasible: at_least = 0.7 of `state_entropy` of agent 0"), "{said}");
    assert!(said.contains("0.693147181") && !folder.join("none").exists(), "{said}");
    // Beyond all policies of a small model.
    // It takes agent 0 two steps to get to state 1, for which it is paid.
    let small = "--set world.n=3 --set world.start=zeros --set constraint.0.kind=return --set constraint.0.agents=[0] \
                 --set constraint.0.at_least=98.9";
    let said = ends(&format!("certify synthetic {small} --out none"), folder, 1);
    assert!(said.contains("infeasible") && said.contains("cannot be kept by any policy"), "{said}");
    // Within reach, but not of this training.
    let hard = "certify synthetic --set iterations=2 --set constraint.0.at_least=0.69 --episodes 50 --max-attempts 2 \
                --threads 1 --out tried";
    let said = ends(hard, folder, 1);
    assert!(said.contains("not certified after 2 attempts") && said.contains("best bound"), "{said}");
    assert!(!folder.join("tried/certificate.json").exists());
}
