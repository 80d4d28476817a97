//! Points and polylines, with the operations in the order in which CityFlow performs them.

use std::ops::{Add, Mul, Sub};

/// A place in the plane, in metres.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// East.
    pub x: f64,
    /// North.
    pub y: f64,
}

impl Point {
    /// A point from its coordinates.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y }
    }

    pub(crate) fn len(self) -> f64 {
        (self.x * self.x + self.y * self.y).sqrt()
    }

    pub(crate) fn unit(self) -> Self {
        let len = self.len();
        Self::new(self.x / len, self.y / len)
    }

    pub(crate) fn dot(self, other: Self) -> f64 {
        self.x * other.x + self.y * other.y
    }

    pub(crate) fn cross(self, other: Self) -> f64 {
        self.x * other.y - self.y * other.x
    }

    fn lerp(self, other: Self, t: f64) -> Self {
        (other - self) * t + self
    }
}

impl Add for Point {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::new(self.x + other.x, self.y + other.y)
    }
}

impl Sub for Point {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self::new(self.x - other.x, self.y - other.y)
    }
}

impl Mul<f64> for Point {
    type Output = Self;
    fn mul(self, k: f64) -> Self {
        Self::new(self.x * k, self.y * k)
    }
}

/// Length of a polyline, summed from its front.
pub(crate) fn polyline_length(points: &[Point]) -> f64 {
    points.windows(2).fold(0.0, |sum, piece| sum + (piece[1] - piece[0]).len())
}

/// The point at distance `s` from the front of a polyline of two points or more.
pub(crate) fn point_at(points: &[Point], s: f64) -> Point {
    let length = polyline_length(points);
    let mut s = s.max(0.0).min(length);
    if s <= 0.0 {
        return points[0];
    }
    for piece in points.windows(2) {
        let l = (piece[0] - piece[1]).len();
        if s > l {
            s -= l;
        } else {
            return piece[0] + (piece[1] - piece[0]) * (s / l);
        }
    }
    points[points.len() - 1]
}

/// The direction at distance `s` from the front of a polyline of two points or more.
pub(crate) fn direction_at(points: &[Point], s: f64) -> Point {
    let mut s = s;
    for piece in points.windows(2) {
        let l = (piece[1] - piece[0]).len();
        if s < l {
            return (piece[1] - piece[0]).unit();
        }
        s -= l;
    }
    (points[points.len() - 1] - points[points.len() - 2]).unit()
}

/// The polyline that lies `offset` to the right of `points`.
pub(crate) fn beside(points: &[Point], offset: f64) -> Vec<Point> {
    let last = points.len() - 1;
    let direction = |j: usize| match j {
        0 => (points[1] - points[0]).unit(),
        j if j == last => (points[j] - points[j - 1]).unit(),
        j => ((points[j + 1] - points[j]).unit() + (points[j] - points[j - 1]).unit()).unit(),
    };
    (0..points.len())
        .map(|j| {
            let u = direction(j);
            points[j] + Point::new(u.y, -u.x) * offset
        })
        .collect()
}

/// Pieces of the curve that joins two lanes for which a file gives no points.
const CURVE_PIECES: usize = 10;

/// The curve from the end of lane `start` to the beginning of lane `end` over an intersection.
///
/// `start` and `end` reach to the middle of the intersection; `start_width` and `end_width` are what to leave
/// out there.
pub(crate) fn curve(start: &[Point], start_width: f64, end: &[Point], end_width: f64) -> Vec<Point> {
    let leave = polyline_length(start) - start_width;
    let arrive = 0.0 + end_width;
    let (a, b) = (point_at(start, leave), point_at(end, arrive));
    let (a_direction, b_direction) = (direction_at(start, leave), direction_at(end, arrive));
    let l = (b - a).len();
    let mut first = a_direction * l * 0.5;
    let mut second = Point::new(-b_direction.x, -b_direction.y) * l * 0.5;
    if first.dot(first) < 25.0 && start_width >= 5.0 {
        first = a_direction * 5.0;
    }
    if second.dot(second) < 25.0 && end_width >= 5.0 {
        // The reference forgets the minus sign here, and link shapes depend on it.
        second = b_direction * 5.0;
    }
    let (m, n) = (a + first, b + second);
    (0..=CURVE_PIECES)
        .map(|i| {
            let t = i as f64 / CURVE_PIECES as f64;
            let (p, q, r) = (a.lerp(m, t), m.lerp(n, t), n.lerp(b, t));
            p.lerp(q, t).lerp(q.lerp(r, t), t)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BENT: [Point; 3] = [Point::new(0.0, 0.0), Point::new(3.0, 4.0), Point::new(3.0, 14.0)];

    #[test]
    fn places_along_a_polyline() {
        assert_eq!(polyline_length(&BENT), 15.0);
        assert_eq!(point_at(&BENT, 10.0), Point::new(3.0, 9.0));
        assert_eq!(point_at(&BENT, -1.0), BENT[0]);
        assert_eq!(direction_at(&BENT, 99.0), Point::new(0.0, 1.0));
    }

    #[test]
    fn a_lane_lies_to_the_right() {
        let lane = beside(&[Point::new(0.0, 0.0), Point::new(10.0, 0.0)], 2.0);
        assert_eq!(lane, [Point::new(0.0, -2.0), Point::new(10.0, -2.0)]);
    }
}
