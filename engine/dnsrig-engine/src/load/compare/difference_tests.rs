//! Each kind of difference is found, and what is none is not.

use dnsrig_dns::{testing::messages, writer::append_record};
use dnsrig_testing::{fuzz::fuzz, inputs};
use domain::base::{Rtype, iana::Class};
use proptest::{prelude::*, sample::Index};

use super::*;

/// A response to `z.example MX`, with these records in its answer section, or in its authority section.
fn response(flags: u8, rcode: u8, is_answer: bool, records: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut message = vec![0, 0, 0x80 | flags, rcode, 0, 1, 0, 0, 0, 0, 0, 0];
    message[if is_answer { 7 } else { 9 }] = records.len() as u8;
    message.extend(b"\x01z\x07example\0\0\x0f\0\x01");
    for (ttl_s, data) in records {
        append_record(&mut message, &[0xc0, 12], Rtype::MX, Class::IN, *ttl_s, data);
    }
    message
}

fn mail(host: &str) -> Vec<u8> {
    [&[0, 10, host.len() as u8], host.as_bytes(), b"\xc0\x0c"].concat()
}

fn compare(one: &[u8], other: &[u8]) -> Option<Kind> {
    let found = Comparer::new(Some(5)).compare([one, other]);
    assert_eq!(found, Comparer::new(Some(5)).compare([other, one]), "either way");
    found
}

#[test]
fn each_kind_is_found() {
    let records = [(60, mail("a")), (60, mail("b"))];
    let one = response(AA, 0, true, &records);
    assert_eq!(compare(&one, &one), None);
    assert_eq!(compare(&one, &response(AA, 3, true, &records)), Some(Kind::Rcode));
    assert_eq!(compare(&one, &response(AA, 0, true, &records[..1])), Some(Kind::Rrset));
    assert_eq!(compare(&one, &response(AA, 0, true, &[(60, mail("a")), (60, mail("c"))])), Some(Kind::Rrset));
    assert_eq!(compare(&one, &response(0, 0, true, &records)), Some(Kind::Flags));
    for (ttl_s, kind) in [(55, None), (65, None), (54, Some(Kind::Ttl)), (66, Some(Kind::Ttl))] {
        let other = response(AA, 0, true, &[(60, mail("a")), (ttl_s, mail("b"))]);
        assert_eq!(compare(&one, &other), kind, "{ttl_s} s");
        assert_eq!(Comparer::new(None).compare([&one, &other]), None, "TTLs are not compared");
    }
    assert_eq!(compare(&one, &one[..one.len() - 1]), Some(Kind::Damaged));
    assert_eq!(compare(&one, &[]), Some(Kind::Damaged));
    // Without an answer, what stands in for it is compared; with one, nothing else is.
    let referral = |host| response(0, 0, false, &[(60, mail(host))]);
    assert_eq!(compare(&referral("a"), &referral("b")), Some(Kind::Rrset));
    let mut more = one.clone();
    more[9] = 1;
    append_record(&mut more, &[0], Rtype::NS, Class::IN, 60, &[0]);
    assert_eq!(compare(&one, &more), None);
}

#[test]
fn an_answer_is_shown_with_what_is_compared() {
    let shown = show(Some(&response(AA, 0, true, &[(60, mail("b")), (60, mail("a"))])));
    assert_eq!(shown, "NOERROR aa; z.example. 60 MX 10 a.z.example.; z.example. 60 MX 10 b.z.example.");
    assert_eq!(show(Some(&response(0, 5, true, &[]))), "REFUSED");
    assert_eq!(show(None), "no answer");
}

#[test]
fn any_messages_are_compared_and_shown() {
    let mut corpus = messages();
    corpus.push(response(AA, 0, true, &[(60, mail("a")), (60, mail("b"))]));
    let mut comparer = Comparer::new(Some(0));
    let one = corpus.last().unwrap().clone();
    fuzz(5_000, &corpus, |bytes, _| {
        let found = comparer.compare([bytes, &one]);
        assert_eq!(found, comparer.compare([&one, bytes]));
        assert!(matches!(comparer.compare([bytes, bytes]), None | Some(Kind::Damaged)));
        show(Some(bytes));
    });
}

proptest! {
    #![proptest_config(inputs(300))]

    /// Another order, and names in another case or without compression, are no difference.
    #[test]
    fn the_form_of_an_answer_does_not_matter(
        hosts in proptest::collection::btree_set("[a-z]{1,9}", 1..6), turn: Index,
    ) {
        let records: Vec<_> = hosts.iter().map(|host| (60, mail(host))).collect();
        let mut others: Vec<_> = hosts
            .iter()
            .map(|host| (60, [&mail(&host.to_uppercase())[..3 + host.len()], b"\x01Z\x07Example\0"].concat()))
            .collect();
        others.rotate_left(turn.index(records.len()));
        prop_assert_eq!(compare(&response(AA, 0, true, &records), &response(AA, 0, true, &others)), None);
    }
}
