//! `replay prepare`: captures → stream.
//!
//! [`packets`] takes in packets and finds messages, [`message`](super::message) tells queries from what else there is,
//! [`server`] chooses the server, [`sort`] brings queries into the order of their times in bounded memory,
//! [`exchanges`] finds what clients sent again, [`unread`] names what is not read,
//! [`operations`], [`edns`] and [`anonymise`] change what is asked for, [`finish`] numbers the clients and writes, and
//! [`accounting`] says what became of everything that was read.

pub mod accounting;
pub mod anonymise;
pub mod arguments;
pub mod edns;
pub mod exchanges;
pub mod finish;
pub mod operations;
pub mod packets;
pub mod report;
mod run;
pub mod server;
pub mod sort;
pub mod unread;

pub use self::{arguments::Arguments, run::run};

#[cfg(test)]
mod prepare_tests;
