//! DNSSEC for zones that are computed: keys, signatures over RRsets, and proofs that something does not exist.
//!
//! The caller knows the zone, its names and their order; here is what the RFCs ask for beyond that. No socket, no
//! clock, and nothing of a whole zone: answers are signed one at a time.
//!
//! | file | of |
//! | --- | --- |
//! | [`order`], [`rrset`] | canonical order and form (RFC 4034 §6, RFC 6840 §5.1), RRSIG (RFC 4034 §3) |
//! | [`key`], [`pool`] | private keys; DNSKEY, key tag, DS (RFC 4034 §2, §5); keys from a seed |
//! | [`signer`] | signatures on demand, kept in bounded memory; deliberate damage |
//! | [`denial`], [`nsec3`] | which NSEC or NSEC3 records an answer needs (RFC 4035 §3.1.3, RFC 5155); hashes |
//!
//! `domain` signs whole zones that are kept in memory, with random numbers of the system (`dnssec::sign`, unstable in
//! 0.12). Here records are signed as they are asked for, and the same answer has to have the same bytes where that is
//! asked for, so form and keys are our own; the tests compare them with `domain` and with the examples of the RFCs.
//!
//! Signatures are `ring`'s, which the engine has for TLS: aws-lc would be one more library to build in C. `ring` gives
//! each ECDSA signature a random nonce; `p256` computes it from key and message (RFC 6979), so the same question has
//! the same bytes as answer.
//!
//! A second of one core of an AMD EPYC that was busy with other work (`cargo run --release --example signing_speed`):
//! 73,718 RRSIG records of P-256 (20,374 reproducible), 54,080 of Ed25519, 2,113 of RSA; 4.5 million that are kept, of
//! a thousand names; and 331,705 proofs by hashes that a name does not exist, in a zone of a million, before they are
//! signed.

pub mod denial;
pub mod key;
pub mod nsec3;
pub mod order;
pub mod pool;
pub mod rrset;
pub mod signer;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod zone_tests;
