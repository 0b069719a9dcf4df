//! For tests.

use proptest::prelude::*;

/// So many inputs of a property, or as many as PROPTEST_CASES says, for longer runs by hand.
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
