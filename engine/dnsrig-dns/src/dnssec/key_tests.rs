//! Keys and digests of the RFCs' examples.

use domain::{
    base::{Name, ToName, iana::SecurityAlgorithm},
    rdata::Dnskey,
    utils::{base16, base64},
};

use super::*;
use crate::testing::{line, name};

fn bytes<const N: usize>(text: &str) -> [u8; N] {
    base64::decode::<Vec<u8>>(text).unwrap().try_into().unwrap()
}

#[test]
fn digests_and_tags_are_those_of_rfc_4509() {
    // RFC 4509 §2.3.
    let key = line(
        "dskey.example.com. 86400 IN DNSKEY 256 3 5 AQOeiiR0GOMYkDshWoSKz9XzfwJr1AYtsmx3TGkJaNXVbfi/2pHm822aJ5iI9BM\
         zNXxeYCmZDRD99WYwYqUSdjMmmAphXdvxegXd/M5+X7OrzKBaMbCVdFLUUh6DhweJBjEVv5f2wwjM9XzcnOf+EPbtG\
         9DMBmADjFDc2w/rljwvFw==",
    );
    assert_eq!(key_tag(&key.data), 60485);
    let expected = "EC45 05 02 D4B7D520E7BB5F0F67674A0CCEB1E3E0614B93C4F9E99B8383F6A1E4469DA50A";
    assert_eq!(
        ds(&name("DSKEY.example.com"), &key.data),
        base16::decode::<Vec<u8>>(&expected.replace(' ', "")).unwrap()
    );
}

#[test]
fn the_keys_of_rfc_6605_and_rfc_8080_have_their_records() {
    // RFC 6605 §6.1.
    let secret = Secret::p256(&bytes("GU6SnQ/Ou+xC5RumuIUIuJZteXT2z0O/ok1s38Et6mQ=")).unwrap();
    let key = Key::new(secret, Role::KeySigning);
    let expected = "example.net. 3600 IN DNSKEY 257 3 13 GojIhhXUN/u4v54ZQqGSnyhWJwaubCvTmeexv7bR6edbkrSqQpF64cYbcB7wNc\
                    P+e+MAnLr+Wi9xMWyQLc8NAA==";
    assert_eq!(key.dnskey(), line(expected).data);
    let expected =
        "example.net. 3600 IN DS 55648 13 2 b4c8c1fe2e7477127b27115656ad6256f424625bf5c1e2770ce6d6e37df61d17";
    assert_eq!(key.ds(&name("example.net")), line(expected).data);
    // RFC 8080 §6.1.
    let secret = Secret::ed25519(&bytes("ODIyNjAzODQ2MjgwODAxMjI2NDUxOTAyMDQxNDIyNjI=")).unwrap();
    let key = Key::new(secret, Role::KeySigning);
    let expected = "example.com. 3600 IN DNSKEY 257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=";
    assert_eq!(key.dnskey(), line(expected).data);
    let expected = "example.com. 3600 IN DS 3613 15 2 3aa5ab37efce57f737fc1627013fee07bdf241bd10f3b1964ab55c78e79a304b";
    assert_eq!(key.ds(&name("example.com")), line(expected).data);
}

#[test]
fn a_reproducible_signature_is_that_of_rfc_6979() {
    // RFC 6979, appendix A.2.5: P-256 with SHA-256.
    let number: Vec<u8> = base16::decode("C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721").unwrap();
    let key = Key::new(Secret::p256(&number.try_into().unwrap()).unwrap(), Role::ZoneSigning);
    let mut signature = Vec::new();
    key.sign(b"sample", Nonces::Reproducible, &mut signature);
    let expected: Vec<u8> = base16::decode(
        "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716\
         F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8",
    )
    .unwrap();
    assert_eq!(signature, expected);
}

#[test]
fn another_library_reads_the_records_and_agrees_on_tag_and_digest() {
    let pool = crate::dnssec::pool::Pool::new(1, 2);
    for algorithm in Algorithm::ALL {
        let key = pool.key(algorithm, Role::KeySigning, 1);
        let public = key.dnskey()[4..].to_vec();
        let theirs = Dnskey::new(257, 3, SecurityAlgorithm::from_int(algorithm.number()), public).unwrap();
        assert_eq!(theirs.key_tag(), key.tag());
        let owner: Name<Vec<u8>> = "zone.example".parse().unwrap();
        assert_eq!(key.ds(owner.to_canonical_name::<Vec<u8>>().as_slice())[..2], theirs.key_tag().to_be_bytes());
    }
    assert!(Secret::p256(&[0; 32]).is_none() && Secret::p256(&[0xff; 32]).is_none());
    assert!(Secret::rsa(b"no key").is_none());
}
