//! RRsets of an answer or of a zone, in memory that is used again and again, and sets of types.

use std::ops::Range;

use domain::base::Rtype;

/// RRsets, one after the other.
#[derive(Clone, Default)]
pub struct Records {
    bytes: Vec<u8>,
    sets: Vec<Set>,
}

#[derive(Clone)]
struct Set {
    owner: Range<usize>,
    rtype: Rtype,
    ttl_s: u32,
    zone_ttl_s: u32,
    data: Range<usize>,
}

/// Records of one owner and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rrset<'r> {
    pub owner: &'r [u8],
    pub rtype: Rtype,
    pub ttl_s: u32,
    /// The TTL that it has in its zone, where an answer lowers it: signatures are of this one (RFC 4034 §3.1.4).
    pub zone_ttl_s: u32,
    /// Each record's data with two bytes of length before it.
    data: &'r [u8],
}

impl Records {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.sets.clear();
    }

    pub fn len(&self) -> usize {
        self.sets.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = Rrset<'_>> {
        (0..self.len()).map(|number| self.get(number))
    }

    /// The RRset with this number.
    pub fn get(&self, number: usize) -> Rrset<'_> {
        let Set { owner, rtype, ttl_s, zone_ttl_s, data } = self.sets[number].clone();
        Rrset { owner: &self.bytes[owner], rtype, ttl_s, zone_ttl_s, data: &self.bytes[data] }
    }

    /// Lowers the TTLs that are above this.
    pub fn limit_ttl(&mut self, ttl_s: u32) {
        self.sets.iter_mut().for_each(|set| set.ttl_s = set.ttl_s.min(ttl_s));
    }

    /// Begins an RRset, whose owner is put together.
    pub fn begin(&mut self, owner: &[&[u8]], rtype: Rtype, ttl_s: u32) {
        let start = self.bytes.len();
        owner.iter().for_each(|part| self.bytes.extend_from_slice(part));
        let end = self.bytes.len();
        self.sets.push(Set { owner: start..end, rtype, ttl_s, zone_ttl_s: ttl_s, data: end..end });
    }

    /// Begins an RRset at the name of the one with this number, and with its TTLs.
    pub fn begin_beside(&mut self, number: usize, rtype: Rtype) {
        let end = self.bytes.len();
        let set = Set { rtype, data: end..end, ..self.sets[number].clone() };
        self.sets.push(set);
    }

    /// Adds a record to the RRset begun last; its data is put together.
    pub fn push(&mut self, data: &[&[u8]]) {
        let length: usize = data.iter().map(|part| part.len()).sum();
        self.bytes.extend_from_slice(&(length as u16).to_be_bytes());
        data.iter().for_each(|part| self.bytes.extend_from_slice(part));
        if let Some(set) = self.sets.last_mut() {
            set.data.end = self.bytes.len();
        }
    }
}

impl<'r> Rrset<'r> {
    /// The data of each record, names not compressed.
    pub fn data(&self) -> impl Iterator<Item = &'r [u8]> + use<'r> + Clone {
        let mut rest = self.data;
        std::iter::from_fn(move || {
            let (length, behind) = rest.split_first_chunk()?;
            let (data, after) = behind.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            rest = after;
            Some(data)
        })
    }
}

/// The types that names of a world have, in the order in which they are listed.
const KNOWN: [Rtype; 13] = [
    Rtype::SOA,
    Rtype::NS,
    Rtype::CNAME,
    Rtype::A,
    Rtype::AAAA,
    Rtype::MX,
    Rtype::TXT,
    Rtype::HTTPS,
    Rtype::SRV,
    Rtype::PTR,
    Rtype::DS,
    Rtype::DNSKEY,
    Rtype::NSEC3PARAM,
];

/// A set of types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Types(u16);

impl Types {
    pub fn of(types: &[Rtype]) -> Self {
        types.iter().fold(Types::default(), |types, rtype| types.with(*rtype, true))
    }

    /// With this type, too, if `is_there`.
    pub fn with(self, rtype: Rtype, is_there: bool) -> Self {
        let bit = KNOWN.iter().position(|known| *known == rtype).map_or(0, |place| 1 << place);
        if is_there { Types(self.0 | bit) } else { self }
    }

    /// These and others.
    pub fn and(self, more: Types) -> Self {
        Types(self.0 | more.0)
    }

    pub fn has(self, rtype: Rtype) -> bool {
        KNOWN.iter().position(|known| *known == rtype).is_some_and(|place| self.0 & (1 << place) != 0)
    }

    /// None: an empty non-terminal.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = Rtype> {
        KNOWN.into_iter().filter(move |rtype| self.has(*rtype))
    }
}
