//! Gradients against finite differences, the fast ways against the plain ones.

use super::kernel::{Form, multiply};
use super::lanes::Lanes;
use super::matrix::{Codes, Finish, Matrix, MatrixMut, Start};
use super::ops::{GatherSum, add_rows, gather, scatter, scatter_sum};
use super::optimizer::{BETA, blend};
use super::*;
use crate::base::stream::{Place, Purpose, Sequence, Stream};

fn sequence(agent: u32) -> Sequence {
    Stream::new(11).sequence(Place { purpose: Purpose::PolicyInit, iteration: 0, trajectory: 0 }, agent)
}

fn normals<T: Real>(count: usize, sequence: &mut Sequence) -> Vec<T> {
    (0..count).map(|_| T::from_f64(sequence.normal())).collect()
}

fn net(rows: Option<[usize; 3]>, symbols: &[[usize; 3]], hidden: &[usize], outputs: usize) -> Net {
    let rows = rows.map(|[count, width, hidden]| Rows { count, width, hidden });
    let symbols =
        symbols.iter().map(|&[slots, vocabulary, dimension]| Symbols { slots, vocabulary, dimension });
    Net::new(Architecture { rows, symbols: symbols.collect(), hidden: hidden.to_vec(), outputs }, "net")
        .unwrap()
}

/// Every kind of input, with and without products of tables, and awkward sizes.
fn nets() -> Vec<Net> {
    vec![
        net(Some([3, 9, 32]), &[], &[128, 32], 5),
        net(Some([2, 9, 32]), &[[9, 6, 8]], &[128, 32], 1),
        net(None, &[[3, 2, 4], [3, 2, 4]], &[32], 1),
        net(None, &[[3, 4, 4]], &[32], 2),
        net(Some([2, 3, 5]), &[[2, 3, 3], [1, 40, 7]], &[11, 6], 3),
        net(Some([1, 1, 1]), &[], &[], 1),
        net(None, &[[1, 256, 1]], &[], 9),
        net(Some([3, 5, 17]), &[[2, 2, 6]], &[50], 43),
    ]
}

/// Random parameters with biases, and a random batch.
struct Example<T> {
    w: Vec<T>,
    size: usize,
    rows: Vec<T>,
    symbols: Vec<u8>,
}

impl<T: Lanes> Example<T> {
    fn new(net: &Net, size: usize) -> Self {
        let mut sequence = sequence(size as u32);
        let mut w: Vec<T> = net.initialise(1.0, &mut sequence);
        w.iter_mut().for_each(|w| *w += T::from_f64(0.1 * sequence.normal()));
        let rows = normals(size * net.row_inputs(), &mut sequence);
        let mut symbols = Vec::new();
        for _ in 0..size {
            for group in &net.architecture().symbols {
                symbols
                    .extend((0..group.slots).map(|_| (sequence.uniform() * group.vocabulary as f64) as u8));
            }
        }
        Example { w, size, rows, symbols }
    }

    fn batch(&self) -> Batch<'_, T> {
        Batch { size: self.size, rows: &self.rows, symbols: &self.symbols }
    }

    fn sample(&self, net: &Net, s: usize) -> Batch<'_, T> {
        Batch {
            size: 1,
            rows: &self.rows[s * net.row_inputs()..][..net.row_inputs()],
            symbols: &self.symbols[s * net.symbol_inputs()..][..net.symbol_inputs()],
        }
    }
}

fn close(found: &[f32], expected: &[f32], tolerance: f32, what: &str) {
    let scale = expected.iter().fold(1.0, |m: f32, x| m.max(x.abs()));
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!((f - e).abs() <= tolerance * scale, "{what}: {i} of {}: {f}, not {e}", found.len());
    }
}

