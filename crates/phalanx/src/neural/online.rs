//! Temporal-difference learning one sample at a time: the steps depend on each other, so there is nothing to
//! batch. A step is vectorised over the units of a layer.

use pulp::{Simd, WithSimd};

use super::architecture::{Linear, Net};
use super::kernel::{Product, ensure_length};
use super::lanes::Lanes;
use super::matrix::{Finish, Matrix, MatrixMut, Start};
use super::pass::{Batch, Tape};

/// Samples x₀, …, x_K that follow each other, with the rewards r₀, …, r_{K−1} between them.
#[derive(Debug, Clone, Copy)]
pub struct Chain<'a, T> {
    /// (K + 1) × (rows · width) numbers.
    pub rows: &'a [T],
    /// (K + 1) × slots bytes.
    pub symbols: &'a [u8],
    /// K rewards.
    pub rewards: &'a [T],
    /// Discount factor γ.
    pub gamma: T,
    /// Step size η.
    pub eta: T,
}

/// A neural network that follows slowly and values the next sample.
#[derive(Debug)]
pub struct Target<'a, T> {
    /// Its parameters.
    pub w: &'a mut [T],
    /// What it keeps of itself each step: w̄ ← τ·w̄ + (1 − τ)·w.
    pub tau: T,
}

impl Net {
    /// For k = 0, …, K−1: w ← w + η·(r_k + γ·Q(x_{k+1}) − Q(x_k))·∇Q(x_k), and Q(x_{k+1}) by the target
    /// neural network if there is one. Q is the neural network's only output. Returns the mean square of the
    /// K differences.
    pub fn td<T: Lanes>(
        &self,
        w: &mut [T],
        target: Option<Target<T>>,
        chain: Chain<T>,
        tape: &mut Tape<T>,
    ) -> T {
        let samples = chain.rewards.len() + 1;
        assert_eq!(self.outputs(), 1, "a value is one number");
        self.check(w, Batch { size: samples, rows: chain.rows, symbols: chain.symbols });
        if let Some(target) = &target {
            assert_eq!(target.w.len(), w.len(), "parameters of another network");
        }
        T::dispatch(Run { net: self, w, target, chain, tape })
    }
}

struct Run<'a, 'b, T> {
    net: &'a Net,
    w: &'a mut [T],
    target: Option<Target<'a, T>>,
    chain: Chain<'a, T>,
    tape: &'b mut Tape<T>,
}

impl<T: Lanes> WithSimd for Run<'_, '_, T> {
    type Output = T;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> T {
        let Run { net, w, mut target, chain, tape } = self;
        let mut squares = T::ZERO;
        for (k, &reward) in chain.rewards.iter().enumerate() {
            let [value, next] = match &mut target {
                // Both at once: they share the weights.
                None => evaluate::<T, S, 2>(simd, net, w, chain, k, tape),
                Some(target) => {
                    let [next] = evaluate::<T, S, 1>(simd, net, target.w, chain, k + 1, tape);
                    let [value] = evaluate::<T, S, 1>(simd, net, w, chain, k, tape);
                    [value, next]
                }
            };
            let difference = reward + chain.gamma * next - value;
            squares += difference * difference;
            ascend(simd, net, w, chain, k, chain.eta * difference, tape);
            if let Some(Target { w: slow, tau }) = &mut target {
                for (slow, &fast) in slow.iter_mut().zip(&*w) {
                    *slow = *tau * *slow + (T::ONE - *tau) * fast;
                }
            }
        }
        squares / T::from_f64(chain.rewards.len().max(1) as f64)
    }
}

