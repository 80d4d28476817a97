//! Policies as source of C99: constant arrays, no allocation, `exp` of the standard library.
//!
//! What the code needs is in the files beside this one; only those that a policy needs become part of it,
//! since compilers warn of functions that nobody calls.

mod data;

use phalanx_agent::policy::{AgentPolicy, Policies, Rule};

use super::{File, Format};
use crate::base::error::ensure;
use crate::{Error, Result};

/// Numbers that a source holds at most: compilers take minutes for more.
const MOST_NUMBERS: usize = 4_000_000;
/// The widest layer: a function keeps two of them on the stack.
const WIDEST: usize = 1 << 14;

/// `policy.h` and `policy.c`.
pub fn files(policies: &Policies) -> Result<Vec<File>> {
    let others = format!("use {} or {}", Format::Json.name(), Format::Onnx.name());
    let refused = |why: String| Error::argument("to", format!("{} is {why}; {others}", Format::C.name()));
    let is_shared = policies.agents.iter().any(|agent| matches!(agent.rule, Rule::Places { .. }));
    ensure(!is_shared, || refused("not for networks over places, which all agents share".into()))?;
    let count = data::numbers(policies);
    ensure(count <= MOST_NUMBERS, || {
        refused(format!("for at most {MOST_NUMBERS} numbers, and this policy has {count}"))
    })?;
    let widest = data::widest(policies);
    ensure(widest <= WIDEST, || {
        refused(format!("for layers of at most {WIDEST} units, and this policy has {widest}"))
    })?;
    let uses = Uses::of(policies);
    Ok(vec![
        File { name: "policy.h".into(), bytes: header(policies, &uses).into_bytes() },
        File { name: "policy.c".into(), bytes: source(policies, &uses, widest).into_bytes() },
    ])
}

/// Which rules agents have.
struct Uses {
    tables: bool,
    terms: bool,
    symbols: bool,
    numbers: bool,
}

impl Uses {
    fn of(policies: &Policies) -> Self {
        let any = |is: fn(&AgentPolicy) -> bool| policies.agents.iter().any(is);
        Uses {
            tables: any(|agent| matches!(agent.rule, Rule::Table { .. })),
            terms: any(|agent| matches!(agent.rule, Rule::Linear { .. })),
            symbols: any(|agent| matches!(agent.rule, Rule::Symbols { .. })),
            numbers: any(|agent| matches!(agent.rule, Rule::Numbers { .. })),
        }
    }

    fn states(&self) -> bool {
        self.tables || self.terms || self.symbols
    }

    fn networks(&self) -> bool {
        self.symbols || self.numbers
    }
}

fn header(policies: &Policies, uses: &Uses) -> String {
    let most = policies.agents.iter().map(|agent| agent.actions).max().unwrap_or(0);
    let mut text = format!(
        "/* Policies of {agents} agents. Written by phalanx {}. */\n#ifndef PHALANX_POLICY_H\n#define PHALANX_POLICY_H\n\n\
         /* Agents have the numbers 0 to PHALANX_AGENTS - 1. */\n#define PHALANX_AGENTS {agents}\n\
         /* The most actions that one of them has. */\n#define PHALANX_MOST_ACTIONS {most}\n\n",
        env!("CARGO_PKG_VERSION"),
        agents = policies.agents.len(),
    );
    text += include_str!("members.h");
    if uses.states() {
        text += include_str!("states.h");
    }
    if uses.numbers {
        text += include_str!("numbers.h");
    }
    text + "#ifdef __cplusplus\n}\n#endif\n\n#endif\n"
}

fn source(policies: &Policies, uses: &Uses, widest: usize) -> String {
    let mut text = format!(
        "/* Written by phalanx {}. Compile as C99 and link with the mathematical library (-lm). */\n#include \"policy.h\"\n\n\
         #include <stddef.h>\n",
        env!("CARGO_PKG_VERSION")
    );
    let needs_softmax = uses.terms || uses.networks();
    if needs_softmax {
        text += "#include <math.h>\n";
    }
    if uses.networks() {
        text += &format!("\n/* Numbers of the widest layer. */\n#define WIDEST {widest}\n");
    }
    text.push('\n');
    text += &data::text(policies, uses);
    for (is_needed, part) in [
        (true, include_str!("members.c")),
        (needs_softmax, include_str!("softmax.c")),
        (uses.tables, include_str!("table.c")),
        (uses.terms, include_str!("linear.c")),
        (uses.networks(), include_str!("network.c")),
        (uses.symbols, include_str!("symbols.c")),
    ] {
        if is_needed {
            text += part;
            text.push('\n');
        }
    }
    if uses.states() {
        text += include_str!("states.c");
        for (is_needed, kind, law) in [
            (uses.tables, "TABLE", "law_of_table"),
            (uses.terms, "TERMS", "law_of_terms"),
            (uses.symbols, "SYMBOLS", "law_of_symbols"),
        ] {
            if is_needed {
                text += &format!(
                    "    case {kind}:\n        {law}(own, states, probabilities);\n        return own->actions;\n"
                );
            }
        }
        text += "    default:\n        return -1;\n    }\n}\n";
    }
    if uses.numbers {
        text += include_str!("numbers.c");
    }
    text
}
