//! The records of one zone in wire format, each computed from seed, zone and number. No I/O.
//!
//! They have the kinds and the order of `generate zones`: SOA, two NS (outside the zone), A and AAAA of the apex, A and
//! AAAA of www, MX, A and AAAA of mail, TXT, then A of h0, h1 … Only addresses change: each has a number among those
//! that can, and changes go round them. Names are compressed against the question, which every message therefore has.

use dnsrig_dns::writer::MessageWriter;

use super::{
    names::Label,
    shape::{Shape, Zone, mix},
};
use crate::dataset::churn::Kind;

/// The place of the name of the question in every message, and a pointer to it (RFC 1035 §4.1.4).
pub const NAME_AT: usize = 12;
const NAME: [u8; 2] = [0xc0, NAME_AT as u8];

/// TYPE and CLASS IN (RFC 1035 §3.2, RFC 3596).
pub const A: [u8; 4] = [0, 1, 0, 1];
const NS: [u8; 4] = [0, 2, 0, 1];
const PTR: [u8; 4] = [0, 12, 0, 1];
const MX: [u8; 4] = [0, 15, 0, 1];
const TXT: [u8; 4] = [0, 16, 0, 1];
const AAAA: [u8; 4] = [0, 28, 0, 1];

/// The TTL of all records, as in generated zones: an hour.
pub const TTL: [u8; 4] = 3600_u32.to_be_bytes();
/// The TTL of the records of a catalog, which has no meaning (RFC 9432 §4.1).
const NO_TTL: [u8; 4] = [0; 4];

/// A member's SOA, but for two pointers to the suffix, at the ends of MNAME and RNAME, and the numbers behind them.
const SOA_OF_MEMBER: [u8; 75] = *b"\xc0\x0c\0\x06\0\x01\0\0\x0e\x10\0\x3f\
    \x03ns1\x0bdns-hosting\0\0\x0ahostmaster\x0bdns-hosting\0\0\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
const SOA_MNAME_END: usize = 30;
const SOA_RNAME_END: usize = 55;

/// A catalog's SOA, likewise: names that mean nothing, TTL 0 (RFC 9432 §4.1).
const SOA_OF_CATALOG: [u8; 50] = *b"\xc0\x0c\0\x06\0\x01\0\0\0\0\0\x26\
    \x07invalid\0\x07invalid\0\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// Serial and timers.
const SOA_NUMBERS_BYTES: usize = 20;

/// A member's NS record, but for the digit of its name and a pointer to the suffix.
const NS_OF_MEMBER: [u8; 30] = *b"\xc0\x0c\0\x02\0\x01\0\0\x0e\x10\0\x12\x03ns0\x0bdns-hosting\0\0";
const NS_DIGIT_AT: usize = 15;

/// The first record that is a host; all behind it are.
const FIRST_HOST: u64 = 11;
/// The first record of a catalog that lists a member.
const FIRST_MEMBER: u64 = 3;

/// The longest record of a host in bytes: its number has fewer than 14 digits.
const HOST_BYTES_MAX: usize = 32;

/// More records than this no zone has, not even an endless one: a host's number then would have too many digits.
pub const RECORDS_MAX: u64 = 10_000_000_000_000;

/// How often each record that can change has.
#[derive(Clone, Copy, Debug)]
pub struct Age {
    /// All of them so often …
    rounds: u64,
    /// … and the first so many once more.
    part: u64,
}

/// Writes the records of one zone.
pub struct Records<'a> {
    shape: &'a Shape,
    zone: Zone,
    label: Label,
    hash: u64,
    count: u64,
    /// Where the suffix begins in the name of the question, if it does.
    suffix_at: Option<u16>,
}

/// A part of a change: see [`Records::part`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The SOA of this version.
    Soa { version: u64 },
    /// Of the change that leads away from `version`, the `at`th record: as it was, or with `added` 1, as it is then.
    Record { version: u64, at: u64, added: u64 },
}

impl<'a> Records<'a> {
    /// The records of `zone`.
    pub fn new(shape: &'a Shape, zone: Zone) -> Self {
        let (label, hash, suffix_at) = match zone {
            Zone::Member(number) => {
                let label = Label::new(b'z', number);
                let suffix_at = NAME_AT + label.wire().len();
                (label, mix(shape.seed ^ mix(u64::from(number) + 1)), Some(suffix_at as u16))
            }
            Zone::Catalog => (Label::new(b'm', 0), 0, suffix_of(&shape.catalog, &shape.suffix)),
        };
        Records { shape, zone, label, hash, count: shape.records(zone, 0), suffix_at }
    }

