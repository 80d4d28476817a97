use super::*;
use crate::render::film::WIDEST;

/// A film of one step: pistons on rising levels, the ball at a place, and margins.
fn film(pistons: usize, ball: Point, margins: Margins) -> PistonballFilm {
    let first = windows(pistons, [ball.0])[0];
    let drawn = drawn(pistons);
    let step = PistonballStep {
        first,
        levels: (0..drawn).map(|k| (k % 17) as u8).collect(),
        actions: (0..drawn).map(|k| (k % 3) as u8).collect(),
        laws: vec![[0.5, 0.0, 0.5]; drawn],
        ball,
        angle: 1.0,
        reward: -1.25,
    };
    PistonballFilm { pistons, steps: vec![step], is_solved: true, margins }
}

fn known(slacks: Vec<Option<f64>>) -> Margins {
    let verdict = |slack: f64| if slack < 0.0 { Verdict::Unsafe } else { Verdict::Safe };
    let margin = |slack: f64| Margin { slack, verdict: verdict(slack) };
    let of_pistons = slacks.into_iter().map(|slack| slack.map(margin)).collect();
    Margins::Known { of_pistons, episodes: 64 }
}

#[test]
fn everything_stays_in_the_picture() {
    for pistons in [2, 10, 20, 40, 41, 1000] {
        let right = (COLUMN * pistons as f64) as f32;
        // In the corners, and at the ceiling.
        for ball in [(80.0, 446.0), (right, 382.0), (80.0, 80.0)] {
            for low in [-0.5, 0.0, 0.5] {
                let margins = (0..pistons).map(|i| Some(low + i as f64 / pistons as f64)).collect();
                let film = film(pistons, ball, known(margins));
                let (width, height) = film.size();
                assert!(width <= WIDEST && height < 1000.0, "{pistons}: {width} × {height}");
                for shape in film.draw(0) {
                    assert!(shape.is_within((width, height)), "{pistons}: {shape:?}");
                }
            }
        }
    }
}

#[test]
fn a_ball_at_rest_touches_its_piston() {
    for pistons in [2, 20, 200] {
        // Level 4 of the first or of a later piston: 491 − 16; ball and head have radii of 40 and 5.
        let mut film = film(pistons, (100.0, 475.0 - 45.0), Margins::None);
        film.steps[0].levels.fill(4);
        let stage = film.stage(0);
        let piston = stage.piston(0, film.steps[0].levels[0], film.steps[0].ball.0);
        let (_, y) = stage.place(film.steps[0].ball);
        let gap = (piston.left.1 - piston.radius) - (y + 40.0 * stage.scale());
        assert!(gap.abs() < 1e-3, "{pistons}: {gap}");
    }
}

#[test]
fn pistons_under_the_ball_are_told_apart() {
    let under = |x| -> Vec<usize> {
        let stage = film(5, (x, 400.0), Margins::None).stage(0);
        (0..5).filter(|&k| stage.piston(k, 0, x).is_under_ball).collect()
    };
    // Columns are 40 to 80, 80 to 120, …; a ball that only touches the edge of one is not above it.
    assert_eq!((under(120.0), under(120.5)), (vec![1, 2], vec![1, 2, 3]));
    // In a part of many pistons, numbers count from its first one.
    let film = film(100, (2020.0, 400.0), Margins::None);
    let step = &film.steps[0];
    let stage = film.stage(step.first);
    let under: Vec<usize> = (0..20).filter(|&k| stage.piston(k, 0, step.ball.0).is_under_ball).collect();
    assert_eq!((step.first, under), (39, vec![9, 10, 11]));
}

#[test]
fn margins_are_written_where_they_have_room() {
    let margins = |value: f64, pistons| known(vec![Some(value); pistons]);
    let digits = |value, pistons| {
        let film = film(pistons, (100.0, 400.0), margins(value, pistons));
        film.digits(film.stage(0).pitch)
    };
    assert_eq!(digits(-0.126, 2).unwrap(), ["−0.13"; 2]);
    assert_eq!(digits(12.34, 10).unwrap()[0], "+12.3");
    assert_eq!(digits(-345.6, 20).unwrap()[0], "−346");
    assert_eq!(digits(0.5, 40), None);
}

#[test]
fn bars_of_margins_stand_on_one_line() {
    let film = film(3, (100.0, 400.0), known(vec![Some(0.3), Some(-0.1), None]));
    let bars = |colour: Colour| -> Vec<(f32, f32)> {
        let bar = |shape: &Shape| match shape {
            Shape::Box { corner, size, fill, .. } if *fill == Some(colour) => {
                Some((corner.1, corner.1 + size.1))
            }
            _ => None,
        };
        film.draw(0).iter().filter_map(bar).collect()
    };
    let ([kept], [broken]) = (&bars(Colour::of_series(1))[..], &bars(Colour::ALARM)[..]) else {
        panic!("one of each")
    };
    assert!((kept.1 - broken.0).abs() < 1e-3, "{kept:?} {broken:?}");
    assert!(((kept.1 - kept.0) - 3.0 * (broken.1 - broken.0)).abs() < 1e-3, "{kept:?} {broken:?}");
}

/// An estimate on the safe side is not enough to call a piston safe.
#[test]
fn what_is_not_decided_is_drawn_as_neither() {
    let of_pistons = vec![Some(Margin { slack: 0.2, verdict: Verdict::Undecided }); 3];
    let film = film(3, (100.0, 400.0), Margins::Known { of_pistons, episodes: 64 });
    let is_bar =
        |shape: &Shape, colour: Colour| matches!(shape, Shape::Box { fill, .. } if *fill == Some(colour));
    let shapes = film.draw(0);
    assert!(!shapes.iter().any(|shape| is_bar(shape, Colour::of_series(1)) || is_bar(shape, Colour::ALARM)));
}

#[test]
fn what_is_left_out_is_said() {
    let note = |pistons, margins| film(pistons, (100.0, 400.0), margins).note();
    assert_eq!(note(10, Margins::None), None);
    assert_eq!(note(41, Margins::None).unwrap(), "20 of 41 pistons, around the ball");
    assert!(note(50, Margins::LeftOut).unwrap().ends_with("; margins to the bounds are left out"));
    assert_eq!(
        note(2, known(vec![])).unwrap(),
        "margins: estimates over 64 episodes; verdicts with 99 % confidence"
    );
    let legend = |margins| film(2, (100.0, 400.0), margins).legend().len();
    assert_eq!(legend(Margins::LeftOut) + 3, legend(known(vec![Some(1.0); 2])));
}

#[test]
fn only_the_last_step_solves() {
    let mut film = film(2, (100.4, 400.0), Margins::None);
    film.steps.push(film.steps[0].clone());
    assert_eq!(film.status(0), "return −1.25, ball at x = 100");
    assert_eq!(film.status(1), "return −1.25, ball at x = 100: solved");
    film.is_solved = false;
    assert_eq!(film.status(1), film.status(0));
}

#[test]
fn moments_are_found_by_where_the_ball_is() {
    // It falls, lies on piston 8 (level 8: 459), and on it once more but lower; then it is past the middle,
    // 240.
    let mut film = film(10, (400.0, 300.0), Margins::None);
    for ball in [(380.0, 412.0), (385.0, 430.0), (230.0, 300.0), (90.0, 440.0)] {
        film.steps.push(PistonballStep { ball, ..film.steps[0].clone() });
    }
    assert_eq!(film.moments(), [("start", 0), ("middle", 3), ("end", 4), ("raised", 1)]);
}
