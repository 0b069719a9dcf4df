//! A walk over a message: questions and records. Nothing is copied.

use domain::base::{Rtype, iana::Class};

use super::{
    header::{HEADER_BYTES, Header},
    name::{self, Owners, ParseError, Place},
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
    fn read(message: &'m [u8], owner: usize, behind: usize) -> Result<Self, ParseError> {
        let fixed: &[u8; FIXED_BYTES] =
            message.get(behind..).and_then(<[u8]>::first_chunk).ok_or(ParseError::Malformed)?;
        let data = behind + FIXED_BYTES;
        let end = data + usize::from(u16::from_be_bytes([fixed[8], fixed[9]]));
        if end > message.len() {
            return Err(ParseError::Malformed);
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

    /// The data as it came in the message.
    pub fn data(&self) -> &'m [u8] {
        &self.message[self.data..self.end]
    }

    /// The message up to the record's end, and where in it the record's data begins: for names in the data, which may
    /// be compressed, but have no part in what comes behind.
    pub fn context(&self) -> (&'m [u8], usize) {
        (&self.message[..self.end], self.data)
    }

    /// Whether the owner is the root. The owner is looked at up to its end.
    pub fn is_at_root(&self) -> Result<bool, ParseError> {
        name::equals(self.message, self.owner, &[0]).map(|(is_root, _)| is_root)
    }

    /// Appends the owner in wire format, not compressed, in the case of letters it was sent in.
    pub fn owner_into(&self, to: &mut Vec<u8>) -> Result<(), ParseError> {
        name::expand(self.message, self.owner, to)?;
        Ok(())
    }

    /// Appends the name that the data begins with, such as a PTR's, in wire format and not compressed. Returns the
    /// number of bytes behind it in the data.
    pub fn data_name_into(&self, to: &mut Vec<u8>) -> Result<usize, ParseError> {
        let (message, data) = self.context();
        Ok(message.len() - name::expand(message, data, to)?)
    }

    /// The serial, in the data of an SOA record (RFC 1035 §3.3.13).
    pub fn serial(&self) -> Result<u32, ParseError> {
        let (message, data) = self.context();
        let numbers = &message[name::skip(message, name::skip(message, data)?)?..];
        let numbers: &[u8; 20] = numbers.try_into().map_err(|_| ParseError::Malformed)?;
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

    /// Whether the question that comes next asks for this type of the zone. The walk goes on after it.
    ///
    /// The first question follows the header, so what was found of its name serves the records' owners.
    #[inline]
    pub fn question(&mut self, owners: &mut Owners<'_>, qtype: Rtype) -> Result<bool, ParseError> {
        let (place, behind) = owners.place(self.message, self.at)?;
        let fixed: &[u8; 4] = self.message.get(behind..).and_then(<[u8]>::first_chunk).ok_or(ParseError::Malformed)?;
        self.at = behind + fixed.len();
        let [qtype, qclass] = [qtype.to_int(), Class::IN.to_int()].map(u16::to_be_bytes);
        Ok(place == Place::Apex && *fixed == [qtype[0], qtype[1], qclass[0], qclass[1]])
    }

    /// The next record, and where its owner lies.
    #[inline(always)]
    pub fn record(&mut self, owners: &mut Owners<'_>) -> Result<(Record<'m>, Place), ParseError> {
        let (place, behind) = owners.place(self.message, self.at)?;
        let record = Record::read(self.message, self.at, behind)?;
        self.at = record.end;
        Ok((record, place))
    }

    /// The records behind the questions, each with its section, as many as `header` counts. The first error ends them.
    pub fn records(&mut self, header: &Header) -> impl Iterator<Item = Result<(Section, Record<'m>), ParseError>> {
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
    pub fn any_record(&mut self) -> Result<Record<'m>, ParseError> {
        let record = Record::read(self.message, self.at, name::skip(self.message, self.at)?)?;
        self.at = record.end;
        Ok(record)
    }

    /// Passes over a question.
    pub fn skip_question(&mut self) -> Result<(), ParseError> {
        self.at = name::skip(self.message, self.at)? + 4;
        Ok(())
    }

    /// An error if anything follows the last record.
    #[inline]
    pub fn end(&self) -> Result<(), ParseError> {
        if self.at == self.message.len() { Ok(()) } else { Err(ParseError::Malformed) }
    }
}
