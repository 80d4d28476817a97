//! Networks of all agents as kernels see them: sizes, what the world shows, and where things lie in the
//! memory that a block shares.

use std::borrow::Cow;

use phalanx_gpu::Layout;

use crate::neural::Net;
use crate::policy::observation::ObservationEncoder;
use crate::world::ViewTable;

/// The part of an algorithm whose neural networks they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Critics.
    Critic,
    /// Critics whose values are asked for; they do not learn meanwhile.
    Reader,
    /// Policies.
    Policy,
}

/// How a block works on a neural network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSizes {
    /// Threads, a multiple of 32.
    pub threads: usize,
    /// Samples at a time: a multiple of 16, from the number of warps to 16 times it.
    pub tile: usize,
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
    /// Of the neural networks `nets`, which read what `encoders` say; `states[m]` is the number of agent m's
    /// states.
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

    /// Columns of a row's units, and of all rows' units, in the matrices: see `network.cu`.
    fn row_columns(&self) -> [usize; 2] {
        let columns = self.row_units.next_multiple_of(8);
        [columns, columns * self.most(1)]
    }

    /// Rows of the products of embedded symbols.
    fn products(&self) -> usize {
        self.most(0) * (self.most(3) + self.most(4))
    }

    fn top(&self) -> usize {
        if self.hidden[1] > 0 { self.hidden[1] } else { self.hidden[0] }
    }

    fn strides(&self) -> Strides {
        let ([d1, d2], [columns, features]) = (self.hidden, self.row_columns());
        Strides {
            d1: stride(d1),
            d2: stride(d2),
            row: stride(columns),
            view: stride(self.most(1) * self.most(2).next_multiple_of(16)),
            h0: stride(features),
            choices: stride(self.products()),
            top: self.top().next_multiple_of(16) + 4,
        }
    }

    /// Names of what lies in shared memory, with sizes in floats. What is behind a name may be read a little
    /// beyond, as far as the next.
    fn places(&self) -> Vec<(&'static str, usize)> {
        let [members, _, width, states, actions, outputs] = [0, 1, 2, 3, 4, 5].map(|size| self.most(size));
        let (BlockSizes { threads, tile, learns }, [d1, d2], top) = (self.block, self.hidden, self.top());
        let ([_, features], strides, products) = (self.row_columns(), self.strides(), self.products());
        let (table, warps) = ((states + actions) * self.dimension, threads / 32);
        let if_learns = |size: usize| if learns { size } else { 0 };
        let matrix = |rows: usize, stride: usize| rows.next_multiple_of(16) * stride;
        // Parameters outside the matrices between layers, side by side: see `net_other`.
        let others = [
            ("B1", d1.next_multiple_of(16)),
            ("B2", d2.next_multiple_of(16)),
            ("LAST", top * outputs),
            ("LAST_BIAS", outputs),
            ("ROW", width * self.row_units),
            ("ROW_BIAS", self.row_units.next_multiple_of(8)),
            ("TABLE", table),
        ];
        // Parameters come first: see `net_write_image`.
        let mut places = vec![
            ("W1", matrix(features, strides.d1)),
            ("PRODUCTS", matrix(products, strides.d1)),
            ("W2", if d2 > 0 { matrix(d1, strides.d2) } else { 0 }),
            ("ROW_WEIGHTS", matrix(width, strides.row)),
        ];
        places.extend(others);
        places.extend([
            ("NEW_TABLE", table),
            ("SUMS", if_learns((6 * threads).max(warps * (top + 1) * outputs))),
            ("SLOPES", if_learns(products * strides.d1)),
            ("OTHER_SLOPES", if_learns(others.iter().map(|(_, size)| size.next_multiple_of(4)).sum())),
            ("VIEW", tile * strides.view),
            ("H0", tile * strides.h0),
            ("H1", (tile * strides.d1).max(if_learns((33 * table).max(warps * TURNED)))),
            ("H2", if d2 > 0 { if_learns(tile * strides.d2) } else { 0 }),
            ("TOP", tile * strides.top),
            ("CHOICES", tile * strides.choices),
            ("OUTPUTS", tile * outputs),
            ("LAWS", if self.owner == Owner::Policy { 2 * tile * outputs } else { 0 }),
            ("WANTED", tile),
            ("SAMPLES", tile),
            ("GROUP", members),
            ("SYMBOLS", (2 * members * tile).div_ceil(4)),
            ("END", 64),
        ]);
        places
    }

    /// Floats of shared memory that hold parameters.
    pub fn image(&self) -> usize {
        let until = self.places().into_iter().take_while(|(name, _)| *name != "NEW_TABLE");
        until.map(|(_, size)| size.next_multiple_of(4)).sum()
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
        ] {
            layout.constant(format!("{upper}_{name}"), value);
        }
        let strides = self.strides();
        for (name, stride) in [
            ("D1", strides.d1),
            ("D2", strides.d2),
            ("ROW", strides.row),
            ("VIEW", strides.view),
            ("H0", strides.h0),
            ("CHOICES", strides.choices),
            ("TOP", strides.top),
        ] {
            layout.constant(format!("{upper}_STRIDE_{name}"), stride);
        }
        let ([d1, d2], [_, features]) = (self.hidden, self.row_columns());
        for (name, inputs, units) in
            [("G1", features, d1), ("G2", d1, d2), ("GV", width, self.row_units), ("GP", self.products(), d1)]
        {
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

/// Strides of rows in shared memory; that of the last hidden layer counts floats.
struct Strides {
    d1: usize,
    d2: usize,
    row: usize,
    view: usize,
    h0: usize,
    choices: usize,
    top: usize,
}

/// Numbers from row to row of a matrix. Eight rows are read at once, sixteen bytes of each: no two of them
/// lie in the same banks if the stride is an odd number of sixteen bytes.
fn stride(columns: usize) -> usize {
    columns.next_multiple_of(16) + 8
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
