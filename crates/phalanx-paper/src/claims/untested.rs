//! Sentences of the experimental section that no experiment here can decide, with the reason.

use serde::Serialize;

/// A sentence that is left open.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Untested {
    /// Label of the section or figure.
    pub place: &'static str,
    /// The sentence, in short.
    pub sentence: &'static str,
    /// Why it is left open.
    pub reason: &'static str,
}

/// All of them.
pub const UNTESTED: &[Untested] = &[
    Untested {
        place: "subsec: pistonball",
        sentence: "A common local optimum is that all agents move to the lowest position and keep staying there.",
        reason: "needs runs that are trapped; the claim before it counts them",
    },
    Untested {
        place: "fig:beginning, fig:middle, fig:end",
        sentence: "The upward probability of agent 1 is one, the downward probability of agent 2 is 0.83; agents 1 to 4 create \
                   a slope; agents 8 to 10 still obstruct the ball.",
        reason: "describes one picture of one policy; visual-pistonball shows its like",
    },
    Untested {
        place: "fig:neighbor",
        sentence: "Agents 1 to 3 move the ball all the way up, which allows agent 4 more time to take random actions.",
        reason: "describes one picture of one policy; visual-pistonball shows its like",
    },
    Untested {
        place: "subsec: pistonball",
        sentence: "When agents cannot share their local shadow Q-functions with neighbours, they may end up learning a selfish \
                   policy.",
        reason: "a motive, not an outcome; what it costs is in the claim on κ = 0",
    },
    Untested {
        place: "fig:wire-visual",
        sentence: "Agents always take the same actions, and each access point is only used by one agent in order to avoid \
                   collision.",
        reason: "describes two pictures of one policy; visual-wireless shows its like",
    },
    Untested {
        place: "subsec: wireless",
        sentence: "Some agents even choose to forfeit their own packets, either by not taking actions or selecting non-existent \
                   access points.",
        reason: "describes one picture of one policy; visual-wireless shows its like",
    },
    Untested {
        place: "subsec: benefits_general",
        sentence: "Using occupancy measures is not guaranteed to get higher returns.",
        reason: "says that something need not happen",
    },
    Untested {
        place: "tab:hyper",
        sentence: "Hyperparameters were chosen by a random search, and 3 to 6 seeds run on the choice.",
        reason: "says how the paper's runs were made; the choice itself is not published",
    },
];
