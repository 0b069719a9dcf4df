//! Captures: files that other programs wrote. The part that is whole is read. If a file is cut or damaged, the report
//! says where.

#[cfg(test)]
pub mod capture_tests;
mod cdns;
mod decompress;
mod dnstap;
mod input;
mod pcap;
mod pcapng;

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use dnsrig_core::failure::Failure;
use serde::Serialize;

use self::{
    cdns::Cdns,
    dnstap::Dnstap,
    input::{End, Input, Step},
    pcap::Pcap,
    pcapng::Pcapng,
};
use crate::query_stream::MAGIC;

pub use self::input::{Captured, Item, Record, Role};

/// The number of bytes by which formats are recognised.
const BEGINS_BYTES: usize = 12;

/// What became of one capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CaptureReport {
    pub path: String,
    pub format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<&'static str>,
    /// Packets, or messages where the format has those.
    pub items: u64,
    /// Without compression.
    pub bytes: u64,
    /// Packets that the capturing program dropped, if the file has their number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
    /// Why its end was not read, if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// What a capture may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub decompressed_bytes_max: u64,
}

/// A capture that is being read, by its format.
enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
    Dnstap,
    Cdns(Cdns),
}

impl Format {
    /// By the bytes that a file begins with; the end, if no more of it can be read.
    fn open(input: &mut Input, path: &Path) -> Result<Result<Self, End>, Failure> {
        let begins = input.look(BEGINS_BYTES).map_err(|error| unread(path, &error))?;
        let wrong = |reason: &str| {
            let hint = "pcap, pcapng, dnstap and C-DNS are read, plain or compressed; convert what else you have, for \
                        example with editcap";
            Err(Failure::bad_input(format!("{} is not a capture: {reason}", path.display()), hint))
        };
        let Some(&magic) = begins.first_chunk() else {
            return wrong(if begins.is_empty() { "it is empty" } else { "it has less than four bytes" });
        };
        if Dnstap::is(begins) {
            return Ok(Ok(Format::Dnstap));
        }
        if Cdns::is(begins) {
            return Ok(Ok(Format::Cdns(Cdns::default())));
        }
        if Pcap::is(magic) {
            return Ok(Pcap::open(input).map(Format::Pcap));
        }
        if Pcapng::is(magic) {
            return Ok(Ok(Format::Pcapng(Pcapng::default())));
        }
        if begins.starts_with(MAGIC) {
            return wrong("it is a stream already, which `replay describe` and `replay play` read");
        }
        wrong("its first bytes are of no format that is known")
    }

    fn name(&self) -> &'static str {
        match self {
            Format::Pcap(_) => "pcap",
            Format::Pcapng(_) => "pcapng",
            Format::Dnstap => "dnstap",
            Format::Cdns(_) => "C-DNS",
        }
    }

    fn dropped(&self) -> Option<u64> {
        match self {
            Format::Pcapng(pcapng) => pcapng.dropped(),
            _ => None,
        }
    }

    #[inline]
    fn next(&mut self, input: &mut Input, each: impl FnMut(Item)) -> Step {
        match self {
            Format::Pcap(pcap) => pcap.next(input, each),
            Format::Pcapng(pcapng) => pcapng.next(input, each),
            Format::Dnstap => Dnstap::next(input, each),
            Format::Cdns(cdns) => cdns.next(input, each),
        }
    }
}

/// Calls `each` with all that the capture at `path` holds, or standard input if that is `-`.
pub fn read(
    path: &Path,
    limits: Limits,
    each: impl FnMut(Item) -> Result<(), Failure>,
) -> Result<CaptureReport, Failure> {
    if path == Path::new("-") {
        return read_source(io::stdin(), Path::new("standard input"), limits, each);
    }
    read_source(File::open(path).map_err(|error| unread(path, &error))?, path, limits, each)
}

/// Reads a capture like [`read`], from any source. `path` is its name in reports and errors.
pub fn read_source(
    source: impl Read + 'static,
    path: &Path,
    limits: Limits,
    mut each: impl FnMut(Item) -> Result<(), Failure>,
) -> Result<CaptureReport, Failure> {
    let opened = decompress::open(source, limits.decompressed_bytes_max);
    let (source, compression) = opened.map_err(|error| unread(path, &error))?;
    let mut input = Input::new(source);
    let mut report = CaptureReport { path: path.display().to_string(), compression, ..CaptureReport::default() };
    let end = match Format::open(&mut input, path)? {
        Ok(mut format) => {
            report.format = format.name();
            let end = all(&mut format, &mut input, &mut report.items, &mut each)?;
            report.dropped = format.dropped();
            end
        }
        Err(end) => end,
    };
    report.bytes = input.offset();
    report.ended = match end {
        End::Whole => None,
        End::Cut(offset) => Some(format!("cut at byte {offset}")),
        End::Damaged(offset, reason) => Some(format!("damaged at byte {offset}: {reason}")),
        End::Unread(error) => Some(format!("not read behind byte {}: {error}", input.offset())),
    };
    Ok(report)
}

fn unread(path: &Path, error: &io::Error) -> Failure {
    let hint = "give captures that you may read, or - for standard input";
    Failure::bad_input(format!("cannot read {}: {error}", path.display()), hint)
}

fn all(
    format: &mut Format,
    input: &mut Input,
    items: &mut u64,
    each: &mut impl FnMut(Item) -> Result<(), Failure>,
) -> Result<End, Failure> {
    loop {
        let mut failed = Ok(());
        let step = format.next(input, |item| {
            *items += 1;
            if failed.is_ok() {
                failed = each(item);
            }
        });
        failed?;
        if let Step::End(end) = step {
            return Ok(end);
        }
    }
}
