//! Where the links of an intersection cross each other.

use super::Crossing;
use super::sort::sort_like_libstdcxx;
use crate::geometry::Point;

/// Slack of the reference's sign tests.
const EPS: f64 = 1e-8;

/// The sign of `z`, 0 within the slack.
fn sign(z: f64) -> i32 {
    i32::from(z + EPS > 0.0) - i32::from(z < EPS)
}

/// The crossings of every link of an intersection, in the order in which a vehicle meets them.
///
/// `first` is the drivable index of the first link, `shapes` their polylines.
pub(super) fn crossings(first: usize, shapes: &[Vec<Point>]) -> Vec<Vec<Crossing>> {
    let mut all = vec![Vec::new(); shapes.len()];
    for i in 0..shapes.len() {
        for j in i + 1..shapes.len() {
            if let Some((here, there)) = first_hit(&shapes[i], &shapes[j]) {
                let other = |link: usize| (first + link) as u32;
                all[i].push(Crossing { distance: here, other: other(j), other_distance: there });
                all[j].push(Crossing { distance: there, other: other(i), other_distance: here });
            }
        }
    }
    for crossings in &mut all {
        sort_like_libstdcxx(crossings, |a, b| a.distance < b.distance);
    }
    all
}

/// Distances along both polylines of the first crossing that a walk along `a` finds.
fn first_hit(a: &[Point], b: &[Point]) -> Option<(f64, f64)> {
    let mut a_passed = 0.0;
    for p in a.windows(2) {
        let u = p[1] - p[0];
        let mut b_passed = 0.0;
        for q in b.windows(2) {
            let v = q[1] - q[0];
            if sign(u.cross(v)) == 0 {
                // The reference goes on without adding the length of this piece, and distances depend on it.
                continue;
            }
            let k = (q[0] - p[0]).cross(v) / u.cross(v);
            let at = p[0] + u * k;
            if lies_on(at, p) && lies_on(at, q) {
                return Some((a_passed + (at - p[0]).len(), b_passed + (at - q[0]).len()));
            }
            b_passed += v.len();
        }
        a_passed += u.len();
    }
    None
}

fn lies_on(at: Point, piece: &[Point]) -> bool {
    let (e, f) = (piece[0], piece[1]);
    sign((f - e).cross(at - e)) == 0 && sign((at - e).dot(at - f)) <= 0
}