#[test]
fn gradients_are_finite_differences() {
    for net in nets() {
        for size in [1, 2, 7, 30] {
            let Example { mut w, rows, symbols, .. } = Example::<f64>::new(&net, size);
            let batch = Batch { size, rows: &rows, symbols: &symbols };
            let mut sequence = sequence(99);
            let targets: Vec<f64> = normals(size * net.outputs(), &mut sequence);
            let mut d = vec![0.0; size * net.outputs()];
            let mut tape = Tape::default();
            for loss in [Loss::Squared, Loss::Huber { width: 0.7 }] {
                let mut value = |w: &[f64], tape: &mut Tape<f64>| {
                    loss.evaluate(net.forward(w, batch, tape), &targets, &mut d)
                };
                value(&w, &mut tape);
                let at = d.clone();
                let mut value = |w: &[f64], tape: &mut Tape<f64>| {
                    loss.evaluate(net.forward(w, batch, tape), &targets, &mut d)
                };
                let mut gradient = vec![f64::NAN; w.len()];
                net.backward(&w, batch, &mut tape, &at, &mut gradient);
                for _ in 0..60 {
                    let i = (sequence.uniform() * w.len() as f64) as usize;
                    let (here, h) = (w[i], 1e-6);
                    w[i] = here + h;
                    let more = value(&w, &mut tape);
                    w[i] = here - h;
                    let less = value(&w, &mut tape);
                    w[i] = here;
                    let difference = (more - less) / (2.0 * h);
                    assert!(
                        (difference - gradient[i]).abs() < 1e-7 * (1.0 + difference.abs()),
                        "{net:?} size {size} parameter {i}: {} is not {difference}",
                        gradient[i]
                    );
                }
            }
        }
    }
}

#[test]
fn a_batch_is_its_samples() {
    for net in nets() {
        let mut tape = Tape::default();
        for size in [1, 2, 3, 8, 64, 101] {
            let example = Example::<f32>::new(&net, size);
            let whole = net.forward(&example.w, example.batch(), &mut tape).to_vec();
            assert_eq!(whole.len(), size * net.outputs());
            for s in 0..size {
                let one = net.forward(&example.w, example.sample(&net, s), &mut tape);
                close(one, &whole[s * net.outputs()..][..net.outputs()], 2e-6, "sample");
            }
        }
    }
}

#[test]
fn an_empty_batch_has_no_gradient() {
    for net in nets() {
        let example = Example::<f32>::new(&net, 0);
        let mut tape = Tape::default();
        assert_eq!(net.forward(&example.w, example.batch(), &mut tape), &[0.0; 0]);
        let mut gradient = vec![f32::NAN; net.parameters()];
        net.backward(&example.w, example.batch(), &mut tape, &[], &mut gradient);
        assert!(gradient.iter().all(|&g| g == 0.0));
    }
}

#[test]
fn a_used_tape_changes_nothing() {
    let mut used = Tape::default();
    for net in nets().iter().chain(nets().iter().rev()) {
        for size in [70, 5] {
            let example = Example::<f32>::new(net, size);
            let d = vec![0.5; size * net.outputs()];
            let [mut a, mut b] = [vec![0.0; net.parameters()], vec![1.0; net.parameters()]];
            let mut fresh = Tape::default();
            let outputs = net.forward(&example.w, example.batch(), &mut used).to_vec();
            assert_eq!(outputs, net.forward(&example.w, example.batch(), &mut fresh));
            net.backward(&example.w, example.batch(), &mut used, &d, &mut a);
            net.backward(&example.w, example.batch(), &mut fresh, &d, &mut b);
            assert_eq!(a, b);
        }
    }
}

#[test]
fn a_nan_in_any_parameter_reaches_the_outputs() {
    for net in nets() {
        for size in [1, 30] {
            let example = Example::<f32>::new(&net, size);
            for tensor in net.tensors().iter().filter(|tensor| !tensor.name.starts_with("symbols")) {
                let mut w = example.w.clone();
                w[tensor.range.clone()].fill(f32::NAN);
                let mut tape = Tape::default();
                let outputs = net.forward(&w, example.batch(), &mut tape);
                assert!(outputs.iter().all(|y| y.is_nan()), "{}", tensor.name);
            }
        }
    }
}

/// The chain by the batched passes, one step after the other.
fn td_by_passes<T: Lanes>(net: &Net, w: &mut [T], mut target: Option<Target<T>>, chain: Chain<T>) {
    let mut tape = Tape::default();
    let mut gradient = vec![T::ZERO; w.len()];
    for (k, &reward) in chain.rewards.iter().enumerate() {
        let sample = |k: usize| Batch {
            size: 1,
            rows: &chain.rows[k * net.row_inputs()..][..net.row_inputs()],
            symbols: &chain.symbols[k * net.symbol_inputs()..][..net.symbol_inputs()],
        };
        let next = net.forward(target.as_ref().map_or(&*w, |t| t.w), sample(k + 1), &mut tape)[0];
        let value = net.forward(w, sample(k), &mut tape)[0];
        let difference = reward + chain.gamma * next - value;
        net.backward(w, sample(k), &mut tape, &[T::ONE], &mut gradient);
        sgd(-chain.eta * difference, w, &gradient);
        if let Some(target) = &mut target {
            polyak(target.tau, w, target.w);
        }
    }
}

