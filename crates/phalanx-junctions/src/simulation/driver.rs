//! How a vehicle chooses its speed: what depends on its kind and on the length of a step is computed once.

use crate::demand::VehicleKind;

/// Distance that is kept to crossings at which a vehicle yields, in metres.
pub(super) const YIELD_DISTANCE: f64 = 5.0;
/// Speed on links that turn, in m/s.
pub(super) const TURN_SPEED: f64 = 8.3333;

/// The smaller of two numbers; the second if one is NaN, which the reference relies on.
#[inline(always)]
pub(super) fn min(x: f64, y: f64) -> f64 {
    if x < y { x } else { y }
}

/// The larger of two numbers; the second if one is NaN.
#[inline(always)]
pub(super) fn max(x: f64, y: f64) -> f64 {
    if x > y { x } else { y }
}

/// A number of steps as the reference has it: cut off to 32 bits with a sign, and the smallest of these where
/// it does not fit.
#[inline(always)]
fn whole(steps: f64) -> f64 {
    if steps < 2_147_483_648.0 { steps.trunc() } else { -2_147_483_648.0 }
}

/// A deceleration, and what the safe speed needs of it.
#[derive(Clone, Copy, Debug)]
struct Brake {
    deceleration: f64,
    /// 4·a with a = 0.5/deceleration.
    four_a: f64,
    /// 0.5/a.
    half_by_a: f64,
    /// Deceleration × dt.
    per_step: f64,
}

impl Brake {
    fn new(deceleration: f64, dt: f64) -> Self {
        let a = 0.5 / deceleration;
        Self { deceleration, four_a: 4.0 * a, half_by_a: 0.5 / a, per_step: deceleration * dt }
    }

    /// Way to a standstill from speed `v`.
    #[inline(always)]
    fn way(&self, v: f64) -> f64 {
        0.5 * v * v / self.deceleration
    }
}

/// A kind of vehicle in steps of dt seconds.
#[derive(Clone, Debug)]
pub(super) struct Driver {
    pub length: f64,
    pub min_gap: f64,
    pub max_speed: f64,
    /// From this distance on a vehicle looks at the junction ahead.
    pub look_ahead: f64,
    /// A leader at this gap or farther does not slow it down.
    pub free_gap: f64,
    hardest: Brake,
    usual: Brake,
    usual_pos_acc: f64,
    max_pos_step: f64,
    usual_pos_step: f64,
    headway: f64,
    dt: f64,
    b: f64,
    b_squared: f64,
}

impl Driver {
    /// `kind` in steps of `dt` seconds among vehicles that brake with `hardest` at most.
    pub fn new(kind: &VehicleKind, dt: f64, hardest: f64) -> Self {
        let m = kind.max_speed;
        let b = 0.5 * dt;
        let mut driver = Self {
            length: kind.length,
            min_gap: kind.min_gap,
            max_speed: m,
            look_ahead: m * m / kind.usual_neg_acc / 2.0 + m * dt * 2.0,
            free_gap: 0.0,
            hardest: Brake::new(kind.max_neg_acc, dt),
            usual: Brake::new(kind.usual_neg_acc, dt),
            usual_pos_acc: kind.usual_pos_acc,
            max_pos_step: kind.max_pos_acc * dt,
            usual_pos_step: kind.usual_pos_acc * dt,
            headway: kind.headway_time + dt / 2.0,
            dt,
            b,
            b_squared: b * b,
        };
        driver.free_gap = driver.free_gap_among(hardest);
        driver
    }

    /// A gap from which on `follow` returns at least the largest speed, whatever the leader does.
    ///
    /// Each of the three bounds in it is at least m for a leader that stands, and grows with the gap and with
    /// the leader's speed. The millimetre on top is far more than rounding can take away.
    fn free_gap_among(&self, hardest: f64) -> f64 {
        let m = self.max_speed;
        let by_brake = |brake: &Brake, g0: f64| {
            let by_way = m * self.dt + g0 + m * m / (2.0 * brake.deceleration);
            let by_step = (m + hardest * self.dt) * self.dt / 2.0 + g0;
            max(by_way, by_step)
        };
        let by_headway = m * self.headway + m * self.dt / 2.0;
        let gap = max(max(by_brake(&self.hardest, 0.0), by_brake(&self.usual, self.min_gap)), by_headway);
        gap * (1.0 + 1e-6) + 1e-3
    }

    /// Way to a standstill from speed `v` when braking as hard as possible.
    #[inline(always)]
    pub fn braking_way(&self, v: f64) -> f64 {
        self.hardest.way(v)
    }

    /// The speed it could reach on a free road with this limit.
    #[inline(always)]
    pub fn free_speed(&self, v: f64, limit: f64) -> f64 {
        min(min(self.max_speed, v + self.max_pos_step), limit)
    }

    /// The speed below which it cannot brake.
    #[inline(always)]
    pub fn slowest(&self, v: f64) -> f64 {
        v - self.hardest.per_step
    }

