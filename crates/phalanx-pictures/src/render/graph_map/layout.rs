//! Places for the members of a graph, by how many links they are apart. Nothing here is random.
//!
//! Everybody starts on a ring; classical scaling (Torgerson, 1952) finds the two directions in which
//! distances in links spread most, and stress majorisation (Gansner, Koren and North, 2004) brings distances
//! on paper close to them.

use phalanx::graph::Graph;

/// A place on the plane, in links.
pub type Place = [f64; 2];

/// Passes of the methods; more change nothing that is seen.
const SCALING_PASSES: usize = 60;
const STRESS_PASSES: usize = 200;
/// Stress has settled when nobody moves farther than this, in links.
const SETTLED: f64 = 1e-4;
/// Passes in which members that are too close are pushed apart.
const PUSHES: usize = 80;

/// Places of the members of a graph. Its longer side is horizontal. O(members · (members + links)).
pub fn places(graph: &Graph) -> Vec<Place> {
    let distances = distances(graph);
    let mut places = scaled(&distances);
    settle(&mut places, &distances);
    turn(&mut places);
    places
}

/// Links between any two members; where no path leads, half of those of the longest path and two more: apart,
/// but not so far that the paper is empty.
fn distances(graph: &Graph) -> Vec<Vec<f64>> {
    let hops: Vec<_> = (0..graph.agents()).map(|i| graph.distances_from(i)).collect();
    let longest = hops.iter().flatten().flatten().max().map_or(1, |&longest| longest.max(1));
    let far = longest / 2 + 2;
    let links = |hops: &Option<u32>| f64::from(hops.unwrap_or(far));
    hops.iter().map(|row| row.iter().map(links).collect()).collect()
}

/// The two leading directions of the doubly centred squares of the distances, by subspace iteration from the
/// ring.
fn scaled(distances: &[Vec<f64>]) -> Vec<Place> {
    let n = distances.len();
    let angle = |i: usize| std::f64::consts::TAU * i as f64 / n as f64;
    let mut axes: [Vec<f64>; 2] =
        [(0..n).map(|i| angle(i).cos()).collect(), (0..n).map(|i| angle(i).sin()).collect()];
    let mut lengths = [0.0; 2];
    for _ in 0..SCALING_PASSES {
        for k in 0..2 {
            let axis = &axes[k];
            let row = |row: &Vec<f64>| -0.5 * row.iter().zip(axis).map(|(d, x)| d * d * x).sum::<f64>();
            let mut image: Vec<f64> = distances.iter().map(row).collect();
            let mean = image.iter().sum::<f64>() / n as f64;
            image.iter_mut().for_each(|x| *x -= mean);
            if k == 1 {
                let along: f64 = image.iter().zip(&axes[0]).map(|(x, y)| x * y).sum();
                image.iter_mut().zip(&axes[0]).for_each(|(x, y)| *x -= along * y);
            }
            lengths[k] = image.iter().map(|x| x * x).sum::<f64>().sqrt();
            // A single member, or members in a row, have no such direction.
            let scale = if lengths[k] > 1e-9 { 1.0 / lengths[k] } else { 0.0 };
            axes[k] = image.into_iter().map(|x| x * scale).collect();
        }
    }
    (0..n).map(|i| [0, 1].map(|k| axes[k][i] * lengths[k].sqrt())).collect()
}

/// Moves everybody, one after the other, to where the others would have it: Σ w·(d − |x − y|)² with w = d⁻²
/// falls.
fn settle(places: &mut [Place], distances: &[Vec<f64>]) {
    for _ in 0..STRESS_PASSES {
        let mut farthest = 0.0f64;
        for i in 0..places.len() {
            let here = places[i];
            let (mut sum, mut weights) = ([0.0; 2], 0.0);
            for (j, there) in places.iter().enumerate().filter(|&(j, _)| j != i) {
                let wanted = distances[i][j];
                let [x, y] = direction(here, *there, i);
                let weight = 1.0 / (wanted * wanted);
                sum[0] += weight * (there[0] + wanted * x);
                sum[1] += weight * (there[1] + wanted * y);
                weights += weight;
            }
            if weights > 0.0 {
                places[i] = sum.map(|sum| sum / weights);
                farthest = farthest.max((places[i][0] - here[0]).hypot(places[i][1] - here[1]));
            }
        }
        if farthest < SETTLED {
            return;
        }
    }
}

/// The unit vector from `there` to `here`; for two at one place one that is the member's own.
fn direction(here: Place, there: Place, member: usize) -> Place {
    let (x, y) = (here[0] - there[0], here[1] - there[1]);
    let length = x.hypot(y);
    if length > 1e-9 {
        return [x / length, y / length];
    }
    // Multiples of the golden angle do not meet.
    let angle = 2.399_963 * member as f64;
    [angle.cos(), angle.sin()]
}

