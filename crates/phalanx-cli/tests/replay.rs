//! `phalanx replay`: recorded games come out as they went in, and bad files get one clear line.

use std::path::Path;
use std::process::{Command, Output};

fn replay(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_phalanx")).arg("replay").args(arguments).output().unwrap()
}

fn reference(name: &str) -> String {
    format!("{}/../phalanx/tests/reference/pistonball/{name}.csv", env!("CARGO_MANIFEST_DIR"))
}

/// What is printed for a file of these contents.
fn replayed(contents: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("game.csv");
    std::fs::write(&path, contents).unwrap();
    let output = replay(&["pistonball", path.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Every recorded game: at the wall, out of time, of all sizes and policies.
#[test]
fn recorded_games_come_out_byte_for_byte() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../phalanx/tests/reference/pistonball");
    let mut games = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.starts_with("ep_") {
            continue;
        }
        let output = replay(&["pistonball", path.to_str().unwrap()]);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout == std::fs::read(&path).unwrap(), "{name} differs");
        games += 1;
    }
    assert!(games >= 78, "{games} games");
}

/// Every recorded drive: what its file has is the same to the last digit, and what it leaves out is there.
#[test]
fn recorded_drives_come_out_digit_for_digit() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../phalanx/tests/reference/platoon");
    let mut drives = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let output = replay(&["platoon", path.to_str().unwrap()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let (found, wanted) =
            (String::from_utf8(output.stdout).unwrap(), std::fs::read_to_string(&path).unwrap());
        assert_eq!(found.lines().count(), wanted.lines().count());
        for (found, wanted) in found.lines().zip(wanted.lines()) {
            let (found, wanted): (Vec<_>, Vec<_>) = (found.split(',').collect(), wanted.split(',').collect());
            assert_eq!(found.len(), wanted.len());
            for (found, wanted) in found.iter().zip(&wanted) {
                assert!(wanted.is_empty() || found == wanted, "{}: {found}, not {wanted}", path.display());
            }
            assert!(found[0].parse::<usize>().map_or(true, |step| step == 0) || !found.contains(&""));
        }
        drives += 1;
    }
    assert_eq!(drives, 7);
}

