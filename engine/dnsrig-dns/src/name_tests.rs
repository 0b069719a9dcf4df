//! Names, compared with a reading of each by itself and with another library.

use dnsrig_testing::inputs;
use domain::{
    base::{ParsedName, ToName},
    dep::octseq::Parser,
};
use proptest::{collection::vec, prelude::*};

use super::*;
use crate::testing::name;

/// What [`Owners::place`] says, found without remembering anything.
fn place(message: &[u8], at: usize, zone: &[u8]) -> Result<(Place, usize), ParseError> {
    let mut owner = Vec::new();
    let behind = expand(message, at, &mut owner)?;
    let labels = |name: &[u8]| {
        let mut labels = Vec::new();
        super::labels(name, 0, |label| labels.push(label.to_ascii_lowercase())).expect("it is a name");
        labels
    };
    let place = match (labels(&owner), labels(zone)) {
        (owner, zone) if owner == zone => Place::Apex,
        (owner, zone) if owner.ends_with(&zone) => Place::Below,
        _ => Place::Outside,
    };
    Ok((place, behind))
}

#[test]
fn the_root_is_a_zone_too() {
    let message = [&[0][..], &name("www.example"), &[0xc0, 5]].concat();
    let mut owners = Owners::new(&[0]);
    assert_eq!(owners.place(&message, 0), Ok((Place::Apex, 1)));
    assert_eq!(owners.place(&message, 1), Ok((Place::Below, 14)));
    assert_eq!(owners.place(&message, 14), Ok((Place::Below, 16)));
}

#[test]
fn a_name_is_compared_label_by_label() {
    let zone = name("zone.example");
    assert!(ends_with(&name("ZONE.example"), &zone) && ends_with(&name("a.zone.EXAMPLE"), &zone));
    // The bytes equal the zone's name, but the first is part of a label: `\\004zone` ends the label before it.
    let inside = b"\x08abc\x04zone\x07example\x00";
    assert!(inside.ends_with(&zone) && !ends_with(inside, &zone));
    assert_eq!(equals(&zone, 0, &name("Zone.Example")), Ok((true, 14)));
    for other in ["example", "a.zone.example", "zone.exampl", "zone", "."] {
        assert_eq!(equals(&zone, 0, &name(other)).map(|(same, _)| same), Ok(false), "{other}");
        assert_eq!(equals(&name(other), 0, &zone).map(|(same, _)| same), Ok(false), "{other}");
    }
}

/// A name of this number of bytes, in labels that are as long as they can be.
fn long(bytes: usize) -> Vec<u8> {
    let mut name = Vec::new();
    while name.len() + 1 < bytes {
        let label = (bytes - 1 - name.len()).min(1 + LABEL_BYTES_MAX) - 1;
        name.push(label as u8);
        name.resize(name.len() + label, b'a');
    }
    name.push(0);
    name
}

#[test]
fn a_name_has_at_most_255_bytes() {
    for (bytes, is_name) in [(254, true), (NAME_BYTES_MAX, true), (256, false), (257, false)] {
        let message = [&b"abc"[..], &long(bytes), b"d"].concat();
        let expected = if is_name { Ok(3 + bytes) } else { Err(ParseError::Malformed) };
        assert_eq!(skip(&message, 3), expected, "{bytes}");
        assert_eq!(skip_plain(&message, 3), expected, "{bytes}");
        assert_eq!(expand(&message, 3, &mut Vec::new()), expected, "{bytes}");
        assert_eq!(Owners::new(&[0]).place(&message, 3).map(|(_, behind)| behind), expected, "{bytes}");
    }
}

#[test]
fn pointers_in_a_row_have_an_end() {
    let mut message = vec![0];
    for number in 0..=POINTERS_MAX as u16 {
        let target = if number == 0 { 0 } else { 2 * number - 1 };
        message.extend((0xc000 | target).to_be_bytes());
    }
    let last = message.len() - 2;
    assert_eq!(labels(&message, last - 2, |_| ()), Ok(last));
    assert_eq!(labels(&message, last, |_| ()), Err(ParseError::PointerLoop));
}

/// Bytes with names in them: labels from a few, ends, pointers to anywhere near, and anything.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    let label = prop_oneof![Just("a"), Just("A"), Just("z"), Just("zz")];
    let piece = prop_oneof![
        4 => label.prop_map(|label| [&[label.len() as u8], label.as_bytes()].concat()),
        3 => Just(vec![0]),
        3 => (0..80_u8).prop_map(|target| vec![0xc0, target]),
        1 => vec(any::<u8>(), 1..3),
    ];
    vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(inputs(2000))]

    /// Whatever was asked for before, the place of a name is the one it has by itself.
    #[test]
    fn what_is_remembered_is_right(message in messages(), zone in prop_oneof![
        Just("."), Just("z."), Just("a.z."), Just("zz.a.")
    ], skipped in vec(any::<bool>(), 120)) {
        let zone = name(zone);
        let mut owners = Owners::new(&zone);
        // Names are asked for from front to back, some not at all.
        for at in (1..message.len()).filter(|at| !skipped[at % 120]) {
            prop_assert_eq!(owners.place(&message, at), place(&message, at, &zone), "at {}", at);
        }
    }

    /// Names are read as another library reads them, and what is refused here is refused there, but for pointers into
    /// the very name that they end: it follows them up to 255 times.
    #[test]
    fn another_library_reads_the_same_names(message in messages()) {
        for at in 0..message.len() {
            let mut ours = Vec::new();
            let behind = expand(&message, at, &mut ours);
            let mut parser = Parser::from_ref(&message[..]);
            parser.seek(at).unwrap();
            let theirs = ParsedName::parse(&mut parser);
            match (behind, theirs) {
                (Ok(behind), Ok(theirs)) => {
                    prop_assert_eq!(ours, theirs.to_vec().as_slice().to_vec());
                    prop_assert_eq!(behind, parser.pos());
                    prop_assert_eq!(skip(&message, at), Ok(behind));
                }
                (Err(_), Err(_)) | (Err(ParseError::PointerLoop), _) => (),
                (ours, theirs) => prop_assert!(false, "at {at}: {ours:?} here, {theirs:?} there"),
            }
        }
    }
}