    /// Speed from which `brake` stops in time behind a leader that brakes with `leader_brake` from
    /// `leader_speed`.
    #[inline(always)]
    fn safe(&self, brake: &Brake, v: f64, leader_brake: &Brake, leader_speed: f64, gap: f64, g0: f64) -> f64 {
        let c = v * self.dt / 2.0 + g0 - leader_brake.way(leader_speed) - gap;
        let root = self.b_squared - brake.four_a * c;
        if self.b_squared < brake.four_a * c {
            return -100.0;
        }
        min(
            brake.half_by_a * (root.sqrt() - self.b),
            2.0 * leader_speed - leader_brake.per_step + 2.0 * (gap - g0) / self.dt,
        )
    }

    /// Speed at speed `v` behind a leader.
    #[inline(always)]
    pub fn follow(&self, v: f64, leader: &Driver, leader_speed: f64, gap: f64) -> f64 {
        let hard = self.safe(&self.hardest, v, &leader.hardest, leader_speed, gap, 0.0);
        let soft = self.safe(&self.usual, v, &leader.usual, leader_speed, gap, self.min_gap);
        let q = if v > leader_speed { v - leader_speed } else { 0.0 };
        let keep = (gap + (leader_speed + q / 2.0) * self.dt - v * self.dt / 2.0) / self.headway;
        min(min(hard, soft), keep)
    }

    /// Speed that ends in a standstill before the end of a lane that leads nowhere.
    #[inline(never)]
    pub fn stop_at_dead_end(&self, v: f64, way: f64) -> f64 {
        self.safe(&self.hardest, v, &Brake::new(1.0, self.dt), 0.0, way, self.min_gap)
    }

    /// Speed with which to stop within `way`.
    #[inline(always)]
    pub fn stop(&self, v: f64, way: f64) -> f64 {
        let n = v + self.usual_pos_step;
        if (v + n) * self.dt / 2.0 + (n * n / self.usual.deceleration / 2.0) < way {
            return n;
        }
        let k = 2.0 * way / (v + 1e-8) / self.dt;
        if k >= 1.0 { v - v / whole(k) } else { v - v / k }
    }

    /// Whether a vehicle at distance `d` from a crossing can still yield, or has left it.
    #[inline(always)]
    pub fn can_yield(&self, v: f64, d: f64) -> bool {
        (d > 0.0 && self.braking_way(v) < d - YIELD_DISTANCE) || (d < 0.0 && d + self.length < 0.0)
    }

    /// Steps in which a vehicle reaches a point at distance `d` on a link that `turns` or not.
    pub fn steps_to_reach(&self, v: f64, d: f64, turns: bool) -> f64 {
        if d <= 0.0 {
            return 0.0;
        }
        let dt = self.dt;
        let target = if turns { TURN_SPEED } else { self.max_speed };
        let a = self.usual_pos_acc;
        if v > target {
            // The reference divides neither by dt here nor multiplies by it below.
            return (d / v).ceil();
        }
        let way = if target <= v {
            0.0
        } else {
            let n = ((target - v) / a / dt).floor();
            let reached = v + n * a / dt;
            let rest = if reached < target { (reached + target) * dt / 2.0 } else { 0.0 };
            (v + reached) * (n * dt) / 2.0 + rest
        };
        if way > d {
            (((v * v + 2.0 * a * d).sqrt() - v) / a / dt).ceil()
        } else {
            ((target - v) / a / dt).ceil() + ((d - way) / target / dt).ceil()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds() -> impl Strategy<Value = VehicleKind> {
        let forces = (0.1..10.0, 0.1..10.0, 0.1..10.0, 0.1..10.0);
        ((1.0..20.0, 0.0..5.0, 0.5..40.0, 0.0..5.0), forces).prop_map(
            |((length, min_gap, max_speed, headway_time), (a, b, c, d))| VehicleKind {
                length,
                min_gap,
                max_speed,
                headway_time,
                max_pos_acc: a,
                max_neg_acc: b,
                usual_pos_acc: c,
                usual_neg_acc: d,
                ..VehicleKind::default()
            },
        )
    }

    proptest! {
        #[test]
        fn a_leader_at_the_free_gap_does_not_slow_down(
            (own, other) in (kinds(), kinds()),
            (v, leader_speed, more) in (0.0..=1.0, 0.0..100.0, 0.0..1000.0),
            dt in 0.1..2.0,
        ) {
            let all = [own.max_neg_acc, own.usual_neg_acc, other.max_neg_acc, other.usual_neg_acc];
            let hardest = all.into_iter().fold(0.0, f64::max);
            let (driver, leader) = (Driver::new(&own, dt, hardest), Driver::new(&other, dt, hardest));
            for (gap, leader_speed) in [(0.0, 0.0), (more, 0.0), (0.0, leader_speed), (more, leader_speed)] {
                let w = driver.follow(v * own.max_speed, &leader, leader_speed, driver.free_gap + gap);
                prop_assert!(w >= own.max_speed, "{w}");
            }
        }
    }

    #[test]
    fn standing_exactly_at_the_line_is_no_number() {
        // The reference lets such a vehicle jump, because a NaN passes its minimum and becomes 100 m/s.
        let driver = Driver::new(&VehicleKind::default(), 1.0, 4.5);
        assert!(driver.stop(0.0, 0.0).is_nan());
        assert_eq!(driver.stop(0.0, 1.0), 0.0);
        assert_eq!(driver.stop(0.0, 100.0), 2.0);
    }
}
