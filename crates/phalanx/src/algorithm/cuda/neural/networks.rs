//! Networks of all agents as kernels see them: sizes, what the world shows, and where things lie in the
//! memory that a block shares.

use std::borrow::Cow;

use phalanx_gpu::Layout;

use crate::neural::Net;
use crate::policy::observation::ObservationEncoder;
use crate::world::ViewTable;

/// The part of an algorithm whose networks they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Critics.
    Critic,
    /// Critics whose values are asked for; they do not learn meanwhile.
    Reader,
    /// Policies.
    Policy,
}

/// How a block works on a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSizes {
    /// Threads, a multiple of 32.
    pub threads: usize,
    /// Samples at a time: a multiple of 16, from the number of warps to 16 times it, and 64 at most where
    /// there are gradients.
    pub tile: usize,
    /// Whether samples of several tiles make one gradient.
    pub many_tiles: bool,
    /// Whether there are gradients at all.
    pub learns: bool,
}

/// Networks of all agents. Agents with fewer neighbours than others have smaller ones.
#[derive(Debug)]
pub struct Networks {
    owner: Owner,
    /// Members, rows, their width, states and actions with embeddings, outputs: each of every agent.
    sizes: [Vec<u32>; 6],
    /// Where every number of a view comes from, and what it is in every state: see [`ViewTable`].
    view: Vec<ViewTable>,
    /// Units of the layers; the second is 0 where there is none.
    hidden: [usize; 2],
    row_units: usize,
    dimension: usize,
    /// States of the agent that has most.
    states: usize,
    block: BlockSizes,
}

/// What cannot be computed by these kernels; the caller names the setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// There are more or fewer hidden layers than one or two.
    Layers(usize),
    /// A block would have to share so many bytes.
    Shared(usize),
    /// A number of a view depends on several members.
    View,
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unfit::Layers(count) => {
                write!(f, "networks of {count} hidden layers are not available (1 or 2 are)")
            }
            Unfit::Shared(bytes) => {
                write!(f, "networks that take {bytes} bytes of shared memory are not available")
            }
            Unfit::View => write!(f, "networks that see several members in one number are not available"),
        }
    }
}

impl Networks {
    /// Of the networks `nets`, which read what `encoders` say; `states[m]` is the number of agent m's states.
    pub fn new(
        owner: Owner,
        nets: &[Net],
        encoders: &[ObservationEncoder],
        states: &[usize],
        block: BlockSizes,
    ) -> std::result::Result<Self, Unfit> {
        let mut sizes: [Vec<u32>; 6] = Default::default();
        let (mut view, mut hidden, mut row_units, mut dimension) = (Vec::new(), [0; 2], 0, 0);
        for (net, encoder) in nets.iter().zip(encoders) {
            let architecture = net.architecture();
            hidden = match architecture.hidden[..] {
                [first] => [first, 0],
                [first, second] => [first, second],
                ref layers => return Err(Unfit::Layers(layers.len())),
            };
            let rows = architecture.rows.map_or([0; 2], |rows| [rows.count, rows.width]);
            row_units = architecture.rows.map_or(0, |rows| rows.hidden);
            dimension = architecture.symbols.first().map_or(dimension, |symbols| symbols.dimension);
            let vocabularies: Vec<usize> =
                architecture.symbols.iter().map(|group| group.vocabulary).collect();
            let of_states = if architecture.rows.is_none() { vocabularies[0] } else { 0 };
            let of_actions = if owner != Owner::Policy { vocabularies[vocabularies.len() - 1] } else { 0 };
            let all = [encoder.group.len(), rows[0], rows[1], of_states, of_actions, net.outputs()];
            sizes.iter_mut().zip(all).for_each(|(list, size)| list.push(size as u32));
            if architecture.rows.is_some() {
                let states: Vec<usize> = encoder.group.iter().map(|&m| states[m as usize]).collect();
                view.push(encoder.view_table(&states).ok_or(Unfit::View)?);
            }
        }
        let states = states.iter().copied().max().unwrap_or(1);
        Ok(Networks { owner, sizes, view, hidden, row_units, dimension, states, block })
    }

    fn most(&self, size: usize) -> usize {
        self.sizes[size].iter().copied().max().unwrap_or(0) as usize
    }

