//! Signatures, checked by another library.

use std::sync::Arc;

use dnsrig_testing::inputs;
use domain::{
    base::{Message, MessageBuilder, Name, iana::Rtype},
    rdata::tsig::Time48,
    tsig::{Key, KeyName, ServerTransaction},
    utils::base64,
};
use proptest::prelude::*;

use super::*;

const SECRET: &str = "c2VjcmV0IG9mIGEga2V5IQ==";
const NOW_S: u64 = 1_700_000_000;

fn key(algorithm: &str, secret: &str) -> Arc<Key> {
    let secret: Vec<u8> = base64::decode(secret).unwrap();
    let name = "key.example".parse::<KeyName>().unwrap();
    Arc::new(Key::new(algorithm.parse().unwrap(), &secret, name, None, None).unwrap())
}

fn query(edns: bool) -> Vec<u8> {
    let mut question = MessageBuilder::new_vec().question();
    question.push((Name::vec_from_str("www.z1.example").unwrap(), Rtype::A)).unwrap();
    let mut additional = question.additional();
    if edns {
        additional
            .opt(|opt| {
                opt.set_udp_payload_size(1232);
                Ok(())
            })
            .unwrap();
    }
    additional.finish()
}

/// The query with an id, signed; what lies behind it in the buffer is cut off.
fn signed(signer: &Signer, query: &[u8], id: u16, time_s: u64) -> Vec<u8> {
    let mut buffer = query.to_vec();
    buffer[..2].copy_from_slice(&id.to_be_bytes());
    buffer.resize(512, 0xee);
    let length = signer.sign(&mut buffer, query.len(), time_s);
    assert_eq!(length, query.len() + signer.bytes());
    assert!(buffer[length..].iter().all(|byte| *byte == 0xee));
    buffer.truncate(length);
    buffer
}

/// Whether the other library takes the message as signed by `key` at that time, and what is left without signature.
fn verify(bytes: &[u8], key: &Arc<Key>, time_s: u64) -> Option<Vec<u8>> {
    let mut message = Message::from_octets(bytes.to_vec()).unwrap();
    let transaction = ServerTransaction::request(key, &mut message, Time48::from_u64(time_s)).ok()?;
    transaction.map(|_| message.as_slice().to_vec())
}

#[test]
fn every_algorithm_is_verified_by_another_library() {
    for algorithm in ["hmac-sha1", "hmac-sha256", "hmac-sha384", "hmac-sha512"] {
        let signer = Signer::parse(&format!("{algorithm}:KEY.example.:{SECRET}")).unwrap();
        let key = key(algorithm, SECRET);
        for query in [query(false), query(true)] {
            // Twice with the same signer: nothing of the first query is left in the second.
            for (id, time_s) in [(0x1234, NOW_S), (0xffff, NOW_S + 1000)] {
                let bytes = signed(&signer, &query, id, time_s);
                let unsigned = verify(&bytes, &key, time_s).expect(algorithm);
                assert_eq!(unsigned[..2], id.to_be_bytes());
                assert_eq!(unsigned[2..query.len()], query[2..]);
            }
        }
    }
}

#[test]
fn another_key_time_or_message_is_not_verified() {
    let signer = Signer::parse(&format!("hmac-sha256:key.example:{SECRET}")).unwrap();
    let bytes = signed(&signer, &query(false), 1, NOW_S);
    let right = key("hmac-sha256", SECRET);
    assert!(verify(&bytes, &right, NOW_S + u64::from(FUDGE_S)).is_some());
    assert!(verify(&bytes, &right, NOW_S + u64::from(FUDGE_S) + 1).is_none());
    assert!(verify(&bytes, &key("hmac-sha256", "b3RoZXI="), NOW_S).is_none());
    assert!(verify(&bytes, &key("hmac-sha1", SECRET), NOW_S).is_none());
    let mut other_name = bytes;
    other_name[13] ^= 1;
    assert!(verify(&other_name, &right, NOW_S).is_none());
}

#[test]
fn what_is_no_key_is_told_without_its_secret() {
    for (wrong, part) in [
        ("", "three parts"),
        ("hmac-sha256:key", "three parts"),
        ("hmac-md5:key:c2VjcmV0", "algorithm"),
        ("hmac-sha256:a..b:c2VjcmV0", "name"),
        ("hmac-sha256:key:", "secret"),
        ("hmac-sha256:key:hidden!", "secret"),
        ("hmac-sha256:key:c2VjcmV0:x", "secret"),
    ] {
        let sentence = Signer::parse(wrong).unwrap_err().to_string();
        assert!(sentence.contains(part) && !sentence.contains("hidden"), "{wrong}: {sentence}");
    }
    let longest = |bytes: usize| base64::encode_string(&vec![7; bytes]);
    assert!(Signer::parse(&format!("hmac-sha512:key:{}", longest(256))).is_ok());
    assert!(Signer::parse(&format!("hmac-sha512:key:{}", longest(257))).is_err());
    let signer = Signer::parse(&format!("hmac-sha256.:key:{SECRET}")).unwrap();
    assert!(!format!("{signer:?}").contains(SECRET));
}

proptest! {
    #![proptest_config(inputs(500))]

    /// 500 secrets, names, ids and times.
    #[test]
    fn any_key_signs_what_another_library_verifies(
        secret in proptest::collection::vec(any::<u8>(), 1..=256), id: u16, time_s in 1000_u64..1 << 40,
    ) {
        let secret = base64::encode_string(&secret);
        let signer = Signer::parse(&format!("hmac-sha512:key.EXAMPLE:{secret}")).unwrap();
        let bytes = signed(&signer, &query(false), id, time_s);
        prop_assert!(verify(&bytes, &key("hmac-sha512", &secret), time_s).is_some());
    }

    /// 500 texts of any kind are a key or an error.
    #[test]
    fn any_text_is_a_key_or_an_error(text in "(hmac-sha256:)?[a-zA-Z0-9.:=+/]{0,40}|\\PC{0,40}") {
        if let Ok(signer) = Signer::parse(&text) {
            signed(&signer, &query(false), 1, NOW_S);
        }
    }
}
