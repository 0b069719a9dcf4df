//! A zone file of what was transferred (RFC 1035 §5): a record a line, all names in full.
//!
//! Data is written as its type asks for where the library knows the type, else as octets (RFC 3597 §5). As octets, too,
//! where the library would not escape what means something in a zone file.

use std::{
    fmt::{self, Write as _},
    io,
};

use domain::{
    base::{ParseRecordData, ParsedName, Rtype, zonefile_fmt::DisplayKind, zonefile_fmt::ZonefileFmt},
    dep::octseq::Parser,
    rdata::ZoneRecordData,
};

use super::{Answered, Change, Outcome, Record, Sink};

/// Types of SVCB and HTTPS (RFC 9460), whose values have two kinds of escapes.
const TYPES_SVCB: std::ops::RangeInclusive<u16> = 64..=65;

/// Writes records as lines of a zone file to `to`, which should be buffered.
///
/// Of an IXFR the changes are written, in their order: what goes is a comment that begins with `;-`.
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

    /// Gives back what was written to.
    pub fn into_inner(self) -> W {
        self.to
    }

    /// Puts the record into the line.
    fn compose(&mut self, record: &Record<'_>) -> fmt::Result {
        push_name(&self.owner, &mut self.line)?;
        write!(self.line, " {} IN {} ", record.ttl_s, Rtype::from_int(record.rtype))?;
        let data = self.line.len();
        if push_data(record.rtype, &self.data, &mut self.line).is_err() || !is_plain(record.rtype, &self.line[data..]) {
            self.line.truncate(data);
            push_octets(&self.data, &mut self.line)?;
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
        for octet in label {
            match octet {
                b'.' | b'\\' | b'"' | b';' | b'(' | b')' | b'@' | b'$' => write!(to, "\\{}", char::from(*octet))?,
                b'!'..=b'~' => to.push(char::from(*octet)),
                _ => write!(to, "\\{octet:03}")?,
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

/// Writes data (its names not compressed) as its type asks for.
fn push_data(rtype: u16, data: &[u8], to: &mut String) -> fmt::Result {
    let mut parser = Parser::from_ref(data);
    let parsed = ZoneRecordData::<_, ParsedName<_>>::parse_rdata(Rtype::from_int(rtype), &mut parser);
    match parsed {
        Ok(Some(parsed)) if parser.remaining() == 0 => write!(to, "{}", parsed.display_zonefile(DisplayKind::Simple)),
        _ => Err(fmt::Error),
    }
}

/// Whether the text of some data is one that every reader of zone files takes as it is meant: quotes only around whole
/// words or values, nothing outside of them that means something else.
fn is_plain(rtype: u16, text: &str) -> bool {
    if text.is_empty() || TYPES_SVCB.contains(&rtype) && text.contains(['\\', '"']) {
        return false;
    }
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
            _ => (),
        }
        before = character;
    }
    !quoted
}

/// Writes data as octets (RFC 3597 §5).
fn push_octets(data: &[u8], to: &mut String) -> fmt::Result {
    write!(to, "\\# {}", data.len())?;
    if !data.is_empty() {
        to.push(' ');
    }
    data.iter().try_for_each(|octet| write!(to, "{octet:02x}"))
}

#[cfg(test)]
#[path = "master_tests.rs"]
mod tests;
