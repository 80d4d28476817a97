//! Lines 3 and 4 of Algorithm 1: trajectories of all agents, and what they visited.

pub mod batch;
pub mod episode_events;
pub mod occupancy;
pub mod rollout;
pub mod usual_states;
