use proptest::prelude::*;

use dnsrig_testing::fuzz::fuzz;

use super::*;

const ZONE: &str = "\
$TTL 3600 ; RFC 2308
@ IN SOA ns1.example. hostmaster.example. (
        2026112600 ; serial
        3600 900 1209600 300 )
        IN NS ns1
        NS ns2.elsewhere.example.
ns1     300 IN A 192.0.2.1
        AAAA 2001:db8::1
text    TXT \"a;b\" \"c(d\" \"e\\\"f\" g\\;h
raw     TYPE65280 \\# 3 aabbcc
$ORIGIN sub.example.org.
www     IN 60 A 192.0.2.2
with\\.dot A 192.0.2.3
*       MX 10 (
mail )
";

type Read = (Result<Facts, String>, Vec<String>, Vec<u8>);

fn read_by(text: &[u8], origin: &str, piece_bytes: usize) -> Read {
    let (mut records, mut copied) = (Vec::new(), Vec::new());
    let facts = read_pieces(
        Pieces::new(text, piece_bytes),
        origin,
        |owner, rtype| records.push(format!("{} {rtype}", owner.fmt_with_dot())),
        |bytes| {
            copied.extend_from_slice(bytes);
            Ok(())
        },
    );
    (facts.map_err(|error| error.to_string()), records, copied)
}

fn facts(text: &str) -> Result<Facts, String> {
    read_by(text.as_bytes(), "example.org", PIECE_BYTES).0
}

#[test]
fn a_zone_is_read_with_all_that_master_files_have() {
    let (facts, records, copied) = read_by(ZONE.as_bytes(), "example.org", PIECE_BYTES);
    let bytes = ZONE.len() as u64;
    assert_eq!(facts, Ok(Facts { name: "example.org".into(), serial: 2_026_112_600, records: 10, bytes }));
    assert_eq!(
        records,
        [
            "example.org. SOA",
            "example.org. NS",
            "example.org. NS",
            "ns1.example.org. A",
            "ns1.example.org. AAAA",
            "text.example.org. TXT",
            "raw.example.org. TYPE65280",
            "www.sub.example.org. A",
            "with\\.dot.sub.example.org. A",
            "*.sub.example.org. MX",
        ]
    );
    assert_eq!(copied, ZONE.as_bytes());
}

#[test]
fn the_owner_of_the_soa_record_is_the_name_of_the_zone() {
    let zone = "$ORIGIN other.example.\n@ 0 IN SOA a. b. 7 1 1 1 1\n@ 0 IN NS a.\n";
    assert_eq!(facts(zone).unwrap().name, "other.example");
    let root = ". 0 IN SOA a. b. 7 1 1 1 1\n. 0 IN NS a.\n";
    assert_eq!(facts(root).unwrap().name, ".");
}

#[test]
fn what_is_no_zone_is_refused_with_its_line() {
    const SOA: &str = "@ 0 IN SOA a. b. 7 1 1 1 1\n";
    for (zone, said) in [
        (String::new(), "it has no SOA record, so it is no zone"),
        (SOA.into(), "the zone example.org has no NS record at its apex"),
        (format!("{SOA}sub 0 IN NS a.\n"), "the zone example.org has no NS record at its apex"),
        (format!("{SOA}@ 0 IN NS a.\n\n{SOA}"), "line 4: a second SOA record: a file has one zone"),
        (format!("@ 0 IN NS a.\n{SOA}"), "line 1: example.org comes before the SOA record: put the SOA record first"),
        (format!("{SOA}@ 0 IN NS a.\nexample.com. 0 IN A 192.0.2.1\n"), "line 3: example.com lies outside of the zone"),
        (format!("{SOA}notexample.org. 0 IN A 192.0.2.1\n"), "line 2: notexample.org lies outside of the zone"),
        (format!("{SOA}@ 0 IN NS a.\n$INCLUDE other.zone\n"), "line 3: $INCLUDE: put the records"),
        (format!("{SOA}@ 0 IN A 192.0.2.256\n"), "line 2: "),
        (format!("{SOA}@ 0 IN A (192.0.2.1\n"), "line "),
        ("@ 0 CH SOA a. b. 7 1 1 1 1\n".into(), "line 1: "),
        ("<html>\n".into(), "line 1: "),
    ] {
        let refused = facts(&zone).unwrap_err();
        assert!(refused.starts_with(said), "{zone}: {refused}");
    }
}

#[test]
fn lines_are_counted_over_pieces() {
    let zone =
        format!("@ 0 IN SOA a. b. 7 1 1 1 1\n@ 0 IN NS a.\n{}bad 0 IN A x\n", "w 0 IN A 192.0.2.1\n".repeat(100));
    let (whole, pieces) =
        (read_by(zone.as_bytes(), "example.org", PIECE_BYTES), read_by(zone.as_bytes(), "example.org", 64));
    assert!(whole.0.as_ref().unwrap_err().starts_with("line 103: "), "{:?}", whole.0);
    assert_eq!(whole.0, pieces.0);
}

#[test]
fn a_full_disk_is_no_fault_of_the_zone() {
    let full = |_: &[u8]| Err(io::Error::from_raw_os_error(nix::libc::ENOSPC));
    let refused = read(ZONE.as_bytes(), "example.org", |_, _| (), full).unwrap_err();
    assert!(matches!(refused, ZoneFileError::Copy(_)), "{refused}");
}

#[test]
fn a_file_without_records_does_not_fill_the_memory() {
    struct Spaces;
    impl std::io::Read for Spaces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            buffer.fill(b' ');
            Ok(buffer.len())
        }
    }
    let refused = read(Spaces, "example.org", |_, _| (), |_| Ok(())).unwrap_err().to_string();
    assert!(refused.contains("without a line that begins with an owner"), "{refused}");
}

proptest! {
    #[test]
    fn pieces_of_any_size_give_what_the_whole_gives(piece_bytes in 1_usize..300, repeats in 1_usize..4) {
        let tail = &ZONE[ZONE.find("ns1 ").unwrap()..];
        let zone = format!("{ZONE}{}", format!("$ORIGIN example.org.\n{tail}").repeat(repeats));
        prop_assert_eq!(
            read_by(zone.as_bytes(), "example.org", piece_bytes),
            read_by(zone.as_bytes(), "example.org", PIECE_BYTES)
        );
    }
}

#[test]
fn harmed_zones_are_read_alike_in_pieces_or_refused() {
    fuzz(2_000, &[ZONE.as_bytes().to_vec()], |input, random| {
        let whole = read_by(input, "example.org", PIECE_BYTES);
        if let Ok(facts) = &whole.0 {
            assert!(facts.records >= 2 && facts.records == whole.1.len() as u64);
            assert_eq!((facts.bytes, &whole.2[..]), (input.len() as u64, input));
            assert_eq!(read_by(input, "example.org", 1 + random.below(200) as usize), whole);
        }
    });
}
