//! Updates as others read them, and bytes that are no answer.

use std::str::FromStr;

use domain::{
    base::{
        Message, MessageBuilder, Record, Ttl,
        iana::{Opcode, Rcode},
        message_builder::PushError,
        rdata::UnknownRecordData,
    },
    rdata::tsig::Time48,
    tsig::ServerTransaction,
};
use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{testing::key_of_domain, tsig::sign::parse_key};

const KEY: &str = "hmac-sha256:transfer:c2VjcmV0IG9mIHRoaXJ0eS10d28gb2N0ZXRzIG9yIHNv";
const NOW_S: u64 = 1_700_000_000;

fn name(text: &str) -> Name<Vec<u8>> {
    Name::from_str(text).unwrap()
}

fn edits() -> [Edit; 2] {
    let owner = name("dnsrig.z1.example");
    [
        Edit::DeleteSet { owner: owner.clone(), rtype: Rtype::TXT },
        Edit::Add { owner, rtype: Rtype::TXT, ttl_s: 60, data: txt("change 7") },
    ]
}

fn update(key: Option<&str>) -> (Vec<u8>, Option<Verifier>) {
    let key = key.map(|key| parse_key(key).unwrap());
    write_update(7, name("z1.example").as_ref(), &edits(), key.as_ref(), NOW_S).unwrap()
}

#[test]
fn an_update_is_as_rfc_2136_says() {
    let bytes = update(None).0;
    let message = Message::from_octets(&bytes[..]).unwrap();
    assert_eq!((message.header().id(), message.header().opcode(), message.header().qr()), (7, Opcode::UPDATE, false));
    let zone = message.sole_question().unwrap();
    assert_eq!((zone.qname().to_string().as_str(), zone.qtype(), zone.qclass()), ("z1.example", Rtype::SOA, Class::IN));
    assert_eq!(message.header_counts().ancount(), 0, "no prerequisites");
    let records: Vec<_> = message.authority().unwrap().map(|record| record.unwrap()).collect();
    let told: Vec<_> = records.iter().map(|r| (r.rtype(), r.class(), r.ttl().as_secs(), r.rdlen())).collect();
    assert_eq!(told, [(Rtype::TXT, Class::ANY, 0, 0), (Rtype::TXT, Class::IN, 60, 9)]);
}

#[test]
fn a_signature_is_what_the_server_expects() {
    let now = Time48::from_u64(NOW_S);
    let key = key_of_domain(KEY);
    let (bytes, verifier) = update(Some(KEY));
    let mut message = Message::from_octets(bytes).unwrap();
    let server = ServerTransaction::request(&key, &mut message, now).unwrap().expect("it is signed");
    let mut answer = MessageBuilder::new_vec().start_answer(&message, Rcode::NOERROR).unwrap().additional();
    answer.header_mut().set_opcode(Opcode::UPDATE);
    let unsigned = answer.as_slice().to_vec();
    server.answer(&mut answer, now).unwrap();
    let verifier = verifier.unwrap();
    assert!(!is_signed(&unsigned, &verifier, NOW_S));
    assert!(is_signed(answer.as_slice(), &verifier, NOW_S), "also after one that is not");
    assert!(!is_signed(answer.as_slice(), &verifier, NOW_S + 301));
    assert_eq!(read_answer(answer.as_slice()), Some((7, 0)));
}

#[test]
fn a_query_is_no_answer_and_neither_is_an_answer_to_one() {
    let bytes = update(None).0;
    assert_eq!(read_answer(&bytes), None);
    let answer = |flags: u8| [&bytes[..2], &[flags, 5], &bytes[4..]].concat();
    assert_eq!(read_answer(&answer(0x80)), None, "opcode QUERY");
    assert_eq!(read_answer(&answer(0xa8)), Some((7, 5)));
}

#[test]
fn what_does_not_fit_is_refused() {
    let long = name(&format!("{0}.{0}.{0}", "a".repeat(63)));
    let edit = |_| Edit::Add { owner: long.clone(), rtype: Rtype::TXT, ttl_s: 0, data: txt(&"x".repeat(300)) };
    let edits: Vec<_> = (0..2).map(edit).collect();
    assert!(write_update(0, long.as_ref(), &edits, None, NOW_S).is_err());
    assert_eq!(txt(&"x".repeat(300)).len(), 256);
}

/// The update as another library writes it; None if it does not fit.
fn written_by_domain(id: u16, zone: &Name<[u8]>, edits: &[Edit]) -> Option<Vec<u8>> {
    let mut builder = MessageBuilder::new_vec();
    // It refuses a message that reaches the limit.
    builder.set_push_limit(UDP_BYTES_MAX + 1);
    builder.header_mut().set_id(id);
    builder.header_mut().set_opcode(Opcode::UPDATE);
    let mut zones = builder.question();
    zones.push((zone, Rtype::SOA, Class::IN)).ok()?;
    let mut updates = zones.authority();
    let push = |edit: &Edit| -> Result<(), PushError> {
        let (owner, class, ttl_s, rtype, data) = match edit {
            Edit::Add { owner, rtype, ttl_s, data } => (owner, Class::IN, *ttl_s, *rtype, &data[..]),
            Edit::DeleteSet { owner, rtype } => (owner, Class::ANY, 0, *rtype, &[][..]),
        };
        let data = UnknownRecordData::from_octets(rtype, data).unwrap();
        updates.push(Record::new(owner, class, Ttl::from_secs(ttl_s), data))
    };
    edits.iter().try_for_each(push).ok()?;
    Some(updates.finish())
}

fn any_edit() -> impl Strategy<Value = Edit> {
    (0_u8..200, any::<u16>(), any::<u32>(), vec(any::<u8>(), 0..300), any::<bool>()).prop_map(
        |(label, rtype, ttl_s, data, is_added)| {
            let (owner, rtype) = (name(&format!("n{label}.z1.example")), Rtype::from_int(rtype));
            if is_added { Edit::Add { owner, rtype, ttl_s, data } } else { Edit::DeleteSet { owner, rtype } }
        },
    )
}

proptest! {
    #[test]
    fn an_update_is_as_another_library_writes_it(id: u16, edits in vec(any_edit(), 0..6)) {
        let zone = name("z1.example");
        let written = write_update(id, zone.as_ref(), &edits, None, NOW_S).ok().map(|(update, _)| update);
        prop_assert_eq!(written, written_by_domain(id, zone.as_ref(), &edits));
    }

    #[test]
    fn no_bytes_are_too_strange(bytes: Vec<u8>) {
        read_answer(&bytes);
        is_signed(&bytes, &update(Some(KEY)).1.unwrap(), NOW_S);
    }
}
