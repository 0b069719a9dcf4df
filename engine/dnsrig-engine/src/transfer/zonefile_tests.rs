//! Lines of zone files, read back by another library.

use dnsrig_dns::testing::{Rr, give, line, name, response};
use dnsrig_dns::{header::Header, record::Walk};
use dnsrig_testing::{fuzz::fuzz, inputs};
use proptest::{collection::vec, prelude::*};

use super::*;
use crate::dataset::zone_file::{self, Wanted};

fn written(records: &[Rr]) -> String {
    let mut writer = Writer::new(Vec::new());
    give(&response(None, records), &mut writer).unwrap();
    String::from_utf8(writer.into_inner()).unwrap()
}

#[test]
fn usual_records_are_written_as_people_write_them() {
    let lines = [
        "example. 86400 IN SOA ns1.example. admin.example. 2018031900 1800 900 604800 86400",
        "example. 86400 IN NS ns1.example.",
        ". 518400 IN NS a.root-servers.net.",
        "www.example. 3600 IN A 192.0.2.1",
        "www.example. 3600 IN AAAA 2001:db8::1",
        "example. 60 IN MX 10 mail.example.",
        "example. 60 IN TXT \"v=spf1 -all\" \"a \\\"b\\\" \\\\ \\200\"",
        "_sip._tcp.example. 60 IN SRV 0 5 5060 sip.example.",
        "*.example. 60 IN CNAME www.example.",
        "example. 60 IN CAA 0 issue \"ca.example; policy=ev\"",
        "example. 60 IN DS 60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118",
    ];
    let records: Vec<Rr> = lines.iter().map(|text| line(text)).collect();
    assert_eq!(written(&records), lines.join("\n") + "\n");
}

#[test]
fn what_is_not_known_or_not_right_is_written_as_bytes() {
    let owner = name("example");
    let data = |rtype, data: &[u8]| written(&[Rr { ttl_s: 1, ..Rr::new(&owner, rtype, data) }]);
    assert_eq!(data(65280, &[1, 0xab]), "example. 1 IN TYPE65280 \\# 2 01ab\n");
    assert_eq!(data(65280, &[]), "example. 1 IN TYPE65280 \\# 0\n");
    assert_eq!(data(1, &[1, 2, 3]), "example. 1 IN A \\# 3 010203\n");
    assert_eq!(data(1, &[1, 2, 3, 4, 5]), "example. 1 IN A \\# 5 0102030405\n");
    assert_eq!(data(16, &[]), "example. 1 IN TXT \\# 0\n");
    // A name that holds what begins a comment, which the library does not escape.
    assert_eq!(data(2, &name("a;b")), "example. 1 IN NS \\# 5 03613b6200\n");
}

#[test]
fn owners_are_escaped() {
    let owner = b"\x08a.b\\c;\"(\x07@$ \x00\xffde\x00";
    let line = written(&[Rr { ttl_s: 1, ..Rr::new(owner, 1, &[192, 0, 2, 1]) }]);
    assert_eq!(line, "a\\.b\\\\c\\;\\\"\\(.\\@\\$\\032\\000\\255de. 1 IN A 192.0.2.1\n");
}

#[test]
fn what_a_change_removes_is_a_comment() {
    struct Removed(Writer<Vec<u8>>);
    impl Sink for Removed {
        fn record(&mut self, record: &Record<'_>, _: Change) -> Result<(), Outcome> {
            self.0.record(record, Change::Remove)
        }
    }
    let mut removed = Removed(Writer::new(Vec::new()));
    give(&response(None, &[line("www.example. 1 A 192.0.2.1")]), &mut removed).unwrap();
    assert_eq!(removed.0.into_inner(), b";- www.example. 1 IN A 192.0.2.1\n");
}

#[test]
fn a_file_that_takes_no_more_is_an_outcome() {
    let mut nothing = [0_u8; 20];
    let mut writer = Writer::new(&mut nothing[..]);
    let given = give(&response(None, &[line("www.example. 1 A 192.0.2.1")]), &mut writer);
    assert_eq!(given, Err(Outcome::NotWritten));
}

