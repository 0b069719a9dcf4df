//! `generate large-records`: zones with one large RRset each, up to the limit of a DNS message.
//!
//! Each RRset has a zone of its own, so a server that refuses or loses one does not hide the others. Within an RRset
//! the first record depends on the serial, and no other does: a later version changes one record of each RRset.

use std::fs;

use dnsrig_core::{failure::Failure, hash::fnv1a, random::Random};
use dnsrig_dns::{
    header::HEADER_BYTES,
    name::{LABEL_BYTES_MAX, NAME_BYTES_MAX},
};

use super::{
    dataset::{Common, Dataset, Described, Details, SOA_TIMERS, writing},
    zones::push,
};
use crate::dataset::VERSION;

/// All zones are below this name.
const SUFFIX: &str = "large.example";

/// The longest DNS message over TCP (RFC 1035 §4.2.2).
const MESSAGE_BYTES_MAX: usize = 65_535;

/// The longest character string (RFC 1035 §3.3).
const STRING_BYTES_MAX: usize = 255;

/// The length of the first string where the others are empty.
const EMPTY_FIRST_BYTES: usize = 16;

/// QTYPE and QCLASS, behind the name of a question.
const QUESTION_TAIL_BYTES: usize = 4;

/// A record with its owner as a pointer, without its data (RFC 1035 §4.1.3).
const RECORD_HEAD_BYTES: usize = 12;

/// Make zones with large records: one RRset in each zone, from nothing to the limit of a DNS message.
///
/// A zone is named after its RRset: txt-3x20000.large.example has three TXT records of 20,000 bytes of data. Types are
/// TXT (in strings of 255 bytes, or empty ones), SVCB, SMIMEA and TYPE65280, which no server knows. The RRset's owner
/// is `r` in its zone, or a name of 255 bytes (zones that end in -long), or 300 of those (-names). The largest answers
/// have 65,535 bytes. SMIMEA and TYPE65280 are written as bytes (RFC 3597). The next --serial changes one record of
/// each RRset.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "Example: RRsets of up to 20,000 bytes, and the list of them:\n  \
    dnsrig generate large-records --largest 20000 --out /tmp/large\n  \
    cat /tmp/large/zones.list")]
pub struct Arguments {
    /// Largest RRset, in bytes of the data of all its records
    #[arg(long, value_name = "BYTES", default_value_t = 65_535, value_parser = clap::value_parser!(u32).range(0..=65_535))]
    pub largest: u32,
    #[command(flatten)]
    pub common: Common,
}

/// The type of the records of an RRset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Txt,
    /// TXT of empty strings: each takes one byte.
    Empty,
    Svcb,
    Smimea,
    /// TYPE65280, of the range for private use (RFC 6895 §3.1).
    Unknown,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Txt => "txt",
            Kind::Empty => "empty-strings",
            Kind::Svcb => "svcb",
            Kind::Smimea => "smimea",
            Kind::Unknown => "type65280",
        }
    }
}

/// Where the records of a zone are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Short,
    /// One name of 255 bytes.
    Long,
    /// Each record has a name of its own, of 255 bytes.
    Names,
}

/// Records of one zone: `count` of them, each with `bytes` of data.
#[derive(Clone, Copy, Debug)]
struct Shape {
    kind: Kind,
    count: u32,
    bytes: Bytes,
    owner: Owner,
}

/// The size of the data of one record.
#[derive(Clone, Copy, Debug)]
enum Bytes {
    Of(u32),
    /// As much as leaves this number of bytes free in the longest answer. The OPT record of EDNS takes 11.
    AllBut(u32),
}

const fn shape(kind: Kind, count: u32, bytes: u32) -> Shape {
    Shape { kind, count, bytes: Bytes::Of(bytes), owner: Owner::Short }
}

const fn owned(owner: Owner, kind: Kind, count: u32, bytes: u32) -> Shape {
    Shape { owner, ..shape(kind, count, bytes) }
}

const fn all_but(owner: Owner, free: u32) -> Shape {
    Shape { kind: Kind::Unknown, count: 1, bytes: Bytes::AllBut(free), owner }
}

