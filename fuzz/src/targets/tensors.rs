//! Small runs, and their state as trees that are printed as safetensors.

use std::cell::RefCell;

use phalanx::base::fields::Field;
use phalanx::run::{Config, Session};

use crate::node::Node;

/// Small runs with policies and state of all kinds.
pub const RUNS: [(&str, &[(&str, &str)]); 4] = [
    (
        "synthetic",
        &[("world.n", "3"), ("horizon", "3"), ("batch", "1"), ("critic.steps", "5"), ("iterations", "4")],
    ),
    (
        "synthetic",
        &[
            ("world.n", "2"),
            ("policy.kind", "direct"),
            ("critic.kind", "lstd"),
            ("horizon", "3"),
            ("batch", "2"),
        ],
    ),
    ("entropy", &[("world.n", "3"), ("horizon", "3"), ("batch", "2")]),
    (
        "wireless",
        &[
            ("world.rows", "2"),
            ("world.columns", "2"),
            ("horizon", "2"),
            ("batch", "1"),
            ("policy.hidden", "[2]"),
            ("critic.hidden", "[2]"),
        ],
    ),
];

/// The run of a number.
pub fn session(run: usize) -> Session {
    let (preset, settings) = RUNS[run];
    let config = Config::preset(preset).and_then(|config| config.with_all(settings.iter().copied()));
    config.and_then(|config| Session::new(&config)).unwrap_or_else(|error| panic!("{preset}: {error}"))
}

thread_local! {
    static SESSIONS: RefCell<Vec<Session>> = RefCell::new((0..RUNS.len()).map(session).collect());
}

/// Does something with the run of a number. Its state is what the last input left there: what is read
/// replaces all of it or is refused.
pub fn with_session<T>(run: usize, work: impl FnOnce(&mut Session) -> T) -> T {
    SESSIONS.with_borrow_mut(|sessions| work(&mut sessions[run]))
}

/// A tensor.
pub fn tensor(dtype: &str, shape: Vec<usize>, data: Node) -> Node {
    Node::Map(vec![
        ("dtype".into(), Node::Text(dtype.into())),
        ("shape".into(), Node::wholes(shape)),
        ("data".into(), data),
    ])
}

/// A list of numbers as a tensor.
fn list(dtype: &str, data: Node) -> Node {
    tensor(dtype, vec![data.len()], data)
}

/// The state of the agents in `agents`, as a file of a checkpoint.
pub fn state(session: &mut Session, agents: std::ops::Range<usize>) -> Node {
    let mut tensors = Vec::new();
    let all = session.world().graph().agents();
    let own = |rows: usize| if rows == all { agents.clone() } else { 0..rows };
    for (name, field) in session.fields() {
        let mut rows = |dtype: &str, data: Vec<Vec<f64>>| {
            tensors.push((format!("{name}.rows"), list("U32", Node::wholes(data.iter().map(Vec::len)))));
            tensors.push((name.to_string(), list(dtype, Node::reals(data.concat()))));
        };
        match field {
            Field::Numbers(numbers) => {
                tensors.push((name.to_string(), list("F64", Node::reals(numbers.iter().copied()))));
            }
            Field::SingleNumbers(numbers) => {
                let numbers = numbers.iter().map(|&x| f64::from(x));
                tensors.push((name.to_string(), list("F32", Node::reals(numbers))));
            }
            Field::Counter(counter) => {
                tensors.push((name.to_string(), list("U64", Node::wholes([*counter as usize]))));
            }
            Field::Rows(found) => rows("F64", own(found.rows()).map(|i| found.row(i).to_vec()).collect()),
            Field::SingleRows(found) => {
                let row = |i: usize| found.row(i).iter().map(|&x| f64::from(x)).collect();
                rows("F32", own(found.rows()).map(row).collect());
            }
        }
    }
    Node::Map(tensors)
}
