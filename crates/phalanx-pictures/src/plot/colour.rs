//! Colours of all pictures.

/// A colour by its red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour([u8; 3]);

impl Colour {
    /// For what is wrong.
    pub const ALARM: Colour = Colour([0xD5, 0x5E, 0x00]);
    /// For what is only there for orientation.
    pub const QUIET: Colour = Colour([0x55, 0x55, 0x55]);
    /// For yellow lights: on white it is too light for anything else.
    pub const YELLOW: Colour = Colour([0xF0, 0xE4, 0x42]);
    /// White.
    pub const PAPER: Colour = Colour([0xFF, 0xFF, 0xFF]);
    /// For text.
    pub const INK: Colour = Colour([0x22, 0x22, 0x22]);

    /// The k-th colour of a series, from 0. The palette of Okabe and Ito, which all kinds of colour vision
    /// tell apart, without its yellow (too light on white) and its vermilion ([`Colour::ALARM`]); then two of
    /// Tol's muted colours.
    pub const fn of_series(k: usize) -> Colour {
        const SERIES: [Colour; 8] = [
            Colour([0x00, 0x72, 0xB2]),
            Colour([0x00, 0x9E, 0x73]),
            Colour([0xCC, 0x79, 0xA7]),
            Colour([0x56, 0xB4, 0xE9]),
            Colour([0xE6, 0x9F, 0x00]),
            Colour([0x33, 0x33, 0x33]),
            Colour([0x88, 0x22, 0x55]),
            Colour([0x99, 0x99, 0x33]),
        ];
        SERIES[k % SERIES.len()]
    }

    /// Mixed with white; 1 leaves it as it is.
    pub fn tint(self, share: f64) -> Colour {
        Colour(self.0.map(|c| (255.0 - share * (255.0 - f64::from(c))).round() as u8))
    }

    /// Red, green and blue.
    pub fn rgb(self) -> [u8; 3] {
        self.0
    }

    pub(super) fn css(self) -> String {
        let [red, green, blue] = self.0;
        format!("#{red:02x}{green:02x}{blue:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_of_eight_series_have_one_colour() {
        for k in 0..8 {
            for other in (0..k).map(Colour::of_series).chain([Colour::ALARM, Colour::PAPER]) {
                let apart = |k: usize, c: usize| Colour::of_series(k).0[c].abs_diff(other.0[c]);
                assert!((0..3).any(|c| apart(k, c) >= 40), "{k} and {other:?}");
            }
        }
    }
}
