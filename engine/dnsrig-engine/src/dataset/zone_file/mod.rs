//! Zones in master files (RFC 1035 §5), read a piece at a time: what a dataset needs to know of a zone that a user
//! brings, and what no server would accept.
//!
//! Records are read by the crate `domain`, which needs a whole file in memory. A file of any length is cut into
//! [`pieces`], so that memory is bounded by the longest piece. A copy of the zone has the text of the file, except that
//! its SOA record comes first and on one line, and that included files are in their places.

pub mod change;
mod include;
mod pieces;
mod text;

use std::{
    io::{self, Read},
    path::Path,
};

use bytes::Bytes;
use domain::{
    base::{
        Name, Record, ToName,
        iana::{Class, Rtype},
    },
    rdata::ZoneRecordData,
    zonefile::inplace::{Entry as Parsed, Zonefile},
};

pub use self::pieces::ZoneFileError;
use self::{
    change::Change,
    include::Includes,
    pieces::{Entry, Kind, PIECE_BYTES, Pieces, entries, lines},
    text::{escaped, plain_soa, soa_line},
};
pub use domain::zonefile::inplace::ScannedRecord;

/// What is known of a zone after its file was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The owner of the SOA record, without a final dot; the root is a dot.
    pub name: String,
    /// The serial and the bytes of the copy.
    pub serial: u32,
    pub bytes: u64,
    pub records: u64,
    /// Whether it has records of DNSSEC, or a digest (RFC 8976), which only its owner can make anew.
    pub signed: bool,
    /// Whether it denies names by hashes (NSEC3PARAM, RFC 5155 §4).
    pub hashed: bool,
    /// The records that a change touched, without the SOA record.
    pub changed: u64,
}

/// How a zone is read.
#[derive(Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// How the copy differs from the file.
    pub change: Option<Change>,
    /// The folder of files that may be included, without symbolic links.
    pub include_below: Option<&'a Path>,
}

/// How much of a file is read at first to find out the zone's name.
const HEAD_BYTES: usize = 1 << 16;

/// The name of the zone in a file: the owner of its SOA record. If that depends on the origin, the name is `listed`, or
/// else the name of the file.
pub fn name(input: impl Read, listed: Option<&str>, file: &Path) -> Result<Name<Bytes>, ZoneFileError> {
    let unset: Name<Bytes> = Name::from_octets(Bytes::from_static(b"\x01\x00\x00")).expect("a label of one byte");
    let mut pieces = Pieces::new(input, HEAD_BYTES);
    let mut state = State { origin: unset.clone(), dollar: None, last: None };
    while let Some(piece) = pieces.next()? {
        let entries = entries(&piece);
        let first = entries.iter().find(|entry| matches!(entry.kind, Kind::Returned | Kind::Refused(_)));
        if first.is_some_and(|entry| entry.kind != Kind::Returned) {
            break;
        }
        let mut parser = parser(&piece, &entries, &state, true);
        match parser.file.next_entry() {
            Ok(None) => state.origin = parser.file.origin().expect("it was set"),
            Ok(Some(Parsed::Record(record))) if record.rtype() == Rtype::SOA => {
                let owner = record.owner().to_name::<Bytes>();
                if owner == unset {
                    break;
                }
                if owner.ends_with(&unset) {
                    let relative = owner.to_string();
                    let reason = "the owner of the SOA record depends on an origin: write it with a final dot, or as @";
                    return Err(ZoneFileError::Zone(format!("{reason} ({})", relative.trim_end_matches("\\000"))));
                }
                return match listed {
                    Some(listed) if !same_name(listed, &owner.to_string()) => {
                        Err(ZoneFileError::Zone(format!("it has the zone {owner}, and the list says {listed}")))
                    }
                    _ => Ok(owner),
                };
            }
            // The zone's reader finds the same fault, and names its line.
            _ => break,
        }
    }
    let text = match listed {
        Some(listed) => listed.to_owned(),
        None => name_of_file(file)?,
    };
    text.parse().map_err(|error| ZoneFileError::Zone(format!("`{text}` is no domain name: {error}")))
}

