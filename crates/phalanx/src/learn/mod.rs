//! Lines 5 to 9 of Algorithm 1, a module each: shadow rewards (5), truncated Q-functions (6), multipliers
//! (7), policy gradients (8) and steps along them (9).

pub mod actor;
pub mod agent_metrics;
pub mod border_values;
pub mod critic;
pub mod dual;
pub mod episode_values;
pub mod gae;
pub mod group_sums;
pub mod optimizer;
pub mod shadow;
pub mod shield;
