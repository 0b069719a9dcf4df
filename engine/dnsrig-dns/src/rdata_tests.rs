//! Data with names in it.

use domain::base::{MessageBuilder, Name, Serial, StaticCompressor, Ttl, message_builder::StreamTarget};

use super::*;
use crate::{
    record::Walk,
    testing::{Rr, line, name, response},
};

/// Data as sent, and in canonical form.
type Both = (Vec<u8>, Vec<u8>);

fn expanded(records: &[Rr]) -> Result<Vec<Both>, ParseError> {
    let message = response(None, records);
    let mut walk = Walk::new(&message);
    let both = |_: &Rr| {
        let (record, mut sent, mut canonical) = (walk.any_record()?, Vec::new(), Vec::new());
        record.data_into(&mut sent)?;
        record.canonical_data_into(&mut canonical)?;
        Ok((sent, canonical))
    };
    records.iter().map(both).collect()
}

#[test]
fn names_of_old_types_are_lower_case_in_canonical_form_and_nothing_else_is() {
    let both = |text: &str| expanded(&[line(text)]).unwrap().remove(0);
    for text in [
        "x. 1 NS Ns.Example.",
        "x. 1 CNAME Ns.Example.",
        "x. 1 PTR Ns.Example.",
        "x. 1 DNAME Ns.Example.",
        "x. 1 SOA Ns.Example. Mail.Example. 65 66 67 68 69",
        "x. 1 MINFO A.Example. B.Example.",
        "x. 1 RP A.Example. B.Example.",
        "x. 1 MX 16705 Mail.Example.",
        "x. 1 SRV 16705 16705 16705 Mail.Example.",
        "x. 1 NAPTR 16705 16705 S SIP+D2T !X!Y! Mail.Example.",
    ] {
        let (sent, canonical) = both(text);
        assert_eq!(sent, line(text).data, "{text}");
        let words: Vec<&str> = text.split(' ').collect();
        let lower =
            words.iter().map(|word| if word.ends_with("Example.") { word.to_lowercase() } else { word.to_string() });
        assert_eq!(canonical, line(&lower.collect::<Vec<_>>().join(" ")).data, "{text}");
        assert_ne!(sent, canonical);
    }
    // The signer's name, but not the signature, which may hold letters.
    let (_, canonical) = both("x. 1 RRSIG SOA 8 1 3600 20300101000000 20200101000000 16705 Example. QUJD");
    assert_eq!(canonical[18..], [&name("example")[..], b"ABC"].concat());
    for text in ["x. 1 HINFO CPU OS", "x. 1 TXT ABC", "x. 1 NSEC Next.Example. A", "x. 1 HTTPS 1 Target.Example."] {
        let (sent, canonical) = both(text);
        assert_eq!((&sent, &canonical), (&line(text).data, &sent), "{text}");
    }
}

#[test]
fn names_that_another_library_compressed_are_whole_again() {
    let target = StaticCompressor::new(StreamTarget::new_vec());
    let mut answers = MessageBuilder::from_target(target).unwrap().question().answer();
    answers.header_mut().set_qr(true);
    let name = |text: &str| text.parse::<Name<Vec<u8>>>().unwrap();
    let (ttl, owner) = (Ttl::from_secs(1), name("a.zone.example"));
    let soa = domain::rdata::Soa::new(owner.clone(), name("b.zone.example"), Serial(1), ttl, ttl, ttl, ttl);
    answers.push((&owner, ttl, soa.clone())).unwrap();
    let mx = domain::rdata::Mx::new(7, name("mail.zone.example"));
    answers.push((&owner, ttl, mx.clone())).unwrap();
    let stream = answers.finish().into_target();
    let message = stream.as_dgram_slice();
    assert!(message.windows(7).filter(|window| window == b"example").count() == 1, "compressed");
    let mut walk = Walk::new(message);
    let whole = [
        line("a.zone.example. 1 SOA a.zone.example. b.zone.example. 1 1 1 1 1"),
        line("a.zone.example. 1 MX 7 mail.zone.example."),
    ];
    for whole in whole {
        let mut data = Vec::new();
        walk.any_record().unwrap().data_into(&mut data).unwrap();
        assert_eq!(data, whole.data);
    }
}

#[test]
fn data_that_is_not_as_its_type_asks_for_is_told() {
    let of = |rtype: u16, data: &[u8]| expanded(&[Rr::new(&[0], rtype, data)]).map(|mut data| data.remove(0).0);
    assert_eq!(of(15, &[0, 1, 0]), Ok(vec![0, 1, 0]));
    for (rtype, data) in [
        (15, &[0][..]),                  // MX without its number
        (15, &[0, 1]),                   // without a name
        (15, &[0, 1, 1]),                // with a name that ends beyond it
        (2, &[]),                        // NS of nothing
        (2, &[0x40]),                    // a label that never was
        (35, &[0, 0, 0, 0, 9, 0, 0, 0]), // NAPTR with a text that ends beyond it
        (46, &[0; 18]),                  // RRSIG without a signer
    ] {
        assert_eq!(of(rtype, data), Err(ParseError::Malformed), "TYPE{rtype} {data:?}");
    }
    assert_eq!(of(2, &[0xc0, 23]), Err(ParseError::PointerLoop), "to itself");
    // What has no layout is never looked at.
    assert_eq!(of(1, &[0xc0, 23]), Ok(vec![0xc0, 23]));
    assert_eq!(of(65280, &[]), Ok(vec![]));
}
