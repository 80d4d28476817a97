//! Comparison with MAPPO-Lagrangian: subsec: app_baseline.

use super::{Claim, Rows, Test};
use crate::setting::OURS;
use crate::versus::{AGGREGATE, GLOBAL, LOCAL};

const PLACE: &str = "subsec: app_baseline";
const PISTONBALL: &str = "baselines-pistonball";
const WIRELESS: &str = "baselines-wireless";

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
                larger: [Rows::method(WIRELESS, LOCAL), Rows::method(WIRELESS, GLOBAL)],
                smaller: [Rows::method(PISTONBALL, LOCAL), Rows::method(PISTONBALL, GLOBAL)],
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
            vec![above(experiment, OURS, GLOBAL)],
        ),
        claim(
            "beats-decentralised",
            "Our method consistently outperforms the baselines: Decentralised MAPPO-L.",
            vec![above(experiment, OURS, LOCAL)],
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
            [GLOBAL, AGGREGATE, LOCAL].map(not_more_violation).into(),
        ),
        claim(
            "mappo-l-closest",
            "MAPPO-L is the closest baseline in terms of performance.",
            vec![above(experiment, GLOBAL, AGGREGATE), above(experiment, GLOBAL, LOCAL)],
        ),
        claim(
            "decentralised-drops",
            "If we adapt MAPPO-L to the decentralised case, the performance quickly drops.",
            vec![above(experiment, GLOBAL, LOCAL)],
        ),
    ]
}
