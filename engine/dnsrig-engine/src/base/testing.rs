//! For tests.

/// So many inputs of a property, or as many as PROPTEST_CASES says, for longer runs by hand.
pub fn inputs(cases: u32) -> proptest::test_runner::Config {
    let config = proptest::test_runner::Config::default();
    if std::env::var_os("PROPTEST_CASES").is_some() {
        config
    } else {
        proptest::test_runner::Config { cases, ..config }
    }
}
