//! Zones in master files (RFC 1035 §5), read a piece at a time: what a dataset needs to know of a zone that a user
//! brings, and what no server would accept.
//!
//! Records are read by the crate `domain`, which needs a whole file in memory. A file of any length is cut at records
//! with an owner of their own, so that memory is bounded by [`PIECE_BYTES_MAX`]; default TTLs, the one thing that a
//! piece does not take from the one before, are not looked at.

use std::io::{self, Read};

use bytes::Bytes;
use domain::{
    base::{
        Name, ToName,
        iana::{Class, Rtype},
    },
    rdata::ZoneRecordData,
    zonefile::inplace::{Entry, Zonefile},
};

/// The usual size of a piece, in bytes.
const PIECE_BYTES: usize = 1 << 20;

/// The longest piece, in bytes. A record can have 64 kB of data, which takes four times as much text as \DDD.
const PIECE_BYTES_MAX: usize = 1 << 24;

/// A zone file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ZoneFileError {
    #[error("{0}")]
    Read(#[from] io::Error),
    /// What was read could not be written elsewhere.
    #[error("{0}")]
    Copy(io::Error),
    /// The line at which the record begins; the first is 1.
    #[error("line {line}: {reason}")]
    Line { line: usize, reason: String },
    #[error("{0}")]
    Zone(String),
}

/// What is known of a zone after its file was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The owner of the SOA record, without a final dot; the root is a dot.
    pub name: String,
    pub serial: u32,
    pub records: u64,
    pub bytes: u64,
}

/// Where a piece of a file ends: at line ends outside of parentheses and quotes.
#[derive(Default)]
struct Cutter {
    depth: u32,
    quoted: bool,
    comment: bool,
    escaped: bool,
}

impl Cutter {
    /// Takes the next byte, and returns whether an entry ends with it.
    fn ends_with(&mut self, byte: u8) -> bool {
        if std::mem::take(&mut self.escaped) {
            return false;
        }
        match byte {
            b'\n' => {
                self.comment = false;
                return self.depth == 0 && !self.quoted;
            }
            _ if self.comment => {}
            b'\\' => self.escaped = true,
            b'"' => self.quoted = !self.quoted,
            b';' if !self.quoted => self.comment = true,
            b'(' if !self.quoted => self.depth += 1,
            b')' if !self.quoted => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        false
    }
}

/// A file as pieces of whole entries, each of which begins with a line that has an owner or a directive.
struct Pieces<Input> {
    input: Input,
    cutter: Cutter,
    bytes: Vec<u8>,
    /// Of `bytes`: what the cutter has seen, and the last place to cut at.
    seen: usize,
    cut: usize,
    at_entry: bool,
    ended: bool,
    /// A piece is cut as soon as it has this many bytes.
    piece_bytes: usize,
}

impl<Input: Read> Pieces<Input> {
    fn new(input: Input, piece_bytes: usize) -> Self {
        let (cutter, bytes) = (Cutter::default(), Vec::new());
        Pieces { input, cutter, bytes, seen: 0, cut: 0, at_entry: true, ended: false, piece_bytes }
    }

    /// The next piece; none at the end.
    fn next(&mut self) -> Result<Option<Vec<u8>>, ZoneFileError> {
        loop {
            self.look();
            if self.ended {
                let rest = std::mem::take(&mut self.bytes);
                (self.seen, self.cut) = (0, 0);
                return Ok((!rest.is_empty()).then_some(rest));
            }
            if self.cut >= self.piece_bytes {
                let rest = self.bytes.split_off(self.cut);
                let piece = std::mem::replace(&mut self.bytes, rest);
                (self.seen, self.cut) = (self.seen - piece.len(), 0);
                return Ok(Some(piece));
            }
            if self.bytes.len() > PIECE_BYTES_MAX {
                return Err(ZoneFileError::Zone(format!(
                    "more than {PIECE_BYTES_MAX} bytes without a line that begins with an owner"
                )));
            }
            let read = Read::take(&mut self.input, self.piece_bytes as u64).read_to_end(&mut self.bytes)?;
            self.ended = read == 0;
        }
    }

