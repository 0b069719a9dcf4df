//! `transfer`: the transfer side of one or many secondaries.

pub mod wire;
