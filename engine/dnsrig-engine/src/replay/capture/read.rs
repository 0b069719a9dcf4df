//! Reads a capture of any kind that is known.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use serde::Serialize;

use super::{
    input::Input,
    pcap::Pcap,
    step::{Captured, End, Step},
};
use crate::replay::error::ReplayError;

/// What became of one capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CaptureReport {
    pub path: String,
    pub format: &'static str,
    pub packets: u64,
    pub bytes: u64,
    /// Why its end was not read, if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// Calls `each` with every packet of the capture at `path`, or of standard input if that is `-`.
pub fn read(path: &Path, each: impl FnMut(Captured) -> Result<(), ReplayError>) -> Result<CaptureReport, ReplayError> {
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).map_err(ReplayError::read(path))?)
    };
    read_source(source, path, each)
}

/// As [`read`], from anything; `path` stands in what is said.
pub fn read_source(
    source: impl Read + 'static,
    path: &Path,
    mut each: impl FnMut(Captured) -> Result<(), ReplayError>,
) -> Result<CaptureReport, ReplayError> {
    let mut input = Input::new(source);
    let mut report = CaptureReport { path: path.display().to_string(), format: "pcap", ..CaptureReport::default() };
    let end = packets(path, &mut input, &mut report, &mut each)?;
    report.bytes = input.offset();
    report.ended = match end {
        End::Whole => None,
        End::Cut(offset) => Some(format!("cut at byte {offset}")),
        End::Damaged(offset, reason) => Some(format!("damaged at byte {offset}: {reason}")),
        End::Unread(error) => Some(format!("not read behind byte {}: {error}", input.offset())),
    };
    Ok(report)
}

fn packets(
    path: &Path,
    input: &mut Input,
    report: &mut CaptureReport,
    each: &mut impl FnMut(Captured) -> Result<(), ReplayError>,
) -> Result<End, ReplayError> {
    let wrong = |reason: &str| ReplayError::Format { path: path.into(), reason: reason.into() };
    let begins = input.look(4).map_err(ReplayError::read(path))?;
    let Ok(magic) = <[u8; 4]>::try_from(begins) else {
        return Err(wrong("it has less than four bytes"));
    };
    if !Pcap::is(magic) {
        return Err(wrong("it begins as none that is known"));
    }
    let pcap = match Pcap::open(input) {
        Ok(pcap) => pcap,
        Err(end) => return Ok(end),
    };
    let mut failed = Ok(());
    loop {
        let step = pcap.next(input, |packet| {
            report.packets += 1;
            failed = each(packet);
        });
        std::mem::replace(&mut failed, Ok(()))?;
        if let Step::End(end) = step {
            return Ok(end);
        }
    }
}