#[test]
fn online_learning_is_one_pass_after_the_other() {
    for net in nets().into_iter().filter(|net| net.outputs() == 1) {
        for with_target in [false, true] {
            let example = Example::<f64>::new(&net, 41);
            let rewards: Vec<f64> = normals(40, &mut sequence(5));
            let (rows, symbols) = (&example.rows, &example.symbols);
            let chain = Chain { rows, symbols, rewards: &rewards, gamma: 0.9, eta: 0.01 };
            let start: Vec<f64> = net.initialise(1.0, &mut sequence(6));
            let [mut fast, mut plain] = [example.w.clone(), example.w.clone()];
            let [mut fast_target, mut plain_target] = [start.clone(), start];
            let targets = [&mut fast_target, &mut plain_target];
            let [a, b] = targets.map(|w| with_target.then_some(Target { w, tau: 0.95 }));
            net.td(&mut fast, a, chain, &mut Tape::default());
            td_by_passes(&net, &mut plain, b, chain);
            assert_ne!(fast, example.w);
            for (f, p) in fast.iter().chain(&fast_target).zip(plain.iter().chain(&plain_target)) {
                assert!((f - p).abs() < 1e-12 * (1.0 + p.abs()), "{f} is not {p}");
            }
            // In f32 the same up to rounding.
            let [rows, rewards] =
                [&example.rows, &rewards].map(|x| x.iter().map(|&x| x as f32).collect::<Vec<_>>());
            let chain = Chain { rows: &rows, symbols, rewards: &rewards, gamma: 0.9, eta: 0.01 };
            let mut single: Vec<f32> = example.w.iter().map(|&x| x as f32).collect();
            let mut slow: Vec<f32> = net.initialise(1.0, &mut sequence(6));
            let target = with_target.then_some(Target { w: &mut slow, tau: 0.95 });
            net.td(&mut single, target, chain, &mut Tape::default());
            let exact: Vec<f32> = fast.iter().map(|&x| x as f32).collect();
            close(&single, &exact, 1e-4, "online");
        }
    }
}

#[test]
fn one_online_step_follows_the_gradient() {
    for net in nets().into_iter().filter(|net| net.outputs() == 1) {
        let example = Example::<f64>::new(&net, 2);
        let (rows, symbols) = (&example.rows, &example.symbols);
        let chain = Chain { rows, symbols, rewards: &[0.7], gamma: 0.9, eta: 0.1 };
        let mut tape = Tape::default();
        let mut value = |w: &[f64], s: usize| net.forward(w, example.sample(&net, s), &mut tape)[0];
        let mut w = example.w.clone();
        let mean_square = net.td(&mut w, None, chain, &mut Tape::default());
        let difference = 0.7 + 0.9 * value(&example.w, 1) - value(&example.w, 0);
        assert!((mean_square - difference * difference).abs() < 1e-12);
        for i in 0..w.len() {
            let mut moved = example.w.clone();
            moved[i] += 1e-6;
            let more = value(&moved, 0);
            moved[i] -= 2e-6;
            let slope = (more - value(&moved, 0)) / 2e-6;
            let step = w[i] - example.w[i];
            assert!((step - 0.1 * difference * slope).abs() < 1e-8, "{i}: {step}");
        }
    }
}

/// The operations as their definitions say.
struct Plain;

impl Plain {
    fn product<T: Real>(
        at: impl Fn(usize, usize, usize) -> T,
        depth: usize,
        start: Start<T>,
        finish: Finish<T>,
        mut y: MatrixMut<T>,
    ) {
        for i in 0..y.rows {
            for j in 0..y.columns {
                let first = match start {
                    Start::Zero => T::ZERO,
                    Start::Bias(bias) => bias[j],
                    Start::Result => y.row(i)[j],
                };
                let sum = first + (0..depth).map(|k| at(i, j, k)).fold(T::ZERO, |sum, x| sum + x);
                y.row_mut(i)[j] = match finish {
                    Finish::Relu => {
                        if sum > T::ZERO {
                            sum
                        } else {
                            T::ZERO
                        }
                    }
                    Finish::Mask(kept) if kept.row(i)[j] <= T::ZERO => T::ZERO,
                    _ => sum,
                };
            }
        }
    }
}

/// The operations, of which there is a fast and a plain implementation.
trait Ops<T: Real> {
    /// `y = finish(start + x·w)`.
    fn linear(&mut self, x: Matrix<T>, w: Matrix<T>, start: Start<T>, finish: Finish<T>, y: MatrixMut<T>);

