//! Captures: files that others wrote. What is whole is read, and where a file is cut or damaged, that is said.

mod input;
mod pcap;
mod read;
mod step;

pub use self::{
    read::{CaptureReport, read},
    step::Captured,
};

#[cfg(test)]
mod capture_tests;
