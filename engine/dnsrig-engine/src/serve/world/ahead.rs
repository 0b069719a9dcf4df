//! Signatures made before they are asked for.
//!
//! A real server has its signatures when it starts; a world makes them when someone asks, and one of RSA takes about a
//! millisecond. A resolver's clients would wait for that. So each question of a stream is put to every zone that a
//! resolver asks on its way, before anybody can ask.

use std::{collections::HashSet, path::Path};

use domain::base::Rtype;
use serde::Serialize;

use super::{counts::MINIMISED, reply::Reply, search, secure};
use crate::{
    base::{failure::Failure, hash::fnv1a},
    dns::query::Asked,
    query_stream::StreamReader,
    world::{World, Zone, labels::Labels, signatures::Signatures},
};

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ahead {
    /// Different questions.
    questions: u64,
    /// As far as there is room to keep them.
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
        secure::add(self.world, &mut self.reply, self.signatures);
    }
}

#[cfg(test)]
#[path = "ahead_tests.rs"]
mod tests;
