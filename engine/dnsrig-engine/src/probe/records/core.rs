//! RRsets of a zone file, and how an answer differs from one of them. No I/O.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
    path::Path,
};

use dnsrig_dns::{
    header::{Header, RCODE, TC},
    name::{self, ParseError},
    query::question,
    rdata,
    record::{Section, Walk},
};
use domain::base::{Rtype, iana::Class, rdata::ComposeRecordData};
use serde::Serialize;

use crate::dataset::zone_file::{self, Wanted};

/// Types that are not asked for: a server gives RRSIG and NSEC3 records only with others.
const NOT_ASKED: [Rtype; 2] = [Rtype::RRSIG, Rtype::NSEC3];

/// Owner in wire format and lower case, and type.
type Key = (Vec<u8>, Rtype);

/// An RRset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rrset {
    pub owner: Vec<u8>,
    pub rtype: Rtype,
    /// The data of its records in canonical form (RFC 4034 §6.2).
    records: BTreeSet<Vec<u8>>,
}

/// What can be asked of a zone.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ZoneRecords {
    pub rrsets: Vec<Rrset>,
    /// Records that are not asked for: RRSIG, NSEC3, and what is at or below a delegation.
    pub records_not_asked: u64,
}

impl ZoneRecords {
    /// Reads the file of the zone `name`. Errors are sentences.
    pub fn read(input: impl Read, file: &Path, name: &str) -> Result<Self, String> {
        let name = name.parse().map_err(|error| format!("`{name}` is no domain name: {error}"))?;
        let mut found = BTreeMap::<Key, BTreeSet<Vec<u8>>>::new();
        let each = |owner: &domain::base::Name<bytes::Bytes>, record: &zone_file::ScannedRecord| {
            let (mut data, mut canonical) = (Vec::new(), Vec::new());
            record.data().compose_rdata(&mut data).expect("a vector takes any data");
            rdata::canonical_into(record.rtype(), &data, &mut canonical).map_err(|_| "a name in data is too long")?;
            found.entry((owner.as_slice().to_ascii_lowercase(), record.rtype())).or_default().insert(canonical);
            Ok(())
        };
        zone_file::read(input, file, &name, Wanted::default(), each, |_| Ok(())).map_err(|error| error.to_string())?;
        Ok(Self::choose(found))
    }

    fn choose(found: BTreeMap<Key, BTreeSet<Vec<u8>>>) -> Self {
        let apexes: Vec<_> = found.keys().filter(|(_, rtype)| *rtype == Rtype::SOA).map(|(owner, _)| owner).collect();
        let cuts: BTreeSet<Vec<u8>> = found
            .keys()
            .filter(|(owner, rtype)| *rtype == Rtype::NS && !apexes.contains(&owner))
            .map(|(owner, _)| owner.clone())
            .collect();
        let mut zone = ZoneRecords::default();
        for ((owner, rtype), records) in found {
            // The parent answers for DS and NSEC at a delegation (RFC 4035 §3.1.4).
            let is_of_parent = matches!(rtype, Rtype::DS | Rtype::NSEC) && cuts.contains(&owner);
            if NOT_ASKED.contains(&rtype) || (!is_of_parent && is_below(&owner, &cuts)) {
                zone.records_not_asked += records.len() as u64;
            } else {
                zone.rrsets.push(Rrset { owner, rtype, records });
            }
        }
        zone
    }
}

/// Whether a name is one of `cuts`, or below one of them.
fn is_below(owner: &[u8], cuts: &BTreeSet<Vec<u8>>) -> bool {
    let mut rest = owner;
    while let Some((length, _)) = rest.split_first().filter(|(length, _)| **length > 0) {
        if cuts.contains(rest) {
            return true;
        }
        rest = &rest[1 + usize::from(*length)..];
    }
    false
}

/// How a server answers for an RRset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    Same,
    /// Records of the RRset that the answer lacks, and records that only the answer has.
    Changed {
        lacking: u64,
        extra: u64,
    },
    /// The answer has no record of the RRset.
    Absent {
        rcode: u8,
    },
    /// The answer is marked as truncated.
    Truncated,
    /// The answer cannot be read, or is the answer to another question.
    Broken,
    /// None came in time, or the server closed the connection instead.
    NoAnswer,
}

