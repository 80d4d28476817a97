//! The hash FNV-1a, 64 bit.

/// A hash that grows with what is added.
pub(crate) struct Fnv(pub u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(14_695_981_039_346_656_037)
    }
}

impl Fnv {
    pub fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(1_099_511_628_211);
        }
    }

    pub fn add_number(&mut self, number: u64) {
        self.add(&number.to_le_bytes());
    }
}
