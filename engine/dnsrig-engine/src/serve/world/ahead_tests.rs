//! Whoever asks what was signed ahead waits for no signature, whichever server is asked.

use std::path::Path;

use domain::base::Rtype;

use super::*;
use crate::{
    dns::dnssec::key::Nonces,
    query_stream::{Record, StreamWriter, Transport},
    serve::world::core::{self, State, Via},
    world::testing::{addresses, world},
};

const SPEC: &str = "
    zones.count = 60
    zones.wildcard = 0.5
    zones.empty_non_terminal = 0.5
    tlds.count = 12
    signing.keys = 2
    signing.share = 0.8
    signing.tlds.nsec3 = 0.5
    signing.tlds.p256 = 0.9
    signing.zones.nsec3 = 0.5
    signing.zones.p256 = 0.9
";

fn query(name: &[u8], rtype: Rtype) -> Vec<u8> {
    let header = [9, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1];
    let opt = [0, 0, 41, 4, 208, 0, 0, 0x80, 0, 0, 0];
    [&header[..], name, &rtype.to_int().to_be_bytes(), &[0, 1], &opt].concat()
}

/// Names that there are and names that there are not, in all zones.
fn questions(world: &World) -> Vec<(Zone, Vec<u8>, Rtype)> {
    let mut found = Vec::new();
    for zone in world.zones() {
        for labels in [&b""[..], b"\x03www", b"\x07no-such", b"\x04deep\x07no-such"] {
            let whole = [labels, &world.name(zone)].concat();
            found.extend([Rtype::A, Rtype::MX].map(|rtype| (zone, whole.clone(), rtype)));
        }
    }
    found
}

fn write(path: &Path, questions: &[(Zone, Vec<u8>, Rtype)]) {
    let mut writer = StreamWriter::create(path).unwrap();
    for (_, name, rtype) in questions {
        let message = &query(name, *rtype);
        writer.push(Record { due_ns: 0, client: 0, transport: Transport::Udp, flags: 0, message }).unwrap();
    }
    writer.finish(0, None::<[std::net::Ipv6Addr; 0]>).unwrap();
}

/// Asks all servers of a zone and of those above it.
fn ask(world: &World, state: &mut State, zone: Zone, name: &[u8], rtype: Rtype) {
    let mut zone = Some(zone);
    while let Some(one) = zone {
        for to in addresses(world, one) {
            let via = Via { destination: Some(to), is_stream: true, has_waited: false };
            core::answer(world, &query(name, rtype), via, state, &mut [0; 65_535]);
        }
        zone = world.parent(one);
    }
}

#[test]
fn who_asks_what_was_signed_ahead_waits_for_no_signature() {
    let (world, directory) = (world(SPEC), tempfile::tempdir().unwrap());
    let (stream, questions) = (directory.path().join("stream"), questions(&world));
    write(&stream, &questions);
    let mut signatures = Signatures::new(Nonces::Random, 64 << 20);
    let ahead = sign(&world, &stream, &mut signatures).unwrap();
    assert!(ahead.questions > questions.len() as u64 && ahead.signatures > 100, "{ahead:?}");
    let mut state = State::new(signatures.clone());
    for (zone, name, rtype) in &questions {
        ask(&world, &mut state, *zone, name, *rtype);
        ask(&world, &mut state, *zone, &world.name(*zone), Rtype::DNSKEY);
    }
    let counts = state.signatures.counts();
    assert!(counts.given > 1000 && counts.made == 0, "{counts:?}");
    let mut cold = State::new(Signatures::new(Nonces::Random, 64 << 20));
    ask(&world, &mut cold, questions[0].0, &questions[0].1, Rtype::A);
    assert!(cold.signatures.counts().made > 0);
}

/// Clients ask for types that most names lack. A resolver with minimised names asks for A or NS of every name on the
/// way before that, and one that validates asks for DS.
#[test]
fn what_a_resolver_asks_before_the_type_itself_is_signed_ahead_too() {
    let (world, directory) = (world(SPEC), tempfile::tempdir().unwrap());
    let stream = directory.path().join("stream");
    let mut questions: Vec<_> = questions(&world).into_iter().step_by(9).collect();
    questions.iter_mut().for_each(|(_, _, rtype)| *rtype = Rtype::CAA);
    write(&stream, &questions);
    let mut signatures = Signatures::new(Nonces::Random, 64 << 20);
    sign(&world, &stream, &mut signatures).unwrap();
    let mut state = State::new(signatures);
    for (zone, name, _) in &questions {
        let name = Labels::read(name).unwrap();
        for labels in zone.depth()..=name.count() {
            for rtype in [Rtype::A, Rtype::NS, Rtype::DS, Rtype::CAA] {
                ask(&world, &mut state, *zone, name.suffix(labels), rtype);
            }
        }
    }
    let counts = state.signatures.counts();
    assert!(counts.given > 1000 && counts.made == 0, "{counts:?}");
}

/// By these names it is looked whether a resolver validates, before clients ask and after that.
#[test]
fn what_every_world_has_below_arpa_is_signed_ahead_whatever_clients_ask() {
    let (world, directory) = (world(SPEC), tempfile::tempdir().unwrap());
    let stream = directory.path().join("stream");
    write(&stream, &[]);
    let mut signatures = Signatures::new(Nonces::Random, 64 << 20);
    sign(&world, &stream, &mut signatures).unwrap();
    let mut state = State::new(signatures);
    for (name, rtype) in [
        ("1.0.18.198.in-addr.arpa", Rtype::PTR),
        ("250.3.19.198.in-addr.arpa", Rtype::PTR),
        ("dnssec-failed.arpa", Rtype::SOA),
        ("arpa", Rtype::DNSKEY),
    ] {
        let name = crate::dns::testing::name(name);
        ask(&world, &mut state, world.deepest(&Labels::read(&name).unwrap()), &name, rtype);
    }
    let counts = state.signatures.counts();
    assert!(counts.given > 10 && counts.made == 0, "{counts:?}");
}