impl Rrset {
    /// The number of its records.
    pub fn count(&self) -> u64 {
        self.records.len() as u64
    }

    /// The data of its records, in bytes.
    pub fn bytes(&self) -> u64 {
        self.records.iter().map(|data| data.len() as u64).sum()
    }

    /// Compares a response with the RRset. TTLs are not compared.
    pub fn judge(&self, message: &[u8]) -> Verdict {
        self.read(message).unwrap_or(Verdict::Broken)
    }

    fn read(&self, message: &[u8]) -> Result<Verdict, ParseError> {
        let header = Header::read(message)?;
        if !header.is_response() || (header.questions > 0 && !self.is_asked_by(question(message))) {
            return Ok(Verdict::Broken);
        }
        if header.flags & TC != 0 {
            return Ok(Verdict::Truncated);
        }
        let mut walk = Walk::new(message);
        (0..header.questions).try_for_each(|_| walk.skip_question())?;
        let mut came = BTreeSet::new();
        for found in walk.records(&header) {
            let (section, record) = found?;
            if section != Section::Answer || record.rtype != self.rtype {
                continue;
            }
            let mut owner = Vec::new();
            record.owner_into(&mut owner)?;
            if owner.eq_ignore_ascii_case(&self.owner) {
                let mut data = Vec::new();
                record.canonical_data_into(&mut data)?;
                came.insert(data);
            }
        }
        let lacking = self.records.difference(&came).count() as u64;
        let extra = came.difference(&self.records).count() as u64;
        Ok(match (lacking, extra) {
            (0, 0) => Verdict::Same,
            _ if came.is_empty() => Verdict::Absent { rcode: header.rcode & RCODE },
            _ => Verdict::Changed { lacking, extra },
        })
    }

    fn is_asked_by(&self, question: &[u8]) -> bool {
        let end = name::skip_plain(question, 0).unwrap_or(0);
        let wanted = [self.rtype.to_int(), Class::IN.to_int()].map(u16::to_be_bytes).concat();
        question[..end].eq_ignore_ascii_case(&self.owner) && question[end..] == wanted
    }
}

#[cfg(test)]
mod tests {
    use dnsrig_dns::{testing::name, writer::append_record};
    use dnsrig_testing::fuzz::fuzz;

    use super::*;

    const ZONE: &str = "@ 60 SOA ns.example.net. root 1 2 3 4 5\n@ NS ns.example.net.\nr TXT \"one\"\nr TXT \"two\"\n\
        R TYPE65280 \\# 2 aabb\nm MX 10 MAIL\nsub NS ns.sub\nsub DS 1 8 2 00\nns.sub A 192.0.2.1\n\
        @ RRSIG SOA 8 1 60 20300101000000 20200101000000 1 example. AAAA\n";

    fn read(text: &[u8], name: &str) -> Result<ZoneRecords, String> {
        ZoneRecords::read(text, Path::new("zone"), name)
    }

    fn zone() -> ZoneRecords {
        read(ZONE.as_bytes(), "example").unwrap()
    }

    fn rrset(owner: &str, rtype: Rtype) -> Rrset {
        let rrsets = zone().rrsets;
        rrsets.into_iter().find(|rrset| rrset.owner == name(owner) && rrset.rtype == rtype).unwrap()
    }

    /// An answer with these data for `rrset`.
    fn answer(rrset: &Rrset, flags: u8, rcode: u8, records: &[&[u8]]) -> Vec<u8> {
        let mut message = vec![0, 1, 0x84 | flags, rcode, 0, 1, 0, records.len() as u8, 0, 0, 0, 0];
        message.extend_from_slice(&rrset.owner);
        message.extend_from_slice(&rrset.rtype.to_int().to_be_bytes());
        message.extend_from_slice(&[0, 1]);
        for data in records {
            append_record(&mut message, &[0xc0, 12], rrset.rtype, Class::IN, 60, data);
        }
        message
    }

