//! What clients ask for: names of a table, some more popular than others, names asked once, and mistakes.

use dnsrig_core::{
    draw::{Weighted, is_share},
    popularity::{Popularity, Sampler},
    random::Random,
};
use domain::base::iana::Rtype;

use super::arguments;
use crate::dataset::{MISSING_END, name_table::NameTable};

/// Letters of a random label.
const LETTERS: usize = 12;

/// After so many draws a name's first type is asked for.
const DRAWS_MAX: usize = 16;

const IN_ADDR_ARPA: &[u8] = b"\x07in-addr\x04arpa\x00";

/// Reverse names that exist are of 198.18.0.0/15, the network for benchmarks (RFC 2544), those that do not of 10/8.
const BENCHMARK_ADDRESSES: u32 = 1 << 17;
const PRIVATE_ADDRESSES: u64 = 1 << 24;

/// Streams of random numbers of the same seed.
const PURPOSE_RANKS: u64 = 33;
const PURPOSE_MISSING_RANKS: u64 = 34;

/// A question, but for how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Question {
    pub rtype: Rtype,
    pub name: Asked,
}

/// A name; `name` is a number in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Asked {
    /// A name of the table.
    Known { name: u32 },
    /// A label below it.
    Once { name: u32, label: u64 },
    /// A label beside it, that does not exist.
    Missing { name: u32, label: u64 },
    /// The reverse name of an IPv4 address.
    Reverse { address: u32 },
}

/// Draws questions.
pub struct Questions<'t> {
    table: &'t NameTable,
    known: Sampler,
    missing: Sampler,
    types: Vec<Rtype>,
    weights: Weighted,
    once_share: f64,
    missing_share: f64,
    missing_once_share: f64,
    no_data_share: f64,
}

impl<'t> Questions<'t> {
    /// `types` have weights, one of which at least is above 0.
    pub fn new(table: &'t NameTable, names: &arguments::Names, types: &[(Rtype, f64)], seed: u64) -> Self {
        let popularity = Popularity::Zipf { exponent: names.exponent };
        Questions {
            table,
            known: Sampler::new(popularity, table.count(), Random::new(seed, PURPOSE_RANKS)),
            missing: Sampler::new(popularity, names.missing_names, Random::new(seed, PURPOSE_MISSING_RANKS)),
            types: types.iter().map(|(rtype, _)| *rtype).collect(),
            weights: Weighted::new(types.iter().map(|(_, weight)| *weight)),
            once_share: names.once,
            missing_share: names.missing,
            missing_once_share: names.missing_once,
            no_data_share: names.no_data,
        }
    }

    pub fn draw(&self, random: &mut Random) -> Question {
        let rtype = self.types[self.weights.draw(random)];
        let is_reverse = rtype == Rtype::PTR;
        let name = if is_share(random, self.missing_share) {
            self.draw_missing(is_reverse, random)
        } else if !is_reverse && is_share(random, self.once_share / (1.0 - self.missing_share)) {
            Asked::Once { name: self.known.sample(random), label: random.bits() }
        } else {
            match self.known.sample(random) {
                name if is_reverse => Asked::Reverse { address: 0xc612_0000 + name % BENCHMARK_ADDRESSES },
                name => return Question { rtype: self.type_of(name, rtype, random), name: Asked::Known { name } },
            }
        };
        Question { rtype, name }
    }

    /// A type that a name has, or now and then any.
    fn type_of(&self, name: u32, mut rtype: Rtype, random: &mut Random) -> Rtype {
        if self.table.has(name, rtype) || is_share(random, self.no_data_share) {
            return rtype;
        }
        for _ in 0..DRAWS_MAX {
            rtype = self.types[self.weights.draw(random)];
            if self.table.has(name, rtype) {
                return rtype;
            }
        }
        self.table.types(name)[0]
    }

    fn draw_missing(&self, is_reverse: bool, random: &mut Random) -> Asked {
        let number = if is_share(random, self.missing_once_share) {
            random.bits()
        } else {
            u64::from(self.missing.sample(random))
        };
        // A number gives one name, each time.
        let mut of_number = Random::new(number, 0);
        if is_reverse {
            return Asked::Reverse { address: 0x0a00_0000 + of_number.below(PRIVATE_ADDRESSES) as u32 };
        }
        let name = of_number.below(self.table.count().into()) as u32;
        Asked::Missing { name, label: of_number.bits() }
    }

    /// Appends a name in wire format.
    pub fn push_name(&self, to: &mut Vec<u8>, name: Asked) {
        match name {
            Asked::Known { name } => to.extend_from_slice(self.table.wire(name)),
            Asked::Once { name, label } => {
                push_label(to, label, b"");
                to.extend_from_slice(self.table.wire(name));
            }
            Asked::Missing { name, label } => {
                push_label(to, label, MISSING_END);
                to.extend_from_slice(parent(self.table.wire(name)));
            }
            Asked::Reverse { address } => {
                for byte in address.to_le_bytes() {
                    let text = byte.to_string();
                    to.push(text.len() as u8);
                    to.extend_from_slice(text.as_bytes());
                }
                to.extend_from_slice(IN_ADDR_ARPA);
            }
        }
    }
}

/// Appends letters of a number, and an end.
fn push_label(to: &mut Vec<u8>, mut number: u64, end: &[u8]) {
    to.push((LETTERS + end.len()) as u8);
    for _ in 0..LETTERS {
        to.push(b'a' + (number % 26) as u8);
        number /= 26;
    }
    to.extend_from_slice(end);
}

/// The name without its first label; the root is its own.
fn parent(name: &[u8]) -> &[u8] {
    match usize::from(name[0]) {
        0 => name,
        length => &name[1 + length..],
    }
}
