//! The Mersenne Twister, 32 bit, seeded as in the C++ standard.

const SIZE: usize = 624;
const SHIFT: usize = 397;

/// The generator `mt19937`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MersenneTwister {
    words: Box<[u32; SIZE]>,
    next: usize,
}

impl MersenneTwister {
    pub fn new(seed: u32) -> Self {
        let mut words = Box::new([seed; SIZE]);
        for i in 1..SIZE {
            let before = words[i - 1];
            words[i] = 1_812_433_253u32.wrapping_mul(before ^ (before >> 30)).wrapping_add(i as u32);
        }
        Self { words, next: SIZE }
    }

    pub fn draw(&mut self) -> u32 {
        if self.next == SIZE {
            self.twist();
        }
        let mut y = self.words[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    fn twist(&mut self) {
        for i in 0..SIZE {
            let y = (self.words[i] & 0x8000_0000) | (self.words[(i + 1) % SIZE] & 0x7fff_ffff);
            let mut word = self.words[(i + SHIFT) % SIZE] ^ (y >> 1);
            if y & 1 == 1 {
                word ^= 0x9908_b0df;
            }
            self.words[i] = word;
        }
        self.next = 0;
    }

    /// Its words and the place of the next one, to be saved.
    pub fn parts(&self) -> (&[u32], usize) {
        (&self.words[..], self.next)
    }

    /// The generator with these parts, if they can be those of one.
    pub fn from_parts(words: &[u32], next: usize) -> Option<Self> {
        let words: [u32; SIZE] = words.try_into().ok()?;
        (next <= SIZE).then(|| Self { words: Box::new(words), next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_what_the_standard_says() {
        // [rand.predef]: the 10000th draw from the default seed.
        let mut random = MersenneTwister::new(5489);
        let last = (0..10000).map(|_| random.draw()).last();
        assert_eq!(last, Some(4_123_659_995));
    }
}
