//! A zone file of what was transferred (RFC 1035 §5): a record a line, all names in full.
//!
//! If the library knows a type, its data is written in the presentation format, otherwise as bytes (RFC 3597 §5). It is
//! also written as bytes if the library would not escape characters that have a meaning in a zone file.

use std::{
    fmt::{self, Write as _},
    io,
};

use dnsrig_dns::{
    name,
    record::Record,
    xfr::{Answered, Change, Outcome, Sink},
};
use domain::{
    base::{
        ParseRecordData, ParsedName, Rtype,
        zonefile_fmt::{DisplayKind, ZonefileFmt},
    },
    dep::octseq::Parser,
    rdata::ZoneRecordData,
};

/// Types that are always written as bytes, because the library writes some of their data in a form that other programs
/// do not read: IPSECKEY (RFC 4025) without a gateway with 0 instead of a dot, and parameters of SVCB and HTTPS (RFC
/// 9460) without hyphens.
const WRITTEN_AS_BYTES: [Rtype; 3] = [Rtype::IPSECKEY, Rtype::SVCB, Rtype::HTTPS];

/// Writes records as lines of a zone file to `to`, which should be buffered.
///
/// The changes of an IXFR are written in their order. A record that is removed becomes a comment that begins with `;-`.
pub struct Writer<W: io::Write> {
    to: W,
    owner: Vec<u8>,
    data: Vec<u8>,
    line: String,
}

impl<W: io::Write> Writer<W> {
    /// A writer; nothing is written before the first record.
    pub fn new(to: W) -> Self {
        Writer { to, owner: Vec::new(), data: Vec::new(), line: String::new() }
    }

    /// Returns what was written to.
    pub fn into_inner(self) -> W {
        self.to
    }

    /// Puts the record into the line.
    fn compose(&mut self, record: &Record<'_>) -> fmt::Result {
        push_name(&self.owner, &mut self.line)?;
        write!(self.line, " {} IN {} ", record.ttl_s, record.rtype)?;
        let data = self.line.len();
        if push_data(record.rtype, &self.data, &mut self.line).is_err() || !is_plain(&self.line[data..]) {
            self.line.truncate(data);
            push_bytes(&self.data, &mut self.line)?;
        }
        self.line.push('\n');
        Ok(())
    }
}

impl<W: io::Write> Sink for Writer<W> {
    fn record(&mut self, record: &Record<'_>, change: Change) -> Result<(), Outcome> {
        self.owner.clear();
        self.data.clear();
        self.line.clear();
        record.owner_into(&mut self.owner)?;
        record.data_into(&mut self.data)?;
        if change == Change::Remove {
            self.line.push_str(";- ");
        }
        self.compose(record).map_err(|_| Outcome::NotWritten)?;
        self.to.write_all(self.line.as_bytes()).map_err(|_| Outcome::NotWritten)
    }

    fn end(&mut self, _: Answered) -> Result<(), Outcome> {
        self.to.flush().map_err(|_| Outcome::NotWritten)
    }
}

/// Writes a name (not compressed) with a dot at its end.
fn push_name(name: &[u8], to: &mut String) -> fmt::Result {
    let mut rest = name;
    while let Some((&length @ 1.., after)) = rest.split_first() {
        let (label, after) = after.split_at(usize::from(length));
        for byte in label {
            match byte {
                b'.' | b'\\' | b'"' | b';' | b'(' | b')' | b'@' | b'$' => write!(to, "\\{}", char::from(*byte))?,
                b'!'..=b'~' => to.push(char::from(*byte)),
                _ => write!(to, "\\{byte:03}")?,
            }
        }
        to.push('.');
        rest = after;
    }
    if name.len() == 1 {
        to.push('.');
    }
    Ok(())
}

/// Writes data (its names not compressed) in the presentation format of its type.
fn push_data(rtype: Rtype, data: &[u8], to: &mut String) -> fmt::Result {
    if WRITTEN_AS_BYTES.contains(&rtype) || !has_plain_types(rtype, data) {
        return Err(fmt::Error);
    }
    let mut parser = Parser::from_ref(data);
    let parsed = ZoneRecordData::<_, ParsedName<_>>::parse_rdata(rtype, &mut parser);
    match parsed {
        Ok(None | Some(ZoneRecordData::Unknown(_))) => Err(fmt::Error),
        Ok(Some(parsed)) if parser.remaining() == 0 => write!(to, "{}", parsed.display_zonefile(DisplayKind::Simple)),
        _ => Err(fmt::Error),
    }
}

/// Whether a list of types in the data, if it has one, is as short as possible: only then the names of the types
/// contain all of it.
fn has_plain_types(rtype: Rtype, data: &[u8]) -> bool {
    let types = match rtype {
        Rtype::NSEC => name::skip(data, 0).ok().and_then(|behind| data.get(behind..)),
        // Algorithm, flags, iterations; salt and hash with their lengths before them (RFC 5155 §3.2).
        Rtype::NSEC3 => data.get(4..).and_then(behind_text).and_then(behind_text),
        _ => return true,
    };
    // Windows of 256 types, each with its number and the length of its bits (RFC 4034 §4.1.2).
    let (mut rest, mut next_window) = (types.unwrap_or_default(), 0);
    while let [window, bytes @ 1..=32, after @ ..] = rest {
        let Some((bits, after)) = after.split_at_checked(usize::from(*bytes)) else { return false };
        if u16::from(*window) < next_window || bits.ends_with(&[0]) {
            return false;
        }
        (rest, next_window) = (after, u16::from(*window) + 1);
    }
    rest.is_empty()
}

/// The data after a string with its length before it.
fn behind_text(data: &[u8]) -> Option<&[u8]> {
    let (&bytes, rest) = data.split_first()?;
    rest.get(usize::from(bytes)..)
}

/// Whether every reader of zone files understands the text of some data: quotes only around whole words, no special
/// characters outside of quotes, no empty words.
fn is_plain(text: &str) -> bool {
    let mut quoted = false;
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => _ = characters.next(),
            '"' if quoted && matches!(characters.peek(), None | Some(' ')) => quoted = false,
            '"' if !quoted && before == ' ' => quoted = true,
            '"' => return false,
            ';' | '(' | ')' | '@' | '$' if !quoted => return false,
            ' ' if !quoted && before == ' ' => return false,
            _ => (),
        }
        before = character;
    }
    !quoted && before != ' '
}

/// Writes data as bytes (RFC 3597 §5).
fn push_bytes(data: &[u8], to: &mut String) -> fmt::Result {
    write!(to, "\\# {}", data.len())?;
    if !data.is_empty() {
        to.push(' ');
    }
    data.iter().try_for_each(|byte| write!(to, "{byte:02x}"))
}

#[cfg(test)]
#[path = "zonefile_tests.rs"]
mod tests;