#[test]
fn bad_drives_are_refused_in_one_line() {
    let header = "actions,lead_speed,headway,speed";
    for (rows, wanted) in [
        ("", "has no rows"),
        (",15,20;20,15\n", "line 2, column speed: 1 speeds for 2 headways"),
        (",15,20;x,15;15\n", "line 2, column headway: `x` is not a finite number"),
        (",15,20;0.5,15;15\n", "line 2, column headway: 0.5 is not between 1 and 100000"),
        (",,20,15\n", "line 2, column lead_speed: `` is not a finite number"),
        (",15,20;20,15;15\n4,15,,\n", "line 3, column actions: `4` is no action; allowed are 0, 1, 2 and 3"),
        (",15,20;20,15;15\n3,15,,\n", "line 3, column actions: 1 actions for 2 vehicles"),
        (",15,20;20,15;15\n33,nan,,\n", "line 3, column lead_speed: `nan` is not a finite number"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive.csv");
        std::fs::write(&path, format!("{header}\n{rows}")).unwrap();
        let output = replay(&["platoon", path.to_str().unwrap()]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{rows}: {error}");
        assert!(error.starts_with(&format!("error: {}: {wanted}", path.display())), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

/// Columns in another order, and only those that are needed.
#[test]
fn columns_go_by_their_names() {
    let text = std::fs::read_to_string(reference("ep_n5_wave_s0")).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let reordered: Vec<String> =
        rows.iter().map(|row| (1..9).rev().map(|column| row[column]).collect::<Vec<_>>().join(",")).collect();
    assert_eq!(replayed(&(reordered.join("\r\n") + "\r\n")), text);
}

/// A game goes on from any state of the ball, whatever other columns say, and after its end.
#[test]
fn the_start_is_what_row_0_says() {
    let text = replayed(
        "step,actions,piston_y,ball_x,ball_y,ball_vx,ball_vy,ball_angle,ball_omega,reward\n\
         7,---,491;427;487,90,300.5,-20,3e-5,1.25,-0.5,?\n,111,,,,,,,,\n,201,,,,,,,,\n",
    );
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[1], "0,---,491;427;487,90.0,300.5,-20.0,3e-05,1.25,-0.5,0.0,0,0");
    // Nothing near: three physics steps of free fall.
    assert_eq!(
        rows[2],
        "1,111,491;427;487,87.0,306.1250045,-20.0,112.50003000000001,1.1750000000000003,-0.5,29.9,0,0"
    );
    assert!(rows[3].starts_with("2,201,487;431;487,"), "{}", rows[3]);
    assert!(rows[3].ends_with(",0,1"), "{}", rows[3]);
}

const HEADER: &str = "actions,piston_y,ball_x,ball_y,ball_vx,ball_vy,ball_angle,ball_omega";
const START: &str = "--,491;487,81,400,0.1,0.2,0.3,1";

#[test]
fn bad_files_are_refused_in_one_line() {
    let header_without = |column: &str| {
        HEADER.split(',').filter(|other| *other != column).collect::<Vec<_>>().join(",") + "\n"
    };
    let start = |old: &str, new: &str| format!("{HEADER}\n{}\n", START.replacen(old, new, 1));
    let then = |row: &str| format!("{HEADER}\n{START}\n11,,,,,,,\n\n{row}\n");
    for (contents, wanted) in [
        (String::new(), "is empty"),
        (HEADER.into(), "has no rows"),
        (format!("{HEADER}\n\n"), "has no rows"),
        (header_without("actions"), "line 1: column actions is missing"),
        (header_without("piston_y"), "line 1: column piston_y is missing"),
        (header_without("ball_omega"), "line 1: column ball_omega is missing"),
        (start("81", "x"), "line 2, column ball_x: `x` is not a finite number"),
        (start("81", ""), "line 2, column ball_x: `` is not a finite number"),
        (start("400", "nan"), "line 2, column ball_y: `nan` is not a finite number"),
        (start("0.1", "inf"), "line 2, column ball_vx: `inf` is not a finite number"),
        (start("0.2", "1e999"), "line 2, column ball_vy: `1e999` is not a finite number"),
        (start("0.3", "-NaN"), "line 2, column ball_angle: `-NaN` is not a finite number"),
        (start(",1", ","), "line 2, column ball_omega: `` is not a finite number"),
        (start("0.2", "2e4"), "line 2, column ball_vy: 20000 is not between -10000 and 10000"),
        (start("81", "80"), "line 2, column ball_x: 80 is not between 81 and 120"),
        (start("400", "-1"), "line 2, column ball_y: -1 is not between 40 and 520"),
        (
            start("491;487", "491;488"),
            "line 2, column piston_y: 488 is no height; allowed are 491 - 4 k, k = 0 to 16",
        ),
        (start("491;487", "495;487"), "line 2, column piston_y: 495 is no height"),
        (start("491;487", "423;487"), "line 2, column piston_y: 423 is no height"),
        (start("491;487", "491;nan"), "line 2, column piston_y: `nan` is not a finite number"),
        (start("--,491;487", "-,491"), "line 2, column piston_y: 1 pistons; allowed are 2 to 10000"),
        (start("491;487", ""), "line 2, column piston_y: `` is not a finite number"),
        (start("--", "---"), "line 2, column actions: `---` does not fit 2 pistons; the start has --"),
        (start(",1", ""), "line 2, column ball_omega: missing; 7 of 8 fields"),
        (start("--", "--,7"), "line 2: 9 fields for 8 columns"),
        (then("111,,,,,,,"), "line 5, column actions: 3 actions for 2 pistons"),
        (then("1,,,,,,,"), "line 5, column actions: 1 actions for 2 pistons"),
        (then("13,,,,,,,"), "line 5, column actions: `3` is no action; allowed are 0, 1 and 2"),
        (then("1-,,,,,,,"), "line 5, column actions: `-` is no action"),
        (then("11"), "line 5, column piston_y: missing; 1 of 8 fields"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("game.csv");
        std::fs::write(&path, &contents).unwrap();
        let output = replay(&["pistonball", path.to_str().unwrap()]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{contents}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        let wanted = format!("error: {}: {wanted}", path.display());
        assert!(error.starts_with(&wanted), "{error} is not\n{wanted}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn unknown_worlds_and_unreadable_files_are_named() {
    let game = reference("ep_n5_wave_s0");
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none.csv");
    let bytes = folder.path().join("bytes.csv");
    std::fs::write(&bytes, [0xff, 0xfe, 0x00]).unwrap();
    for (arguments, wanted) in [
        (
            ["line", &game],
            "error: world: `line` is unknown; allowed are `pistonball`, `platoon`, `junctions`",
        ),
        (["pistonball", missing.to_str().unwrap()], "none.csv: cannot be read: "),
        (["pistonball", bytes.to_str().unwrap()], "bytes.csv: cannot be read: "),
        (["pistonball", folder.path().to_str().unwrap()], ": cannot be read: "),
    ] {
        let output = replay(&arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(wanted) && error.lines().count() == 1, "{error}");
    }
}
