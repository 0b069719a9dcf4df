//! Signatures made before they are asked for.
//!
//! A real server has its signatures when it starts; a world makes them when someone asks, and one of RSA takes about a
//! millisecond. A resolver's clients would wait for that. So each question of a stream is put to every zone that a
//! resolver asks on its way, before anybody can ask.

use std::{collections::HashSet, path::Path};

use dnsrig_core::{failure::Failure, hash::fnv1a};
use dnsrig_dns::query::Asked;
use domain::base::Rtype;
use serde::Serialize;

use super::{
    counts::MINIMISED,
    reply::{self, Reply},
    search,
};
use crate::{
    query_stream::StreamReader,
    world::{World, Zone, names::Labels, signing::Signatures},
};

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ahead {
    /// Different questions.
    questions: u64,
    /// Signatures that were made, as far as there is room to keep them.
    signatures: u64,
}

/// Makes the signatures that a resolver is given on its way to the answers of a stream.
pub fn sign(world: &World, stream: &Path, signatures: &mut Signatures) -> Result<Ahead, Failure> {
    let mut resolution = Resolution::new(world, signatures);
    let mut reader = StreamReader::open(stream)?;
    while let Some(record) = reader.next()? {
        let Some(asked) = Asked::read(record.message) else { continue };
        if let Some(name) = Labels::read(&asked.name) {
            resolution.resolve(name, Rtype::from_int(asked.rtype));
        }
    }
    for (name, rtype) in below_arpa(world) {
        resolution.resolve(name, rtype);
    }
    let questions = resolution.questions.len() as u64;
    Ok(Ahead { questions, signatures: signatures.take_counts().made })
}

/// What every world has below `arpa`: the check that a resolver validates asks there, whatever clients ask. One name
/// is asked for each wildcard.
fn below_arpa(world: &World) -> Vec<(Labels, Rtype)> {
    let mut found = Vec::new();
    for zone in world.zones().filter(|zone| zone.depth() == 2) {
        let apex = world.name(zone);
        if apex.ends_with(b"\x04arpa\0") {
            found.extend(Labels::read(&apex).map(|name| (name, Rtype::SOA)));
            world.names(zone, &mut |relative, _| {
                let below = relative.strip_prefix(b"\x01*").map(|below| [b"\x010", below, &apex].concat());
                found.extend(below.and_then(|name| Some((Labels::read(&name)?, Rtype::PTR))));
            });
        }
    }
    found
}

/// Goes the ways of a resolver with an empty cache, but each only once.
struct Resolution<'w> {
    world: &'w World,
    signatures: &'w mut Signatures,
    reply: Reply,
    /// Hashes of the questions so far.
    questions: HashSet<u64>,
    zones: HashSet<Zone>,
    /// Questions that an answer leads to.
    next: Vec<(Labels, Rtype)>,
}

impl<'w> Resolution<'w> {
    fn new(world: &'w World, signatures: &'w mut Signatures) -> Self {
        let reply = Reply::default();
        Resolution { world, signatures, reply, questions: HashSet::new(), zones: HashSet::new(), next: Vec::new() }
    }

    /// Asks a question, and all that its answers lead to.
    fn resolve(&mut self, name: Labels, rtype: Rtype) {
        self.next.push((name, rtype));
        while let Some((name, rtype)) = self.next.pop() {
            if self.questions.insert(fnv1a(name.wire()) ^ u64::from(rtype.to_int()).rotate_left(48)) {
                self.descend(&name, rtype);
            }
        }
    }

    /// Asks all zones on the way from a name's own to the root.
    fn descend(&mut self, name: &Labels, rtype: Rtype) {
        let mut zone = self.world.deepest(name);
        self.ask(zone, name, rtype);
        let aliases = self.reply.answer.iter().filter(|set| set.rtype == Rtype::CNAME && rtype != Rtype::CNAME);
        self.next.extend(aliases.filter_map(|set| Some((Labels::read(set.data().next()?)?, rtype))));
        // A resolver with minimised names asks about each name on the way, and some about the whole one before they ask
        // for its type (RFC 9156 §3): for A or NS. One that validates asks for DS, which no zone has for its own names:
        // that denial is the same for every type that a name lacks.
        for labels in zone.depth()..=name.count() {
            let suffix = name.suffix(labels);
            self.ask_about(zone, suffix, Rtype::A);
            self.ask_about(zone, suffix, Rtype::DS);
            if (zone.depth() + 1..name.count()).contains(&labels) {
                self.ask_about(zone, &[MINIMISED, suffix].concat(), Rtype::A);
            }
        }
        while let Some(parent) = self.world.parent(zone) {
            self.lead_to(zone);
            self.ask(parent, name, rtype);
            zone = parent;
        }
        self.lead_to(zone);
    }

    /// What is asked about a zone itself: its keys, whether its parent vouches for them, and where its servers are.
    fn lead_to(&mut self, zone: Zone) {
        if !self.zones.insert(zone) {
            return;
        }
        let name = self.world.name(zone);
        self.ask_about(zone, &name, Rtype::DNSKEY);
        self.ask_about(zone, &name, Rtype::NS);
        if let Some(parent) = self.world.parent(zone) {
            self.ask_about(parent, &name, Rtype::DS);
        }
        let next = &mut self.next;
        self.world.name_servers(zone, &mut |server, _| {
            let server = Labels::read(server);
            next.extend(server.iter().flat_map(|server| [Rtype::A, Rtype::AAAA].map(|rtype| (server.clone(), rtype))));
        });
    }

    fn ask_about(&mut self, zone: Zone, name: &[u8], rtype: Rtype) {
        if let Some(name) = Labels::read(name) {
            self.ask(zone, &name, rtype);
        }
    }

    fn ask(&mut self, zone: Zone, name: &Labels, rtype: Rtype) {
        self.reply.clear();
        self.reply.zone = Some(zone);
        search::answer_from(self.world, zone, name, rtype, &mut self.reply);
        reply::add(self.world, &mut self.reply, self.signatures);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use dnsrig_dns::dnssec::key::Nonces;
    use domain::base::Rtype;

    use super::*;
    use crate::{
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
                let via = Via { destination: Some(to), is_tcp: true, has_waited: false };
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

    /// Clients ask for types that most names lack. A resolver with minimised names asks for A or NS of every name on
    /// the way before that, and one that validates asks for DS.
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
            let name = dnsrig_dns::testing::name(name);
            ask(&world, &mut state, world.deepest(&Labels::read(&name).unwrap()), &name, rtype);
        }
        let counts = state.signatures.counts();
        assert!(counts.given > 10 && counts.made == 0, "{counts:?}");
    }
}