/// Q of the samples k, …, k + N − 1. The tape keeps what each layer returned.
#[inline(always)]
fn evaluate<T: Lanes, S: Simd, const N: usize>(
    simd: S,
    net: &Net,
    w: &[T],
    chain: Chain<T>,
    k: usize,
    tape: &mut Tape<T>,
) -> [T; N] {
    let Tape { scratch, input, layers, .. } = tape;
    let width = net.layers[0].inputs;
    let input = ensure_length(input, N * width);
    for (s, input) in input.chunks_exact_mut(width).enumerate() {
        if let (Some(layer), Some(rows)) = (&net.row_layer, net.architecture().rows) {
            let x = &chain.rows[(k + s) * net.row_inputs()..][..net.row_inputs()];
            let x = Matrix::new(x, rows.count, rows.width);
            let y = MatrixMut::new(input, rows.count, rows.hidden);
            let bias = Start::Bias(&w[layer.biases()]);
            let right = layer.matrix(w);
            Product { left: x, right, start: bias, finish: Finish::Relu, result: y, scratch }
                .compute_with(simd);
        }
        for table in &net.tables {
            let codes = &chain.symbols[(k + s) * net.slots + table.slot..][..table.symbols.slots];
            let embeddings = &w[table.range()];
            let dimension = table.symbols.dimension;
            for (part, &code) in input[table.column..].chunks_exact_mut(dimension).zip(codes) {
                part.copy_from_slice(&embeddings[usize::from(code) * dimension..][..dimension]);
            }
        }
    }
    if layers.len() < net.layers.len() {
        layers.resize_with(net.layers.len(), Vec::new);
    }
    let last = net.layers.len() - 1;
    for (l, layer) in net.layers.iter().enumerate() {
        let (below, here) = layers.split_at_mut(l);
        let x = Matrix::new(below.last().map_or(&*input, |x| x), N, layer.inputs);
        let y = MatrixMut::new(ensure_length(&mut here[0], N * layer.outputs), N, layer.outputs);
        let finish = if l == last { Finish::Plain } else { Finish::Relu };
        let bias = Start::Bias(&w[layer.biases()]);
        let right = layer.matrix(w);
        Product { left: x, right, start: bias, finish, result: y, scratch }.compute_with(simd);
    }
    std::array::from_fn(|s| layers[last][s])
}

/// w += `step`·∇Q(x_k), from what the first sample on the tape left.
#[inline(always)]
fn ascend<T: Lanes, S: Simd>(
    simd: S,
    net: &Net,
    w: &mut [T],
    chain: Chain<T>,
    k: usize,
    step: T,
    tape: &mut Tape<T>,
) {
    let Tape { input, layers, above, below, .. } = tape;
    ensure_length(above, 1)[0] = step;
    for (l, layer) in net.layers.iter().enumerate().rev() {
        let x = if l == 0 { &input[..layer.inputs] } else { &layers[l - 1][..layer.inputs] };
        let dx = ensure_length(below, layer.inputs);
        ascend_layer(simd, layer, w, x, &above[..layer.outputs], Some(dx));
        // Embeddings have no ReLU.
        let masked = if l == 0 { net.row_columns() } else { layer.inputs };
        for (dx, &x) in dx[..masked].iter_mut().zip(x) {
            *dx = if x > T::ZERO { *dx } else { T::ZERO };
        }
        std::mem::swap(above, below);
    }
    if let (Some(layer), Some(rows)) = (&net.row_layer, net.architecture().rows) {
        let x = &chain.rows[k * net.row_inputs()..][..net.row_inputs()];
        for (x, dy) in x.chunks_exact(rows.width).zip(above.chunks_exact(rows.hidden)) {
            ascend_layer(simd, layer, w, x, dy, None);
        }
    }
    for table in &net.tables {
        let codes = &chain.symbols[k * net.slots + table.slot..][..table.symbols.slots];
        let embeddings = &mut w[table.range()];
        let dimension = table.symbols.dimension;
        for (part, &code) in above[table.column..].chunks_exact(dimension).zip(codes) {
            let row = &mut embeddings[usize::from(code) * dimension..][..dimension];
            row.iter_mut().zip(part).for_each(|(e, &d)| *e += d);
        }
    }
}

