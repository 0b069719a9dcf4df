//! TSIG (RFC 8945): keys, signatures of queries, and the check of signed streams.

pub mod key;
pub mod serve;
pub mod sign;
pub mod verify;
