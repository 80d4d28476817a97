//! Are elementary functions right, and the same in C?

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use phalanx_agent::elementary as own;

/// A function of one or two numbers, its name in C, the standard library's, and the allowed error in ulp.
struct Function {
    name: &'static str,
    own: fn(f64, f64) -> f64,
    standard: fn(f64, f64) -> f64,
    /// Inputs that a draw is turned into, beside any bits at all.
    near: fn(f64, f64) -> (f64, f64),
    most_ulp: f64,
}

const FUNCTIONS: [Function; 12] = [
    Function {
        name: "px_exp(x)",
        own: |x, _| own::exp(x),
        standard: |x, _| x.exp(),
        near: |u, v| (if v < 0.5 { 1500.0 * u - 750.0 } else { 2.0 * u - 1.0 }, 0.0),
        most_ulp: 1.0,
    },
    Function {
        name: "px_exp_m1(x)",
        own: |x, _| own::exp_m1(x),
        standard: |x, _| x.exp_m1(),
        near: |u, v| (if v < 0.5 { 100.0 * u - 50.0 } else { (2.0 * u - 1.0) * 2f64.powf(-60.0 * v) }, 0.0),
        most_ulp: 1.0,
    },
    Function {
        name: "px_ln(x)",
        own: |x, _| own::ln(x),
        standard: |x, _| x.ln(),
        near: |u, v| (if v < 0.5 { 2.0 * u } else { 1.0 + (u - 0.5) * v }, 0.0),
        most_ulp: 1.0,
    },
    Function {
        name: "px_ln_1p(x)",
        own: |x, _| own::ln_1p(x),
        standard: |x, _| x.ln_1p(),
        near: |u, v| (if v < 0.5 { 3.0 * u - 1.0 } else { (u - 0.5) * 2f64.powf(-60.0 * v) }, 0.0),
        most_ulp: 1.5,
    },
    Function {
        name: "px_log10(x)",
        own: |x, _| own::log10(x),
        standard: |x, _| x.log10(),
        near: |u, v| (1.0 + 1e3 * u * v, 0.0),
        most_ulp: 2.0,
    },
    Function {
        name: "px_pow(x, y)",
        own: own::pow,
        standard: |x, y| x.powf(y),
        near: |u, v| (2.0 * u * v, 200.0 * v - 100.0),
        most_ulp: 1.0,
    },
    // Repeated squaring gathers errors by design: only its bits in C are tested.
    Function {
        name: "px_powi(x, y > -1e9 && y < 1e9 ? (int)y : 7)",
        own: |x, y| own::powi(x, if y > -1e9 && y < 1e9 { y as i32 } else { 7 }),
        standard: |x, y| own::powi(x, if y > -1e9 && y < 1e9 { y as i32 } else { 7 }),
        near: |u, v| (2.0 * u, 200.0 * v - 100.0),
        most_ulp: 0.0,
    },
    Function {
        name: "px_cbrt(x)",
        own: |x, _| own::cbrt(x),
        standard: |x, _| x.cbrt(),
        near: |u, _| (1e4 * u, 0.0),
        most_ulp: 1.0,
    },
    Function {
        name: "px_hypot(x, y)",
        own: own::hypot,
        standard: |x, y| x.hypot(y),
        near: |u, v| (u, v),
        most_ulp: 2.0,
    },
    Function {
        name: "px_tanh(x)",
        own: |x, _| own::tanh(x),
        standard: |x, _| x.tanh(),
        near: |u, v| (if v < 0.5 { 50.0 * u - 25.0 } else { 2.0 * u - 1.0 }, 0.0),
        most_ulp: 3.0,
    },
    Function {
        name: "px_sin(x)",
        own: |x, _| own::sin(x),
        standard: |x, _| angle(x).sin(),
        near: |u, v| (if v < 0.9 { 10.0 * u - 5.0 } else { 2e6 * u - 1e6 }, 0.0),
        most_ulp: 1.0,
    },
    Function {
        name: "px_cos(x)",
        own: |x, _| own::cos(x),
        standard: |x, _| angle(x).cos(),
        near: |u, v| (if v < 0.9 { 10.0 * u - 5.0 } else { 2e6 * u - 1e6 }, 0.0),
        most_ulp: 1.0,
    },
];