/// dx = W·dy, then W += x ⊗ dy and b += dy: each row of the weights is loaded once.
#[inline(always)]
fn ascend_layer<T: Lanes, S: Simd>(
    simd: S,
    layer: &Linear,
    w: &mut [T],
    x: &[T],
    dy: &[T],
    mut dx: Option<&mut [T]>,
) {
    let (weights, biases) = w[layer.offset..layer.biases().end].split_at_mut(layer.inputs * layer.outputs);
    if let (&[dy], Some(dx)) = (dy, &mut dx) {
        for ((w, dx), &x) in weights.iter_mut().zip(dx.iter_mut()).zip(x) {
            *dx = *w * dy;
            *w += x * dy;
        }
    } else {
        let mut i = 0;
        while i + 4 <= layer.inputs {
            let (rows, x) = (&mut weights[i * layer.outputs..], &x[i..]);
            ascend_rows::<T, S, 4>(simd, rows, x, dy, dx.as_deref_mut(), i);
            i += 4;
        }
        while i < layer.inputs {
            let (rows, x) = (&mut weights[i * layer.outputs..], &x[i..]);
            ascend_rows::<T, S, 1>(simd, rows, x, dy, dx.as_deref_mut(), i);
            i += 1;
        }
    }
    biases.iter_mut().zip(dy).for_each(|(b, &dy)| *b += dy);
}

/// R rows of the weights, which are those of the inputs from `i` on.
#[inline(always)]
fn ascend_rows<T: Lanes, S: Simd, const R: usize>(
    simd: S,
    weights: &mut [T],
    x: &[T],
    dy: &[T],
    dx: Option<&mut [T]>,
    i: usize,
) {
    match T::parts::<S>() {
        1 => ascend_parts::<T, S, R, 1>(simd, weights, x, dy, dx, i),
        2 => ascend_parts::<T, S, R, 2>(simd, weights, x, dy, dx, i),
        4 => ascend_parts::<T, S, R, 4>(simd, weights, x, dy, dx, i),
        _ => ascend_parts::<T, S, R, 16>(simd, weights, x, dy, dx, i),
    }
}

/// The same with P vectors for each sum.
#[inline(always)]
fn ascend_parts<T: Lanes, S: Simd, const R: usize, const P: usize>(
    simd: S,
    weights: &mut [T],
    x: &[T],
    dy: &[T],
    dx: Option<&mut [T]>,
    i: usize,
) {
    let (lanes, outputs) = (T::lanes::<S>(), dy.len());
    let mut factors = [T::splat(simd, T::ZERO); R];
    for r in 0..R {
        factors[r] = T::splat(simd, x[r]);
    }
    let mut sums = [[T::splat(simd, T::ZERO); P]; R];
    let weights = &mut weights[..R * outputs];
    let whole = outputs / (P * lanes) * (P * lanes);
    for first in (0..whole).step_by(P * lanes) {
        for p in 0..P {
            let column = first + p * lanes;
            let d = T::vectors::<S>(&dy[column..column + lanes])[0];
            for r in 0..R {
                let w = &mut T::vectors_mut::<S>(&mut weights[r * outputs + column..][..lanes])[0];
                sums[r][p] = T::mul_add(simd, *w, d, sums[r][p]);
                *w = T::mul_add(simd, factors[r], d, *w);
            }
        }
    }
    for p in 0..P {
        let first = whole + p * lanes;
        if first >= outputs {
            break;
        }
        let used = lanes.min(outputs - first);
        let d = T::load_part(simd, &dy[first..first + used]);
        for r in 0..R {
            let part = &mut weights[r * outputs + first..][..used];
            let w = T::load_part(simd, part);
            sums[r][p] = T::mul_add(simd, w, d, sums[r][p]);
            T::store_part(simd, part, T::mul_add(simd, factors[r], d, w));
        }
    }
    if let Some(dx) = dx {
        for r in 0..R {
            dx[i + r] = T::sum_of_parts::<S, P>(simd, sums[r]);
        }
    }
}
