//! A master file as pieces of whole entries (RFC 1035 §5.1), so that a file of any length needs little memory.

use std::{
    io::{self, Read},
    ops::Range,
};

/// The usual size of a piece, in bytes.
pub const PIECE_BYTES: usize = 1 << 20;

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
    /// The line at which the record begins; the first is 1. `file` is empty, or names an included file.
    #[error("{file}line {line}: {reason}")]
    Line { file: String, line: usize, reason: String },
    #[error("{0}")]
    Zone(String),
}

/// Where an entry ends: at line ends outside of parentheses and quotes.
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

/// A file as pieces of whole entries. Each but the first begins with a record that has an owner of its own.
pub struct Pieces<Input> {
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
    pub fn new(input: Input, piece_bytes: usize) -> Self {
        let (cutter, bytes) = (Cutter::default(), Vec::new());
        Pieces { input, cutter, bytes, seen: 0, cut: 0, at_entry: true, ended: false, piece_bytes }
    }

    /// The next piece; none at the end.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>, ZoneFileError> {
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

    /// Looks for places to cut in what was read last. It does not cut before a directive, because the record after it
    /// may have the owner of the record before it, nor before a parenthesis, in which such a record may be.
    fn look(&mut self) {
        for (index, byte) in self.bytes.iter().enumerate().skip(self.seen) {
            if self.at_entry && !byte.is_ascii_whitespace() && !matches!(byte, b';' | b'$' | b'(') {
                self.cut = index;
            }
            self.at_entry = self.cutter.ends_with(*byte);
        }
        self.seen = self.bytes.len();
    }
}

/// An entry of a piece: a record, or a directive.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where its lines are in the piece, with the last line end.
    pub place: Range<usize>,
    /// The number of lines before it in the piece.
    pub line: usize,
    pub kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    /// A record, or an $INCLUDE: what the parser returns.
    Returned,
    Origin,
    /// A $TTL (RFC 2308 §4) in seconds; none if it is no time.
    Ttl(Option<u32>),
    /// What the parser may panic at, and why it is wrong.
    Refused(&'static str),
}

/// The entries of a piece, in order.
pub fn entries(piece: &[u8]) -> Vec<Entry> {
    let (mut cutter, mut at_entry, mut begin, mut found) = (Cutter::default(), true, 0, Vec::<Entry>::new());
    for (number, line) in piece.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let end = begin + line.len();
        if !at_entry {
            // Only what follows an entry is not at the beginning of one, except in a comment, which has no line end.
            if let Some(entry) = found.last_mut() {
                entry.place.end = end;
            }
        } else if !matches!(line.trim_ascii_start(), [] | [b';', ..]) {
            found.push(Entry { place: begin..end, line: number, kind: kind(line) });
        }
        at_entry = line.iter().fold(false, |_, byte| cutter.ends_with(*byte));
        begin = end;
    }
    for entry in &mut found {
        let text = &piece[entry.place.clone()];
        // The parser takes $INCLU\DE for an $INCLUDE, too.
        if text.starts_with(b"$") && has_glued_words(text) {
            entry.kind = Kind::Refused("a space is missing after a quote");
        }
    }
    if let Some(last) = found.last_mut().filter(|_| cutter.depth > 0 || cutter.quoted) {
        last.kind = Kind::Refused("a parenthesis or a quote is not closed");
    }
    found
}

/// Whether text in quotes is directly followed by a word.
fn has_glued_words(text: &[u8]) -> bool {
    let (mut cutter, mut closed) = (Cutter::default(), false);
    text.iter().any(|byte| {
        let (was_quoted, was_closed) = (cutter.quoted, closed);
        cutter.ends_with(*byte);
        closed = was_quoted && !cutter.quoted;
        was_closed && !b" \t\r\n\"();".contains(byte)
    })
}

fn kind(line: &[u8]) -> Kind {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let first = if line.first().is_some_and(u8::is_ascii_whitespace) { None } else { words.next() };
    match first {
        Some(word) if word.eq_ignore_ascii_case(b"$ORIGIN") => Kind::Origin,
        Some(word) if word.eq_ignore_ascii_case(b"$TTL") => {
            let value = words.next().unwrap_or_default();
            Kind::Ttl(seconds(value.split(|byte| *byte == b';').next().unwrap_or_default()))
        }
        _ => Kind::Returned,
    }
}

/// A time in seconds, as RFC 1035 has it, or with the units of BIND that all servers read, such as 1h30m.
pub fn seconds(text: &[u8]) -> Option<u32> {
    let (mut total, mut number, mut digits) = (0_u32, 0_u32, 0);
    for byte in text {
        let unit = match byte.to_ascii_lowercase() {
            b'0'..=b'9' => {
                number = number.checked_mul(10)?.checked_add(u32::from(byte - b'0'))?;
                digits += 1;
                continue;
            }
            b's' => 1,
            b'm' => 60,
            b'h' => 3_600,
            b'd' => 86_400,
            b'w' => 604_800,
            _ => return None,
        };
        if digits == 0 {
            return None;
        }
        total = total.checked_add(number.checked_mul(unit)?)?;
        (number, digits) = (0, 0);
    }
    (!text.is_empty()).then_some(total.checked_add(number)?)
}

/// The number of line ends in `text`.
pub fn lines(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
}
