//! Decimal numbers as RapidJSON's fast path reads them, which is not correctly rounded.
//!
//! CityFlow reads its files with RapidJSON. One coordinate in ten to a hundred differs in the last bit from a
//! correct parse, and trajectories differ with it, so the rule is repeated here digit by digit.

use std::sync::LazyLock;

/// A number of a JSON file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Number {
    /// The number as CityFlow sees it.
    pub value: f64,
    /// The number, if it was written without fraction and exponent and fits.
    pub integer: Option<i64>,
}

/// The powers of ten from 0 to 308, each correctly rounded.
static POWERS: LazyLock<Vec<f64>> =
    LazyLock::new(|| (0..=308).map(|p| format!("1e{p}").parse().unwrap_or(f64::INFINITY)).collect());

/// How many significant digits are used once the 64-bit integer is full.
const SIGNIFICANT: u32 = 17;

/// The number at the start of `text`, and how many bytes it takes. Errors say what is wrong.
pub(super) fn number(text: &[u8]) -> Result<(Number, usize), &'static str> {
    let mut at = 0;
    let peek = |at: usize| text.get(at).copied().unwrap_or(0);
    let minus = peek(at) == b'-';
    at += usize::from(minus);

    // The integer part: exact in 64 bits, in double precision where it overflows.
    let mut whole = 0u64;
    let mut wide = None;
    let mut significant = 0;
    match peek(at) {
        b'0' => at += 1,
        first @ b'1'..=b'9' => {
            whole = u64::from(first - b'0');
            at += 1;
            while let digit @ b'0'..=b'9' = peek(at) {
                let digit = digit - b'0';
                wide = match wide {
                    Some(d) => Some(d * 10.0 + f64::from(digit)),
                    None => match push_digit(whole, digit, minus) {
                        Some(longer) => {
                            whole = longer;
                            significant += 1;
                            None
                        }
                        None => Some(whole as f64 * 10.0 + f64::from(digit)),
                    },
                };
                at += 1;
            }
        }
        _ => return Err("a number needs a digit"),
    }

    let mut shift = 0i32;
    let mut real = wide;
    if peek(at) == b'.' {
        at += 1;
        if !peek(at).is_ascii_digit() {
            return Err("a number needs a digit after its decimal point");
        }
        let mut d = match wide {
            Some(d) => d,
            None => {
                while peek(at).is_ascii_digit() && whole < 1 << 53 {
                    whole = whole * 10 + u64::from(peek(at) - b'0');
                    shift -= 1;
                    significant += u32::from(whole != 0);
                    at += 1;
                }
                whole as f64
            }
        };
        while let digit @ b'0'..=b'9' = peek(at) {
            if significant < SIGNIFICANT {
                d = d * 10.0 + f64::from(digit - b'0');
                shift -= 1;
                significant += u32::from(d > 0.0);
            }
            at += 1;
        }
        real = Some(d);
    }

    let mut exponent = 0i32;
    if matches!(peek(at), b'e' | b'E') {
        at += 1;
        let down = peek(at) == b'-';
        at += usize::from(matches!(peek(at), b'+' | b'-'));
        if !peek(at).is_ascii_digit() {
            return Err("a number needs a digit in its exponent");
        }
        while let digit @ b'0'..=b'9' = peek(at) {
            exponent = exponent.saturating_mul(10).saturating_add(i32::from(digit - b'0')).min(1_000_000);
            at += 1;
        }
        if down {
            exponent = -exponent;
        }
        real = real.or(Some(whole as f64));
    }

    let Some(d) = real else {
        let integer = if minus { Some((whole as i64).wrapping_neg()) } else { i64::try_from(whole).ok() };
        let value = integer.map_or(whole as f64, |integer| integer as f64);
        return Ok((Number { value, integer }, at));
    };
    let d = scale(d, exponent.saturating_add(shift));
    if !d.is_finite() {
        return Err("a number is too large");
    }
    Ok((Number { value: if minus { -d } else { d }, integer: None }, at))
}

/// 10·`whole` + `digit`, unless it no longer fits into 64 bits (63 for a negative number).
fn push_digit(whole: u64, digit: u8, minus: bool) -> Option<u64> {
    let longer = whole.checked_mul(10)?.checked_add(u64::from(digit))?;
    (!minus || longer <= 1 << 63).then_some(longer)
}

/// `d`·10^`power` with one product or one quotient, two where the power alone would vanish.
fn scale(d: f64, power: i32) -> f64 {
    let powers = &*POWERS;
    match power {
        309.. if d == 0.0 => 0.0,
        309.. => f64::INFINITY,
        0..=308 => d * powers[power as usize],
        -308..=-1 => d / powers[-power as usize],
        -616..=-309 => d / powers[308] / powers[(-308 - power) as usize],
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> f64 {
        let (number, used) = number(text.as_bytes()).unwrap();
        assert_eq!(used, text.len());
        number.value
    }

    #[test]
    fn integers_are_exact() {
        assert_eq!(number(b"-12").unwrap().0, Number { value: -12.0, integer: Some(-12) });
        assert_eq!(number(b"9223372036854775807").unwrap().0.integer, Some(i64::MAX));
        assert_eq!(number(b"-9223372036854775808").unwrap().0.integer, Some(i64::MIN));
        assert_eq!(number(b"18446744073709551616").unwrap().0.integer, None);
        assert_eq!(number(b"1.0").unwrap().0.integer, None);
        assert_eq!(number(b"1e3").unwrap().0, Number { value: 1000.0, integer: None });
    }

    #[test]
    fn decimals_are_one_quotient() {
        assert_eq!(value("0.1"), 0.1);
        assert_eq!(value("-3.7199999999999998").to_bits(), (-(37199999999999998f64 / 1e16)).to_bits());
        // Seventeen digits are more than 53 bits: the last ones are added in double precision.
        assert_eq!(value("10.004999999999999").to_bits(), (10004999999999999f64 / 1e15).to_bits());
        assert_eq!(value("0.00000000000000000000000001"), 1.0 / 1e26);
        assert_eq!(value("1e-400"), 0.0);
        assert_eq!(value("0e999"), 0.0);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "-", "x", "1.", "1.x", "1e", "1e+", "1e309", "1e99999999999"] {
            assert!(number(text.as_bytes()).is_err(), "{text}");
        }
    }
}
