//! Captures: files that others wrote. What is whole is read, and where a file is cut or damaged, that is said.

mod decompress;
mod input;
mod pcap;
mod pcapng;
mod read;
mod step;

pub use self::{
    read::{CaptureReport, Limits, read},
    step::{Captured, Item},
};

#[cfg(test)]
mod capture_tests;
