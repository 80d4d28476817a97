//! Which pistons are drawn: all, or so many around the ball.

use phalanx::world::pistonball::physics::{COLUMN, WALL};

/// So many pistons have room in a picture, with all that is written below them.
const MOST: usize = 40;
/// Pistons of a picture of a part.
const PART: usize = 20;
/// A part moves on when so few of its pistons are left on one side of the ball's middle.
const NEAR: usize = 3;

/// Pistons that a picture has.
pub fn drawn(pistons: usize) -> usize {
    if pistons > MOST { PART } else { pistons }
}

/// The column that a place is in.
fn column(pistons: usize, x: f32) -> usize {
    ((f64::from(x) - WALL) / COLUMN).clamp(0.0, (pistons - 1) as f64) as usize
}

/// The first piston of a picture for a place of the ball alone: the part moves on by half of itself.
pub fn page(pistons: usize, x: f32) -> usize {
    let (drawn, half) = (drawn(pistons), drawn(pistons) / 2);
    if drawn == pistons {
        return 0;
    }
    let middle = (column(pistons, x) + half / 2) / half * half;
    middle.saturating_sub(half).min(pistons - drawn)
}

/// The first piston of each step's picture, from the places of the ball. It changes seldom: what moves with
/// the ball seems to stand still.
pub fn windows(pistons: usize, balls: impl IntoIterator<Item = f32>) -> Vec<usize> {
    let drawn = drawn(pistons);
    let mut first = None;
    let mut follow = |x: f32| {
        let column = column(pistons, x);
        let stays = |first: &usize| column >= first + NEAR && column + NEAR < first + drawn;
        let centred = column.saturating_sub(drawn / 2).min(pistons - drawn);
        *first.insert(first.filter(stays).unwrap_or(centred))
    };
    balls.into_iter().map(&mut follow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_pistons_are_drawn_whole() {
        for pistons in [2, 3, MOST] {
            let right = 40.0 * pistons as f32;
            assert_eq!((drawn(pistons), windows(pistons, [right, 80.0])), (pistons, vec![0, 0]));
        }
    }

    #[test]
    fn a_part_follows_the_ball_and_stays_while_it_can() {
        // Piston i is below x = 60 + 40 i.
        let x = |piston: usize| 60.0 + 40.0 * piston as f32;
        let first = windows(100, [98, 90, 84, 83, 82, 76, 75, 70, 2, 0].map(x));
        assert_eq!(first, [80, 80, 80, 80, 72, 72, 72, 60, 0, 0]);
        for (&first, piston) in first.iter().zip([98, 90, 84, 83, 82, 76, 75, 70, 2, 0]) {
            assert!((first..first + PART).contains(&piston));
        }
    }

    #[test]
    fn a_page_has_the_ball_and_changes_seldom() {
        let x = |piston: usize| 60.0 + 40.0 * piston as f32;
        for pistons in [2, MOST] {
            assert_eq!(page(pistons, x(pistons - 1)), 0);
        }
        for pistons in [MOST + 1, 100, 1000] {
            let pages: Vec<usize> = (0..pistons).map(|piston| page(pistons, x(piston))).collect();
            for (piston, &first) in pages.iter().enumerate() {
                assert!(first + drawn(pistons) <= pistons);
                let near = (first == 0 || piston >= first + NEAR)
                    && (first + PART == pistons || piston + NEAR < first + PART);
                assert!(near && (first..first + PART).contains(&piston), "{pistons}: {piston} at {first}");
            }
            let changes = pages.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert!(changes <= pistons / 10, "{pistons}: {changes}");
        }
    }
}