    /// Threads and samples of a block.
    pub fn block(&self) -> BlockSizes {
        self.block
    }

    fn strides(&self) -> Strides {
        let [rows, width] = [1, 2].map(|size| self.most(size));
        let [d1, d2] = self.hidden;
        Strides {
            first: stride_of_weights(d1),
            second: stride_of_weights(d2),
            view: width.next_multiple_of(4),
            rows: stride_of_samples(rows * self.row_units),
            h1: stride_of_samples(d1),
            h2: stride_of_samples(d2),
            products: d1.next_multiple_of(8) + 8,
        }
    }

    /// Names of what lies in shared memory, with sizes in floats. What is behind a name may be read a little
    /// beyond, as far as the next.
    fn places(&self) -> Vec<(&'static str, usize)> {
        let [members, rows, width, states, actions, outputs] = [0, 1, 2, 3, 4, 5].map(|size| self.most(size));
        let (BlockSizes { threads, tile, many_tiles, learns }, [d1, d2]) = (self.block, self.hidden);
        let (features, top) = (rows * self.row_units, if d2 > 0 { d2 } else { d1 });
        let strides = self.strides();
        let table = (states + actions) * self.dimension;
        let products = members * (states + actions);
        let slopes = if many_tiles { products * strides.products } else { 0 };
        // Parameters outside the matrices between layers, side by side: see `net_other`.
        let others = [
            ("B1", d1.next_multiple_of(8)),
            ("B2", d2.next_multiple_of(8)),
            ("LAST", top * outputs),
            ("LAST_BIAS", outputs),
            ("ROW", width * self.row_units),
            ("ROW_BIAS", self.row_units),
            ("TABLE", table),
        ];
        let mut places = vec![
            ("SUMS", if learns { 6 * threads } else { 0 }),
            ("W1", features.next_multiple_of(8) * strides.first),
            ("PRODUCTS", products.next_multiple_of(8) * strides.products),
            ("OWN_SLOPES", slopes),
            ("W2", if d2 > 0 { d1.next_multiple_of(8) * strides.second } else { 0 }),
            (
                "OTHER_SLOPES",
                if learns { others.iter().map(|(_, size)| size.next_multiple_of(4)).sum() } else { 0 },
            ),
        ];
        places.extend(others);
        places.extend([
            ("NEW_TABLE", table),
            ("VIEW", tile * rows * strides.view),
            ("ROWS", tile * strides.rows),
            ("H1", (tile * strides.h1).max(if learns { (33 * table).max(threads / 32 * TURNED) } else { 0 })),
            ("H2", tile * strides.h2),
            ("OUTPUTS", tile * outputs),
            ("WANTED", tile),
            ("SAMPLES", tile),
            ("GROUP", members),
            ("SYMBOLS", (2 * members * tile).div_ceil(4)),
            ("END", 64),
        ]);
        places
    }

    /// Bytes that a block shares.
    pub fn shared(&self) -> usize {
        4 * self.places().iter().map(|(_, size)| size.next_multiple_of(4)).sum::<usize>()
    }

    /// Whether a block can share so many bytes.
    pub fn check(&self, available: usize) -> std::result::Result<(), Unfit> {
        let needed = self.shared();
        if needed > available { Err(Unfit::Shared(needed)) } else { Ok(()) }
    }

