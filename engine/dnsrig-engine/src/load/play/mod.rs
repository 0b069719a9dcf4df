//! `replay play`: a stream's queries against a server, when and from whom they came.
//!
//! It is `load` with other arrivals: [`read_ahead`] brings the queries, and many clients share the sockets. All that
//! sends, receives, matches, counts and writes is the same.

mod arguments;
mod classes;
mod local;
mod read_ahead;
mod run;
mod transports;

pub use self::{
    arguments::Arguments,
    classes::{Class, TransportChoice},
    run::run,
};
