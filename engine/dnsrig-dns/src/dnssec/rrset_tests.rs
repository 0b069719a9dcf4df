//! What is signed, beside an RFC's example and another library.

use domain::{
    base::{CanonicalOrd, Name, Record, Ttl, iana::SecurityAlgorithm},
    rdata::{
        Mx,
        dnssec::{ProtoRrsig, Timestamp},
    },
    utils::base64,
};
use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{
    dnssec::key::{Nonces, Role, Secret},
    testing::{line, name},
};

const VALIDITY: Validity = Validity { inception_s: 1_438_207_200, expiration_s: 1_440_021_600 };

#[test]
fn the_signature_of_rfc_8080_is_made_again() {
    // RFC 8080 §6.1; its signatures have no nonce.
    let seed: Vec<u8> = base64::decode("ODIyNjAzODQ2MjgwODAxMjI2NDUxOTAyMDQxNDIyNjI=").unwrap();
    let key = Key::new(Secret::ed25519(&seed.try_into().unwrap()).unwrap(), Role::KeySigning);
    let mx = line("EXAMPLE.com. 3600 IN MX 10 Mail.example.com.");
    let mut signed = Signed::default();
    let rrset = Rrset { owner: &mx.owner, rtype: Rtype::MX, ttl_s: 3600, data: [&mx.data[..]] };
    signed.write(&rrset, &name("Example.com"), &key, VALIDITY).unwrap();
    let mut rrsig = signed.rrsig().to_vec();
    key.sign(signed.bytes(), Nonces::Random, &mut rrsig);
    let expected = line(
        "example.com. 3600 IN RRSIG MX 15 2 3600 1440021600 1438207200 3613 example.com. oL9krJun7xfBOIWcGHi7mag5/hdZrK\
         Ww15jPGrHpjQeRAvTdszaPD+QLs3fx8A4M3e23mRZ9VrbpMngwcrqNAg==",
    );
    assert_eq!(rrsig, expected.data);
}

/// What another library has signed of these records.
fn of_domain(owner: &str, labels: u8, key: &Key, mut records: Vec<Mx<Name<Vec<u8>>>>) -> Vec<u8> {
    let name = |text: &str| text.parse::<Name<Vec<u8>>>().unwrap();
    let time = |seconds: u32| Timestamp::from(seconds);
    let proto = ProtoRrsig::new(
        Rtype::MX,
        SecurityAlgorithm::from_int(key.algorithm().number()),
        labels,
        Ttl::from_secs(60),
        time(VALIDITY.expiration_s),
        time(VALIDITY.inception_s),
        key.tag(),
        name("zone.example"),
    );
    let mut expected = Vec::new();
    proto.compose_canonical(&mut expected).unwrap();
    records.sort_by(|one, other| one.canonical_cmp(other));
    records.dedup();
    for data in records {
        Record::new(name(owner), domain::base::iana::Class::IN, Ttl::from_secs(60), data)
            .compose_canonical(&mut expected)
            .unwrap();
    }
    expected
}

fn key() -> Key {
    Key::new(Secret::ed25519(&[1; 32]).unwrap(), Role::ZoneSigning)
}

proptest! {
    #[test]
    fn what_is_signed_is_what_another_library_signs(records in vec((0_u16..3, "[a-cA-C]{1,3}"), 1..5), wildcard: bool) {
        let key = &key();
        let (owner, labels) = if wildcard { ("*.Zone.example", 2) } else { ("W.zone.example", 3) };
        let mx = |(number, target): &(u16, String)| {
            Mx::new(*number, format!("{target}.example").parse::<Name<Vec<u8>>>().unwrap())
        };
        let data: Vec<Vec<u8>> = records
            .iter()
            .map(|(number, target)| [&number.to_be_bytes()[..], &name(&format!("{target}.example"))].concat())
            .collect();
        let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let mut signed = Signed::default();
        let rrset = Rrset { owner: &name(owner), rtype: Rtype::MX, ttl_s: 60, data: data.iter().copied() };
        signed.write(&rrset, &name("zone.EXAMPLE"), key, VALIDITY).unwrap();
        prop_assert_eq!(signed.bytes(), of_domain(owner, labels, key, records.iter().map(mx).collect()));
    }

    #[test]
    fn data_of_any_kind_is_signed_or_refused(
        rtype: u16, data in vec(any::<u8>(), 0..40), owner in vec(any::<u8>(), 0..40),
    ) {
        let key = &key();
        let rrset = Rrset { owner: &owner, rtype: Rtype::from_int(rtype), ttl_s: 60, data: [&data[..], &data] };
        let _ = Signed::default().write(&rrset, &owner, key, VALIDITY);
    }
}

#[test]
fn validity_before_does_not_touch_it() {
    let before = VALIDITY.before();
    assert_eq!(before.expiration_s, VALIDITY.inception_s - 1);
    let length = |validity: Validity| validity.expiration_s - validity.inception_s;
    assert_eq!(length(before), length(VALIDITY));
    let all = Validity { inception_s: 0, expiration_s: u32::MAX };
    assert_eq!(all.before().inception_s, 0);
}
