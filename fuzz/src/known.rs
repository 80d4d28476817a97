//! Faults that are known and not mended yet, each with the inputs that meet it: targets leave these out.
//! An entry goes when its fault does.

use crate::node::Node;

/// M7: a manifest whose last agent is far away makes a list of all agents up to it.
pub fn has_far_agent(manifest: &Node) -> bool {
    let mut found = false;
    manifest.for_each(&mut |node| {
        if let Node::Map(entries) = node {
            let far =
                |(key, value): &(String, Node)| key == "last" && matches!(value, Node::Whole(1_000_000..));
            found |= entries.iter().any(far);
        }
    });
    found
}
