//! The range and the tick labels of an axis.

/// An axis: what it reaches over and where its ticks are.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    pub low: f64,
    pub high: f64,
    /// Distance of two ticks.
    pub step: f64,
    /// Tick labels are in units of 10^exponent.
    pub exponent: i32,
    /// Digits of a tick label behind the point.
    decimals: usize,
    /// Whether `low`, `high` and `step` count decades: places on the axis are logarithms to base 10.
    logarithmic: bool,
}

/// What the values on an axis are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Any numbers.
    Real,
    /// Numbers from 0 on; 0 is always on the axis.
    FromZero,
    /// Counted things: ticks at whole numbers only.
    Whole,
    /// Positive numbers over several orders of magnitude: a logarithmic axis. Others are drawn at its lower
    /// end.
    Log,
}

/// Share of the range that is left free at either end, so that a curve along the edge is seen.
const MARGIN: f64 = 0.04;

impl Scale {
    /// An axis that all of `values` (finite) fit on, with up to `ticks` steps from tick to tick.
    pub fn fit(values: impl Iterator<Item = f64>, kind: Values, ticks: usize) -> Scale {
        if kind == Values::Log {
            return Scale::decades(values, ticks);
        }
        let (mut low, mut high) = if kind == Values::FromZero { (0.0, 0.0) } else { (f64::MAX, f64::MIN) };
        for value in values {
            (low, high) = (f64::min(low, value), f64::max(high, value));
        }
        if low > high {
            (low, high) = (0.0, 0.0);
        }
        let size = low.abs().max(high.abs());
        // A range of nothing but rounding errors is no range.
        if high - low <= (1e-9 * size).max(1e-290) {
            let around = if kind == Values::Whole { (1e-6 * size).max(0.5) } else { 0.1 * size };
            (low, high) = match kind {
                _ if size <= 1e-290 && kind != Values::Whole => (-f64::from(kind != Values::FromZero), 1.0),
                Values::FromZero => (0.0, high + around),
                _ => (low - around, high + around),
            };
        }
        let margin = MARGIN * (high - low);
        (low, high) = (low - margin, high + margin);
        let mut step = nice((high - low) / ticks as f64);
        if kind == Values::Whole {
            step = step.max(1.0);
        }
        let size = low.abs().max(high.abs());
        let plain = if kind == Values::Whole { size < 1e7 } else { (1e-3..1e5).contains(&size) };
        let exponent = if plain { 0 } else { 3 * (size.log10() / 3.0).floor() as i32 };
        let decimals = (exponent as f64 - step.log10() - 1e-9).ceil().clamp(0.0, 15.0) as usize;
        Scale { low, high, step, exponent, decimals, logarithmic: false }
    }

    /// A logarithmic axis over whole decades, with ticks at powers of ten.
    fn decades(values: impl Iterator<Item = f64>, ticks: usize) -> Scale {
        let (mut low, mut high) = (f64::MAX, f64::MIN);
        for decade in values.filter(|&value| value > 0.0).map(f64::log10) {
            (low, high) = (low.min(decade.floor()), high.max(decade.ceil()));
        }
        if low > high {
            (low, high) = (0.0, 0.0);
        }
        high = high.max(low + 1.0);
        let step = ((high - low) / ticks as f64).ceil();
        let margin = MARGIN * (high - low);
        let (low, high) = (low - margin, high + margin);
        Scale { low, high, step, exponent: 0, decimals: 0, logarithmic: true }
    }

    /// Where a value is on the axis, in the unit of `low` and `high`.
    pub fn place(&self, value: f64) -> f64 {
        match self.logarithmic {
            true if value > 0.0 => value.log10(),
            true => self.low,
            false => value,
        }
    }

    /// A place in the unit of the axis, 10^exponent.
    pub fn in_units(&self, place: f64) -> f64 {
        place * 10_f64.powi(-self.exponent)
    }

    /// Both ends in the unit of the axis.
    pub fn range(&self) -> (f64, f64) {
        (self.in_units(self.low), self.in_units(self.high))
    }

    /// What a tick at `value` (in units of the axis) says.
    pub fn label(&self, value: f64) -> String {
        if self.logarithmic {
            return match value.round() as i32 {
                0 => "1".into(),
                1 => "10".into(),
                decade => power_of_ten(decade),
            };
        }
        let text = format!("{:.*}", self.decimals, value.abs());
        let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
        // Thin spaces part thousands.
        let mut grouped = String::new();
        for (k, digit) in whole.chars().enumerate() {
            if k > 0 && (whole.len() - k).is_multiple_of(3) && whole.len() > 4 {
                grouped.push('\u{2009}');
            }
            grouped.push(digit);
        }
        let is_zero = text.bytes().all(|b| matches!(b, b'0' | b'.'));
        format!("{}{grouped}{fraction}", if value < 0.0 && !is_zero { "−" } else { "" })
    }