    #[test]
    fn what_is_behind_a_delegation_is_not_asked_for() {
        let zone = zone();
        let mut asked: Vec<_> = zone
            .rrsets
            .iter()
            .map(|rrset| format!("{} {} {}", name::whole(&rrset.owner), rrset.rtype, rrset.count()))
            .collect();
        asked.sort();
        let wanted = [
            "example NS 1",
            "example SOA 1",
            "m.example MX 1",
            "r.example TXT 2",
            "r.example TYPE65280 1",
            "sub.example DS 1",
        ];
        assert_eq!(asked, wanted);
        assert_eq!(zone.records_not_asked, 3);
    }

    #[test]
    fn times_of_a_zone_file_may_have_units() {
        let text = "$TTL 1h\n@ SOA ns.example.net. root 1 2h 3 4w 5\n@ NS ns.example.net.\nr TXT \"one\"\n";
        let found = read(text.as_bytes(), "example").unwrap();
        assert_eq!(found.rrsets.iter().map(Rrset::count).collect::<Vec<_>>(), [1, 1, 1]);
    }

    #[test]
    fn a_bad_zone_file_is_a_sentence() {
        assert!(read(b"a.example. 60 IN A 1.2.3\n", "example").is_err());
        assert!(read(b"$INCLUDE other\n", "example").unwrap_err().contains("$INCLUDE"));
        assert!(read(b"", "a..b").unwrap_err().contains("no domain name"));
    }

    #[test]
    fn an_answer_is_compared_record_by_record() {
        let txt = rrset("r.example", Rtype::TXT);
        let judge = |records: &[&[u8]]| txt.judge(&answer(&txt, 0, 0, records));
        assert_eq!(judge(&[b"\x03two", b"\x03one"]), Verdict::Same);
        assert_eq!(judge(&[b"\x03one"]), Verdict::Changed { lacking: 1, extra: 0 });
        assert_eq!(judge(&[b"\x03one", b"\x03two", b"\x03TWO"]), Verdict::Changed { lacking: 0, extra: 1 });
        assert_eq!(judge(&[b"\x03one", b"\x02tw"]), Verdict::Changed { lacking: 1, extra: 1 });
        assert_eq!(judge(&[]), Verdict::Absent { rcode: 0 });
        assert_eq!(txt.judge(&answer(&txt, 0, 5, &[])), Verdict::Absent { rcode: 5 });
        assert_eq!(txt.judge(&answer(&txt, TC, 0, &[])), Verdict::Truncated);
        assert_eq!(txt.judge(&[]), Verdict::Broken);
        let other = rrset("r.example", Rtype::from_int(65_280));
        assert_eq!(txt.judge(&answer(&other, 0, 0, &[])), Verdict::Broken);
    }

    #[test]
    fn names_in_data_are_compared_without_case_and_compression() {
        let mx = rrset("m.example", Rtype::MX);
        assert_eq!(mx.judge(&answer(&mx, 0, 0, &[b"\0\x0a\x04Mail\xc0\x0e"])), Verdict::Same);
    }

    #[test]
    fn any_answer_has_a_verdict() {
        let (txt, mx) = (rrset("r.example", Rtype::TXT), rrset("m.example", Rtype::MX));
        let corpus = [
            answer(&txt, 0, 0, &[b"\x03two", b"\x03one"]),
            answer(&txt, TC, 0, &[]),
            answer(&mx, 0, 0, &[b"\0\x0a\x04Mail\xc0\x0e"]),
        ];
        fuzz(5_000, &corpus, |bytes, _| {
            let verdict = txt.judge(bytes);
            assert!(verdict != Verdict::Same || bytes.windows(4).any(|part| part == b"\x03two"));
            mx.judge(bytes);
        });
    }

    #[test]
    fn any_zone_file_is_read_or_refused() {
        fuzz(2_000, &[ZONE.as_bytes().to_vec()], |bytes, _| {
            if let Ok(zone) = read(bytes, "example") {
                assert!(zone.rrsets.iter().all(|rrset| rrset.count() > 0));
            }
        });
    }
}
