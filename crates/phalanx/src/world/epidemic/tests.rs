use super::*;
use crate::base::stream::DRAW_RANGE;

fn spec() -> EpidemicSpec {
    EpidemicSpec {
        infection: 0.5,
        import: 0.1,
        recovery: 0.25,
        treated_recovery: 0.75,
        protection: 0.5,
        protect_cost: 0.125,
        treat_cost: 0.25,
        start: 0.3,
        ..EpidemicSpec::default()
    }
}

fn sirs() -> EpidemicSpec {
    EpidemicSpec { model: EpidemicModel::Sirs, waning: Some(0.2), ..spec() }
}

/// Agent 1 of a line of three: its own law, given everybody's state and its own action.
fn middle(spec: &EpidemicSpec, states: [u8; 3], action: u8) -> Vec<f64> {
    let world = Epidemic::new(spec, Graph::line(3).unwrap()).unwrap();
    let mut law = vec![0.0; world.states(1)];
    world.transition(1, &states, &[2, action, 1], &mut law);
    law
}

fn close(law: &[f64], expected: &[f64]) {
    assert_eq!(law.len(), expected.len());
    assert!(law.iter().zip(expected).all(|(p, q)| (p - q).abs() < 1e-15), "{law:?}, not {expected:?}");
}

#[test]
fn laws_by_hand() {
    close(&middle(&spec(), [0, 0, 0], 0), &[0.9, 0.1]);
    close(&middle(&spec(), [1, 0, 0], 0), &[0.45, 0.55]);
    close(&middle(&spec(), [1, 0, 1], 0), &[0.225, 0.775]);
    // Treatment does not help those who are not ill, nor protection those who are.
    close(&middle(&spec(), [1, 0, 1], 2), &[0.225, 0.775]);
    close(&middle(&spec(), [1, 0, 1], 1), &[0.95 * 0.75 * 0.75, 1.0 - 0.95 * 0.75 * 0.75]);
    close(&middle(&spec(), [1, 1, 0], 0), &[0.25, 0.75]);
    close(&middle(&spec(), [0, 1, 0], 1), &[0.25, 0.75]);
    close(&middle(&spec(), [0, 1, 0], 2), &[0.75, 0.25]);
}

#[test]
fn the_recovered_are_immune_for_a_while() {
    close(&middle(&sirs(), [2, 0, 1], 0), &[0.45, 0.55, 0.0]);
    close(&middle(&sirs(), [1, 1, 1], 0), &[0.0, 0.75, 0.25]);
    close(&middle(&sirs(), [1, 1, 1], 2), &[0.0, 0.25, 0.75]);
    for action in 0..3 {
        close(&middle(&sirs(), [1, 2, 1], action), &[0.2, 0.0, 0.8]);
    }
}

#[test]
fn parents_are_the_contacts_and_oneself() {
    let world = Epidemic::new(&spec(), Graph::star(4).unwrap()).unwrap();
    let parents: Vec<Vec<u32>> = (0..4).map(|i| world.parents(i)).collect();
    assert_eq!(parents, [vec![0, 1, 2, 3], vec![0, 1], vec![0, 2], vec![0, 3]]);
}

#[test]
fn rewards_by_hand() {
    let world = Epidemic::new(&sirs(), Graph::line(2).unwrap()).unwrap();
    let row =
        |k: usize| (world.channels()[k].name.clone(), world.channels()[k].tables().unwrap().row(1).to_vec());
    let healthy = [1.0, 0.875, 0.75];
    assert_eq!(row(0), ("reward".into(), [healthy, [0.0, -0.125, -0.25], healthy].concat()));
    assert_eq!(row(1), ("infected".into(), [[0.0; 3], [1.0; 3], [0.0; 3]].concat()));
    assert_eq!(row(2), ("treatment".into(), [[0.0, 0.0, 1.0]; 3].concat()));
}

#[test]
fn scripts_by_hand() {
    let world = Epidemic::new(&sirs(), Graph::line(2).unwrap()).unwrap();
    let actions = |name: &str| match world.scripted(name, 1) {
        Some(Script::Laws(laws)) => {
            assert_eq!(laws.row(0), laws.row(1));
            laws.row(0).chunks(3).map(|law| law.iter().position(|&p| p == 1.0).unwrap()).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!([actions("none"), actions("protect")], [[0, 0, 0], [1, 0, 0]]);
    assert_eq!([actions("treat"), actions("both")], [[0, 2, 0], [1, 2, 0]]);
    assert!(world.scripted("pray", 1).is_none());
    assert!(world.scripted_names().iter().all(|name| world.scripted(name, 1).is_some()));
}

/// Sure things are sure, at every draw.
#[test]
fn extremes_are_exact() {
    let certain = EpidemicSpec {
        infection: 1.0,
        import: 0.0,
        recovery: 0.0,
        treated_recovery: 1.0,
        protection: 1.0,
        waning: Some(0.0),
        ..sirs()
    };
    let world = Epidemic::new(&certain, Graph::line(2).unwrap()).unwrap();
    for draw in [0, 1, DRAW_RANGE / 2, DRAW_RANGE - 1] {
        for (states, actions, expected) in [
            ([0, 0], [0, 0], [0, 0]),
            ([0, 1], [0, 0], [1, 1]),
            ([0, 1], [1, 2], [0, 2]),
            ([2, 1], [0, 1], [2, 1]),
        ] {
            let mut next = [9; 2];
            world.step(0..2, &states, &actions, &[draw; 2], &mut next);
            assert_eq!(next, expected, "{states:?} {actions:?} {draw}");
        }
    }
}

/// What others are linked to changes nothing for an agent whose own row is the same: pieces of a graph can
/// be simulated alone.
#[test]
fn an_agents_step_depends_on_its_own_row_alone() {
    let whole = Epidemic::new(&spec(), Graph::grid(3, 3).unwrap()).unwrap();
    // The closed neighbourhood of agent 4, whose members 1, 3, 5 and 7 lose their other links.
    let piece = Epidemic::new(&spec(), Graph::star(5).unwrap()).unwrap();
    let stars = [4, 1, 3, 5, 7];
    for number in 0..512u32 {
        let states: [u8; 9] = std::array::from_fn(|i| (number >> i & 1) as u8);
        for action in 0..3 {
            let draw = number.wrapping_mul(0x9e37_79b9) >> 1;
            let (mut next, mut alone) = ([9], [9]);
            whole.step(4..5, &states, &[action; 9], &[draw], &mut next);
            piece.step(0..1, &stars.map(|i| states[i]), &[action; 5], &[draw], &mut alone);
            assert_eq!(next, alone);
        }
    }
}

#[test]
fn unusable_settings_are_named() {
    let message = |spec: EpidemicSpec| {
        Epidemic::new(&spec, Graph::line(2).unwrap()).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(
        message(EpidemicSpec { infection: 1.5, ..spec() }),
        "world.infection: 1.5 is not a probability; allowed are 0 to 1"
    );
    assert!(message(EpidemicSpec { import: f64::NAN, ..spec() }).starts_with("world.import: NaN"));
    assert!(message(EpidemicSpec { treat_cost: -1.0, ..spec() }).starts_with("world.treat_cost: -1"));
    assert!(
        message(EpidemicSpec { waning: Some(0.1), ..spec() })
            .starts_with("world.waning: is for model `sirs`")
    );
    assert!(message(EpidemicSpec { waning: Some(-0.1), ..sirs() }).starts_with("world.waning: -0.1"));
}
