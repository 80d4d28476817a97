//! Pistonball against games recorded from PettingZoo: every number is the same double.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use phalanx::world::pistonball::physics::{Ball, Physics};
use phalanx::world::pistonball::{Library, Outcome};

/// Files whose name begins with `prefix`.
fn files(prefix: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/pistonball");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(prefix))
        .collect();
    files.sort();
    files
}

/// A recorded game, row by row.
struct Recording {
    file: String,
    rows: Vec<HashMap<String, String>>,
}

impl Recording {
    fn open(path: &Path) -> Self {
        let rows = csv::Reader::from_path(path).unwrap().deserialize().map(Result::unwrap).collect();
        Recording { file: path.file_name().unwrap().to_str().unwrap().into(), rows }
    }

    fn text(&self, row: usize, column: &str) -> &str {
        &self.rows[row][column]
    }

    fn number(&self, row: usize, column: &str) -> f64 {
        self.text(row, column).parse().unwrap()
    }

    fn heights(&self, row: usize) -> Vec<f64> {
        self.text(row, "piston_y").split(';').map(|y| y.parse().unwrap()).collect()
    }

    fn actions(&self, row: usize) -> Vec<u8> {
        self.text(row, "actions").bytes().map(|digit| digit - b'0').collect()
    }

    fn ball(&self, row: usize) -> Ball {
        let [x, y, vx, vy, angle, omega] = BALL.map(|column| self.number(row, column));
        Ball { x, y, vx, vy, angle, omega }
    }

    #[track_caller]
    fn check(&self, row: usize, column: &str, ours: f64) {
        let theirs = self.number(row, column);
        let file = &self.file;
        assert!(
            ours.to_bits() == theirs.to_bits(),
            "{file}, row {row}, {column}: {ours:?}, recorded {theirs:?}"
        );
    }

    fn check_ball(&self, row: usize, ball: Ball) {
        let Ball { x, y, vx, vy, angle, omega } = ball;
        for (column, ours) in BALL.into_iter().zip([x, y, vx, vy, angle, omega]) {
            self.check(row, column, ours);
        }
    }

    fn check_text(&self, row: usize, column: &str, ours: &str) {
        let (theirs, file) = (self.text(row, column), &self.file);
        assert!(ours == theirs, "{file}, row {row}, {column}: {ours}, recorded {theirs}");
    }
}

const BALL: [&str; 6] = ["ball_x", "ball_y", "ball_vx", "ball_vy", "ball_angle", "ball_omega"];

#[test]
fn whole_games() {
    let files = files("ep_");
    assert!(files.len() >= 78, "{} games", files.len());
    for path in &files {
        let game = Recording::open(path);
        let last = game.rows.len() - 1;
        let mut library = Library::new(&game.heights(0), game.ball(0), last);
        for row in 1..=last {
            let Outcome { reward, terminated, truncated } = library.step(&game.actions(row));
            let heights: Vec<String> = library.physics().heights().iter().map(f64::to_string).collect();
            game.check_text(row, "piston_y", &heights.join(";"));
            game.check_ball(row, library.physics().ball());
            game.check(row, "reward", reward);
            game.check_text(row, "terminated", if terminated { "1" } else { "0" });
            // The file does not say how long the game might have been; one that ended at the wall was not at
            // its end.
            game.check_text(row, "truncated", if truncated && !terminated { "1" } else { "0" });
        }
    }
}

/// Between the levels of discrete actions, heights are any double.
#[test]
fn games_with_continuous_actions() {
    let files = files("cont_");
    assert!(files.len() >= 2, "{} games", files.len());
    for path in &files {
        let game = Recording::open(path);
        let last = game.rows.len() - 1;
        let mut library = Library::new(&game.heights(0), game.ball(0), last);
        let mut off_the_grid = 0;
        for row in 1..=last {
            let actions: Vec<f64> =
                game.text(row, "actions").split(';').map(|action| action.parse().unwrap()).collect();
            let Outcome { reward, terminated, truncated } = library.step_continuous(&actions);
            let heights = library.physics().heights();
            assert_eq!(heights, game.heights(row), "{}, row {row}", game.file);
            off_the_grid += heights.iter().filter(|&&y| (491.0 - y) % 4.0 != 0.0).count();
            game.check_ball(row, library.physics().ball());
            game.check(row, "reward", reward);
            game.check_text(row, "terminated", if terminated { "1" } else { "0" });
            game.check_text(row, "truncated", if truncated && !terminated { "1" } else { "0" });
        }
        assert!(off_the_grid > last, "{}: {off_the_grid}", game.file);
    }
}

#[test]
fn physics_steps_and_the_order_of_contacts() {
    let files = files("sub_");
    assert!(files.len() >= 5, "{} games", files.len());
    for path in &files {
        let game = Recording::open(path);
        let mut physics = Physics::new(&game.heights(0), game.ball(0));
        for row in 1..game.rows.len() {
            let piston = game.number(row, "agent") as usize;
            physics.move_piston(piston, game.number(row, "action") - 1.0);
            physics.step();
            game.check(row, "piston_y", physics.heights()[piston]);
            game.check_ball(row, physics.ball());
            let touching: Vec<String> = physics.touching().collect();
            let touching = if touching.is_empty() { "-".into() } else { touching.join(" ") };
            game.check_text(row, "contacts", &touching);
        }
    }
}