/// All zones. 16,383 is the last place that a compressed name can point to (RFC 1035 §4.1.4), and 16,384 what BIND puts
/// into a message of a transfer at most, if it can.
const SHAPES: [Shape; 46] = [
    shape(Kind::Txt, 1, 1_000),
    shape(Kind::Txt, 1, 4_000),
    shape(Kind::Txt, 1, 16_000),
    shape(Kind::Txt, 1, 20_000),
    shape(Kind::Txt, 1, 32_000),
    shape(Kind::Txt, 1, 48_000),
    shape(Kind::Txt, 1, 64_000),
    shape(Kind::Txt, 10, 100),
    shape(Kind::Txt, 100, 100),
    shape(Kind::Txt, 250, 100),
    shape(Kind::Txt, 500, 100),
    shape(Kind::Txt, 200, 300),
    shape(Kind::Txt, 3, 20_000),
    shape(Kind::Txt, 2, 32_000),
    shape(Kind::Empty, 1, 250),
    shape(Kind::Empty, 1, 4_000),
    shape(Kind::Empty, 1, 20_000),
    shape(Kind::Empty, 1, 60_000),
    shape(Kind::Svcb, 1, 1_000),
    shape(Kind::Svcb, 1, 20_000),
    shape(Kind::Svcb, 1, 60_000),
    shape(Kind::Svcb, 100, 60),
    shape(Kind::Svcb, 500, 60),
    shape(Kind::Svcb, 800, 60),
    shape(Kind::Smimea, 1, 1_000),
    shape(Kind::Smimea, 1, 20_000),
    shape(Kind::Smimea, 1, 60_000),
    shape(Kind::Smimea, 200, 300),
    shape(Kind::Smimea, 15, 4_000),
    shape(Kind::Unknown, 1, 0),
    shape(Kind::Unknown, 1, 1_000),
    shape(Kind::Unknown, 1, 16_383),
    shape(Kind::Unknown, 1, 16_384),
    shape(Kind::Unknown, 1, 20_000),
    shape(Kind::Unknown, 1, 40_000),
    shape(Kind::Unknown, 1, 60_000),
    shape(Kind::Unknown, 500, 100),
    all_but(Owner::Short, 200),
    all_but(Owner::Short, 11),
    all_but(Owner::Short, 0),
    owned(Owner::Long, Kind::Txt, 1, 1_000),
    owned(Owner::Long, Kind::Txt, 1, 20_000),
    owned(Owner::Long, Kind::Txt, 1, 60_000),
    owned(Owner::Long, Kind::Txt, 500, 100),
    all_but(Owner::Long, 0),
    owned(Owner::Names, Kind::Txt, 300, 100),
];

impl Shape {
    /// The data of one record, in bytes.
    fn bytes(&self) -> usize {
        match self.bytes {
            Bytes::Of(bytes) => bytes as usize,
            Bytes::AllBut(free) => {
                // The zone's name has five digits for the size, whatever it is.
                let zone = self.zone_of(MESSAGE_BYTES_MAX);
                let question = self.owner_bytes(&zone) + QUESTION_TAIL_BYTES;
                MESSAGE_BYTES_MAX - HEADER_BYTES - question - RECORD_HEAD_BYTES - free as usize
            }
        }
    }

    /// The name of the zone, without a final dot.
    fn zone(&self) -> String {
        self.zone_of(self.bytes())
    }

    fn zone_of(&self, bytes: usize) -> String {
        let end = match self.owner {
            Owner::Short => "",
            Owner::Long => "-long",
            Owner::Names => "-names",
        };
        format!("{}-{}x{bytes}{end}.{SUFFIX}", self.kind.word(), self.count)
    }

    /// The owner in wire format, in bytes.
    fn owner_bytes(&self, zone: &str) -> usize {
        match self.owner {
            Owner::Short => 2 + zone.len() + 2,
            Owner::Long | Owner::Names => NAME_BYTES_MAX,
        }
    }

    /// The owner of a record, relative to the zone.
    fn owner(&self, zone: &str, number: u32) -> String {
        match self.owner {
            Owner::Short => "r".into(),
            Owner::Long => long_owner(zone, 0),
            Owner::Names => long_owner(zone, number),
        }
    }
}

/// Labels that make a name of 255 bytes in `zone`. The first one has the number.
fn long_owner(zone: &str, number: u32) -> String {
    let mut free = NAME_BYTES_MAX - (zone.len() + 2);
    let mut labels = Vec::new();
    while free > 0 {
        let rest = free - free.min(LABEL_BYTES_MAX + 1);
        // A label takes two bytes at least, so none of them may be left alone.
        let taken = free - if rest == 1 { 2 } else { rest };
        labels.push(format!("{number:x>width$}", width = taken - 1));
        free -= taken;
    }
    labels.join(".")
}

