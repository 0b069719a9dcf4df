//! Captures: files that others wrote. What is whole is read, and where a file is cut or damaged, that is said.

mod cdns;
mod decompress;
mod dnstap;
mod input;
mod pcap;
mod pcapng;
mod protobuf;
mod read;
mod step;

pub use self::{
    read::{CaptureReport, Limits, read},
    step::{Asked, Captured, Item, Record, Role},
};

#[cfg(test)]
pub use self::read::read_source;

#[cfg(test)]
pub mod capture_tests;
