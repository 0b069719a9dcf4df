use proptest::prelude::*;

use super::*;
use crate::http2::hpack::{Encoder, encoder, names};

fn bytes(hex: &str) -> Vec<u8> {
    let hex = hex.replace(' ', "");
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn decoded(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<(String, String)>, Invalid> {
    let mut fields = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    decoder.decode(block, |name, value| fields.push((text(name), text(value)))).map(|()| fields)
}

/// Fields as `name: value` lines.
fn lines(decoder: &mut Decoder, hex: &str) -> Vec<String> {
    let fields = decoded(decoder, &bytes(hex)).unwrap();
    fields.into_iter().map(|(name, value)| format!("{name}: {value}")).collect()
}

#[test]
fn the_requests_of_rfc_7541_are_decoded_plain_and_compressed() {
    // Appendices C.3 and C.4.
    let plain = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    let compressed = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    for blocks in [plain, compressed] {
        let mut decoder = Decoder::default();
        let first = [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"];
        assert_eq!(lines(&mut decoder, blocks[0]), first);
        assert_eq!(lines(&mut decoder, blocks[1]), [&first[..], &["cache-control: no-cache"]].concat());
        let third = [
            ":method: GET",
            ":scheme: https",
            ":path: /index.html",
            ":authority: www.example.com",
            "custom-key: custom-value",
        ];
        assert_eq!(lines(&mut decoder, blocks[2]), third);
        assert_eq!((decoder.bytes, decoder.fields.len()), (164, 3));
    }
}

#[test]
fn the_responses_of_rfc_7541_evict_what_has_no_room() {
    // Appendix C.6, with a table of 256 bytes.
    let mut decoder = Decoder::default();
    decoder.resize(256).unwrap();
    lines(
        &mut decoder,
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 \
         8f0b 97c8 e9ae 82ae 43d3",
    );
    assert_eq!(decoder.bytes, 222);
    assert_eq!(lines(&mut decoder, "4883 640e ffc1 c0bf")[0], ":status: 307");
    assert_eq!((decoder.bytes, decoder.fields.len()), (222, 4), ":status 302 was evicted");
    let third = lines(
        &mut decoder,
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 \
         dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    );
    assert_eq!(
        third[4..],
        ["content-encoding: gzip", "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"]
    );
    assert_eq!((decoder.bytes, decoder.fields.len()), (215, 3));
}

#[test]
fn a_block_that_breaks_the_rules_is_refused() {
    for (block, what) in [
        ("80", "index 0"),
        ("be", "an index that the table does not have"),
        ("ff", "an integer without its end"),
        ("ffffffff7f", "an integer that is too long"),
        ("8220", "a new size behind a field"),
        ("3fe21f", "a table of 4,097 bytes"),
        ("4105616263", "a string that is cut"),
        ("0081ff00", "a compressed string without its end"),
        ("41", "a field without its value"),
    ] {
        assert_eq!(decoded(&mut Decoder::default(), &bytes(block)), Err(Invalid), "{what}");
    }
    assert_eq!(decoded(&mut Decoder::default(), &bytes("3fe11f 82")).unwrap().len(), 1, "a table of 4,096 bytes");
}

#[test]
fn a_short_block_does_not_become_a_long_list() {
    let mut decoder = Decoder::default();
    let mut block = Vec::new();
    Encoder::default().kept(&mut block, names::CONTENT_TYPE, &[b'a'; 4_000]);
    block.extend([0x80 | 62; 1_000]);
    let mut count = 0;
    assert_eq!(decoder.decode(&block, |_, _| count += 1), Err(Invalid));
    assert_eq!(count, 5);
}

#[test]
fn a_field_longer_than_the_table_empties_it() {
    let mut decoder = Decoder::default();
    lines(&mut decoder, "4882 6402");
    let mut block = vec![0x40 | names::CONTENT_TYPE];
    block.extend([0x7f, 0xe1, 0x1e]);
    block.extend([b'a'; 4_064]);
    decoder.decode(&block, |_, value| assert_eq!(value.len(), 4_064)).unwrap();
    assert_eq!((decoder.bytes, decoder.fields.len()), (0, 0));
}

/// Encodes the fields of some requests, each with its path, and decodes them.
fn round_trip(encoder: &mut Encoder, decoder: &mut Decoder, path: &str) -> (usize, Vec<(String, String)>) {
    let mut block = Vec::new();
    encoder.begin(&mut block);
    Encoder::indexed(&mut block, names::METHOD_GET);
    Encoder::plain(&mut block, names::PATH, path.as_bytes());
    encoder.kept(&mut block, names::AUTHORITY, b"dns.example");
    encoder.kept(&mut block, names::ACCEPT, b"application/dns-message");
    (block.len(), decoded(decoder, &block).unwrap())
}

#[test]
fn fields_that_stay_the_same_are_sent_once() {
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
    let mut sizes = Vec::new();
    for path in ["/a", "/b", "/c"] {
        let (size, fields) = round_trip(&mut encoder, &mut decoder, path);
        let expected =
            [(":method", "GET"), (":path", path), (":authority", "dns.example"), ("accept", "application/dns-message")];
        assert_eq!(fields, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        sizes.push(size);
    }
    assert_eq!(sizes, [43, 7, 7]);
}

#[test]
fn a_smaller_table_is_begun_anew_and_a_table_without_room_is_not_used() {
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
    let whole = round_trip(&mut encoder, &mut decoder, "/").1;
    encoder.permit(60);
    let (size, fields) = round_trip(&mut encoder, &mut decoder, "/");
    assert_eq!((fields, decoder.bytes_max, decoder.bytes), (whole.clone(), 60, 53), "{size}: `:authority` alone fits");
    encoder.permit(0);
    encoder.permit(4_096);
    assert_eq!(round_trip(&mut encoder, &mut decoder, "/").1, whole);
    assert_eq!((decoder.bytes_max, decoder.bytes), (0, 0));
}

proptest! {
    #[test]
    fn integers_come_back(number in 0_usize..1 << 20, bits in 4_u32..8) {
        let mut block = Vec::new();
        encoder::integer(&mut block, 0, bits, number);
        prop_assert_eq!(Input(&block).integer(bits), Ok(number));
    }
}
