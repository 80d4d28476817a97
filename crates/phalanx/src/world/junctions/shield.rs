//! Which phases leave a way to keep the rules.
//!
//! A phase is allowed if it breaks no rule itself and if, from then on, the signals could go through their
//! phases in an order that breaks none for ever, a decision each. Such orders are searched for once. The next
//! phase of the order that was found is allowed in its turn, so there is always one that is.

use super::counters::{Counters, LONGEST_GREEN, MOST_GREEN_SKIPS, MOST_PHASE_SKIPS, Timing, ones};
use super::layout::{Layout, MOST_MOVEMENTS, Site};
use super::settings::MOST_PHASES;

/// Ways to go on for ever, for every junction.
#[derive(Debug)]
pub struct Shield {
    timing: Timing,
    /// By junction: which of `plans` are its own.
    kinds: Vec<usize>,
    plans: Vec<Vec<Plan>>,
}

/// Phases in an order, over and over.
#[derive(Debug, Clone)]
struct Plan {
    order: [u8; MOST_PHASES],
    /// The phase that stands before the first one when the order comes round.
    before: u8,
    /// The change, from 1, with which each phase comes, and with which each movement is first served.
    comes: [u8; MOST_PHASES],
    served: [u8; MOST_MOVEMENTS],
}

/// What decides on plans: phases, movements that are judged, and what is green in yellow.
type Lights = (Vec<u32>, u32, u32);

impl Shield {
    /// Fails with the reason where a junction cannot keep the rules at all.
    pub fn new(layout: &Layout, timing: Timing, name: impl Fn(usize) -> String) -> Result<Self, String> {
        let (mut known, mut plans): (Vec<Lights>, Vec<Vec<Plan>>) = Default::default();
        let mut kinds = Vec::with_capacity(layout.junctions.len());
        for (junction, site) in layout.junctions.iter().enumerate() {
            let lights = (site.green.clone(), site.judged, site.yellow_green);
            let kind = match known.iter().position(|other| *other == lights) {
                Some(kind) => kind,
                None => {
                    known.push(lights);
                    plans.push(plans_of(site, timing));
                    plans.len() - 1
                }
            };
            if plans[kind].is_empty() {
                return Err(format!(
                    "junction {}: no order of its phases, {} in all, keeps the rules with a decision every {} s \
                     and {} s of yellow",
                    name(junction),
                    site.green.len(),
                    timing.decision,
                    timing.yellow
                ));
            }
            kinds.push(kind);
        }
        Ok(Shield { timing, kinds, plans })
    }

    /// The phases after which rules can still be kept, as bits. There is always one: the next of the order
    /// that allowed the present one.
    pub fn allowed(&self, junction: usize, site: &Site, counters: &Counters) -> u32 {
        let plans = &self.plans[self.kinds[junction]];
        let phases = site.green.len();
        let allowed = (0..phases as u8).filter(|&phase| {
            let mut next = counters.clone();
            next.decide(site, phase, self.timing);
            next.broken(site).is_none() && plans.iter().any(|plan| self.fits(plan, site, &next))
        });
        let allowed = allowed.fold(0u32, |bits, phase| bits | 1 << phase);
        debug_assert!(allowed != 0, "junction {junction} has no way to keep its rules");
        if allowed == 0 { (1 << phases) - 1 } else { allowed }
    }

    /// The phase behind `phase` in the first order that keeps the rules.
    pub fn safe_successor(&self, junction: usize, phase: usize) -> usize {
        let plans = &self.plans[self.kinds[junction]];
        let follows = |plan: &&Plan| usize::from(plan.before) == phase;
        plans.iter().find(follows).map_or(phase, |plan| usize::from(plan.order[0]))
    }