fn same_name(one: &str, other: &str) -> bool {
    one.trim_end_matches('.').eq_ignore_ascii_case(other.trim_end_matches('.'))
}

/// Endings of zone files, which are no part of a zone's name.
const ENDINGS: [&str; 4] = [".zone", ".db", ".txt", ".signed"];

/// The name of a zone by the name of its file.
fn name_of_file(file: &Path) -> Result<String, ZoneFileError> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut stem = &*name;
    while let Some(shorter) = ENDINGS.iter().find_map(|end| stem.strip_suffix(end)) {
        stem = shorter;
    }
    match stem.strip_prefix("db.") {
        Some(other) if !other.is_empty() => Err(ZoneFileError::Zone(format!(
            "its zone may be {stem} or {other}: set $ORIGIN before the SOA record, or give zones a list with their names"
        ))),
        _ => Ok(stem.to_owned()),
    }
}

/// Reads the zone `name`, calls `each` with the owner of every record and with the record, and `copy` with the bytes of
/// its copy as they come. An error of `each` is a sentence.
///
/// A zone has one SOA record, which comes first, an NS record at its apex, records of class IN alone, and nothing
/// outside of it.
pub fn read(
    input: impl Read,
    path: &Path,
    name: &Name<Bytes>,
    wanted: Wanted<'_>,
    each: impl FnMut(&Name<Bytes>, &ScannedRecord) -> Result<(), String>,
    copy: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<Facts, ZoneFileError> {
    read_pieces(Pieces::new(input, PIECE_BYTES), path, name, wanted, each, copy)
}

fn read_pieces(
    pieces: Pieces<impl Read>,
    path: &Path,
    name: &Name<Bytes>,
    Wanted { change, include_below }: Wanted<'_>,
    each: impl FnMut(&Name<Bytes>, &ScannedRecord) -> Result<(), String>,
    copy: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<Facts, ZoneFileError> {
    let includes = Includes::new(include_below);
    let mut reader = ZoneReader { name, change, includes, zone: Zone::default(), bytes: 0, changed: 0, each, copy };
    let mut state = State { origin: name.clone(), dollar: None, last: None };
    reader.file(pieces, path, 0, &mut state)?;
    let ZoneReader { zone, bytes, changed, .. } = reader;
    let (apex, serial) = zone.checked()?;
    let serial = serial.wrapping_add(change.map_or(0, |change| change.steps));
    let Zone { records, signed, hashed, .. } = zone;
    Ok(Facts { name: apex.to_string(), serial, bytes, records, signed, hashed, changed })
}

/// What a piece of a file takes from the one before.
struct State {
    origin: Name<Bytes>,
    /// The TTL of the last $TTL.
    dollar: Option<u32>,
    /// The TTL of the last record.
    last: Option<u32>,
}

/// A piece that is being read.
struct Parser {
    file: Zonefile,
    /// Whether the SOA record, if it is the first entry, has a TTL of its own.
    soa_has_ttl: bool,
}

/// A parser for a piece, with the state of the one before; `first` if the SOA record is still to come.
fn parser(piece: &[u8], entries: &[Entry], state: &State, first: bool) -> Parser {
    let mut file = Zonefile::with_capacity(piece.len() + 64);
    file.set_origin(state.origin.clone());
    file.set_default_class(Class::IN);
    match (state.dollar, state.last) {
        (Some(ttl), _) => file.extend_from_slice(format!("$TTL {ttl}\n").as_bytes()),
        // A record of no zone sets the TTL of the records after it that have none.
        (None, Some(ttl)) => {
            file.extend_from_slice(format!(". {ttl} IN TXT x\n").as_bytes());
            _ = file.next_entry();
        }
        (None, None) => {}
    }
    let (mut copied, mut soa_has_ttl, mut to_come) = (0, false, first);
    for entry in entries {
        let text = &piece[entry.place.clone()];
        let plain = match entry.kind {
            // The parser reads no units of time.
            Kind::Ttl(Some(ttl)) if text.trim_ascii().last().is_some_and(u8::is_ascii_alphabetic) => {
                Some(format!("$TTL {ttl}\n").into_bytes())
            }
            Kind::Returned if std::mem::take(&mut to_come) => plain_soa(text).map(|(text, has_ttl)| {
                soa_has_ttl = has_ttl;
                text
            }),
            _ => None,
        };
        if let Some(plain) = plain {
            file.extend_from_slice(&piece[copied..entry.place.start]);
            file.extend_from_slice(&plain);
            copied = entry.place.end;
        }
    }
    file.extend_from_slice(&piece[copied..]);
    // The parser panics at a text in quotes that nothing follows.
    file.extend_from_slice(b"\n");
    Parser { file, soa_has_ttl }
}

struct ZoneReader<'a, Each, Copy> {
    name: &'a Name<Bytes>,
    change: Option<Change>,
    includes: Includes<'a>,
    zone: Zone,
    bytes: u64,
    changed: u64,
    each: Each,
    copy: Copy,
}

impl<Each, Copy> ZoneReader<'_, Each, Copy>
where
    Each: FnMut(&Name<Bytes>, &ScannedRecord) -> Result<(), String>,
    Copy: FnMut(&[u8]) -> io::Result<()>,
{
    fn write(&mut self, bytes: &[u8]) -> Result<(), ZoneFileError> {
        self.bytes += bytes.len() as u64;
        (self.copy)(bytes).map_err(ZoneFileError::Copy)
    }

    /// Writes text of a file, except comments and settings before the SOA record, which begins the copy.
    fn write_text(&mut self, text: &[u8], depth: usize) -> Result<(), ZoneFileError> {
        if depth == 0 && self.zone.apex.is_none() { Ok(()) } else { self.write(text) }
    }

    /// Reads a file, which the zone's file includes if `depth` is above 0.
    fn file<Input: Read>(
        &mut self,
        mut pieces: Pieces<Input>,
        path: &Path,
        depth: usize,
        state: &mut State,
    ) -> Result<(), ZoneFileError> {
        let mut line = 1;
        while let Some(piece) = pieces.next()? {
            self.piece(&piece, path, depth, state).map_err(|fault| match fault {
                Fault::Here { line: place, reason } => {
                    let file = if depth > 0 { format!("{}: ", path.display()) } else { String::new() };
                    ZoneFileError::Line { file, line: line + place, reason }
                }
                Fault::Elsewhere(error) => error,
            })?;
            line += lines(&piece);
        }
        Ok(())
    }

    fn piece(&mut self, piece: &[u8], path: &Path, depth: usize, state: &mut State) -> Result<(), Fault> {
        let entries = entries(piece);
        let Parser { mut file, soa_has_ttl } = parser(piece, &entries, state, self.zone.apex.is_none());
        let (mut rest, mut copied, mut after_include) = (entries.iter(), 0, false);
        loop {
            let next = next_returned(&mut rest, state)?;
            let parsed = file.next_entry();
            let Some(entry) = next else {
                match parsed {
                    Ok(None) => break,
                    Ok(Some(_)) => return Err(Fault::at(entries.last(), "a record that no line begins".into())),
                    Err(error) => return Err(Fault::at(entries.last(), without_place(&error.to_string()))),
                }
            };
            let wrong = |reason| Fault::at(Some(entry), reason);
            let origin = file.origin().expect("it was set");
            if has_empty_label(&origin) {
                return Err(wrong("an empty label in the $ORIGIN before it".into()));
            }
            match parsed {
                Ok(Some(Parsed::Record(record))) => {
                    if depth == 0 && self.zone.apex.is_none() {
                        copied = entry.place.start;
                    }
                    // The owner of the record before the $INCLUDE is not the last one in the copy.
                    let first = piece[entry.place.start];
                    let detached = std::mem::take(&mut after_include) && (first.is_ascii_whitespace() || first == b'(');
                    let line = self.record(&record, soa_has_ttl, &origin, state, detached).map_err(wrong)?;
                    if let Some(line) = line {
                        self.write_text(&piece[copied..entry.place.start], depth)?;
                        self.write(line.as_bytes())?;
                        copied = entry.place.end;
                    }
                }
                Ok(Some(Parsed::Include { path: name, origin: inner })) => {
                    let Some(ttl) = state.dollar else {
                        return Err(wrong("$INCLUDE without a $TTL before it, which servers read differently".into()));
                    };
                    let (place, input) = self.includes.open(&name, path, depth).map_err(wrong)?;
                    self.write_text(&piece[copied..entry.place.start], depth)?;
                    let inner = inner.unwrap_or_else(|| origin.clone());
                    self.include(Pieces::new(input, PIECE_BYTES), &place, depth + 1, [inner, origin], ttl)?;
                    (copied, after_include) = (entry.place.end, true);
                }
                Ok(None) => return Err(wrong("no record".into())),
                Err(error) => return Err(wrong(without_place(&error.to_string()))),
            }
        }
        state.origin = file.origin().expect("it was set");
        self.write_text(&piece[copied..], depth)?;
        Ok(())
    }

    /// Reads an included file, in which names are below the first origin. The second is in force after it again.
    fn include<Input: Read>(
        &mut self,
        pieces: Pieces<Input>,
        path: &Path,
        depth: usize,
        [inner, outer]: [Name<Bytes>; 2],
        ttl: u32,
    ) -> Result<(), ZoneFileError> {
        self.write(format!("\n$ORIGIN {}\n", escaped(inner.as_slice())).as_bytes())?;
        self.file(pieces, path, depth, &mut State { origin: inner, dollar: Some(ttl), last: None })?;
        self.write(format!("\n$ORIGIN {}\n$TTL {ttl}\n", escaped(outer.as_slice())).as_bytes())
    }

    /// Takes a record; gives what is in its place in the copy, if not its text.
    fn record(
        &mut self,
        record: &ScannedRecord,
        soa_has_ttl: bool,
        origin: &Name<Bytes>,
        state: &mut State,
        detached: bool,
    ) -> Result<Option<String>, String> {
        let is_soa = self.zone.apex.is_none();
        let owner = self.checked(record)?;
        let ttl = record.ttl().as_secs();
        state.last = Some(ttl);
        if !is_soa {
            return Ok(self.changed_line(&owner, ttl, record, detached));
        }
        let known = (soa_has_ttl || state.dollar.is_some()).then_some(ttl);
        Ok(self.soa(&owner, known, record, origin, state.dollar))
    }

    /// Checks a record and counts it; gives its owner.
    fn checked(&mut self, record: &ScannedRecord) -> Result<Name<Bytes>, String> {
        let (owner, rtype) = (record.owner().to_name::<Bytes>(), record.rtype());
        if has_empty_label(&owner) {
            return Err("an empty label in the owner".into());
        }
        (self.each)(&owner, record)?;
        self.zone.add(&owner, record.class(), rtype, record.data())?;
        if rtype == Rtype::SOA && owner != *self.name {
            return Err(format!("the SOA record of {owner} in the zone {}", self.name));
        }
        match self.change {
            Some(change) if !change.signed && is_of_signer(rtype) => Err(format!(
                "a {rtype} record: a next version of a signed zone needs new signatures, or a new digest, from its signer"
            )),
            _ => Ok(owner),
        }
    }

    /// The SOA record as the copy begins with it, with the state that the next record finds.
    fn soa(
        &self,
        owner: &Name<Bytes>,
        ttl: Option<u32>,
        record: &ScannedRecord,
        origin: &Name<Bytes>,
        dollar: Option<u32>,
    ) -> Option<String> {
        let ZoneRecordData::Soa(soa) = record.data() else { return None };
        let serial = soa.serial().into_int().wrapping_add(self.change.map_or(0, |change| change.steps));
        let line = |name: &Name<Bytes>| format!("$ORIGIN {}\n", escaped(name.as_slice()));
        let ttls = dollar.map(|ttl| format!("$TTL {ttl}\n")).unwrap_or_default();
        let after = if origin == owner { String::new() } else { line(origin) };
        Some(format!("{}{ttls}{}{after}", line(owner), soa_line(owner, ttl, soa, serial)))
    }

    /// Another line for a record that a change touches, or whose owner is `detached`, on another line.
    fn changed_line(
        &mut self,
        owner: &Name<Bytes>,
        ttl: u32,
        record: &Record<impl ToName, impl domain::base::rdata::ComposeRecordData>,
        detached: bool,
    ) -> Option<String> {
        let rtype = record.rtype();
        let touched = self.change.filter(|change| change.touches(owner, rtype));
        self.changed += u64::from(touched.is_some());
        let ttl = touched.map_or(ttl, |change| change.ttl(ttl));
        (touched.is_some() || detached).then(|| change::line(owner, ttl, rtype, record.data()))
    }
}

/// Whether two dots followed each other, which the parser does not refuse.
fn has_empty_label(name: &Name<Bytes>) -> bool {
    Name::from_slice(name.as_slice()).is_err()
}

/// The next entry that the parser returns; none at the end. Settings before it take effect.
fn next_returned<'a>(
    entries: &mut impl Iterator<Item = &'a Entry>,
    state: &mut State,
) -> Result<Option<&'a Entry>, Fault> {
    for entry in entries {
        match entry.kind {
            Kind::Returned => return Ok(Some(entry)),
            Kind::Origin => {}
            Kind::Refused(reason) => return Err(Fault::at(Some(entry), reason.into())),
            Kind::Ttl(None) => return Err(Fault::at(Some(entry), "$TTL is not followed by a time in seconds".into())),
            Kind::Ttl(ttl) => state.dollar = ttl,
        }
    }
    Ok(None)
}