    /// Backward to the data: `dx = finish(start + dy·wᵀ)`.
    fn linear_to_data(
        &mut self,
        dy: Matrix<T>,
        w: Matrix<T>,
        start: Start<T>,
        finish: Finish<T>,
        dx: MatrixMut<T>,
    );

    /// Backward to the weights: `dw = start + xᵀ·dy`.
    fn linear_to_weights(&mut self, x: Matrix<T>, dy: Matrix<T>, start: Start<T>, dw: MatrixMut<T>);

    /// Backward to the biases: `db` += the sum of the rows of `dy`.
    fn add_rows(&mut self, dy: Matrix<T>, db: &mut [T]);

    /// `y[s] = [table[c₀] | table[c₁] | …]` for the symbols c of sample s.
    fn gather(&mut self, table: Matrix<T>, codes: Codes, y: MatrixMut<T>);

    /// Backward of [`Ops::gather`]: `table[c_j] += dy[s][j-th part]`.
    fn scatter(&mut self, dy: Matrix<T>, codes: Codes, table: MatrixMut<T>);

    /// `y[s] = start + Σ_j table[j·vocabulary + c_j]`, a table for each slot.
    fn gather_sum(
        &mut self,
        table: Matrix<T>,
        codes: Codes,
        vocabulary: usize,
        start: Start<T>,
        y: MatrixMut<T>,
    );

    /// Backward of [`Ops::gather_sum`]: `table[j·vocabulary + c_j] += dy[s]`.
    fn scatter_sum(&mut self, dy: Matrix<T>, codes: Codes, vocabulary: usize, table: MatrixMut<T>);

    /// One Adam step down the gradient; `step` counts from 1.
    fn adam(
        &mut self,
        rule: &Adam,
        step: u64,
        w: &mut [T],
        gradient: &[T],
        first: &mut [T],
        second: &mut [T],
    );

    /// `y = a·x + b·y`.
    fn blend(&mut self, a: T, x: &[T], b: T, y: &mut [T]);
}

/// The operations as neural networks use them, with their buffer.
struct Fast<T>(Vec<T>);

impl<T: Lanes> Ops<T> for Fast<T> {
    fn linear(&mut self, x: Matrix<T>, w: Matrix<T>, start: Start<T>, finish: Finish<T>, y: MatrixMut<T>) {
        multiply(Form::Plain, x, w, start, finish, y, &mut self.0);
    }

    fn linear_to_data(
        &mut self,
        dy: Matrix<T>,
        w: Matrix<T>,
        start: Start<T>,
        finish: Finish<T>,
        dx: MatrixMut<T>,
    ) {
        multiply(Form::RightTransposed, dy, w, start, finish, dx, &mut self.0);
    }

    fn linear_to_weights(&mut self, x: Matrix<T>, dy: Matrix<T>, start: Start<T>, dw: MatrixMut<T>) {
        multiply(Form::LeftTransposed, x, dy, start, Finish::Plain, dw, &mut self.0);
    }

    fn add_rows(&mut self, dy: Matrix<T>, db: &mut [T]) {
        add_rows(dy, db);
    }

    fn gather(&mut self, table: Matrix<T>, codes: Codes, y: MatrixMut<T>) {
        gather(table, codes, y);
    }

    fn scatter(&mut self, dy: Matrix<T>, codes: Codes, table: MatrixMut<T>) {
        scatter(dy, codes, table);
    }

    fn gather_sum(
        &mut self,
        table: Matrix<T>,
        codes: Codes,
        vocabulary: usize,
        start: Start<T>,
        y: MatrixMut<T>,
    ) {
        T::dispatch(GatherSum { table, codes, vocabulary, start, y });
    }

    fn scatter_sum(&mut self, dy: Matrix<T>, codes: Codes, vocabulary: usize, table: MatrixMut<T>) {
        scatter_sum(dy, codes, vocabulary, table);
    }

    fn adam(
        &mut self,
        rule: &Adam,
        step: u64,
        w: &mut [T],
        gradient: &[T],
        first: &mut [T],
        second: &mut [T],
    ) {
        rule.descend(step, w, gradient, first, second);
    }

    fn blend(&mut self, a: T, x: &[T], b: T, y: &mut [T]) {
        blend(a, x, b, y);
    }
}