    /// The name of the zone.
    pub fn name(&self, writer: &mut MessageWriter<'_>) {
        match self.zone {
            Zone::Member(_) => {
                self.label.write(writer);
                writer.put(&self.shape.suffix);
            }
            Zone::Catalog => writer.put(&self.shape.catalog),
        }
    }

    /// How often records have changed in version `version`.
    fn age(&self, version: u64) -> Age {
        if version == 0 || self.zone == Zone::Catalog {
            return Age { rounds: 0, part: 0 };
        }
        let all = changeable(self.count).max(1);
        let changes = u128::from(version) * u128::from(changed_each(self.shape, self.zone));
        Age { rounds: (changes / u128::from(all)) as u64, part: (changes % u128::from(all)) as u64 }
    }

    /// The SOA.
    pub fn soa(&self, writer: &mut MessageWriter<'_>, serial: u32) {
        let timers = self.shape.timers;
        let numbers = [serial, timers.refresh_s, timers.retry_s, timers.expire_s, timers.minimum_s];
        let soa_numbers = match self.suffix_at {
            Some(at) if self.zone != Zone::Catalog => {
                let [high, low] = pointer(at);
                let block = writer.block::<{ SOA_OF_MEMBER.len() }>(SOA_OF_MEMBER.len());
                *block = SOA_OF_MEMBER;
                for end in [SOA_MNAME_END, SOA_RNAME_END] {
                    (block[end - 2], block[end - 1]) = (high, low);
                }
                &mut block[SOA_RNAME_END..]
            }
            _ => {
                let block = writer.block::<{ SOA_OF_CATALOG.len() }>(SOA_OF_CATALOG.len());
                *block = SOA_OF_CATALOG;
                &mut block[SOA_OF_CATALOG.len() - SOA_NUMBERS_BYTES..]
            }
        };
        for (place, number) in soa_numbers.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
    }

    /// The record with this number, which is not 0, the SOA's, nor beyond [`RECORDS_MAX`].
    fn record(&self, writer: &mut MessageWriter<'_>, number: u64, version: u64, age: Age) {
        match number {
            _ if self.zone == Zone::Catalog => self.catalog_record(writer, number, version),
            0 | 1 => self.name_server(writer, b'1'),
            2 => self.name_server(writer, b'2'),
            7 => self.at(writer, b"", MX, b"\0\x0a\x04mail\xc0\x0c"),
            10 => self.at(writer, b"", TXT, b"\x0ev=spf1 mx -all"),
            _ => {
                let index = index(number);
                self.address(writer, index, age.rounds.wrapping_add(u64::from(index < age.part)));
            }
        }
    }

