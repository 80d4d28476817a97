//! TensorBoard event files.
//!
//! A file is a sequence of records (length, checksum of the length, data, checksum of the data), each an
//! `Event` message in protocol-buffer encoding. Only scalars are needed, so the few fields are encoded by
//! hand: published writers for Rust are no longer kept up.

/// The record that every file begins with.
pub fn file_start(wall_time: f64) -> Vec<u8> {
    let mut event = Vec::new();
    put_double(&mut event, 1, wall_time);
    put_bytes(&mut event, 3, b"brain.Event:2");
    record(&event)
}

/// The scalars of one iteration. Tags are shown in groups by what stands before the slash.
pub fn scalars(wall_time: f64, iteration: usize, values: &[(&str, f64)]) -> Vec<u8> {
    let mut summary = Vec::new();
    for (tag, value) in values {
        let mut scalar = Vec::new();
        put_bytes(&mut scalar, 1, tag.as_bytes());
        // Single precision ends earlier.
        put_float(&mut scalar, 2, value.clamp(f32::MIN.into(), f32::MAX.into()) as f32);
        put_bytes(&mut summary, 1, &scalar);
    }
    let mut event = Vec::new();
    put_double(&mut event, 1, wall_time);
    put_key(&mut event, 2, 0);
    put_varint(&mut event, iteration as u64);
    put_bytes(&mut event, 5, &summary);
    record(&event)
}

fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut record = Vec::with_capacity(data.len() + 16);
    record.extend(length);
    record.extend(masked_crc(&length).to_le_bytes());
    record.extend(data);
    record.extend(masked_crc(data).to_le_bytes());
    record
}

/// The checksum as TensorFlow stores it: rotated and shifted, so that a checksum of checksums is no fixed
/// point.
fn masked_crc(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

fn put_key(out: &mut Vec<u8>, field: u64, wire_type: u64) {
    put_varint(out, field << 3 | wire_type);
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_double(out: &mut Vec<u8>, field: u64, value: f64) {
    put_key(out, field, 1);
    out.extend(value.to_le_bytes());
}

fn put_float(out: &mut Vec<u8>, field: u64, value: f32) {
    put_key(out, field, 5);
    out.extend(value.to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_key(out, field, 2);
    put_varint(out, bytes.len() as u64);
    out.extend(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_record_byte_by_byte() {
        let record = file_start(1.0);
        assert_eq!(record[..8], 24u64.to_le_bytes());
        let data = &record[12..36];
        assert_eq!(data[0], 0x09);
        assert_eq!(data[1..9], 1f64.to_le_bytes());
        assert_eq!(data[9..11], [0x1a, 13]);
        assert_eq!(&data[11..], b"brain.Event:2");
        assert_eq!(record.len(), 8 + 4 + 24 + 4);
        assert_eq!(record[36..], masked_crc(data).to_le_bytes());
    }
}
