//! Linear policies as operators.
//!
//! Digits that read one member, which are most, are looked up all at once; each of the others has operators
//! of its own. Then terms put digits together, and name the rows that are summed up.

use phalanx_agent::policy::{Digit, Term};

use super::graph::Graph;

/// The soft-max of the sum of the rows of `weights` that the terms name.
pub fn linear(graph: &mut Graph, terms: &[Term], weights: &[Vec<f64>]) {
    let rows = rows(graph, terms);
    let weights = graph.doubles("weights", weights);
    let active = graph.node("Gather", &[weights, &rows], "active", &[("axis", 0)]);
    let logits = graph.sum(active, 1, "logits");
    graph.softmax(logits);
}

/// The rows that the terms name, `[batch, term]`; the name of them.
fn rows(graph: &mut Graph, terms: &[Term]) -> String {
    // Terms of fewer digits than others have one more that is always 0.
    let nothing = Digit { stride: 0, cap: 0, members: vec![0], values: vec![0; 256] };
    let width = terms.iter().map(|term| term.digits.len()).max().unwrap_or(0).max(1);
    let mut slots = Slots { singles: vec![&nothing], sums: Vec::new() };
    let places: Vec<Place> = terms.iter().flat_map(|term| slots.places(term, width)).collect();
    let digits = slots.digits(graph);
    let places: Vec<i64> = places.iter().map(|place| slots.column(*place) as i64).collect();
    let places = graph.ints("places", &[places.len()], &places);
    let placed = graph.node("Gather", &[&digits, places], "placed", &[("axis", 1)]);
    let placed = graph.reshape(placed, &[terms.len(), width], "by_term");
    let offsets = graph.sum(placed, 2, "offsets");
    let first: Vec<i64> = terms.iter().map(|term| term.first as i64).collect();
    let first = graph.ints("first", &[terms.len()], &first);
    graph.node("Add", &[offsets, first], "rows", &[]).to_string()
}

/// All digits: first those that read one member, then those that sum over several.
struct Slots<'a> {
    singles: Vec<&'a Digit>,
    sums: Vec<&'a Digit>,
}

/// Where a digit stands.
#[derive(Clone, Copy)]
enum Place {
    Single(usize),
    Sum(usize),
}

impl<'a> Slots<'a> {
    /// Takes in the digits of a term: `width` places, where the first digit fills up those that are left.
    fn places(&mut self, term: &'a Term, width: usize) -> Vec<Place> {
        // A sum over nobody is 0.
        let digits = term.digits.iter().filter(|digit| !digit.members.is_empty());
        let mut places: Vec<Place> = digits.map(|digit| self.place(digit)).collect();
        places.resize(width, Place::Single(0));
        places
    }

    fn place(&mut self, digit: &'a Digit) -> Place {
        let (list, place): (_, fn(usize) -> Place) = match digit.members.len() {
            1 => (&mut self.singles, Place::Single),
            _ => (&mut self.sums, Place::Sum),
        };
        // The own state is a digit of many terms.
        let number = list.iter().position(|other| *other == digit).unwrap_or_else(|| {
            list.push(digit);
            list.len() - 1
        });
        place(number)
    }

    /// The column of a digit among all of them.
    fn column(&self, place: Place) -> usize {
        match place {
            Place::Single(number) => number,
            Place::Sum(number) => self.singles.len() + number,
        }
    }

    /// Every digit times its stride, `[batch, digit]`; the name of them.
    fn digits(&self, graph: &mut Graph) -> String {
        let all = || self.singles.iter().chain(&self.sums);
        let count = self.singles.len() + self.sums.len();
        let mut parts = vec![self.looked_up(graph)];
        parts.extend(self.sums.iter().enumerate().map(|(number, digit)| summed_up(graph, number, digit)));
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let sums = graph.node("Concat", &parts, "sums", &[("axis", 1)]);
        let caps: Vec<i64> = all().map(|digit| digit.cap as i64).collect();
        let caps = graph.ints("caps", &[count], &caps);
        let capped = graph.node("Min", &[sums, caps], "capped", &[]);
        let strides: Vec<i64> = all().map(|digit| digit.stride as i64).collect();
        let strides = graph.ints("strides", &[count], &strides);
        graph.node("Mul", &[capped, strides], "digits", &[]).to_string()
    }

    /// What digits of one member stand for, `[batch, digit]`: all their values are one list, where each finds
    /// its own from an offset on.
    fn looked_up(&self, graph: &mut Graph) -> String {
        let (mut values, mut lists): (Vec<i64>, Vec<(&[usize], i64)>) = (Vec::new(), Vec::new());
        let mut offset = |own: &'a [usize]| {
            if let Some((_, offset)) = lists.iter().find(|(list, _)| *list == own) {
                return *offset;
            }
            lists.push((own, values.len() as i64));
            values.extend(own.iter().map(|&value| value as i64));
            lists[lists.len() - 1].1
        };
        let offsets: Vec<i64> = self.singles.iter().map(|digit| offset(&digit.values)).collect();
        let members: Vec<i64> = self.singles.iter().map(|digit| digit.members[0] as i64).collect();
        let members = graph.ints("members", &[members.len()], &members);
        let seen = graph.node("Gather", &["states", members], "seen", &[("axis", 1)]);
        let offsets = graph.ints("value_offsets", &[offsets.len()], &offsets);
        let at = graph.node("Add", &[seen, offsets], "value_places", &[]);
        let values = graph.ints("values", &[values.len()], &values);
        graph.node("Gather", &[values, at], "looked_up", &[("axis", 0)]).to_string()
    }
}

/// Σ over the members of a digit, `[batch, 1]`; the name of it.
fn summed_up(graph: &mut Graph, number: usize, digit: &Digit) -> String {
    let name = |part: &str| format!("sum-{number}.{part}");
    let numbers = |list: &[usize]| list.iter().map(|&x| x as i64).collect::<Vec<i64>>();
    let (members, values, seen, found, sum) =
        (name("members"), name("values"), name("seen"), name("found"), name("total"));
    graph.ints(&members, &[digit.members.len()], &numbers(&digit.members));
    graph.ints(&values, &[digit.values.len()], &numbers(&digit.values));
    graph.node("Gather", &["states", &members], &seen, &[("axis", 1)]);
    graph.node("Gather", &[&values, &seen], &found, &[("axis", 0)]);
    graph.sum(&found, 1, &sum);
    let column = format!("sum-{number}");
    graph.reshape(&sum, &[1], &column).to_string()
}
