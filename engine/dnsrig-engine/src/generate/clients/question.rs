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

#[cfg(test)]
mod tests {
    use dnsrig_dns::testing::name;

    use super::*;
    use crate::generate::clients::population_tests::arguments;

    fn table(text: &str) -> NameTable {
        NameTable::parse(text.as_bytes(), "names".as_ref(), false).unwrap()
    }

    #[test]
    fn names_are_written_with_a_label_below_or_beside_them_or_of_an_address() {
        let table = table("www.example\n.\n");
        let arguments = arguments("--clients 1 --qps 1 --duration 1s");
        let questions = Questions::new(&table, &arguments.names, &[(Rtype::A, 1.0)], 1);
        let label = |number: u64| Asked::Once { name: 1, label: number };
        for (asked, expected) in [
            (Asked::Known { name: 0 }, "www.example"),
            (Asked::Once { name: 0, label: 27 }, "bbaaaaaaaaaa.www.example"),
            (Asked::Missing { name: 0, label: 27 }, "bbaaaaaaaaaa-nx.example"),
            (Asked::Missing { name: 1, label: 0 }, "aaaaaaaaaaaa-nx"),
            (Asked::Reverse { address: 0xc612_010a }, "10.1.18.198.in-addr.arpa"),
            // In twelve letters are the last twelve digits of a number to the base of 26.
            (label(25), "zaaaaaaaaaaa"),
            (label(26), "abaaaaaaaaaa"),
            (label(26_u64.pow(11)), "aaaaaaaaaaab"),
            (label(26_u64.pow(12)), "aaaaaaaaaaaa"),
        ] {
            let mut found = vec![9];
            questions.push_name(&mut found, asked);
            assert_eq!(found, [vec![9], name(expected)].concat(), "{asked:?}");
        }
    }

    #[test]
    fn shares_of_the_questions_are_for_names_asked_once_for_missing_ones_and_for_addresses() {
        let table = table("a.example\t5\tA\nb.example\t5\tA\n");
        let drawn = |words: &str, rtype: Rtype| {
            let arguments = arguments(&format!("--clients 1 --qps 1 --duration 1s --missing-names 3 {words}"));
            let questions = Questions::new(&table, &arguments.names, &[(rtype, 1.0)], 1);
            let mut random = Random::new(1, 0);
            let mut counts = [0_i32; 4];
            for _ in 0..2_000 {
                let (name, place) = match questions.draw(&mut random).name {
                    Asked::Known { name } => (name, 0),
                    Asked::Once { name, .. } => (name, 1),
                    Asked::Missing { name, .. } => (name, 2),
                    Asked::Reverse { address } => (u32::from(address >> 24 != 198 && address >> 24 != 10), 3),
                };
                assert!(name < if place == 3 { 1 } else { 2 });
                counts[place] += 1;
            }
            counts
        };
        assert_eq!(drawn("--once 0 --missing 0", Rtype::A), [2_000, 0, 0, 0]);
        assert_eq!(drawn("--once 1 --missing 0", Rtype::A), [0, 2_000, 0, 0]);
        assert_eq!(drawn("--once 0 --missing 1", Rtype::A), [0, 0, 2_000, 0]);
        assert_eq!(drawn("--once 0.5 --missing 0.5", Rtype::PTR), [0, 0, 0, 2_000]);
        // Of 2,000 draws a share of 30 % deviates by 20.
        let [known, once, missing, _] = drawn("--once 0.3 --missing 0.4", Rtype::A);
        assert!([(known, 600), (once, 600), (missing, 800)].iter().all(|(one, mean)| one.abs_diff(*mean) < 80));
    }
}
