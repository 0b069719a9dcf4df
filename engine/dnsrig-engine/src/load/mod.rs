//! `load`: queries against a server, and what becomes of them.

pub mod answer;
pub mod queries;