/// Makes the zones.
pub fn generate(arguments: &Arguments) -> Result<Described, Failure> {
    let Arguments { common, largest } = arguments;
    let mut dataset = Dataset::create(common, SUFFIX)?;
    let (mut count, mut records_total, mut bytes_total) = (0, 0, 0);
    for shape in SHAPES.iter().filter(|shape| shape.count as usize * shape.bytes() <= *largest as usize) {
        let (zone, text) = (shape.zone(), zone_text(shape, common));
        let file = format!("zones/{zone}.zone");
        let path = dataset.path(&file);
        fs::write(&path, &text).map_err(writing(&path))?;
        dataset.list_zone(&zone, &file)?;
        count += 1;
        // With SOA and NS.
        records_total += u64::from(shape.count) + 2;
        bytes_total += text.len() as u64;
    }
    let described = Described {
        generator: "large-records",
        version: VERSION,
        count,
        records_total,
        bytes_total,
        seed: common.seed,
        serial: common.serial,
        catalog: dataset.catalog().to_owned(),
        details: Details::LargeRecords {},
    };
    dataset.complete(&described)?;
    Ok(described)
}

/// The zone file of a shape.
fn zone_text(shape: &Shape, common: &Common) -> String {
    let (zone, mut text) = (shape.zone(), String::new());
    let hoster = "dns-hosting.example.";
    push(&mut text, format_args!("$ORIGIN {zone}.\n$TTL 3600\n"));
    push(&mut text, format_args!("@\tIN SOA ns1.{hoster} hostmaster.{hoster} {} {SOA_TIMERS}\n", common.serial));
    push(&mut text, format_args!("@\tIN NS ns1.{hoster}\n"));
    for number in 0..shape.count {
        let version = if number == 0 { common.serial } else { 0 };
        let purpose = fnv1a(format!("{zone} {number} {version}").as_bytes());
        let mut random = Random::new(common.seed, purpose);
        push(&mut text, format_args!("{}\tIN ", shape.owner(&zone, number)));
        push_data(&mut text, shape.kind, number, shape.bytes(), &mut random);
        text.push('\n');
    }
    text
}

/// The type and the data of a record, which has `number` in it where it has room, so that no two are the same.
fn push_data(text: &mut String, kind: Kind, number: u32, bytes: usize, random: &mut Random) {
    match kind {
        Kind::Txt => {
            text.push_str("TXT");
            for taken in (0..bytes).step_by(STRING_BYTES_MAX + 1) {
                let string = (bytes - taken).min(STRING_BYTES_MAX + 1) - 1;
                let start = format!("{number}.");
                let filled = string.saturating_sub(start.len());
                push(text, format_args!(" \"{}", &start[..string - filled]));
                (0..filled).for_each(|_| text.push(letter(random)));
                text.push('"');
            }
        }
        Kind::Empty => {
            // The first string is not empty, so that it can change with the serial.
            let first = bytes.saturating_sub(1).min(EMPTY_FIRST_BYTES);
            text.push_str("TXT \"");
            (0..first).for_each(|_| text.push(letter(random)));
            text.push('"');
            (first + 1..bytes).for_each(|_| text.push_str(" \"\""));
        }
        Kind::Svcb => {
            // The priority, the target `.`, and one parameter of the range for private use: key and length.
            push(text, format_args!("SVCB {} . key65280=\"", number % 1_000 + 1));
            (7..bytes).for_each(|_| text.push(letter(random)));
            text.push('"');
        }
        Kind::Smimea => {
            push(text, format_args!("TYPE53 \\# {bytes} 030000{number:08x}"));
            (7..bytes).for_each(|_| push(text, format_args!("{:02x}", random.below(256))));
        }
        Kind::Unknown => {
            push(text, format_args!("TYPE65280 \\# {bytes} "));
            let start = number.to_be_bytes();
            (0..bytes).for_each(|index| {
                let byte = start.get(index).map_or_else(|| random.below(256), |byte| u64::from(*byte));
                push(text, format_args!("{byte:02x}"));
            });
        }
    }
}