    fn prefix(&self) -> &'static str {
        match self.owner {
            Owner::Critic => "critic",
            Owner::Reader => "reader",
            Owner::Policy => "policy",
        }
    }

    /// Constants, arrays and text.
    pub fn add_to(&self, layout: &mut Layout) {
        let (prefix, upper) = (self.prefix(), self.prefix().to_uppercase());
        let [members, rows, width, states, actions, outputs] = [0, 1, 2, 3, 4, 5].map(|size| self.most(size));
        for (name, value) in [
            ("MEMBERS", members),
            ("ROWS", rows),
            ("WIDTH", width),
            ("STATES", states),
            ("ACTIONS", actions),
            ("OUTPUTS", outputs),
            ("ROW_UNITS", self.row_units),
            ("DIMENSION", self.dimension),
            ("D1", self.hidden[0]),
            ("D2", self.hidden[1]),
            ("THREADS", self.block.threads),
            ("TILE", self.block.tile),
            ("SLOPES_APART", usize::from(self.block.many_tiles)),
        ] {
            layout.constant(format!("{upper}_{name}"), value);
        }
        let strides = self.strides();
        for (name, stride) in [
            ("W1", strides.first),
            ("W2", strides.second),
            ("VIEW", strides.view),
            ("ROWS", strides.rows),
            ("H1", strides.h1),
            ("H2", strides.h2),
            ("PRODUCTS", strides.products),
        ] {
            layout.constant(format!("{upper}_STRIDE_{name}"), stride);
        }
        let ([d1, d2], products) = (self.hidden, members * (states + actions));
        for (name, inputs, units) in [
            ("G1", rows * self.row_units, d1),
            ("G2", d1, d2),
            ("GV", width, self.row_units),
            ("GP", products, d1),
        ] {
            let [rows, columns, across] = pieces_of_warps(inputs, units, self.block.threads / 32);
            layout.constant(format!("{upper}_{name}_ROWS"), rows);
            layout.constant(format!("{upper}_{name}_COLUMNS"), columns);
            layout.constant(format!("{upper}_{name}_ACROSS"), across);
        }
        let mut at = 0;
        for (name, size) in self.places() {
            layout.constant(format!("{upper}_AT_{name}"), at);
            at += size.next_multiple_of(4);
        }
        let slopes = if self.block.many_tiles { "OWN_SLOPES" } else { "PRODUCTS" };
        layout.constant(format!("{upper}_AT_SLOPES"), format!("{upper}_AT_{slopes}"));
        layout.array_from(format!("{prefix}_sizes"), &self.sizes.concat());
        let (mut from, mut values) = (vec![CONSTANT; 1], vec![0.0f32; 1]);
        if !self.view.is_empty() {
            let count = rows * width;
            from = vec![CONSTANT; self.view.len() * count];
            values = vec![0.0; from.len() * self.states];
            for (agent, table) in self.view.iter().enumerate() {
                let own = self.sizes[2][agent] as usize;
                for (k, (member, row)) in table.members.iter().zip(&table.values).enumerate() {
                    let place = agent * count + k / own * width + k % own;
                    from[place] = member.unwrap_or(CONSTANT);
                    values[place * self.states..][..row.len()].copy_from_slice(row);
                }
            }
        }
        layout.array_from(format!("{prefix}_view_member"), &from);
        layout.array_from(format!("{prefix}_view_value"), &values);
        layout.text(include_str!("common.cu"));
        layout.text(include_str!("pieces.cu"));
        let text = include_str!("network.cu").replace("NET_", &format!("{upper}_"));
        layout.text(Cow::Owned(text.replace("net_", &format!("{prefix}_"))));
    }
}

/// Strides of rows in shared memory.
struct Strides {
    first: usize,
    second: usize,
    view: usize,
    rows: usize,
    h1: usize,
    h2: usize,
    products: usize,
}

/// Shared memory has 32 banks. Lanes of a product read eight rows, four neighbours of each: no two of them
/// from the same bank if the stride is 4 times an odd number.
fn stride_of_samples(units: usize) -> usize {
    units.next_multiple_of(8) + 4
}

/// Weights are read both ways: four rows, eight neighbours of each, as well. Two lanes at most then meet in
/// a bank.
fn stride_of_weights(units: usize) -> usize {
    let fits = |stride: &usize| [12, 20].contains(&(stride % 32));
    (units.next_multiple_of(8) + 4..).step_by(8).find(fits).unwrap_or(units)
}

/// How warps take the pieces of 16 × 8 that a matrix is made of: rows and columns of pieces that each has,
/// and warps side by side. Few columns, if there are enough warps.
fn pieces_of_warps(inputs: usize, units: usize, warps: usize) -> [usize; 3] {
    let (down, across) = (inputs.div_ceil(16).max(1), units.div_ceil(8).max(1));
    let is_fitting = |columns: &usize| across % columns == 0 && down * (across / columns) <= warps;
    match (1..=across).find(is_fitting) {
        Some(columns) => [1, columns, across / columns],
        None => [down.div_ceil(warps), across, 1],
    }
}

/// Floats in which a warp turns four pieces: see `critic_move`.
const TURNED: usize = 16 * 33;

/// Stands for no member.
const CONSTANT: u8 = u8::MAX;
