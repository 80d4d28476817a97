//! What becomes of messages.

use serde::Serialize;

/// How many numbers there are.
pub const FIELDS: usize = 9;

/// Messages, by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Sent, again or for the first time.
    pub sent: u64,
    /// Of these, sent again.
    pub resent: u64,
    /// Received and used.
    pub received: u64,
    /// Dropped: not a message, or one that cannot be true.
    pub malformed: u64,
    /// Dropped: from elsewhere, or in another's name, or of another run.
    pub foreign: u64,
    /// Dropped: of a step that is over.
    pub late: u64,
    /// Dropped: of a step beyond the next.
    pub early: u64,
    /// Dropped: received before.
    pub repeated: u64,
    /// Actions taken before everybody was heard, where there is a deadline.
    pub incomplete: u64,
}

impl Counts {
    /// All of them, in order.
    pub fn numbers(&self) -> [u64; FIELDS] {
        let Counts { sent, resent, received, malformed, foreign, late, early, repeated, incomplete } = *self;
        [sent, resent, received, malformed, foreign, late, early, repeated, incomplete]
    }

    /// From their numbers.
    pub fn from_numbers(numbers: [u64; FIELDS]) -> Self {
        let [sent, resent, received, malformed, foreign, late, early, repeated, incomplete] = numbers;
        Counts { sent, resent, received, malformed, foreign, late, early, repeated, incomplete }
    }

    /// Those of both; what somebody else counted may be any number.
    pub fn with(&self, other: &Counts) -> Counts {
        let (own, other) = (self.numbers(), other.numbers());
        Counts::from_numbers(std::array::from_fn(|k| own[k].saturating_add(other[k])))
    }

    /// Messages that were not used.
    pub fn dropped(&self) -> u64 {
        let parts = [self.malformed, self.foreign, self.late, self.early, self.repeated];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// Counts a message that is not used.
    pub fn drop(&mut self, why: Why) {
        *match why {
            Why::Malformed => &mut self.malformed,
            Why::Foreign => &mut self.foreign,
            Why::Late => &mut self.late,
            Why::Early => &mut self.early,
            Why::Repeated => &mut self.repeated,
        } += 1;
    }
}

/// Why a message is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It is not a message, or cannot be true.
    Malformed,
    /// It comes from elsewhere, or in another's name, or belongs to another run.
    Foreign,
    /// Its step is over.
    Late,
    /// Its step is beyond the next.
    Early,
    /// It was received before.
    Repeated,
}