/// Messages with records of many types, with harm done to them: `generate files` reads what was written of them.
#[test]
fn harmed_transfers_are_copies_that_can_be_read() {
    let texts = [
        "example. 86400 IN NS ns1.example.",
        "www.example. 3600 IN AAAA 2001:db8::1",
        "example. 60 IN TXT \"v=spf1 -all\" \"a \\\"b\\\" \\\\ \\200\"",
        "_sip._tcp.example. 60 IN SRV 0 5 5060 sip.example.",
        "example. 60 IN CAA 0 issue \"ca.example; policy=ev\"",
        "example. 60 IN DS 60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118",
        "example. 60 IN TYPE65280 \\# 2 01ab",
        "x.example. 60 IN NSEC y.example. A MX TYPE1234",
        "x.example. 60 IN NAPTR 1 2 \"u\" \"sip+E2U\" \"!^.*$!sip:x@example!\" .",
    ];
    let records: Vec<Rr> = texts.iter().map(|text| line(text)).collect();
    let corpus: Vec<_> = records.chunks(3).map(|records| response(None, records)).collect();
    let root = domain::base::Name::root();
    fuzz(2_000, &corpus, |message, _| {
        let Ok(header) = Header::read(message) else { return };
        let mut walk = Walk::new(message);
        // Pseudo types are in no zone, and a zone has one SOA record.
        let is_of_zone = |rtype: Rtype| !matches!(rtype.to_int(), 6 | 41 | 128..=255);
        if header.questions > 0 || !walk.records(&header).map_while(Result::ok).all(|(_, each)| is_of_zone(each.rtype))
        {
            return;
        }
        let mut writer = Writer::new(b". 1 IN SOA a. b. 1 1 1 1 1\n. 1 IN NS a.\n".to_vec());
        if give(message, &mut writer).is_err() {
            return;
        }
        let text = writer.into_inner();
        let file = std::path::Path::new("copy.zone");
        let read = zone_file::read(&text[..], file, &root, Wanted::default(), |_, _| Ok(()), |_| Ok(()));
        let lines = text.iter().filter(|byte| **byte == b'\n').count() as u64;
        assert_eq!(
            read.map(|facts| facts.records).map_err(|error| error.to_string()),
            Ok(lines),
            "{}",
            text.escape_ascii()
        );
    });
}

/// The data of a record with its names not compressed.
#[derive(Default)]
struct Whole(Vec<u8>);

impl Sink for Whole {
    fn record(&mut self, record: &Record<'_>, _: Change) -> Result<(), Outcome> {
        Ok(record.data_into(&mut self.0)?)
    }
}

/// Types with a layout of their own in zone files, one without, and any.
fn rtypes() -> impl Strategy<Value = u16> {
    prop_oneof![
        5 => proptest::sample::select(vec![
            1, 2, 5, 6, 12, 13, 15, 16, 17, 28, 33, 35, 39, 43, 44, 45, 46, 47, 48, 50, 51, 52, 61, 63, 64, 65, 257,
        ]),
        1 => any::<u16>().prop_filter("no pseudo types", |rtype| !matches!(rtype, 41 | 128..=255)),
    ]
}

/// Bytes that are often data of some type: names, texts, numbers.
fn datas() -> impl Strategy<Value = Vec<u8>> {
    let character = || prop_oneof![4 => b'a'..=b'z', 2 => 0x20..0x7f_u8, 1 => any::<u8>()];
    let text = || vec(character(), 0..6).prop_map(|text| [&[text.len() as u8], &text[..]].concat());
    let label = || vec(character(), 1..6).prop_map(|label| [&[label.len() as u8], &label[..]].concat());
    let name = vec(label(), 0..4).prop_map(|labels| [labels.concat(), vec![0]].concat());
    let bytes = || vec(any::<u8>(), 0..24);
    vec(prop_oneof![2 => name, 2 => text(), 2 => bytes(), 1 => vec(0..4_u8, 0..20)], 0..5)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(inputs(2000))]

    /// Any record is one line, and that line is read as the same record.
    #[test]
    fn any_record_is_read_back(
        labels in vec(vec(any::<u8>(), 1..10), 0..5), rtype in rtypes(), data in datas(), ttl_s in 0..1_u32 << 31,
    ) {
        let labels = labels.iter().flat_map(|label| [&[label.len() as u8], &label[..]].concat());
        let owner: Vec<u8> = labels.chain([0]).collect();
        let record = Rr { ttl_s, ..Rr::new(&owner, rtype, &data) };
        let (mut written, mut whole) = (Writer::new(Vec::new()), Whole::default());
        let message = response(None, std::slice::from_ref(&record));
        if give(&message, &mut written).and_then(|()| give(&message, &mut whole)).is_ok() {
            let text = String::from_utf8(written.into_inner()).unwrap();
            prop_assert_eq!(text.lines().count(), 1);
            // What looked like a pointer is one.
            let whole = Rr { data: whole.0, ..record };
            prop_assert_eq!(line(text.trim_end_matches('\n')), whole, "{}", text);
        }
    }
}