    /// The address that has this number among those that can change, after it has changed `times`.
    fn address(&self, writer: &mut MessageWriter<'_>, index: u64, times: u64) {
        let bits = u64::from(address_bits(self.hash, index)).wrapping_add(times);
        let ipv4 = [192, 0, 2, bits as u8];
        // Only 16 bits of the interface identifier are used, never all zero.
        let [high, low] = ((bits % 0xffff) as u16 + 1).to_be_bytes();
        let ipv6 = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, high, low];
        match index {
            0 => self.at(writer, b"", A, &ipv4),
            1 => self.at(writer, b"", AAAA, &ipv6),
            2 => self.at(writer, b"\x03www", A, &ipv4),
            3 => self.at(writer, b"\x03www", AAAA, &ipv6),
            4 => self.at(writer, b"\x04mail", A, &ipv4),
            5 => self.at(writer, b"\x04mail", AAAA, &ipv6),
            _ => {
                let host = Host::new(index - FIRST_INDEX_OF_HOSTS);
                host.write(writer, host.last_digit(), bits as u8);
            }
        }
    }

    /// Part `number` of the changes that follow version `from`: each is the old SOA, what is removed, the new SOA, what
    /// is added (RFC 1995 §4).
    pub fn part(&self, from: u64, number: u64) -> Part {
        let each = changes_records(self.shape, self.zone);
        let (version, at) = (from + number / each, number % each);
        let new_soa_at = match (self.zone, self.shape.changes.churn) {
            (Zone::Catalog, Some(churn)) => 1 + u64::from(churn.change(version).kind == Kind::Remove),
            _ => each / 2,
        };
        if at == 0 || at == new_soa_at {
            return Part::Soa { version: version + u64::from(at > 0) };
        }
        let added = u64::from(at > new_soa_at);
        Part::Record { version, at: at - 1 - added * new_soa_at, added }
    }

    /// Writes that part of a change, if it is not a SOA: the record as it was, or with `added` 1, as it is then.
    pub fn changed(&self, writer: &mut MessageWriter<'_>, version: u64, at: u64, added: u64) {
        if let (Zone::Catalog, Some(churn)) = (self.zone, self.shape.changes.churn) {
            return self.member(writer, churn.change(version).zone);
        }
        let all = u128::from(changeable(self.count).max(1));
        let change = u128::from(version) * u128::from(changed_each(self.shape, self.zone)) + u128::from(at);
        self.address(writer, (change % all) as u64, ((change / all) as u64).wrapping_add(added));
    }

    /// Writes the records of a version from number `from` to before `until`, as far as they end before `limit`; how
    /// many that are.
    ///
    /// This is where large zones spend their time.
    pub fn run(&self, writer: &mut MessageWriter<'_>, from: u64, until: u64, limit: usize, version: u64) -> u64 {
        let age = self.age(version);
        let mut number = from;
        while number < until {
            if self.zone != Zone::Catalog && number >= FIRST_HOST {
                return number - from + self.hosts(writer, number, until, limit, age);
            }
            let before = writer.at();
            self.record(writer, number, version, age);
            if writer.at() > limit {
                writer.return_to(before);
                break;
            }
            number += 1;
        }
        number - from
    }

    fn hosts(&self, writer: &mut MessageWriter<'_>, from: u64, until: u64, limit: usize, age: Age) -> u64 {
        let mut number = from;
        while number < until {
            let mut host = Host::new(number - FIRST_HOST);
            // The number of names of this length, and the number of records of this length that find room.
            let same = host.until_longer().min(until - number);
            let count = same.min((limit.saturating_sub(writer.at()) / host.length) as u64);
            let (mut at, end) = (index(number), index(number) + count);
            while at < end {
                // Names that differ in their last digit only.
                let first = host.last_digit();
                let ten = u64::from(10 - first).min(end - at);
                for (digit, index) in (first..).zip(at..at + ten) {
                    let bits = u64::from(address_bits(self.hash, index)).wrapping_add(age.rounds);
                    host.write(writer, digit, bits.wrapping_add(u64::from(index < age.part)) as u8);
                }
                at += ten;
                host.next_ten();
            }
            number += count;
            if count < same {
                break;
            }
        }
        number - from
    }

    fn catalog_record(&self, writer: &mut MessageWriter<'_>, number: u64, version: u64) {
        match number {
            0 | 1 => catalog_at(writer, b"", NS, |writer| writer.put(b"\x07invalid\0")),
            2 => catalog_at(writer, b"\x07version", TXT, |writer| writer.put(&[1, self.shape.schema])),
            _ => {
                let place = number - FIRST_MEMBER;
                let churn = self.shape.changes.churn;
                self.member(writer, churn.map_or(place as u32, |churn| churn.present(version, place)));
            }
        }
    }

    /// What lists a member in the catalog.
    fn member(&self, writer: &mut MessageWriter<'_>, member: u32) {
        writer.put(Label::new(b'm', member).wire());
        catalog_at(writer, b"\x05zones", PTR, |writer| {
            writer.put(Label::new(b'z', member).wire());
            self.suffix(writer);
        });
    }

    fn name_server(&self, writer: &mut MessageWriter<'_>, digit: u8) {
        let Some(at) = self.suffix_at else { return };
        let block = writer.block::<{ NS_OF_MEMBER.len() }>(NS_OF_MEMBER.len());
        *block = NS_OF_MEMBER;
        block[NS_DIGIT_AT] = digit;
        [block[NS_OF_MEMBER.len() - 2], block[NS_OF_MEMBER.len() - 1]] = pointer(at);
    }

    /// The suffix of all zones: a pointer into the question where that ends in it.
    fn suffix(&self, writer: &mut MessageWriter<'_>) {
        match self.suffix_at {
            Some(at) => writer.put(&pointer(at)),
            None => writer.put(&self.shape.suffix),
        }
    }

    fn at(&self, writer: &mut MessageWriter<'_>, owner: &[u8], kind: [u8; 4], data: &[u8]) {
        writer.put(owner);
        writer.put(&NAME);
        writer.put(&kind);
        writer.put(&TTL);
        writer.put_u16(data.len() as u16);
        writer.put(data);
    }
}