    /// The labels of all ticks.
    pub fn labels(&self) -> Vec<String> {
        let (first, last) = ((self.low / self.step).ceil() as i64, (self.high / self.step).floor() as i64);
        (first..=last).map(|k| self.label(self.in_units(k as f64 * self.step))).collect()
    }

    /// What the axis title must add, e.g. ` (×10⁻⁶)`; empty without an exponent.
    pub fn unit(&self) -> String {
        if self.exponent == 0 {
            return String::new();
        }
        format!(" (×{})", power_of_ten(self.exponent))
    }
}

/// E.g. 10⁻³.
fn power_of_ten(exponent: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let superscript = |c: char| c.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize]);
    format!("10{}", exponent.to_string().chars().map(superscript).collect::<String>())
}

/// The smallest of 1, 2 and 5 times a power of ten that is no smaller than `step`.
fn nice(step: f64) -> f64 {
    let magnitude = 10_f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| step <= factor * magnitude).unwrap_or(10.0);
    factor * magnitude
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64], kind: Values) -> (Vec<String>, String) {
        let scale = Scale::fit(values.iter().copied(), kind, 7);
        (scale.labels(), scale.unit())
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(labels(&[0.0, 1.0], Values::Real).0, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&[-3.0, 9.0], Values::Real).0, ["−2", "0", "2", "4", "6", "8"]);
        assert_eq!(labels(&[5.0, 10.0], Values::FromZero).0, ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(&[0.0, 25_000.0], Values::Whole).0[1..3], ["5000", "10\u{2009}000"]);
    }

    #[test]
    fn small_and_large_numbers_get_a_unit() {
        let (ticks, unit) = labels(&[0.0, 2.1e-7], Values::FromZero);
        assert_eq!((ticks[1].as_str(), unit.as_str()), ("50", " (×10⁻⁹)"));
        let (ticks, unit) = labels(&[-4e12, 4e12], Values::Real);
        assert_eq!((ticks[0].as_str(), unit.as_str()), ("−4", " (×10¹²)"));
    }

    #[test]
    fn counted_things_have_whole_ticks() {
        assert_eq!(labels(&[0.0], Values::Whole).0, ["0"]);
        assert_eq!(labels(&[0.0, 1.0], Values::Whole).0, ["0", "1"]);
    }

    #[test]
    fn logarithmic_axes_have_ticks_at_powers_of_ten() {
        assert_eq!(labels(&[0.02, 300.0], Values::Log).0, ["10⁻²", "10⁻¹", "1", "10", "10²", "10³"]);
        assert_eq!(labels(&[1e-16, 1.0], Values::Log).0, ["10⁻¹⁵", "10⁻¹²", "10⁻⁹", "10⁻⁶", "10⁻³", "1"]);
        assert_eq!(labels(&[5.0], Values::Log).0, ["1", "10"]);
        assert_eq!(labels(&[], Values::Log).0, ["1", "10"]);
        let scale = Scale::fit([0.0, 1e-3, 1.0].into_iter(), Values::Log, 7);
        assert_eq!((scale.place(1e-3), scale.place(0.0)), (-3.0, scale.low));
        assert_eq!(scale.unit(), "");
    }

    #[test]
    fn any_values_give_a_range_with_few_ticks() {
        let hard = [0.0, 1.0, -1.0, 1e-290, -1e290, 1e290, 5e-324, 1e9, 1e9 + 1e-6, 0.1 + 0.2, 0.3, 1e16];
        for kind in [Values::Real, Values::FromZero, Values::Whole] {
            for a in hard {
                for b in hard {
                    let scale = Scale::fit([a, b].into_iter(), kind, 7);
                    let context = format!("{a} {b} {kind:?} {scale:?}");
                    assert!(scale.low < scale.high && (scale.high - scale.low).is_finite(), "{context}");
                    assert!(scale.low <= a && b <= scale.high || a > b, "{context}");
                    assert!(
                        scale.in_units(scale.high - scale.low) > 1e-9 || kind == Values::Whole,
                        "{context}"
                    );
                    let ticks = (scale.high - scale.low) / scale.step;
                    assert!(ticks <= 7.01 && (ticks > 2.0 || kind == Values::Whole), "{context}");
                }
            }
        }
        assert_eq!(Scale::fit([].into_iter(), Values::Real, 7).low, -1.08);
    }
}