/// Turns the places about their middle until they spread most along the first axis.
fn turn(places: &mut [Place]) {
    let n = places.len() as f64;
    let mean = [0, 1].map(|k| places.iter().map(|place| place[k]).sum::<f64>() / n);
    let spread = |a: usize, b: usize| -> f64 {
        places.iter().map(|place| (place[a] - mean[a]) * (place[b] - mean[b])).sum()
    };
    let angle = 0.5 * (2.0 * spread(0, 1)).atan2(spread(0, 0) - spread(1, 1));
    let (sin, cos) = angle.sin_cos();
    for place in places {
        let [x, y] = [place[0] - mean[0], place[1] - mean[1]];
        *place = [cos * x + sin * y, cos * y - sin * x];
    }
}

/// Pushes members that are closer than `least` apart, a fixed number of times.
pub fn spread_out(places: &mut [Place], least: f64) {
    for _ in 0..PUSHES {
        let mut moved = false;
        for i in 1..places.len() {
            for j in 0..i {
                let gap = least - (places[i][0] - places[j][0]).hypot(places[i][1] - places[j][1]);
                if gap > 1e-6 {
                    let away = direction(places[i], places[j], i);
                    for k in 0..2 {
                        places[i][k] += 0.5 * gap * away[k];
                        places[j][k] -= 0.5 * gap * away[k];
                    }
                    moved = true;
                }
            }
        }
        if !moved {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(a: Place, b: Place) -> f64 {
        (a[0] - b[0]).hypot(a[1] - b[1])
    }

    #[test]
    fn distances_are_links() {
        let distances = distances(&Graph::from_edges(5, [(0, 1), (1, 2), (2, 3)]).unwrap());
        assert_eq!(distances[0], [0.0, 1.0, 2.0, 3.0, 3.0]);
        assert_eq!(distances[4], [3.0, 3.0, 3.0, 3.0, 0.0]);
    }

    #[test]
    fn a_line_is_straight_and_horizontal() {
        let places = places(&Graph::line(7).unwrap());
        for pair in places.windows(2) {
            assert!((distance(pair[0], pair[1]) - 1.0).abs() < 0.01, "{places:?}");
            assert!((pair[0][1] - pair[1][1]).abs() < 0.01, "{places:?}");
        }
    }

    #[test]
    fn a_ring_is_round_and_its_members_are_in_order() {
        let places = places(&Graph::ring(12).unwrap());
        let radii: Vec<f64> = places.iter().map(|&place| distance(place, [0.0, 0.0])).collect();
        assert!(radii.iter().all(|radius| (radius / radii[0] - 1.0).abs() < 0.02), "{radii:?}");
        let sides: Vec<f64> = (0..12).map(|i| distance(places[i], places[(i + 1) % 12])).collect();
        assert!(sides.iter().all(|side| (side / sides[0] - 1.0).abs() < 0.05), "{sides:?}");
    }

    /// Links are short: on average much shorter than the way between two members that are not linked.
    #[test]
    fn linked_members_are_close() {
        for graph in [
            Graph::random_geometric(80, 0.2, 3).unwrap(),
            Graph::small_world(60, 4, 0.1, 1).unwrap(),
            Graph::scale_free(60, 2, 1).unwrap(),
        ] {
            let places = places(&graph);
            let (mut linked, mut other) = ((0.0, 0.0), (0.0, 0.0));
            for i in 0..places.len() {
                for j in 0..i {
                    let sum =
                        if graph.neighbours(i).contains(&(j as u32)) { &mut linked } else { &mut other };
                    *sum = (sum.0 + distance(places[i], places[j]), sum.1 + 1.0);
                }
            }
            assert!(linked.0 / linked.1 < 0.6 * other.0 / other.1, "{linked:?} {other:?}");
        }
    }

    #[test]
    fn nobody_is_nowhere() {
        let networks =
            [Graph::complete(9), Graph::star(9), Graph::from_edges(1, []), Graph::from_edges(6, [])];
        for graph in networks {
            let mut places = places(&graph.unwrap());
            spread_out(&mut places, 0.1);
            assert!(places.iter().flatten().all(|x| x.is_finite()), "{places:?}");
            for i in 0..places.len() {
                assert!((0..i).all(|j| distance(places[i], places[j]) > 0.09), "{places:?}");
            }
        }
    }

    #[test]
    fn those_at_one_place_are_pushed_apart() {
        let mut places = vec![[1.0, 1.0]; 12];
        spread_out(&mut places, 0.5);
        for i in 0..12 {
            assert!((0..i).all(|j| distance(places[i], places[j]) > 0.45), "{places:?}");
        }
    }
}
