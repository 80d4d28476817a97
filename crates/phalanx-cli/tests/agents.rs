//! Do agents as processes of their own act as the evaluation does, on one machine and with a file of
//! addresses? Do they end when nobody is there any more?
#![cfg(unix)]

use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_phalanx");

fn phalanx(arguments: &str, folder: &Path) -> Output {
    Command::new(BINARY).args(arguments.split_whitespace()).current_dir(folder).output().unwrap()
}

/// The line of JSON of a command that succeeds.
fn report(arguments: &str, folder: &Path) -> Value {
    let Output { status, stdout, stderr } = phalanx(arguments, folder);
    assert!(status.success(), "{arguments}: {}", String::from_utf8_lossy(&stderr));
    serde_json::from_slice(&stdout).unwrap()
}

fn train(preset: &str, folder: &Path) {
    let few = "--set iterations=5 --set evaluation.episodes=4 --threads 1";
    let done = phalanx(&format!("train {preset} {few} --out run"), folder);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn processes_act_as_the_evaluation_does() {
    let folder = tempfile::tempdir().unwrap();
    train("wireless", folder.path());
    let found = report("agents run --udp --episodes 4 --seed 7 --json", folder.path());
    assert_eq!(found["other_actions"], 0, "{found}");
    assert_eq!((&found["agents"], &found["actions"]), (&25.into(), &(4 * 12 * 25).into()));
    assert_eq!(found["silent_agents"], 0, "{found}");
    for name in ["malformed", "foreign", "early"] {
        assert_eq!(found["messages"]["agents"][name], 0, "{found}");
    }
    let other = report("agents run --udp --episodes 4 --seed 8 --json", folder.path());
    assert_ne!(other["return"], found["return"]);
}

#[test]
fn the_same_with_a_file_of_addresses() {
    let folder = tempfile::tempdir().unwrap();
    train("synthetic", folder.path());
    // Ports that are free now; somebody may take one before the agents do, which is unlikely.
    let sockets: Vec<UdpSocket> = (0..11).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    let line = |(number, socket): (usize, &UdpSocket)| {
        let name = if number == 10 { "world".to_string() } else { number.to_string() };
        format!("{name} {}\n", socket.local_addr().unwrap())
    };
    let text: String = sockets.iter().enumerate().map(line).collect();
    drop(sockets);
    std::fs::write(folder.path().join("where.txt"), text).unwrap();
    let start = |number: usize| {
        let arguments = format!("agents run --udp --addresses where.txt --seed 3 --agent {number}");
        Command::new(BINARY).args(arguments.split_whitespace()).current_dir(folder.path()).spawn().unwrap()
    };
    let agents: Vec<_> = (0..10).map(start).collect();
    let world = "agents run --udp --addresses where.txt --seed 3 --episodes 3 --steps 20 --world --json";
    let found = report(world, folder.path());
    assert_eq!((&found["other_actions"], &found["actions"]), (&0.into(), &(3 * 20 * 10).into()), "{found}");
    for mut agent in agents {
        assert!(agent.wait().unwrap().success());
    }
}

#[test]
fn agents_end_with_who_started_them() {
    let folder = tempfile::tempdir().unwrap();
    train("synthetic", folder.path());
    let mut parent = Command::new(BINARY)
        .args("agents run --udp --episodes 1000000".split(' '))
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // All processes that name it as their parent.
    let of_parent = |parent: u32| {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let stat = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("stat")).ok();
        let is_child = |stat: &String| {
            let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
            rest.split_whitespace().nth(1) == Some(&parent.to_string())
        };
        let ids = entries.filter_map(stat).filter(is_child);
        ids.filter_map(|stat| stat.split(' ').next().map(str::to_string)).collect::<Vec<_>>()
    };
    let start = Instant::now();
    let mut found = Vec::new();
    while found.len() < 10 && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(50));
        found = of_parent(parent.id());
    }
    assert_eq!(found.len(), 10);
    std::thread::sleep(Duration::from_millis(300));
    parent.kill().unwrap();
    parent.wait().unwrap();
    let is_alive = |id: &String| {
        let name = std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
        let state = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        name.trim() == "phalanx" && !state.contains(") Z ")
    };
    let start = Instant::now();
    while found.iter().any(is_alive) && start.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!found.iter().any(is_alive), "agents are there without their world");
}

#[test]
fn worlds_that_agents_share_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    train("platoon-slowdown", folder.path());
    let refused = phalanx("agents run --udp", folder.path());
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("world.kind") && said.lines().count() == 1, "{said}");
}
