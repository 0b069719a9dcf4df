//! Records: a walk over a message, in which nothing is copied, and the record that is written.

use domain::base::{Rtype, iana::Class};

use super::{
    header::{HEADER_BYTES, Header},
    name::{self, Owners, Place, Wrong},
    query::Ask,
};

/// TYPE, CLASS, TTL and RDLENGTH, behind the owner of a record (RFC 1035 §4.1.3).
const FIXED_BYTES: usize = 10;

/// The part of a message that a record is in (RFC 1035 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Answer,
    Authority,
    Additional,
}

/// One record, where it lies in its message. The names in it may be compressed.
#[derive(Clone, Copy, Debug)]
pub struct Record<'m> {
    message: &'m [u8],
    owner: usize,
    data: usize,
    end: usize,
    /// TYPE.
    pub rtype: Rtype,
    /// CLASS.
    pub class: Class,
    /// TTL, in seconds.
    pub ttl_s: u32,
}

impl<'m> Record<'m> {
    /// The record whose owner begins at `owner` and ends before `behind`.
    #[inline(always)]
    fn read(message: &'m [u8], owner: usize, behind: usize) -> Result<Self, Wrong> {
        let fixed: &[u8; FIXED_BYTES] = message.get(behind..).and_then(<[u8]>::first_chunk).ok_or(Wrong::Form)?;
        let data = behind + FIXED_BYTES;
        let end = data + usize::from(u16::from_be_bytes([fixed[8], fixed[9]]));
        if end > message.len() {
            return Err(Wrong::Form);
        }
        Ok(Record {
            message,
            owner,
            data,
            end,
            rtype: Rtype::from_int(u16::from_be_bytes([fixed[0], fixed[1]])),
            class: Class::from_int(u16::from_be_bytes([fixed[2], fixed[3]])),
            ttl_s: u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]),
        })
    }

    /// The data as it stands in the message.
    pub fn data(&self) -> &'m [u8] {
        &self.message[self.data..self.end]
    }

    /// The message up to the record's end, and where in it the record's data begins: for names in the data, which may
    /// be compressed, but have no part in what comes behind.
    pub fn context(&self) -> (&'m [u8], usize) {
        (&self.message[..self.end], self.data)
    }

    /// Whether the owner is the root.
    pub fn is_at_root(&self) -> bool {
        name::equals(self.message, self.owner, &[0]).is_ok_and(|(is_root, _)| is_root)
    }

    /// Appends the owner in wire format, not compressed, in the case of letters it was sent in.
    pub fn owner_into(&self, to: &mut Vec<u8>) -> Result<(), Wrong> {
        name::expand(self.message, self.owner, to)?;
        Ok(())
    }

    /// Appends the name that the data begins with, such as a PTR's, in wire format and not compressed. Returns the
    /// number of bytes behind it in the data.
    pub fn data_name_into(&self, to: &mut Vec<u8>) -> Result<usize, Wrong> {
        let (message, data) = self.context();
        Ok(message.len() - name::expand(message, data, to)?)
    }

    /// The serial, in the data of an SOA record (RFC 1035 §3.3.13).
    pub fn serial(&self) -> Result<u32, Wrong> {
        let (message, data) = self.context();
        let numbers = &message[name::skip(message, name::skip(message, data)?)?..];
        let numbers: &[u8; 20] = numbers.try_into().map_err(|_| Wrong::Form)?;
        Ok(u32::from_be_bytes(*numbers.first_chunk().expect("20 bytes are there")))
    }

    /// Where the record begins in its message.
    pub fn start(&self) -> usize {
        self.owner
    }
}

/// Walks over a message from front to back.
pub struct Walk<'m> {
    message: &'m [u8],
    at: usize,
}

impl<'m> Walk<'m> {
    /// Begins behind the header.
    #[inline]
    pub fn new(message: &'m [u8]) -> Self {
        Walk::from(message, HEADER_BYTES)
    }

    /// Begins at `at`.
    #[inline]
    pub fn from(message: &'m [u8], at: usize) -> Self {
        Walk { message, at }
    }

    /// Whether the question at hand asks for this; it lies behind afterwards.
    ///
    /// The first question stands behind the header, so what was found of its name serves the records' owners.
    #[inline]
    pub fn question(&mut self, owners: &mut Owners<'_>, ask: Ask) -> Result<bool, Wrong> {
        let (place, behind) = owners.place(self.message, self.at)?;
        let fixed: &[u8; 4] = self.message.get(behind..).and_then(<[u8]>::first_chunk).ok_or(Wrong::Form)?;
        self.at = behind + fixed.len();
        let [qtype, qclass] = [ask.qtype().to_int(), Class::IN.to_int()].map(u16::to_be_bytes);
        Ok(place == Place::Apex && *fixed == [qtype[0], qtype[1], qclass[0], qclass[1]])
    }

    /// The next record, and where its owner lies.
    #[inline(always)]
    pub fn record(&mut self, owners: &mut Owners<'_>) -> Result<(Record<'m>, Place), Wrong> {
        let (place, behind) = owners.place(self.message, self.at)?;
        let record = Record::read(self.message, self.at, behind)?;
        self.at = record.end;
        Ok((record, place))
    }

    /// The records behind the questions, each with its section, as many as `header` counts. The first error ends them.
    pub fn records(&mut self, header: &Header) -> impl Iterator<Item = Result<(Section, Record<'m>), Wrong>> {
        let (answers, all) = (u32::from(header.answers), header.records());
        let (authority, mut next) = (answers + u32::from(header.authority), 0);
        std::iter::from_fn(move || {
            if next == all {
                return None;
            }
            let section = match next {
                number if number < answers => Section::Answer,
                number if number < authority => Section::Authority,
                _ => Section::Additional,
            };
            next += 1;
            let record = self.any_record();
            if record.is_err() {
                next = all;
            }
            Some(record.map(|record| (section, record)))
        })
    }

    /// The next record, whatever its owner is.
    pub fn any_record(&mut self) -> Result<Record<'m>, Wrong> {
        let record = Record::read(self.message, self.at, name::skip(self.message, self.at)?)?;
        self.at = record.end;
        Ok(record)
    }

    /// Passes over a question.
    pub fn skip_question(&mut self) -> Result<(), Wrong> {
        self.at = name::skip(self.message, self.at)? + 4;
        Ok(())
    }

    /// Nothing may stand behind the last record.
    #[inline]
    pub fn end(&self) -> Result<(), Wrong> {
        if self.at == self.message.len() { Ok(()) } else { Err(Wrong::Form) }
    }
}

/// TYPE, CLASS, TTL and RDLENGTH in wire format.
pub fn fixed(rtype: Rtype, class: Class, ttl_s: u32, data_bytes: u16) -> [u8; FIXED_BYTES] {
    let [[type_high, type_low], [class_high, class_low], [data_high, data_low]] =
        [rtype.to_int(), class.to_int(), data_bytes].map(u16::to_be_bytes);
    let [a, b, c, d] = ttl_s.to_be_bytes();
    [type_high, type_low, class_high, class_low, a, b, c, d, data_high, data_low]
}

/// Appends a record; the names in it are written as they are given.
///
/// # Panics
///
/// If the data has more than 65,535 bytes.
pub fn append_record(to: &mut Vec<u8>, owner: &[u8], rtype: Rtype, class: Class, ttl_s: u32, data: &[u8]) {
    let data_bytes = data.len().try_into().expect("the data of a record has a length of 16 bits");
    to.extend_from_slice(owner);
    to.extend_from_slice(&fixed(rtype, class, ttl_s, data_bytes));
    to.extend_from_slice(data);
}
