//! Bytes as choices: what a fuzzer changes in its input is a decision, not a letter.

/// Choices that come from bytes; all zero once they are used up.
pub struct Choices<'a> {
    rest: &'a [u8],
    checksum: u32,
    is_shown: bool,
}

impl<'a> Choices<'a> {
    /// Choices from an input.
    pub fn new(bytes: &'a [u8]) -> Self {
        Choices { rest: bytes, checksum: crc32c::crc32c(bytes), is_shown: false }
    }

    /// The same, where a person shall see what they come to.
    pub fn shown(bytes: &'a [u8]) -> Self {
        Choices { is_shown: true, ..Choices::new(bytes) }
    }

    /// Shows a file that was made, to whoever asked for it.
    pub fn show(&self, file: &[u8]) {
        if self.is_shown {
            println!("{}\n", String::from_utf8_lossy(file));
        }
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        first
    }

    /// A number below `count`, or 0 if there is none.
    pub fn below(&mut self, count: usize) -> usize {
        let number = if count <= 256 { usize::from(self.byte()) } else { self.number() as u16 as usize };
        number.checked_rem(count).unwrap_or(0)
    }

    /// One of them.
    pub fn pick<'b, T>(&mut self, all: &'b [T]) -> Option<&'b T> {
        all.get(self.below(all.len()))
    }

    /// True in one of `count` cases; false once the bytes are used up.
    pub fn one_in(&mut self, count: u8) -> bool {
        self.byte() % count == count - 1
    }

    /// A number below `count` that no single byte decides: for steps that take long. By a choice, a fuzzer
    /// that looks for new code would soon take them all the time.
    pub fn lot(&self, count: u32) -> u32 {
        self.checksum % count
    }

    /// Eight bytes as a number.
    pub fn number(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }
}
