//! Policies and multipliers, as safetensors.

use std::sync::LazyLock;

use phalanx::run::{Session, in_memory};

use super::tensors::{RUNS, session, tensor, with_session};
use crate::Verdict;
use crate::choices::Choices;
use crate::edit::{Seeds, splice};
use crate::node::Node;
use crate::print;

/// θ of every run as its file has it, and in the layout of large graphs.
static SEEDS: LazyLock<Vec<Seeds>> =
    LazyLock::new(|| (0..RUNS.len()).map(|run| Seeds::new(files(&session(run)))).collect());

fn files(session: &Session) -> Vec<Node> {
    let (policy, theta) = (session.policy(), session.policy().theta());
    let dtype = if policy.is_single() { "F32" } else { "F64" };
    let about = || {
        let kind = Node::Map(vec![("policy".into(), Node::Text(policy.kind().into()))]);
        vec![("__metadata__".to_string(), kind)]
    };
    let mut named = about();
    for i in 0..policy.agents() {
        let mut rest = theta.row(i);
        for (name, shape) in policy.tensors(i) {
            let (values, tail) = rest.split_at(shape.iter().product());
            rest = tail;
            named.push((name, tensor(dtype, shape, Node::reals(values.iter().copied()))));
        }
    }
    let mut flat = about();
    let counts = |counts: &[usize]| tensor("U64", vec![counts.len()], Node::wholes(counts.iter().copied()));
    let numbers = theta.data();
    flat.push(("theta".into(), tensor(dtype, vec![numbers.len()], Node::reals(numbers.iter().copied()))));
    flat.push(("theta.offsets".into(), counts(theta.offsets())));
    flat.push(("theta.columns".into(), counts(policy.action_counts())));
    vec![Node::Map(named), Node::Map(flat)]
}

/// A changed policy, to start from.
pub fn policy(choices: &mut Choices<'_>) -> Verdict {
    let run = choices.below(RUNS.len());
    let bytes = file(&SEEDS[run], choices);
    with_session(run, |session| Verdict::of(&in_memory::start_from(session, &bytes)))
}

/// The bytes of a changed file.
fn file(seeds: &Seeds, choices: &mut Choices<'_>) -> Vec<u8> {
    let document = seeds.document(choices);
    let mut bytes = print::safetensors(&document, !choices.one_in(4));
    splice(&mut bytes, 16, choices);
    bytes
}

static MULTIPLIERS: LazyLock<Seeds> = LazyLock::new(|| {
    let mu = tensor("F64", vec![3], Node::reals([0.0, 0.5, 50.0]));
    Seeds::new([Node::Map(vec![("mu".into(), mu)])])
});

/// Changed multipliers.
pub fn multipliers(choices: &mut Choices<'_>) -> Verdict {
    let bytes = file(&MULTIPLIERS, choices);
    with_session(0, |session| Verdict::of(&in_memory::multipliers(&bytes, session.problem())))
}
