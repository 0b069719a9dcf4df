//! For the tests of all crates: property tests with inputs of any kind, and [`fuzz`](mod@fuzz).

pub mod fuzz;

use std::path::Path;

use dnsrig_core::rows::{Batch, RowReader};
use proptest::{prelude::*, sample::Index};

/// The batches of a row file.
pub fn batches(path: &Path) -> Vec<Batch> {
    RowReader::new(&std::fs::read(path).unwrap()).unwrap().map(Result::unwrap).collect()
}

/// The settings of a property test with `cases` inputs, or as many as PROPTEST_CASES asks for in longer runs by hand.
pub fn inputs(cases: u32) -> proptest::test_runner::Config {
    let config = proptest::test_runner::Config::default();
    if std::env::var_os("PROPTEST_CASES").is_some() {
        config
    } else {
        proptest::test_runner::Config { cases, ..config }
    }
}

/// Bytes of any kind, up to so many; most are few, since what lies behind the first wrong field is seldom looked at.
pub fn any_bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    let any_up_to = |most: usize| proptest::collection::vec(any::<u8>(), 0..=most);
    prop_oneof![9 => any_up_to(most.min(50)), 1 => any_up_to(most)]
}

/// What may happen to a byte of a message, or from it on.
#[derive(Clone, Copy, Debug)]
pub enum Harm {
    Flip(Index, u8),
    Set(Index, u8),
    Insert(Index, u8),
    Cut(Index),
}

/// Any harm. Values are often the lengths of short labels, or the first bytes of pointers.
pub fn harms() -> impl Strategy<Value = Harm> {
    let value = || prop_oneof![0..16_u8, 0xc0..0xc2_u8, any::<u8>()];
    prop_oneof![
        4 => (any::<Index>(), 0..8_u8).prop_map(|(at, bit)| Harm::Flip(at, bit)),
        2 => (any::<Index>(), value()).prop_map(|(at, value)| Harm::Set(at, value)),
        1 => (any::<Index>(), value()).prop_map(|(at, value)| Harm::Insert(at, value)),
        1 => any::<Index>().prop_map(Harm::Cut),
    ]
}

/// Does it to a message, unless that is empty.
pub fn harm(message: &mut Vec<u8>, harm: Harm) {
    if message.is_empty() {
        return;
    }
    let length = message.len();
    match harm {
        Harm::Flip(at, bit) => message[at.index(length)] ^= 1 << bit,
        Harm::Set(at, value) => message[at.index(length)] = value,
        Harm::Insert(at, value) => message.insert(at.index(length), value),
        Harm::Cut(at) => message.truncate(at.index(length)),
    }
}
