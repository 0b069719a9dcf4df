//! Answers by their response code.

use std::collections::BTreeMap;

use domain::base::iana::Rcode;

/// Answers by RCODE, as its mnemonic.
pub type Rcodes = BTreeMap<String, u64>;

/// Counts one answer.
pub fn count_rcode(rcodes: &mut Rcodes, rcode: u8) {
    *rcodes.entry(Rcode::masked_from_int(rcode).to_string()).or_default() += 1;
}
