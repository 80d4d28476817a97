//! As much of protocol buffers as a model needs: whole numbers, texts and messages within messages.

/// A message, written field after field.
#[derive(Debug, Clone, Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// A whole number.
    pub fn int(mut self, field: u32, value: u64) -> Self {
        self.varint(u64::from(field) << 3);
        self.varint(value);
        self
    }

    /// Several of them, one field each.
    pub fn ints(self, field: u32, values: impl IntoIterator<Item = u64>) -> Self {
        values.into_iter().fold(self, |message, value| message.int(field, value))
    }

    /// Bytes of any meaning.
    pub fn bytes(mut self, field: u32, bytes: &[u8]) -> Self {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// A text.
    pub fn text(self, field: u32, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    /// Several of them, one field each.
    pub fn texts(self, field: u32, texts: &[&str]) -> Self {
        texts.iter().fold(self, |message, text| message.text(field, text))
    }

    /// A message within the message.
    pub fn message(self, field: u32, message: &Message) -> Self {
        self.bytes(field, &message.0)
    }

    /// Several of them, one field each.
    pub fn messages(self, field: u32, messages: &[Message]) -> Self {
        messages.iter().fold(self, |whole, message| whole.message(field, message))
    }

    /// The bytes of a file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Seven bits per byte, the lowest first; the highest bit says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the format's own documentation.
    #[test]
    fn known_encodings() {
        assert_eq!(Message::default().int(1, 150).into_bytes(), [0x08, 0x96, 0x01]);
        let testing = Message::default().text(2, "testing").into_bytes();
        assert_eq!(testing, [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
        let inner = Message::default().int(1, 150);
        assert_eq!(Message::default().message(3, &inner).into_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
    }
}
