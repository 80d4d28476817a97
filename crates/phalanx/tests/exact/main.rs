//! Questions about the exact setting: one program, because each one links the whole library.

#[path = "../support/compare.rs"]
mod compare;
#[path = "../support/oracle/mod.rs"]
mod oracle;
#[path = "../support/random_input.rs"]
mod random_input;
#[path = "../support/mod.rs"]
mod support;

mod by_hand;
mod check;
mod enumeration;
mod ever;
mod groups;
mod intervals;
mod reference;
mod runs;