fn catalog_at(writer: &mut MessageWriter<'_>, owner: &[u8], kind: [u8; 4], data: impl FnOnce(&mut MessageWriter<'_>)) {
    writer.put(owner);
    writer.put(&NAME);
    writer.put(&kind);
    writer.put(&NO_TTL);
    let length_at = writer.at();
    writer.put(&[0; 2]);
    data(writer);
    writer.set_u16(length_at, (writer.at() - length_at - 2) as u16);
}

/// The place where `suffix` begins in `name` of the question, if `name` ends with it.
fn suffix_of(name: &[u8], suffix: &[u8]) -> Option<u16> {
    let mut at = 0;
    while name[at] != 0 {
        if name[at..] == *suffix {
            return Some((NAME_AT + at) as u16);
        }
        at += usize::from(name[at]) + 1;
    }
    None
}

/// A pointer to the name at `at` in the message (RFC 1035 §4.1.4).
#[inline]
fn pointer(at: u16) -> [u8; 2] {
    (0xc000 | at).to_be_bytes()
}

/// How many records of a zone each change replaces.
fn changed_each(shape: &Shape, zone: Zone) -> u64 {
    match zone {
        Zone::Member(_) => shape.changes.records.min(changeable(shape.records(zone, 0))),
        Zone::Catalog => 0,
    }
}

/// How many records a change is in an IXFR, its two SOAs among them: of a catalog it is one member that leaves or
/// comes.
pub fn changes_records(shape: &Shape, zone: Zone) -> u64 {
    match zone {
        Zone::Member(_) => 2 * (1 + changed_each(shape, zone)),
        Zone::Catalog => 2 + u64::from(shape.changes.churn.is_some()),
    }
}

/// How many records of a zone with `count` can change: the addresses. NS, MX and TXT stay.
fn changeable(count: u64) -> u64 {
    match count {
        0..=3 => 0,
        4..=7 => count - 3,
        8..=10 => count - 4,
        _ => count - 5,
    }
}

/// The first host's number among the addresses.
const FIRST_INDEX_OF_HOSTS: u64 = FIRST_HOST - 5;

/// The number that an address' record has among the addresses.
fn index(number: u64) -> u64 {
    match number {
        ..=6 => number - 3,
        7..=9 => number - 4,
        _ => number - 5,
    }
}

/// Bits for the address with this number in the zone with this hash.
#[inline]
fn address_bits(hash: u64, index: u64) -> u16 {
    let bits = hash.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    ((bits ^ (bits >> 32)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 48) as u16
}

/// The record of a host, to be written again and again with the next number.
struct Host {
    bytes: [u8; HOST_BYTES_MAX],
    length: usize,
    number: u64,
}

impl Host {
    fn new(number: u64) -> Self {
        debug_assert!(number < RECORDS_MAX);
        let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
        let mut bytes = [0; HOST_BYTES_MAX];
        bytes[0] = digits as u8 + 1;
        bytes[1] = b'h';
        let mut rest = number;
        for digit in bytes[2..2 + digits].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        let [t0, t1, t2, t3] = TTL;
        let tail = [NAME[0], NAME[1], A[0], A[1], A[2], A[3], t0, t1, t2, t3, 0, 4, 192, 0, 2, 0];
        bytes[2 + digits..][..tail.len()].copy_from_slice(&tail);
        Host { bytes, length: 2 + digits + tail.len(), number }
    }

    /// How many hosts, this one first, have names of one length.
    fn until_longer(&self) -> u64 {
        10_u64.pow(u32::from(self.bytes[0]) - 1) - self.number
    }

    fn last_digit(&self) -> u8 {
        self.bytes[usize::from(self.bytes[0])] - b'0'
    }

    /// Writes the record with another last digit, and the address.
    ///
    /// What varies is written into its place in the message: to change this record and then to copy it would have the
    /// CPU wait for its own store each time.
    #[inline]
    fn write(&self, writer: &mut MessageWriter<'_>, last_digit: u8, address: u8) {
        const MASK: usize = HOST_BYTES_MAX - 1;
        let block = writer.block::<HOST_BYTES_MAX>(self.length);
        *block = self.bytes;
        // The masks change nothing, but spare a check of bounds.
        block[usize::from(self.bytes[0]) & MASK] = b'0' + last_digit;
        block[(self.length - 1) & MASK] = address;
    }

    /// The next number that ends with 0; one that has more digits begins again at 0.
    fn next_ten(&mut self) {
        let end = usize::from(self.bytes[0]);
        self.bytes[end] = b'0';
        for digit in self.bytes[2..end].iter_mut().rev() {
            if *digit != b'9' {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
    }
}