/// Name in C, own function, the standard library's in double precision.
type Single = (&'static str, fn(f32) -> f32, fn(f64) -> f64);

const FUNCTIONS_F32: [Single; 3] = [
    ("px_exp_f32(z)", own::exp_f32, f64::exp),
    ("px_tanh_f32(z)", own::tanh_f32, f64::tanh),
    ("px_ln_1p_f32(z)", own::ln_1p_f32, f64::ln_1p),
];

fn angle(x: f64) -> f64 {
    if x.abs() <= own::LARGEST_ANGLE { x } else { f64::NAN }
}

const SPECIAL: [f64; 20] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    3.0,
    -3.0,
    1e3,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    5e-324,
    -5e-324,
    709.782712893384,
    -745.1332191019412,
    f64::EPSILON,
];

/// Any bits (SplitMix64).
struct Bits(u64);

impl Bits {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn inputs(function: &Function, count: usize) -> Vec<(f64, f64)> {
    let mut bits = Bits(function.name.len() as u64);
    let mut all: Vec<_> = SPECIAL.iter().flat_map(|&x| SPECIAL.iter().map(move |&y| (x, y))).collect();
    all.extend((0..count).map(|k| match k % 3 {
        0 => (f64::from_bits(bits.next()), f64::from_bits(bits.next())),
        _ => (function.near)(bits.uniform(), bits.uniform()),
    }));
    all
}

fn inputs_f32() -> impl Iterator<Item = f32> {
    (0..=u32::MAX).step_by(4001).map(f32::from_bits).chain((-110_000..110_000).map(|k| k as f32 * 1e-3))
}

/// How far `found` is from `wanted`, in units of the last place of the latter.
fn ulps(found: f64, wanted: f64) -> f64 {
    if found.to_bits() == wanted.to_bits() || found.is_nan() && wanted.is_nan() {
        return 0.0;
    }
    if !found.is_finite() || !wanted.is_finite() || found == wanted {
        return f64::INFINITY;
    }
    let unit = f64::from_bits(wanted.abs().to_bits() + 1) - wanted.abs();
    (found - wanted).abs() / unit
}

#[test]
fn as_right_as_the_standard_library() {
    for function in &FUNCTIONS {
        let (mut worst, mut at) = (0.0, (0.0, 0.0));
        for (x, y) in inputs(function, 3_000_000) {
            let error = ulps((function.own)(x, y), (function.standard)(x, y));
            if error > worst {
                (worst, at) = (error, (x, y));
            }
        }
        println!("{}: {worst} ulp at {at:?}", function.name);
        assert!(worst <= function.most_ulp, "{}: {worst} ulp at {at:?}", function.name);
    }
}

#[test]
fn single_precision_is_right() {
    for (name, function, standard) in FUNCTIONS_F32 {
        let (mut worst, mut at): (f64, f32) = (0.0, 0.0);
        for x in inputs_f32() {
            let (found, exact) = (function(x), standard(f64::from(x)));
            let nearest = exact as f32;
            if found.to_bits() == nearest.to_bits() || found.is_nan() && nearest.is_nan() {
                continue;
            }
            assert!(found.is_finite() && nearest.is_finite(), "{name}: {found} for {exact} at {x}");
            let unit = f32::from_bits(nearest.abs().to_bits() + 1) - nearest.abs();
            let error = (f64::from(found) - exact).abs() / f64::from(unit);
            if error > worst {
                (worst, at) = (error, x);
            }
        }
        println!("{name}: {worst} ulp at {at}");
        assert!(worst <= 1.0, "{name}: {worst} ulp at {at}");
    }
}

#[test]
fn logarithms_of_powers_of_ten_are_whole() {
    for k in -300..=300 {
        let power: f64 = format!("1e{k}").parse().unwrap();
        assert_eq!(own::log10(power), f64::from(k));
    }
    for k in 0..1000 {
        let root = f64::from(k);
        assert_eq!(own::cbrt(root * root * root), root);
        assert_eq!(own::pow(root, 2.0), root * root);
        assert!(ulps(own::pow(root, 0.5), root.sqrt()) <= 1.0);
        assert_eq!(own::powi(root, 2), root * root);
    }
}

/// Compiles the text with a main program that reads pairs of numbers and writes the function of each.
fn compile_c(folder: &Path) -> bool {
    let cases: String =
        FUNCTIONS.iter().enumerate().map(|(k, f)| format!("case {k}: r = {}; break;\n", f.name)).collect();
    let singles: String = FUNCTIONS_F32
        .iter()
        .enumerate()
        .map(|(k, f)| format!("case {}: r = {}; break;\n", FUNCTIONS.len() + k, f.0))
        .collect();
    let text = format!(
        "#define DEVICE static inline\n{}\n#include <stdio.h>\n#include <stdlib.h>\n\
         int main(int count, char **words) {{\n\
         int which = count > 1 ? atoi(words[1]) : 0; double in[2];\n\
         while (fread(in, 16, 1, stdin) == 1) {{\n\
         double x = in[0], y = in[1], r = 0; float z = (float)x;\n\
         (void)y; (void)z;\n\
         switch (which) {{\n{cases}{singles}}}\n\
         fwrite(&r, 8, 1, stdout); }}\nreturn 0; }}\n",
        own::C_TEXT
    );
    std::fs::write(folder.join("elementary.c"), text).unwrap();
    let options =
        ["-std=c99", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"];
    let built = Command::new("gcc")
        .args(options)
        .args(["-o", "elementary", "elementary.c", "-lm"])
        .current_dir(folder)
        .output();
    match built {
        Ok(done) => {
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            true
        }
        Err(e) => {
            println!("skipped: gcc: {e}");
            false
        }
    }
}

fn run_c(folder: &Path, which: usize, inputs: &[(f64, f64)]) -> Vec<f64> {
    let mut child = Command::new(folder.join("elementary"))
        .arg(which.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes: Vec<u8> =
        inputs.iter().flat_map(|(x, y)| [x.to_ne_bytes(), y.to_ne_bytes()]).flatten().collect();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes).unwrap());
    let output = child.wait_with_output().unwrap().stdout;
    writer.join().unwrap();
    output.chunks_exact(8).map(|bytes| f64::from_ne_bytes(bytes.try_into().unwrap())).collect()
}

#[test]
fn the_same_bits_in_c() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    if !compile_c(folder) {
        return;
    }
    let is_same = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    for (k, function) in FUNCTIONS.iter().enumerate() {
        let inputs = inputs(function, 1_000_000);
        let found = run_c(folder, k, &inputs);
        assert_eq!(found.len(), inputs.len());
        for (&(x, y), &c) in inputs.iter().zip(&found) {
            let rust = (function.own)(x, y);
            assert!(is_same(rust, c), "{} at {x:?}, {y:?}: {rust:?} in Rust, {c:?} in C", function.name);
        }
    }
    for (k, (name, function, _)) in FUNCTIONS_F32.iter().enumerate() {
        let inputs: Vec<_> = inputs_f32().map(|x| (f64::from(x), 0.0)).collect();
        let found = run_c(folder, FUNCTIONS.len() + k, &inputs);
        for (&(x, _), &c) in inputs.iter().zip(&found) {
            let rust = f64::from(function(x as f32));
            assert!(is_same(rust, c), "{name} at {x:?}: {rust:?} in Rust, {c:?} in C");
        }
    }
}