    /// Looks for places to cut in what was read last.
    fn look(&mut self) {
        for (index, byte) in self.bytes.iter().enumerate().skip(self.seen) {
            if self.at_entry && !byte.is_ascii_whitespace() && *byte != b';' {
                self.cut = index;
            }
            self.at_entry = self.cutter.ends_with(*byte);
        }
        self.seen = self.bytes.len();
    }
}

/// Reads a zone, calls `each` with the owner and the type of every record, and `copy` with the file's bytes as they
/// come. Relative names before any $ORIGIN are below `origin`, the zone's name in text.
///
/// A zone has one SOA record, which comes first, an NS record at its apex, records of class IN alone, and nothing
/// outside of it.
pub fn read(
    input: impl Read,
    origin: &str,
    each: impl FnMut(&Name<Bytes>, Rtype),
    copy: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<Facts, ZoneFileError> {
    read_pieces(Pieces::new(input, PIECE_BYTES), origin, each, copy)
}

fn read_pieces(
    mut pieces: Pieces<impl Read>,
    origin: &str,
    mut each: impl FnMut(&Name<Bytes>, Rtype),
    mut copy: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<Facts, ZoneFileError> {
    let (mut zone, mut line) = (Zone::default(), 0);
    let mut origin: Name<Bytes> =
        origin.parse().map_err(|error| ZoneFileError::Zone(format!("`{origin}` is no domain name: {error}")))?;
    while let Some(piece) = pieces.next()? {
        copy(&piece).map_err(ZoneFileError::Copy)?;
        zone.bytes += piece.len() as u64;
        let mut file = Zonefile::from(&piece[..]);
        // The parser panics at a text in quotes that nothing follows.
        file.extend_from_slice(b"\n");
        file.set_origin(origin);
        file.set_default_class(Class::IN);
        for number in 0.. {
            let read = match file.next_entry() {
                Ok(None) => break,
                Ok(Some(Entry::Record(record))) => {
                    let owner = record.owner().to_name::<Bytes>();
                    each(&owner, record.rtype());
                    zone.add(&owner, record.class(), record.data())
                }
                Ok(Some(Entry::Include { .. })) => {
                    Err("$INCLUDE: put the records of the other file in its place".into())
                }
                Err(error) => Err(without_place(&error.to_string())),
            };
            read.map_err(|reason| ZoneFileError::Line { line: line + line_of_entry(&piece, number), reason })?;
        }
        origin = file.origin().expect("it was set above");
        line += lines(&piece);
    }
    zone.facts()
}

/// The number of line ends in `text`.
fn lines(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
}

/// The line at which entry `number` of `piece` begins, of those that are no $ORIGIN and no $TTL; the first is 0.
fn line_of_entry(piece: &[u8], mut number: usize) -> usize {
    let (mut cutter, mut at_entry, mut last) = (Cutter::default(), true, 0);
    for (index, line) in piece.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let is_one = !matches!(line.trim_ascii_start(), [] | [b';', ..]) && !is_setting(line);
        if at_entry && is_one {
            last = index;
            if number == 0 {
                break;
            }
            number -= 1;
        }
        at_entry = line.iter().fold(false, |_, byte| cutter.ends_with(*byte));
    }
    last + 1
}

fn is_setting(line: &[u8]) -> bool {
    let word = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    word.eq_ignore_ascii_case(b"$ORIGIN") || word.eq_ignore_ascii_case(b"$TTL")
}

/// A parser's error without its place, which is where the parser stopped.
fn without_place(error: &str) -> String {
    error.splitn(3, ':').last().unwrap_or_default().trim().into()
}

/// What was read of a zone so far.
#[derive(Default)]
struct Zone {
    apex: Option<(Name<Bytes>, u32)>,
    has_ns: bool,
    records: u64,
    bytes: u64,
}

impl Zone {
    fn add<N, O>(&mut self, owner: &Name<Bytes>, class: Class, data: &ZoneRecordData<O, N>) -> Result<(), String>
    where
        N: ToName,
        O: AsRef<[u8]>,
    {
        if class != Class::IN {
            return Err(format!("a record of class {class}: zones have class IN here"));
        }
        self.records += 1;
        match (data, &self.apex) {
            (ZoneRecordData::Soa(soa), None) => self.apex = Some((owner.clone(), soa.serial().into_int())),
            (ZoneRecordData::Soa(_), Some((apex, _))) => {
                return Err(format!("a second SOA record: a file has one zone, and this one has {apex} already"));
            }
            (_, None) => return Err(format!("{owner} comes before the SOA record: put the SOA record first")),
            (_, Some((apex, _))) if !owner.ends_with(apex) => {
                return Err(format!("{owner} lies outside of the zone {apex}"));
            }
            (ZoneRecordData::Ns(_), Some((apex, _))) => self.has_ns |= owner == apex,
            _ => {}
        }
        Ok(())
    }

    fn facts(self) -> Result<Facts, ZoneFileError> {
        let Some((apex, serial)) = self.apex else {
            return Err(ZoneFileError::Zone("it has no SOA record, so it is no zone".into()));
        };
        let name = apex.to_string();
        if !self.has_ns {
            return Err(ZoneFileError::Zone(format!("the zone {name} has no NS record at its apex")));
        }
        Ok(Facts { name, serial, records: self.records, bytes: self.bytes })
    }
}

#[cfg(test)]
#[path = "zone_file_tests.rs"]
mod tests;
