//! How the answers of two servers to one query differ. No I/O, no clock.
//!
//! Compared are the rcode, flags, and the records of the answer section, whatever their order, compression and case of
//! letters. Without any there, the records of the authority section are compared instead: they are a referral, or why
//! there is no answer. What else a server adds is its own choice.

use std::{
    fmt::Write as _,
    hash::{DefaultHasher, Hasher},
};

use dnsrig_dns::{
    header::{AA, AD, CD, Header, RCODE, TC},
    name::{ParseError, whole},
    record::{Record, Section, Walk},
};
use domain::{
    base::{
        ParseRecordData, ParsedName, Rtype,
        zonefile_fmt::{DisplayKind, ZonefileFmt},
    },
    dep::octseq::Parser,
    rdata::ZoneRecordData,
};
use serde::Serialize;

use crate::load::answer::rcode_name;

/// Recursion is available (RFC 1035 §4.1.1).
const RA: u16 = 0x80;

/// The flags that are compared, with their names: of the second byte of flags in the lower half.
const FLAGS: [(u16, &str); 5] =
    [((AA as u16) << 8, "aa"), ((TC as u16) << 8, "tc"), (RA, "ra"), (AD as u16, "ad"), (CD as u16, "cd")];

/// The number of records of an answer that are shown.
const SHOWN_RECORDS_MAX: usize = 10;

/// How two answers differ: the first kind that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One server did not answer.
    Missing,
    /// Records that cannot be read.
    Damaged,
    Rcode,
    /// Other records.
    Rrset,
    Flags,
    /// A TTL of the same record differs by more than the limit.
    Ttl,
}

/// All kinds, in their order.
pub const KINDS: [Kind; 6] = [Kind::Missing, Kind::Damaged, Kind::Rcode, Kind::Rrset, Kind::Flags, Kind::Ttl];

/// What is compared of an answer, in memory that is used again.
#[derive(Default)]
struct Seen {
    rcode: u8,
    flags: u16,
    /// A hash of each record without its TTL, and the TTL, sorted.
    records: Vec<(u64, u32)>,
}

impl Seen {
    fn read(&mut self, message: &[u8], bytes: &mut Vec<u8>) -> Result<(), ParseError> {
        let header = Header::read(message)?;
        let flags = u16::from_be_bytes([message[2], message[3]]);
        let compared = FLAGS.iter().fold(0, |all, (flag, _)| all | flag);
        (self.rcode, self.flags) = (message[3] & RCODE, flags & compared);
        self.records.clear();
        for found in compared_records(message, &header) {
            let record = found?;
            bytes.clear();
            record.owner_into(bytes)?;
            bytes.make_ascii_lowercase();
            bytes.extend([record.rtype.to_int(), record.class.to_int()].map(u16::to_be_bytes).as_flattened());
            record.canonical_data_into(bytes)?;
            let mut hasher = DefaultHasher::new();
            hasher.write(bytes);
            self.records.push((hasher.finish(), record.ttl_s));
        }
        self.records.sort_unstable();
        Ok(())
    }
}

/// The records of the answer section, or of the authority section if there is none. The first error ends them.
fn compared_records<'m>(message: &'m [u8], header: &Header) -> impl Iterator<Item = Result<Record<'m>, ParseError>> {
    let wanted = if header.answers == 0 { Section::Authority } else { Section::Answer };
    let mut walk = Walk::new(message);
    let mut questions = (0..header.questions).map(|_| walk.skip_question()).find_map(Result::err);
    let records: Vec<_> = walk.records(header).collect();
    let broken = questions.take().map(Err);
    let wanted = records.into_iter().filter_map(move |found| match found {
        Ok((section, record)) => (section == wanted).then_some(Ok(record)),
        Err(error) => Some(Err(error)),
    });
    broken.into_iter().chain(wanted)
}

/// Compares answers.
#[derive(Default)]
pub struct Comparer {
    /// The largest difference of TTLs that is none, in seconds. `None`: TTLs are not compared.
    pub ttl_limit_s: Option<u32>,
    seen: [Seen; 2],
    bytes: Vec<u8>,
}

impl Comparer {
    /// Compares TTLs up to this limit, or not at all.
    pub fn new(ttl_limit_s: Option<u32>) -> Self {
        Comparer { ttl_limit_s, ..Comparer::default() }
    }

    /// How two answers differ, if they do.
    pub fn compare(&mut self, answers: [&[u8]; 2]) -> Option<Kind> {
        for (seen, answer) in self.seen.iter_mut().zip(answers) {
            if seen.read(answer, &mut self.bytes).is_err() {
                return Some(Kind::Damaged);
            }
        }
        let [one, other] = &self.seen;
        if one.rcode != other.rcode {
            Some(Kind::Rcode)
        } else if one.records.len() != other.records.len()
            || one.records.iter().zip(&other.records).any(|(one, other)| one.0 != other.0)
        {
            Some(Kind::Rrset)
        } else if one.flags != other.flags {
            Some(Kind::Flags)
        } else {
            let limit_s = self.ttl_limit_s?;
            let mut pairs = one.records.iter().zip(&other.records);
            pairs.any(|(one, other)| one.1.abs_diff(other.1) > limit_s).then_some(Kind::Ttl)
        }
    }
}

/// An answer as text: rcode, flags, and the records that are compared.
pub fn show(answer: Option<&[u8]>) -> String {
    let Some(message) = answer else { return "no answer".into() };
    let Ok(header) = Header::read(message) else { return "an answer that cannot be read".into() };
    let flags = u16::from_be_bytes([message[2], message[3]]);
    let mut text = rcode_name(message[3] & RCODE).to_owned();
    FLAGS.iter().filter(|(flag, _)| flags & flag != 0).for_each(|(_, name)| text += &format!(" {name}"));
    let (mut lines, mut count) = (Vec::new(), 0);
    for record in compared_records(message, &header) {
        count += 1;
        match record.and_then(line) {
            Ok(line) if count <= SHOWN_RECORDS_MAX => lines.push(line),
            Ok(_) => {}
            Err(_) => lines.push("a record that cannot be read".into()),
        }
    }
    lines.sort();
    if count > SHOWN_RECORDS_MAX {
        lines.push(format!("and {} more records", count - SHOWN_RECORDS_MAX));
    }
    lines.iter().for_each(|line| text += &format!("; {line}"));
    text
}

/// A record as in a zone file.
fn line(record: Record<'_>) -> Result<String, ParseError> {
    let (mut owner, mut data) = (Vec::new(), Vec::new());
    record.owner_into(&mut owner)?;
    record.data_into(&mut data)?;
    let mut text = format!("{} {} {} ", whole(&owner).fmt_with_dot(), record.ttl_s, record.rtype);
    let begin = text.len();
    if !push_data(record.rtype, &data, &mut text) {
        text.truncate(begin);
        let _ = write!(text, "\\# {} ", data.len());
        data.iter().for_each(|byte| text += &format!("{byte:02x}"));
    }
    Ok(text)
}

/// Appends the data in the presentation format of its type, if the library knows that, and it is printable.
fn push_data(rtype: Rtype, data: &[u8], to: &mut String) -> bool {
    let mut parser = Parser::from_ref(data);
    let parsed = ZoneRecordData::<_, ParsedName<_>>::parse_rdata(rtype, &mut parser);
    let Ok(Some(parsed)) = parsed else { return false };
    parser.remaining() == 0
        && write!(to, "{}", parsed.display_zonefile(DisplayKind::Simple)).is_ok()
        && !to.contains(char::is_control)
}

#[cfg(test)]
#[path = "difference_tests.rs"]
mod tests;
