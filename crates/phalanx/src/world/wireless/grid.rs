//! Who stands where: users on a grid, an access point in the middle of every four of them.

/// Users of a grid, numbered row by row, and the access points between them, numbered likewise.
///
/// Access point (r, c) stands between the users (r, c), (r, c + 1), (r + 1, c) and (r + 1, c + 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Rows of users.
    pub rows: usize,
    /// Columns of users.
    pub columns: usize,
}

/// Actions of a user: nothing, or the access point up-left, up-right, down-left, down-right of it.
pub const ACTIONS: usize = 5;

impl Grid {
    /// How many users there are.
    pub fn users(self) -> usize {
        self.rows * self.columns
    }

    /// How many access points there are.
    pub fn access_points(self) -> usize {
        (self.rows - 1) * (self.columns - 1)
    }

    /// The access point that `user` addresses with `action`, if there is one in that corner.
    pub fn access_point(self, user: usize, action: u8) -> Option<usize> {
        if !(1..ACTIONS as u8).contains(&action) {
            return None;
        }
        let (down, right) = (usize::from((action - 1) / 2), usize::from((action - 1) % 2));
        let row = (user / self.columns + down).checked_sub(1)?;
        let column = (user % self.columns + right).checked_sub(1)?;
        (row < self.rows - 1 && column < self.columns - 1).then_some(row * (self.columns - 1) + column)
    }

    /// The four users around an access point with the action by which each addresses it: 4, 3, 2, 1.
    pub fn around(self, access_point: usize) -> [(usize, u8); 4] {
        let (row, column) = (access_point / (self.columns - 1), access_point % (self.columns - 1));
        let first = row * self.columns + column;
        [(first, 4), (first + 1, 3), (first + self.columns, 2), (first + self.columns + 1, 1)]
    }

    /// The three others who could be in the way when `user` takes `action`, each with the action by which it
    /// would be; none if there is no such access point. O(1).
    pub fn contenders(self, user: usize, action: u8) -> Option<[(usize, u8); 3]> {
        let around = self.around(self.access_point(user, action)?);
        let mut others = around.into_iter().filter(|&(other, _)| other != user);
        Some(std::array::from_fn(|_| others.next().expect("three of four are others")))
    }

    /// Steps back in the numbering from a user to the first of the four around the access point of each
    /// action.
    pub fn steps_back(self) -> [usize; ACTIONS] {
        [0, self.columns + 1, self.columns, 1, 0]
    }

    /// Which place of the (2`radius` + 1)² window around `user` is `other`'s, as indicators, row by row.
    pub fn place_in_window(self, user: usize, other: usize, radius: usize) -> Vec<f32> {
        let radius = radius.min(self.rows.max(self.columns));
        let side = 2 * radius + 1;
        let mut place = vec![0.0; side * side];
        let across = |at: usize, from: usize| (at + radius).checked_sub(from).filter(|&k| k < side);
        let (row, column) = (
            across(other / self.columns, user / self.columns),
            across(other % self.columns, user % self.columns),
        );
        if let (Some(row), Some(column)) = (row, column) {
            place[row * side + column] = 1.0;
        }
        place
    }

    /// The user and everybody who shares an access point with it: at most three rows of three.
    pub fn window(self, user: usize) -> Window {
        let (row, column) = (user / self.columns, user % self.columns);
        let (top, left) = (row.saturating_sub(1), column.saturating_sub(1));
        Window {
            columns: self.columns,
            first: top * self.columns + left,
            height: (row + 1).min(self.rows - 1) - top + 1,
            width: (column + 1).min(self.columns - 1) - left + 1,
        }
    }
}

/// A rectangle of users.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    columns: usize,
    first: usize,
    height: usize,
    width: usize,
}

impl Window {
    /// Its users, ascending.
    pub fn users(self) -> impl Iterator<Item = usize> {
        (0..self.height)
            .flat_map(move |row| (0..self.width).map(move |c| self.first + row * self.columns + c))
    }

    /// Where `user`, one of them, stands in [`Window::users`].
    pub fn place(self, user: usize) -> usize {
        let from_first = user - self.first;
        from_first / self.columns * self.width + from_first % self.columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_points_of_a_rectangle() {
        // 0 1 2
        //  0 1
        // 3 4 5
        let grid = Grid { rows: 2, columns: 3 };
        let reached: Vec<[Option<usize>; 4]> =
            (0..6).map(|user| [1, 2, 3, 4].map(|action| grid.access_point(user, action))).collect();
        let none = None;
        assert_eq!(
            reached,
            [
                [none, none, none, Some(0)],
                [none, none, Some(0), Some(1)],
                [none, none, Some(1), none],
                [none, Some(0), none, none],
                [Some(0), Some(1), none, none],
                [Some(1), none, none, none],
            ]
        );
        assert_eq!((grid.access_point(0, 0), grid.access_point(4, 5)), (None, None));
        assert_eq!(grid.around(1), [(1, 4), (2, 3), (4, 2), (5, 1)]);
    }

    /// `access_point`, `around`, `steps_back` and `window` tell of the same geometry.
    #[test]
    fn the_four_around_an_access_point_are_those_who_reach_it() {
        for (rows, columns) in [(2, 2), (2, 5), (5, 2), (3, 4), (6, 6)] {
            let grid = Grid { rows, columns };
            for y in 0..grid.access_points() {
                for (user, action) in grid.around(y) {
                    assert_eq!(grid.access_point(user, action), Some(y));
                    assert_eq!(user - grid.steps_back()[usize::from(action)], grid.around(y)[0].0);
                }
            }
            let links = (0..grid.users()).flat_map(|user| (0..5).map(move |action| (user, action)));
            let existing = links.filter(|&(user, action)| grid.access_point(user, action).is_some()).count();
            assert_eq!(existing, 4 * grid.access_points());
            for user in 0..grid.users() {
                let shares = |other: &usize| {
                    let points = (0..5).filter_map(|action| grid.access_point(user, action));
                    points.flat_map(|y| grid.around(y)).any(|(who, _)| who == *other)
                };
                let expected: Vec<usize> = (0..grid.users()).filter(shares).collect();
                assert_eq!(grid.window(user).users().collect::<Vec<_>>(), expected, "{rows} × {columns}");
                for (place, &other) in expected.iter().enumerate() {
                    assert_eq!(grid.window(user).place(other), place);
                }
            }
        }
    }
}
