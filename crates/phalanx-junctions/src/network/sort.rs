//! The sort of libstdc++, which is not stable.
//!
//! Crossings at the same distance are common (links that leave the same lane cross at distance 0), and their
//! order decides who becomes the blocker of whom. So the order that the reference's compiler produces is part
//! of the model.

use std::mem::swap;

/// Ranges up to this length are left to the insertion sort at the end.
const SMALL: usize = 16;

/// Sorts `items` by `less` exactly as `std::sort` of libstdc++ does.
pub(super) fn sort_like_libstdcxx<T: Clone>(items: &mut [T], less: impl Fn(&T, &T) -> bool) {
    if items.len() > 1 {
        let depth = 2 * items.len().ilog2();
        partition_large(items, depth, &less);
        insertion_sort(items, &less);
    }
}

fn partition_large<T: Clone>(mut items: &mut [T], mut depth: u32, less: &impl Fn(&T, &T) -> bool) {
    while items.len() > SMALL {
        if depth == 0 {
            // The reference sorts the range by a heap here; no road network was found that gets this far.
            items.sort_by(|a, b| less(b, a).cmp(&less(a, b)));
            return;
        }
        depth -= 1;
        let cut = partition(items, less);
        let (left, right) = items.split_at_mut(cut);
        partition_large(right, depth, less);
        items = left;
    }
}

fn partition<T: Clone>(items: &mut [T], less: &impl Fn(&T, &T) -> bool) -> usize {
    let n = items.len();
    items.swap(0, median(items, 1, n / 2, n - 1, less));
    let pivot = items[0].clone();
    let (mut i, mut j) = (1, n);
    loop {
        while less(&items[i], &pivot) {
            i += 1;
        }
        j -= 1;
        while less(&pivot, &items[j]) {
            j -= 1;
        }
        if i >= j {
            return i;
        }
        items.swap(i, j);
        i += 1;
    }
}

fn median<T>(items: &[T], x: usize, y: usize, z: usize, less: &impl Fn(&T, &T) -> bool) -> usize {
    let less = |a: usize, b: usize| less(&items[a], &items[b]);
    let (mut low, mut high) = (x, y);
    if !less(x, y) {
        swap(&mut low, &mut high);
    }
    // With x < y: y if y < z, z if x < z, else x; otherwise the same with x and y exchanged.
    if less(high, z) {
        high
    } else if less(low, z) {
        z
    } else {
        low
    }
}

fn insertion_sort<T: Clone>(items: &mut [T], less: &impl Fn(&T, &T) -> bool) {
    for i in 1..items.len() {
        let mut j = i;
        while j > 0 && less(&items[j], &items[j - 1]) {
            items.swap(j, j - 1);
            j -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sorts(mut items in prop::collection::vec(0u8..20, 0..300)) {
            let mut sorted = items.clone();
            sorted.sort();
            sort_like_libstdcxx(&mut items, |a, b| a < b);
            prop_assert_eq!(items, sorted);
        }
    }
}