impl<T: Real + Into<f64>> Ops<T> for Plain {
    fn linear(&mut self, x: Matrix<T>, w: Matrix<T>, start: Start<T>, finish: Finish<T>, y: MatrixMut<T>) {
        Self::product(|i, j, k| x.row(i)[k] * w.row(k)[j], x.columns, start, finish, y);
    }

    fn linear_to_data(
        &mut self,
        dy: Matrix<T>,
        w: Matrix<T>,
        start: Start<T>,
        finish: Finish<T>,
        dx: MatrixMut<T>,
    ) {
        Self::product(|i, j, k| dy.row(i)[k] * w.row(j)[k], dy.columns, start, finish, dx);
    }

    fn linear_to_weights(&mut self, x: Matrix<T>, dy: Matrix<T>, start: Start<T>, dw: MatrixMut<T>) {
        Self::product(|i, j, k| x.row(k)[i] * dy.row(k)[j], x.rows, start, Finish::Plain, dw);
    }

    fn add_rows(&mut self, dy: Matrix<T>, db: &mut [T]) {
        (0..dy.rows).for_each(|s| db.iter_mut().zip(dy.row(s)).for_each(|(b, &d)| *b += d));
    }

    fn gather(&mut self, table: Matrix<T>, codes: Codes, mut y: MatrixMut<T>) {
        for s in 0..y.rows {
            for j in 0..y.columns {
                y.row_mut(s)[j] = table.row(codes.sample(s)[j / table.columns].into())[j % table.columns];
            }
        }
    }

    fn scatter(&mut self, dy: Matrix<T>, codes: Codes, mut table: MatrixMut<T>) {
        for s in 0..dy.rows {
            for j in 0..dy.columns {
                let columns = table.columns;
                table.row_mut(codes.sample(s)[j / columns].into())[j % columns] += dy.row(s)[j];
            }
        }
    }

    fn gather_sum(
        &mut self,
        table: Matrix<T>,
        codes: Codes,
        vocabulary: usize,
        start: Start<T>,
        mut y: MatrixMut<T>,
    ) {
        for s in 0..y.rows {
            for j in 0..y.columns {
                let mut sum = match start {
                    Start::Zero => T::ZERO,
                    Start::Bias(bias) => bias[j],
                    Start::Result => y.row(s)[j],
                };
                for (slot, &code) in codes.sample(s).iter().enumerate() {
                    sum += table.row(slot * vocabulary + usize::from(code))[j];
                }
                y.row_mut(s)[j] = sum;
            }
        }
    }

    fn scatter_sum(&mut self, dy: Matrix<T>, codes: Codes, vocabulary: usize, mut table: MatrixMut<T>) {
        for s in 0..dy.rows {
            for (slot, &code) in codes.sample(s).iter().enumerate() {
                let row = table.row_mut(slot * vocabulary + usize::from(code));
                row.iter_mut().zip(dy.row(s)).for_each(|(t, &d)| *t += d);
            }
        }
    }

    fn adam(
        &mut self,
        rule: &Adam,
        step: u64,
        w: &mut [T],
        gradient: &[T],
        first: &mut [T],
        second: &mut [T],
    ) {
        let [beta1, beta2] = BETA;
        for i in 0..w.len() {
            let [g, m, v]: [f64; 3] = [gradient[i], first[i], second[i]].map(T::into);
            let m = beta1 * m + (1.0 - beta1) * g;
            let v = beta2 * v + (1.0 - beta2) * g * g;
            (first[i], second[i]) = (T::from_f64(m), T::from_f64(v));
            let (m, v) = (m / (1.0 - beta1.powi(step as i32)), v / (1.0 - beta2.powi(step as i32)));
            w[i] -= T::from_f64(rule.rate * m / (v.sqrt() + rule.epsilon));
        }
    }

    fn blend(&mut self, a: T, x: &[T], b: T, y: &mut [T]) {
        y.iter_mut().zip(x).for_each(|(y, &x)| *y = a * x + b * *y);
    }
}

/// Runs one operation on both implementations, on the same numbers, and compares all they wrote.
fn same<T: Lanes + Into<f64>>(length: usize, seed: u32, mut run: impl FnMut(&mut dyn Ops<T>, &mut [T])) {
    let before: Vec<T> = normals(length, &mut sequence(seed));
    let [mut fast, mut plain] = [before.clone(), before];
    run(&mut Fast(Vec::new()), &mut fast);
    run(&mut Plain, &mut plain);
    let tolerance = if size_of::<T>() == 4 { 2e-5 } else { 1e-13 };
    for (i, (f, p)) in fast.iter().zip(&plain).enumerate() {
        let [f, p]: [f64; 2] = [*f, *p].map(T::into);
        assert!((f - p).abs() < tolerance * (1.0 + p.abs()), "{i}: {f} is not {p}");
    }
}