    /// The allowed phase that is nearest to the one asked for: itself if it is allowed, else the one that
    /// shares most green lights with it, among equals the one that was left out longest, then the first.
    pub fn nearest(&self, asked: u8, allowed: u32, site: &Site, counters: &Counters) -> u8 {
        if allowed >> asked & 1 == 1 {
            return asked;
        }
        let wanted = site.green[usize::from(asked)];
        let rank = |phase: usize| ((site.green[phase] & wanted).count_ones(), counters.phase_skips[phase]);
        let best = ones(allowed).reduce(|best, phase| if rank(phase) > rank(best) { phase } else { best });
        best.map_or(asked, |phase| phase as u8)
    }

    /// Whether a junction can go on with a plan and break nothing.
    fn fits(&self, plan: &Plan, site: &Site, now: &Counters) -> bool {
        if plan.order[0] == now.phase {
            return false;
        }
        let on = site.green[usize::from(now.phase)];
        // A change serves what was green before it, too.
        let movements = ones(site.judged).all(|movement| {
            let skips = if on >> movement & 1 == 1 { 0 } else { now.skips[movement].saturating_add(1) };
            let change = plan.served[movement];
            change <= 1 || skips + change - 2 < MOST_GREEN_SKIPS
        });
        let phases = (0..site.green.len()).all(|phase| {
            phase == usize::from(now.phase)
                || now.phase_skips[phase] + plan.comes[phase] - 1 < MOST_PHASE_SKIPS
        });
        let is_reset = self.timing.yellow > 0 && site.yellow_green == 0;
        // Without yellow, lights stay green from a phase to the next.
        movements
            && phases
            && (is_reset || keeps(site, self.timing, &plan.order[..site.green.len()], now.clone(), 1))
    }
}

/// Whether an order of phases breaks no rule in so many rounds.
fn keeps(site: &Site, timing: Timing, order: &[u8], mut counters: Counters, rounds: usize) -> bool {
    (0..rounds).flat_map(|_| order).all(|&phase| {
        counters.decide(site, phase, timing);
        counters.broken(site).is_none()
    })
}

/// Every order that keeps the rules for ever, from each of its phases on.
fn plans_of(site: &Site, timing: Timing) -> Vec<Plan> {
    let count = site.green.len();
    let mut orders = Vec::new();
    // One phase alone is green for ever.
    if count < 2 {
        return Vec::new();
    }
    for_each_order(&mut (0..count as u8).collect(), 1, &mut |order| {
        // Every phase comes with a change; in the third round counters depend on the order alone, but for
        // lights that are never red: those are green for too long after some rounds.
        let rounds = 3 + LONGEST_GREEN.div_ceil(count as u32 * timing.decision) as usize;
        let before = Counters { phase: order[count - 1], ..Counters::new() };
        if keeps(site, timing, order, before, rounds) {
            orders.push(order.to_vec());
        }
    });
    orders.sort_unstable();
    let rotated = |order: Vec<u8>, first: usize| {
        let mut order = order;
        order.rotate_left(first);
        Plan::new(site, &order)
    };
    orders.iter().flat_map(|order| (0..count).map(move |first| rotated(order.clone(), first))).collect()
}

/// Permutes what stands from `fixed` on.
fn for_each_order(order: &mut Vec<u8>, fixed: usize, work: &mut impl FnMut(&[u8])) {
    if fixed >= order.len() {
        return work(order);
    }
    for other in fixed..order.len() {
        order.swap(fixed, other);
        for_each_order(order, fixed + 1, work);
        order.swap(fixed, other);
    }
}

impl Plan {
    fn new(site: &Site, phases: &[u8]) -> Self {
        let mut plan = Plan {
            order: [0; MOST_PHASES],
            before: phases[phases.len() - 1],
            comes: [0; MOST_PHASES],
            served: [u8::MAX; MOST_MOVEMENTS],
        };
        for (place, &phase) in phases.iter().enumerate() {
            let change = place as u8 + 1;
            plan.order[place] = phase;
            plan.comes[usize::from(phase)] = change;
            for movement in ones(site.green[usize::from(phase)]) {
                plan.served[movement] = plan.served[movement].min(change);
            }
        }
        plan
    }
}
