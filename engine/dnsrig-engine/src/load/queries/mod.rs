//! What `load` asks: queries in wire format, prepared once, so that the hot path copies octets and patches the id.

/// The header of a message (RFC 1035 §4.1.1).
const HEADER_OCTETS: usize = 12;

/// QTYPE and QCLASS, behind the name of a question.
const TAIL_OCTETS: usize = 4;

/// The question section of a prepared message: its name, not compressed, type and class; OPT and TSIG lie behind it.
///
/// Of octets that are no such message it is what there is of it, or nothing.
pub fn question_octets(message: &[u8]) -> &[u8] {
    let rest = message.get(HEADER_OCTETS..).unwrap_or_default();
    let mut end = 0;
    while let Some(&length @ 1..) = rest.get(end) {
        end += 1 + usize::from(length);
    }
    &rest[..rest.len().min(end + 1 + TAIL_OCTETS)]
}

/// So many inputs of a property, or as many as PROPTEST_CASES says, for longer runs by hand.
#[cfg(test)]
pub(crate) fn inputs(cases: u32) -> proptest::test_runner::Config {
    let config = proptest::test_runner::Config::default();
    if std::env::var_os("PROPTEST_CASES").is_some() {
        config
    } else {
        proptest::test_runner::Config { cases, ..config }
    }
}

use std::path::PathBuf;
pub mod sign {
    pub struct Signer;
    impl Signer {
        pub fn sign(&mut self, _b: &mut [u8], length: usize, _t: u64) -> usize {
            length
        }
    }
}
pub struct Queries(Vec<Vec<u8>>);
impl Queries {
    pub fn len(&self) -> usize {
        self.0.len()
    }
    pub fn message(&self, at: usize) -> &[u8] {
        &self.0[at]
    }
    pub fn octets_max(&self) -> usize {
        self.0.iter().map(Vec::len).max().unwrap_or(0)
    }
    pub fn of(messages: Vec<Vec<u8>>) -> Self {
        Queries(messages)
    }
}
#[derive(Debug, clap::Args)]
pub struct QueryArguments {
    #[arg(long)]
    pub queries: Option<PathBuf>,
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}
impl QueryArguments {
    pub fn prepare(&self) -> Result<Queries, super::LoadError> {
        Ok(Queries(
            (0..1000)
                .map(|n| {
                    let mut m = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 7];
                    m.extend(format!("name{n:03}").bytes());
                    m.extend(b"\x07example\0\0\x01\0\x01");
                    m
                })
                .collect(),
        ))
    }
    pub fn signer(&self) -> Result<Option<sign::Signer>, super::LoadError> {
        Ok(None)
    }
}