#[test]
fn linear_operations_are_their_definitions() {
    linear_operations::<f32>();
    linear_operations::<f64>();
}

fn linear_operations<T: Lanes + Into<f64>>() {
    let sizes = [1, 2, 3, 5, 8, 9, 15, 16, 17, 31, 33, 40, 65];
    let mut sequence = sequence(0);
    for case in 0..300 {
        let mut size = || sizes[(sequence.uniform() * sizes.len() as f64) as usize];
        let (m, n) = (size(), size());
        let k = if case % 20 == 0 { 0 } else { size() };
        let gap = case % 3;
        let a: Vec<T> = normals((m.max(k) + 1) * (m.max(k) + gap), &mut sequence);
        let b: Vec<T> = normals((n.max(k) + 1) * (n.max(k) + gap), &mut sequence);
        let kept: Vec<T> = normals(m * n, &mut sequence);
        let bias: Vec<T> = normals(n, &mut sequence);
        let start = [Start::Zero, Start::Bias(&bias), Start::Result][case % 3];
        let finish = [Finish::Plain, Finish::Relu, Finish::Mask(Matrix::new(&kept, m, n))][case / 3 % 3];
        let view =
            |data, rows, columns: usize| Matrix { data, rows, columns, stride: (columns + gap).max(1) };
        // One number more than the result: nothing outside of it may change.
        let length = (m - 1) * (n + gap) + n + 1;
        fn result<T>(data: &mut [T], rows: usize, columns: usize, gap: usize) -> MatrixMut<'_, T> {
            MatrixMut { data, rows, columns, stride: columns + gap }
        }
        same(length, 1, |ops, y| {
            ops.linear(view(&a, m, k), view(&b, k, n), start, finish, result(y, m, n, gap))
        });
        same(length, 2, |ops, y| {
            ops.linear_to_data(view(&a, m, k), view(&b, n, k), start, finish, result(y, m, n, gap))
        });
        same(length, 3, |ops, y| {
            ops.linear_to_weights(view(&a, k, m), view(&b, k, n), start, result(y, m, n, gap))
        });
        same(n, 4, |ops, y| ops.add_rows(view(&b, k, n), y));
    }
}

#[test]
fn other_operations_are_their_definitions() {
    other_operations::<f32>();
    other_operations::<f64>();
}

fn other_operations<T: Lanes + Into<f64>>() {
    let mut sequence = sequence(1);
    for width in [1, 4, 7, 32, 33, 100, 150] {
        let (size, slots, vocabulary) = (13, 3, 5);
        let bytes: Vec<u8> = (0..size * (slots + 1)).map(|_| (sequence.uniform() * 5.0) as u8).collect();
        let codes = Codes { data: &bytes[1..], slots, stride: slots + 1 };
        let x: Vec<T> = normals(2500.max(size * width * slots), &mut sequence);
        same(size * slots * width, 5, |ops, y| {
            ops.gather(Matrix::new(&x, vocabulary, width), codes, MatrixMut::new(y, size, slots * width));
        });
        same(vocabulary * width, 6, |ops, y| {
            ops.scatter(Matrix::new(&x, size, slots * width), codes, MatrixMut::new(y, vocabulary, width));
        });
        for start in [Start::Zero, Start::Bias(&x), Start::Result] {
            same(size * width, 7, |ops, y| {
                let table = Matrix::new(&x, slots * vocabulary, width);
                ops.gather_sum(table, codes, vocabulary, start, MatrixMut::new(y, size, width));
            });
        }
        same(slots * vocabulary * width, 8, |ops, y| {
            let table = MatrixMut::new(y, slots * vocabulary, width);
            ops.scatter_sum(Matrix::new(&x, size, width), codes, vocabulary, table);
        });
        same::<T>(3 * width, 9, |ops, y| {
            let (w, moments) = y.split_at_mut(width);
            moments.iter_mut().for_each(|m| *m = (*m).abs());
            let (first, second) = moments.split_at_mut(width);
            ops.adam(&Adam::new(0.1), 3, w, &x[..width], first, second);
        });
        same(width, 10, |ops, y| ops.blend(T::from_f64(0.3), &x[..width], T::from_f64(-1.5), y));
    }
}
