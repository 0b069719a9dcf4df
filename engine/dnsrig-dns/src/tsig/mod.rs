//! TSIG (RFC 8945): keys, signatures of queries, and the check of signed streams.

pub mod serve;
pub mod sign;
pub mod verify;
