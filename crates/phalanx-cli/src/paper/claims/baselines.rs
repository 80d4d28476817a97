//! Comparison with MAPPO-Lagrangian: subsec: app_baseline.

use super::super::setting::OURS;
use super::{Claim, Rows, Test};

const PLACE: &str = "subsec: app_baseline";
const PISTONBALL: &str = "baselines-pistonball";
const WIRELESS: &str = "baselines-wireless";

/// The original, with global information.
pub const CENTRAL: &str = "MAPPO-L";
/// With rewards summed over the neighbourhood.
pub const AGGREGATE: &str = "decentralised aggregate MAPPO-L";
/// With own rewards.
pub const ALONE: &str = "decentralised MAPPO-L";

fn above(experiment: &'static str, more: &str, less: &str) -> Test {
    Test::Above {
        column: "return",
        more: Rows::method(experiment, more),
        less: Rows::method(experiment, less),
        by: 0.0,
    }
}

/// Its claims.
pub fn claims() -> Vec<Claim> {
    let mut claims: Vec<Claim> =
        [("pistonball", PISTONBALL), ("wireless", WIRELESS)].into_iter().flat_map(of_world).collect();
    claims.push(
        Claim::new(
            "baselines.drop-worse-in-wireless",
            PLACE,
            "Training for individual rewards is especially problematic in scenarios such as wireless communication.",
            vec![Test::LargerLoss {
                column: "return",
                larger: [Rows::method(WIRELESS, ALONE), Rows::method(WIRELESS, CENTRAL)],
                smaller: [Rows::method(PISTONBALL, ALONE), Rows::method(PISTONBALL, CENTRAL)],
            }],
        )
        .why("The paper's own table has it the other way round: 19 % are lost in Pistonball, 6 % in wireless."),
    );
    claims
}

fn of_world((world, experiment): (&str, &'static str)) -> Vec<Claim> {
    let claim = |id: &str, sentence: &str, tests: Vec<Test>| {
        Claim::new(&format!("baselines.{world}-{id}"), PLACE, &format!("{sentence} ({world})"), tests)
    };
    let not_more_violation = |than: &str| Test::NotAbove {
        column: "violation_total",
        which: Rows::method(experiment, OURS),
        than: Rows::method(experiment, than),
        by: 0.0,
    };
    vec![
        claim(
            "beats-mappo-l",
            "Our method consistently outperforms the baselines: MAPPO-L.",
            vec![above(experiment, OURS, CENTRAL)],
        ),
        claim(
            "beats-decentralised",
            "Our method consistently outperforms the baselines: Decentralised MAPPO-L.",
            vec![above(experiment, OURS, ALONE)],
        ),
        claim(
            "beats-aggregate",
            "Even if we aggregate all the rewards in the local neighbourhood, the overall returns are still inferior to our \
             algorithm.",
            vec![above(experiment, OURS, AGGREGATE)],
        ),
        claim(
            "violation",
            "… while maintaining a satisfying constraint violation: no more than any baseline.",
            [CENTRAL, AGGREGATE, ALONE].map(not_more_violation).into(),
        ),
        claim(
            "mappo-l-closest",
            "MAPPO-L is the closest baseline in terms of performance.",
            vec![above(experiment, CENTRAL, AGGREGATE), above(experiment, CENTRAL, ALONE)],
        ),
        claim(
            "decentralised-drops",
            "If we adapt MAPPO-L to the decentralised case, the performance quickly drops.",
            vec![above(experiment, CENTRAL, ALONE)],
        ),
    ]
}