fn letter(random: &mut Random) -> char {
    char::from(b'a' + random.below(26) as u8)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use dnsrig_dns::catalog::Schema;
    use domain::{
        base::{Serial, ToName, iana::Class, rdata::ComposeRecordData},
        rdata::ZoneRecordData,
        zonefile::inplace::{Entry, Zonefile},
    };

    use super::*;

    fn common(seed: u64, serial: u32) -> Common {
        Common { out: "unused".into(), seed, serial, catalog_schema: Schema::default() }
    }

    /// Owner and data of the records of a zone, in wire format, without SOA and NS.
    fn records(text: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut file = Zonefile::from(text.as_bytes());
        file.set_default_class(Class::IN);
        let mut found = Vec::new();
        while let Some(entry) = file.next_entry().unwrap() {
            let Entry::Record(record) = entry else { panic!("{entry:?}") };
            let mut data = Vec::new();
            record.data().compose_rdata(&mut data).unwrap();
            match record.data() {
                ZoneRecordData::Soa(soa) => assert_eq!(soa.serial(), Serial(7)),
                ZoneRecordData::Ns(_) => {}
                _ => found.push((record.owner().to_vec().as_slice().to_vec(), data)),
            }
        }
        found
    }

    #[test]
    fn every_zone_has_the_records_of_its_name() {
        let mut zones = HashSet::new();
        for shape in &SHAPES {
            let zone = shape.zone();
            let records = records(&zone_text(shape, &common(1, 7)));
            assert_eq!(records.len(), shape.count as usize, "{zone}");
            assert!(records.iter().all(|(_, data)| data.len() == shape.bytes()), "{zone}");
            assert!(records.iter().all(|(owner, _)| owner.len() == shape.owner_bytes(&zone)), "{zone}");
            let distinct: HashSet<_> = records.iter().collect();
            assert_eq!(distinct.len(), records.len(), "{zone} has a record twice");
            let owners: HashSet<_> = records.iter().map(|(owner, _)| owner).collect();
            assert_eq!(owners.len(), if shape.owner == Owner::Names { records.len() } else { 1 }, "{zone}");
            let answer = HEADER_BYTES
                + shape.owner_bytes(&zone)
                + QUESTION_TAIL_BYTES
                + records.len() / owners.len() * (RECORD_HEAD_BYTES + shape.bytes());
            assert!(answer <= MESSAGE_BYTES_MAX, "{zone}: an answer of {answer} bytes");
            if let Bytes::AllBut(free) = shape.bytes {
                assert_eq!(answer + free as usize, MESSAGE_BYTES_MAX, "{zone}");
            }
            assert!(zones.insert(zone), "two zones have a name");
        }
    }

    #[test]
    fn a_later_version_changes_one_record_of_each_zone() {
        for shape in &SHAPES {
            let [old, new] = [7, 8].map(|serial| zone_text(shape, &common(1, serial)));
            assert_eq!(old, zone_text(shape, &common(1, 7)));
            let changed = old.lines().zip(new.lines()).filter(|(old, new)| old != new).count();
            // The SOA record, and one that has more than its number.
            assert_eq!(changed, if shape.bytes() > 4 { 2 } else { 1 }, "{}", shape.zone());
            assert!(old != zone_text(shape, &common(2, 7)) || shape.bytes() == 0);
        }
    }

    #[test]
    fn the_zones_are_what_they_were() {
        let names: Vec<_> = SHAPES.iter().map(|shape| shape.zone().replace(".large.example", "")).collect();
        assert_eq!(
            names.join(" "),
            "txt-1x1000 txt-1x4000 txt-1x16000 txt-1x20000 txt-1x32000 txt-1x48000 txt-1x64000 txt-10x100 txt-100x100 \
             txt-250x100 txt-500x100 txt-200x300 txt-3x20000 txt-2x32000 empty-strings-1x250 empty-strings-1x4000 \
             empty-strings-1x20000 empty-strings-1x60000 svcb-1x1000 svcb-1x20000 svcb-1x60000 svcb-100x60 svcb-500x60 \
             svcb-800x60 smimea-1x1000 smimea-1x20000 smimea-1x60000 smimea-200x300 smimea-15x4000 type65280-1x0 \
             type65280-1x1000 type65280-1x16383 type65280-1x16384 type65280-1x20000 type65280-1x40000 \
             type65280-1x60000 type65280-500x100 type65280-1x65272 type65280-1x65461 type65280-1x65472 \
             txt-1x1000-long txt-1x20000-long txt-1x60000-long txt-500x100-long type65280-1x65252-long \
             txt-300x100-names"
        );
        // If this differs, VERSION must rise.
        let texts: String = SHAPES.iter().map(|shape| zone_text(shape, &common(1, 7))).collect();
        assert_eq!(fnv1a(texts.as_bytes()), 546_772_719_674_498_511);
    }
}