/// Types that prove something about a zone, which its signer makes.
fn is_of_signer(rtype: Rtype) -> bool {
    matches!(rtype, Rtype::DNSKEY | Rtype::RRSIG | Rtype::NSEC | Rtype::NSEC3 | Rtype::NSEC3PARAM | Rtype::ZONEMD)
}

/// What is wrong in a piece.
enum Fault {
    /// After a number of lines of the piece.
    Here {
        line: usize,
        reason: String,
    },
    Elsewhere(ZoneFileError),
}

impl Fault {
    fn at(entry: Option<&Entry>, reason: String) -> Self {
        Fault::Here { line: entry.map_or(0, |entry| entry.line), reason }
    }
}

impl From<ZoneFileError> for Fault {
    fn from(error: ZoneFileError) -> Self {
        Fault::Elsewhere(error)
    }
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
    signed: bool,
    hashed: bool,
}

impl Zone {
    fn add<N, O>(
        &mut self,
        owner: &Name<Bytes>,
        class: Class,
        rtype: Rtype,
        data: &ZoneRecordData<O, N>,
    ) -> Result<(), String>
    where
        N: ToName,
        O: AsRef<[u8]>,
    {
        if class != Class::IN {
            return Err(format!("a record of class {class}: zones have class IN here"));
        }
        self.records += 1;
        self.signed |= is_of_signer(rtype);
        self.hashed |= rtype == Rtype::NSEC3PARAM;
        match (data, &self.apex) {
            (ZoneRecordData::Soa(soa), None) => self.apex = Some((owner.clone(), soa.serial().into_int())),
            (ZoneRecordData::Soa(_), Some((apex, _))) => {
                return Err(format!("a second SOA record: a file has one zone, and this one has {apex} already"));
            }
            (_, None) if rtype == Rtype::SOA => return Err("an SOA record as in RFC 3597: write its fields".into()),
            (_, None) => return Err(format!("{owner} comes before the SOA record: put the SOA record first")),
            (_, Some((apex, _))) if !owner.ends_with(apex) => {
                return Err(format!("{owner} lies outside of the zone {apex}"));
            }
            (_, Some((apex, _))) => self.has_ns |= rtype == Rtype::NS && owner == apex,
        }
        Ok(())
    }

    /// The apex and the serial of a whole zone.
    fn checked(&self) -> Result<(&Name<Bytes>, u32), ZoneFileError> {
        let Some((apex, serial)) = &self.apex else {
            return Err(ZoneFileError::Zone("it has no SOA record, so it is no zone".into()));
        };
        if !self.has_ns {
            return Err(ZoneFileError::Zone(format!("the zone {apex} has no NS record at its apex")));
        }
        Ok((apex, *serial))
    }
}

#[cfg(test)]
mod tests;
