//! TSIG: a signature behind each query (RFC 8945).

use super::QueryError;
use crate::dns::tsig::key;
pub use crate::dns::tsig::sign::Signer;

/// Reads `ALGORITHM:NAME:SECRET`, see [`key::read`].
pub fn parse(text: &str) -> Result<Signer, QueryError> {
    key::read(text).map(|parts| Signer::new(&parts)).map_err(QueryError::Tsig)
}

#[cfg(test)]
#[path = "sign_tests.rs"]
mod tests;
