//! Two numbers that the processor computes with at once.
//!
//! Left to itself, the compiler pairs other numbers than these, and a quarter of the solver's time goes into
//! sorting them in and out.

#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable;
#[cfg(target_arch = "x86_64")]
mod sse2;

#[cfg(not(target_arch = "x86_64"))]
pub(super) use portable::F64x2;
#[cfg(target_arch = "x86_64")]
pub(super) use sse2::F64x2;

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    /// Whichever is in use, the numbers are the same.
    #[test]
    fn portable_and_not_agree() {
        let numbers = [0.0, -0.0, 1.0, -2.5, 1e-300, 0.1, 1.0 / 3.0, f64::INFINITY];
        macro_rules! results {
            ($kind:ty, $a:expr, $b:expr) => {{
                let (x, y) = (<$kind>::new($a, $b), <$kind>::new($b, 0.7));
                let all = [x.add(y), x.sub(y), x.mul(y), x.max(y), <$kind>::splat($a)];
                (all.map(|f64x2| [f64x2.first(), f64x2.second()].map(f64::to_bits)), x.same(y), x.same(x))
            }};
        }
        for a in numbers {
            for b in numbers {
                assert_eq!(
                    results!(super::sse2::F64x2, a, b),
                    results!(super::portable::F64x2, a, b),
                    "{a} {b}"
                );
            }
        }
    }
}
