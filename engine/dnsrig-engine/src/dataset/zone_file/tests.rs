use proptest::prelude::*;

use super::*;
use dnsrig_core::random::Random;
use dnsrig_testing::fuzz::fuzz;

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
    read_wanted(text, origin, piece_bytes, Wanted::default(), Path::new(""))
}

fn read_wanted(text: &[u8], origin: &str, piece_bytes: usize, wanted: Wanted<'_>, path: &Path) -> Read {
    let (mut records, mut copied) = (Vec::new(), Vec::new());
    let facts = read_pieces(
        Pieces::new(text, piece_bytes),
        path,
        &origin.parse().unwrap(),
        wanted,
        |owner, record| {
            records.push(format!("{} {}", owner.fmt_with_dot(), record.rtype()));
            Ok(())
        },
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

/// The records of a text, as the reader and then the parser of the library see them.
fn records_of(text: &[u8]) -> Vec<String> {
    let mut file = Zonefile::from(text);
    file.extend_from_slice(b"\n");
    file.set_default_class(Class::IN);
    std::iter::from_fn(|| file.next_entry().unwrap())
        .map(|entry| match entry {
            Parsed::Record(record) => {
                let mut data = Vec::new();
                domain::base::rdata::ComposeRecordData::compose_rdata(record.data(), &mut data).unwrap();
                format!("{} {} {} {data:02x?}", record.owner().fmt_with_dot(), record.ttl().as_secs(), record.rtype())
            }
            Parsed::Include { path, .. } => panic!("{path}"),
        })
        .collect()
}

#[test]
fn a_zone_is_read_with_all_that_master_files_have() {
    let (facts, records, copied) = read_by(ZONE.as_bytes(), "example.org", PIECE_BYTES);
    let bytes = copied.len() as u64;
    let expected = Facts { name: "example.org".into(), serial: 2_026_112_600, bytes, records: 10, ..Facts::default() };
    assert_eq!(facts, Ok(expected));
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
    let begin = "$ORIGIN example.org.\n$TTL 3600\n\
         example.org. 3600 IN SOA ns1.example. hostmaster.example. 2026112600 3600 900 1209600 300\n";
    let rest = &ZONE[ZONE.find("        IN NS").unwrap()..];
    assert_eq!(String::from_utf8(copied.clone()).unwrap(), format!("{begin}{rest}"));
    assert_eq!(records_of(&copied), records_of(format!("$ORIGIN example.org.\n{ZONE}").as_bytes()));
}

#[test]
fn times_may_have_units_where_servers_read_them() {
    let zone = "$TTL 1h30m ; so much\n@ IN SOA ns root ( 7 1D 2h\n4W 300 ) ; SOA\n@ NS ns.example.\nw A 192.0.2.1\n";
    let (facts, _, copied) = read_by(zone.as_bytes(), "example.org", PIECE_BYTES);
    assert!(facts.is_ok(), "{facts:?}");
    let text = String::from_utf8(copied).unwrap();
    assert!(text.starts_with(
        "$ORIGIN example.org.\n$TTL 5400\n\
         example.org. 5400 IN SOA ns.example.org. root.example.org. 7 86400 7200 2419200 300\n@ NS"
    ));
    let bad = "$TTL soon\n@ IN SOA a. b. 7 1 1 1 1\n";
    assert_eq!(self::facts(bad).unwrap_err(), "line 1: $TTL is not followed by a time in seconds");
}

#[test]
fn a_zone_without_any_ttl_has_none_in_its_copy() {
    let zone = "@ IN SOA a. b. 7 1 1 1 1\n@ IN NS a.\n";
    let (_, _, copied) = read_by(zone.as_bytes(), "example.org", PIECE_BYTES);
    let copied = String::from_utf8(copied).unwrap();
    assert_eq!(copied, "$ORIGIN example.org.\nexample.org. IN SOA a. b. 7 1 1 1 1\n@ IN NS a.\n");
}

fn named(text: &str, listed: Option<&str>, file: &str) -> String {
    match name(text.as_bytes(), listed, Path::new(file)) {
        Ok(name) => name.to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_name_is_the_soa_records_owner_or_the_files_name() {
    let at = "; a zone\n$TTL 1d\n@ IN SOA a. b. 7 1d 1 1 1\n";
    let absolute = "example.org. 0 IN SOA a. b. 7 1 1 1 1\n";
    let origin = "$ORIGIN example.org.\n@ 0 IN SOA a. b. 7 1 1 1 1\n";
    let relative = "sub 0 IN SOA a. b. 7 1 1 1 1\n";
    for (text, listed, file, expected) in [
        (at, None, "/zones/example.com.zone", "example.com"),
        (at, None, "example.com.db.signed", "example.com"),
        (at, Some("example.net"), "example.com.zone", "example.net"),
        (at, Some("."), "root", "."),
        (absolute, None, "db.example.org", "example.org"),
        (origin, None, "example.com.zone", "example.org"),
        (origin, Some("Example.ORG."), "x", "example.org"),
        (origin, Some("example.com"), "x", "it has the zone example.org, and the list says example.com"),
    ] {
        assert_eq!(named(text, listed, file), expected, "{text} {listed:?} {file}");
    }
    assert!(named(at, None, "db.example.org").starts_with("its zone may be db.example.org or example.org: "));
    assert!(named(relative, None, "example.org.zone").starts_with("the owner of the SOA record depends on an origin"));
    assert!(named(at, None, "a..b.zone").contains("is no domain name"));
}

#[test]
fn names_before_any_origin_are_below_the_zones_name() {
    let zone = "example.org. 0 IN SOA a. b. 7 1 1 1 1\n@ 0 IN NS ns\nns 0 IN A 192.0.2.1\n";
    let name = name(zone.as_bytes(), None, Path::new("sub.example.org.zone")).unwrap();
    let (facts, records, _) = read_by(zone.as_bytes(), &name.to_string(), PIECE_BYTES);
    assert!(facts.is_ok());
    assert_eq!(records, ["example.org. SOA", "example.org. NS", "ns.example.org. A"]);
}

fn changed(text: &str, steps: u32, share: f64, signed: bool, piece_bytes: usize) -> Read {
    let change = Some(Change { steps, share, signed });
    read_wanted(text.as_bytes(), "example.org", piece_bytes, Wanted { change, include_below: None }, Path::new(""))
}

#[test]
fn a_change_raises_the_serial_and_the_ttls_of_a_share_of_the_rrsets() {
    let before = records_of(&read_by(ZONE.as_bytes(), "example.org", PIECE_BYTES).2);
    let (facts, _, copied) = changed(ZONE, 1, 1.0, false, PIECE_BYTES);
    let facts = facts.unwrap();
    assert_eq!((facts.serial, facts.changed, facts.records), (2_026_112_601, 9, 10));
    let after = records_of(&copied);
    let split = |record: &String| {
        let words: Vec<_> = record.splitn(3, ' ').map(str::to_owned).collect();
        (words[0].clone(), words[1].parse::<u32>().unwrap(), words[2].clone())
    };
    for (old, new) in before.iter().skip(1).map(split).zip(after.iter().skip(1).map(split)) {
        assert_eq!((&old.0, old.1 + 1, &old.2), (&new.0, new.1, &new.2));
    }
    let nothing = changed(ZONE, 1, 0.0, false, PIECE_BYTES);
    assert_eq!(nothing.0.unwrap().changed, 0);
    assert_eq!(records_of(&nothing.2)[1..], before[1..]);
}

#[test]
fn the_share_of_changed_rrsets_is_near_what_was_asked_for() {
    let hosts: String = (0..10_000).map(|number| format!("h{number} 60 A 192.0.2.1\n")).collect();
    let zone = format!("@ 0 IN SOA a. b. 7 1 1 1 1\n@ 0 IN NS a.\n{hosts}");
    let facts = changed(&zone, 1, 0.1, false, PIECE_BYTES).0.unwrap();
    // Six standard deviations of a binomial distribution.
    assert!(facts.changed.abs_diff(1000) < 180, "{}", facts.changed);
    assert_eq!(changed(&zone, 1, 0.1, false, 4096).2, changed(&zone, 1, 0.1, false, PIECE_BYTES).2);
}

#[test]
fn what_a_signer_made_is_changed_only_if_asked_for() {
    let zone =
        "@ 0 IN SOA a. b. 7 1 1 1 1\n@ 0 IN NS a.\n@ 0 IN ZONEMD 7 1 1 (\n{} )\n".replace("{}", &"ab".repeat(48));
    let refused = changed(&zone, 1, 1.0, false, PIECE_BYTES).0.unwrap_err();
    assert!(refused.starts_with("line 3: a ZONEMD record: a next version of a signed zone needs"), "{refused}");
    assert!(changed(&zone, 1, 1.0, true, PIECE_BYTES).0.unwrap().signed);
}

#[test]
fn included_files_are_read_below_the_folder_alone() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let (inside, sub) = (root.join("in"), root.join("in/sub"));
    std::fs::create_dir_all(&sub).unwrap();
    let write = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
    write("in/hosts", "a A 192.0.2.1\n$INCLUDE sub/more deep ; and so on\nb A 192.0.2.2");
    write("in/sub/more", "c A 192.0.2.3\n");
    write("in/again", "$INCLUDE again\n");
    write("in/wrong", "; first\na A 192.0.2.256\n");
    write("secret", "x A 192.0.2.9\n");
    std::os::unix::fs::symlink(root.join("secret"), inside.join("link")).unwrap();
    let head = "$TTL 60\n@ IN SOA a. b. 7 1 1 1 1\n@ IN NS a.\n";
    let path = inside.join("example.org.zone");
    let read = |line: &str, after: &str, below: Option<&Path>| {
        let zone = format!("{head}{line}\n{after}");
        let wanted = Wanted { change: None, include_below: below };
        read_wanted(zone.as_bytes(), "example.org", PIECE_BYTES, wanted, &path)
    };
    let (facts, records, copied) = read("$INCLUDE hosts sub", "  AAAA 2001:db8::1\nz A 192.0.2.5\n", Some(&inside));
    assert_eq!(facts.unwrap().records, 7);
    assert_eq!(
        records[2..],
        [
            "a.sub.example.org. A",
            "c.deep.sub.example.org. A",
            "b.sub.example.org. A",
            "example.org. AAAA",
            "z.example.org. A"
        ]
    );
    let owners: Vec<_> =
        records_of(&copied).iter().map(|record| record.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(owners, records.iter().map(|record| record.split(' ').next().unwrap()).collect::<Vec<_>>());
    for after in ["( A 192.0.2.7 )\n", "(\n) A 192.0.2.7\n", "(q A 192.0.2.7)\n"] {
        let (_, records, copied) = read("$INCLUDE hosts sub", after, Some(&inside));
        assert_eq!(read_by(&copied, "example.org", PIECE_BYTES).1, records, "{after}");
    }
    for (line, below, said) in [
        ("$INCLUDE hosts", None, "line 4: $INCLUDE is refused"),
        ("$INCLUDE ../secret", Some(&*inside), "it lies outside of "),
        ("$INCLUDE link", Some(&*inside), "it lies outside of "),
        ("$INCLUDE /etc/passwd", Some(&*inside), "it lies outside of "),
        ("$INCLUDE sub", Some(&*inside), "it is not a regular file"),
        ("$INCLUDE nothing", Some(&*inside), "No such file"),
        ("$INCLUDE again", Some(&*inside), "more than 8 files within each other"),
        ("$INCLUDE wrong", Some(&*inside), "in/wrong: line 2: "),
    ] {
        let refused = read(line, "", below).0.unwrap_err();
        assert!(refused.contains(said), "{line}: {refused}");
    }
    let without = "@ 0 IN SOA a. b. 7 1 1 1 1\n@ 0 IN NS a.\n$INCLUDE hosts\n";
    let wanted = Wanted { change: None, include_below: Some(&inside) };
    let refused = read_wanted(without.as_bytes(), "example.org", PIECE_BYTES, wanted, &path).0.unwrap_err();
    assert!(refused.starts_with("line 3: $INCLUDE without a $TTL"), "{refused}");
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
        (format!("$TTL 1\n{SOA}@ 0 IN NS a.\n$INCLUDE other.zone\n"), "line 4: $INCLUDE is refused"),
        (format!("{SOA}@ 0 IN A 192.0.2.256\n"), "line 2: "),
        (format!("{SOA}@ 0 IN A (192.0.2.1\n"), "line 2: a parenthesis or a quote is not closed"),
        (
            format!("{SOA}@ 0 IN NS a.\nx TXT \"a\" (\"b\"\ny A 192.0.2.1"),
            "line 3: a parenthesis or a quote is not closed",
        ),
        (format!("$TTL 1\n{SOA}$include (\n\"x\"y )\n"), "line 3: a space is missing after a quote"),
        (format!("$TTL 1\n{SOA}$INCLU\\DE \"x\"y\n"), "line 3: a space is missing after a quote"),
        ("@ 0 IN TXT (a".into(), "line 1: a parenthesis or a quote is not closed"),
        ("@ 0 CH SOA a. b. 7 1 1 1 1\n".into(), "line 1: "),
        (format!("{SOA}@ 0 IN NS a.\na..b 0 IN A 192.0.2.1\n"), "line 3: an empty label in the owner"),
        (format!("{SOA}$ORIGIN a..b\nw.example.org. 0 IN NS x\n"), "line 3: an empty label in the $ORIGIN before it"),
        ("<html>\n".into(), "line 1: "),
    ] {
        let refused = facts(&zone).unwrap_err();
        assert!(refused.starts_with(said), "{zone}: {refused}");
        // The name may be found all the same.
        _ = name(zone.as_bytes(), None, Path::new("example.org.zone"));
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
    let name = "example.org".parse().unwrap();
    let refused = read(ZONE.as_bytes(), Path::new(""), &name, Wanted::default(), |_, _| Ok(()), full).unwrap_err();
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
    let name = "example.org".parse().unwrap();
    let refused = read(Spaces, Path::new(""), &name, Wanted::default(), |_, _| Ok(()), |_| Ok(()));
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("without a line that begins with an owner"), "{refused}");
}

#[test]
fn a_record_in_parentheses_may_have_the_owner_before_it() {
    let zone =
        "@ 0 IN SOA a. b. 7 1 1 1 1\n@ 0 IN NS a.\nw 0 IN A 192.0.2.1\n( 0 IN A 192.0.2.2 )\n(v 0 IN A 192.0.2.3)\n";
    let whole = read_by(zone.as_bytes(), "example.org", PIECE_BYTES);
    assert_eq!(whole.1[2..], ["w.example.org. A", "w.example.org. A", "v.example.org. A"]);
    assert_eq!(read_by(zone.as_bytes(), "example.org", 1), whole);
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

/// However a zone is cut into pieces, copied or changed, it has the same records.
fn is_read_alike(input: &[u8], wanted: Wanted<'_>, path: &Path, random: &mut Random) {
    let read = |piece_bytes| read_wanted(input, "example.org", piece_bytes, wanted, path);
    let whole = read(PIECE_BYTES);
    _ = name(input, None, Path::new("example.org.zone"));
    let change = Some(Change { steps: 1, share: 0.5, signed: true });
    let next = read_wanted(input, "example.org", PIECE_BYTES, Wanted { change, ..wanted }, path);
    let Ok(facts) = &whole.0 else { return };
    assert!(facts.records >= 2 && facts.records == whole.1.len() as u64);
    assert_eq!(facts.bytes, whole.2.len() as u64);
    assert_eq!(read(1 + random.below(200) as usize), whole);
    // The copy has the same records, and so has its copy.
    let again = read_by(&whole.2, "example.org", PIECE_BYTES);
    assert_eq!((&again.0, &again.1), (&whole.0, &whole.1));
    assert_eq!(again.2, whole.2);
    let facts = next.0.expect("what can be read can be changed");
    let changed = read_by(&next.2, "example.org", PIECE_BYTES);
    assert_eq!((changed.0.unwrap().records, changed.1), (facts.records, next.1));
}

#[test]
fn harmed_zones_are_read_alike_in_pieces_or_refused() {
    let included = "$TTL 60\n@ IN SOA a. b. 7 1d 1h 1 1\n  NS a.\n$ORIGIN sub\n$INCLUDE x y\nw (\n) A 192.0.2.1\n";
    fuzz(2_000, &[ZONE.as_bytes().to_vec(), included.into()], |input, random| {
        is_read_alike(input, Wanted::default(), Path::new(""), random);
    });
}

/// An input is a zone, a zero, and what the zone includes as `x`.
#[test]
fn harmed_zones_with_included_files_are_read_alike_in_pieces_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let wanted = Wanted { change: None, include_below: Some(&root) };
    let head = "$TTL 60\n@ IN SOA a. b. 7 1d 1h 1 1\n  NS a.\n";
    let corpus = [
        format!(
            "{head}$INCLUDE x sub ; so\n  AAAA 2001:db8::1\nw (\n) A 192.0.2.1\n\0a A 192.0.2.1\n$TTL 1h\nb TXT \"c\" d"
        ),
        format!("{head}$INCLUDE \"x\"\n$INCLUDE x y\nz A 192.0.2.1\n\0; none\n$ORIGIN o\n  NS b\nq MX 1 (\nm )\n"),
    ];
    let mut written = None;
    fuzz(1_000, &corpus.map(String::into_bytes), |input, random| {
        let mut parts = input.splitn(2, |byte| *byte == 0);
        let (zone, included) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        if written.as_deref() != Some(included) {
            std::fs::write(root.join("x"), included).unwrap();
            written = Some(included.to_vec());
        }
        is_read_alike(zone, wanted, &root.join("example.org.zone"), random);
    });
}
