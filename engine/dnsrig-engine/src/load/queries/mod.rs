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
