//! What a thread counts: queries by second and kind, and queries for names that the world does not have; and the files
//! with these counts.

use std::{
    collections::HashMap,
    mem,
    ops::AddAssign,
    path::Path,
    sync::mpsc::{SyncSender, sync_channel},
};

use dnsrig_core::{
    failure::Failure,
    rows::{self, Columns, RowFile},
    threads::Thread,
};
use dnsrig_dns::{dnssec::signer, name::whole};
use dnsrig_net::connection::limits::Connections;
use domain::base::iana::{Rcode, Rtype};
use serde::Serialize;

use crate::{
    dataset::is_missing,
    world::{faults::Fault, names::Labels},
};

/// A thread remembers so many names that the world does not have.
const UNKNOWN_MAX: usize = 10_000;

/// The label that BIND before 9.20 puts before a minimised name (`_.example.com`, lib/dns/resolver.c): whoever asks
/// with it wants a referral, and no such name.
pub const MINIMISED: &[u8] = b"\x01_";

/// What queries and their answers have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// Labels of the zone that answered: 0 is the root; none: no zone.
    pub level: Option<u8>,
    pub rtype: u16,
    pub rcode: u16,
    /// The fault of the zone that answered, if the server has it.
    pub fault: Option<Fault>,
    pub dnssec_ok: bool,
    pub is_tcp: bool,
    pub is_ipv6: bool,
}

/// Queries of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Volume {
    pub queries: u64,
    /// Bytes of the answers.
    pub bytes: u64,
}

/// The counts of a second.
pub type Second = (i64, HashMap<Kind, Volume>);

/// What a thread counts.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counts {
    /// Queries that were answered.
    pub answers: u64,
    /// Answers by level: of the root, of TLDs, of second-level zones.
    pub by_level: [u64; 3],
    /// Queries for what the server that was asked does not have.
    pub refused: u64,
    /// Queries for names that do not exist, and are not made not to: the world does not cover them. What resolvers ask
    /// by themselves is not among them.
    pub not_in_world: u64,
    /// Queries that fell upon a fault, and those among them that were not answered at all.
    pub faulty: u64,
    pub silent: u64,
    /// Messages that are no query or cannot be read; the latter get FORMERR or NOTIMP.
    pub ignored: u64,
    pub malformed: u64,
    /// Messages to addresses that are no server's.
    pub elsewhere: u64,
    /// Answers that the kernel or the connection did not take, and slow ones for which there was no room to wait.
    pub unsent: u64,
    pub receive_buffer_drops: u64,
    /// Seconds whose counts found no room: the disk was too slow.
    pub seconds_dropped: u64,
    /// Signatures in answers, and how many of them were made for these.
    pub signatures: signer::Counts,
    pub connections: Connections,
    pub cpu_ns: i64,
    #[serde(skip)]
    this_second: HashMap<Kind, Volume>,
    #[serde(skip)]
    second: i64,
    #[serde(skip)]
    pub unknown: HashMap<Box<[u8]>, u64>,
}

impl Counts {
    pub fn count(&mut self, kind: Kind, bytes: usize, name: &Labels) {
        let is_silent = kind.fault == Some(Fault::Silent);
        self.answers += u64::from(!is_silent);
        self.silent += u64::from(is_silent);
        self.faulty += u64::from(kind.fault.is_some());
        let volume = self.this_second.entry(kind).or_default();
        volume.queries += 1;
        volume.bytes += bytes as u64;
        match kind.level {
            Some(level) => self.by_level[usize::from(level)] += 1,
            None => self.refused += 1,
        }
        // PowerDNS Recursor asks for a DS record at the owner of an NSEC3 record, which is no name (RFC 5155 §7.2.8).
        let is_resolvers_own = name.wire().starts_with(MINIMISED) || kind.rtype == Rtype::DS.to_int();
        let is_for_itself = !is_missing(name.wire()) && !is_resolvers_own;
        if kind.rcode == u16::from(Rcode::NXDOMAIN.to_int()) && is_for_itself {
            self.not_in_world += 1;
            if let Some(queries) = self.unknown.get_mut(name.wire()) {
                *queries += 1;
            } else if self.unknown.len() < UNKNOWN_MAX {
                self.unknown.insert(name.wire().into(), 1);
            }
        }
    }

    /// Begins a second, if it is another one: gives the counts of the one before, if there are any.
    pub fn turn(&mut self, second: i64) -> Option<Second> {
        if second == self.second {
            return None;
        }
        let before = mem::replace(&mut self.second, second);
        (!self.this_second.is_empty()).then(|| (before, mem::take(&mut self.this_second)))
    }
}

impl AddAssign<&Counts> for Counts {
    fn add_assign(&mut self, other: &Counts) {
        self.answers += other.answers;
        self.by_level.iter_mut().zip(other.by_level).for_each(|(sum, more)| *sum += more);
        self.refused += other.refused;
        self.not_in_world += other.not_in_world;
        self.faulty += other.faulty;
        self.silent += other.silent;
        self.ignored += other.ignored;
        self.malformed += other.malformed;
        self.elsewhere += other.elsewhere;
        self.unsent += other.unsent;
        self.receive_buffer_drops += other.receive_buffer_drops;
        self.seconds_dropped += other.seconds_dropped;
        self.signatures.given += other.signatures.given;
        self.signatures.made += other.signatures.made;
        self.signatures.forgotten += other.signatures.forgotten;
        self.connections += other.connections;
        self.cpu_ns += other.cpu_ns;
        other.unknown.iter().for_each(|(name, queries)| *self.unknown.entry(name.clone()).or_default() += queries);
    }
}

pub const SECONDS: &str = "queries.arrow";
pub const UNKNOWN: &str = "not-in-world.arrow";

/// The most seconds whose counts wait for the disk.
const WAITING_MAX: usize = 256;

const LEVELS: [&str; 4] = ["root", "tld", "second", "none"];

/// The thread that writes rows while the world answers.
pub struct Writer {
    thread: Thread<Result<(), Failure>>,
}

type Row = (i64, Kind, Volume);

impl Writer {
    /// Makes the file; the counts of seconds go where the sender leads. All senders gone, it ends.
    pub fn start(path: &Path) -> Result<(Self, SyncSender<Second>), Failure> {
        let mut file = RowFile::create(path, columns())?;
        let (sender, seconds) = sync_channel::<Second>(WAITING_MAX);
        let thread = Thread::start("rows", move || {
            for (second, kinds) in seconds {
                let mut rows: Vec<Row> = kinds.into_iter().map(|(kind, volume)| (second, kind, volume)).collect();
                rows.sort_by_key(|(_, kind, _)| *kind);
                file.write(&rows)?;
            }
            file.finish()
        })?;
        Ok((Writer { thread }, sender))
    }

    pub fn finish(self) -> Result<(), Failure> {
        self.thread.join()?
    }
}

fn columns() -> Columns<'static, Row> {
    Columns::default()
        .value("time_ns", |(second, ..): &Row| second * 1_000_000_000)
        .word("level", LEVELS, |(_, kind, _)| kind.level.map_or(3, usize::from))
        .value("rtype", |(_, kind, _)| kind.rtype)
        .value("rcode", |(_, kind, _)| kind.rcode)
        .word("fault", std::iter::once("none").chain(Fault::ALL.map(Fault::name)), |(_, kind, _)| {
            kind.fault.map_or(0, |fault| 1 + fault as usize)
        })
        .value("dnssec_ok", |(_, kind, _)| kind.dnssec_ok)
        .word("transport", ["udp", "tcp"], |(_, kind, _)| usize::from(kind.is_tcp))
        .word("family", ["ipv4", "ipv6"], |(_, kind, _)| usize::from(kind.is_ipv6))
        .value("queries", |(.., volume)| volume.queries)
        .value("bytes", |(.., volume)| volume.bytes)
}

/// Writes the names that the world does not have, the most frequent first.
pub fn write_unknown(path: &Path, counts: &Counts) -> Result<(), Failure> {
    let mut unknown: Vec<(&[u8], u64)> = counts.unknown.iter().map(|(name, queries)| (&**name, *queries)).collect();
    unknown.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
    let columns = Columns::default()
        .value("name", |(name, _): &(&[u8], u64)| whole(name).to_string())
        .value("queries", |(_, queries)| *queries);
    rows::write(path, columns, unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CONNECTIONS, assert_adds_each};

    #[test]
    fn counts_of_threads_are_added() {
        let name = || -> Box<[u8]> { b"\x01a\0"[..].into() };
        let counts = Counts {
            answers: 1,
            by_level: [2, 3, 4],
            refused: 5,
            not_in_world: 6,
            faulty: 7,
            silent: 8,
            ignored: 9,
            malformed: 10,
            elsewhere: 11,
            unsent: 12,
            receive_buffer_drops: 13,
            seconds_dropped: 14,
            signatures: signer::Counts { given: 15, made: 16, forgotten: 17 },
            connections: CONNECTIONS,
            cpu_ns: 18,
            unknown: [(name(), 5)].into(),
            ..Counts::default()
        };
        assert_adds_each(&counts, |sum, more| *sum += more);
        let mut sum = counts.clone();
        sum += &Counts { unknown: [(name(), 2), (b"\0"[..].into(), 1)].into(), ..Counts::default() };
        assert_eq!(sum.unknown, [(name(), 7), (b"\0"[..].into(), 1)].into());
    }

    const KIND: Kind = Kind {
        level: Some(2),
        rtype: Rtype::A.to_int(),
        rcode: 0,
        fault: None,
        dnssec_ok: false,
        is_tcp: false,
        is_ipv6: false,
    };
    const NXDOMAIN: Kind = Kind { rcode: 3, ..KIND };

    /// Counts one query.
    fn counted(kind: Kind, name: &str) -> Counts {
        let mut counts = Counts::default();
        counts.count(kind, 100, &Labels::parse(name).unwrap());
        counts
    }

    #[test]
    fn an_answer_belongs_to_the_level_of_its_zone() {
        for (level, by_level, refused) in
            [(Some(0), [1, 0, 0], 0), (Some(1), [0, 1, 0], 0), (Some(2), [0, 0, 1], 0), (None, [0; 3], 1)]
        {
            let counts = counted(Kind { level, ..KIND }, "a.example");
            assert_eq!((counts.answers, counts.by_level, counts.refused), (1, by_level, refused));
        }
        for (fault, expected) in [(None, (1, 0, 0)), (Some(Fault::Lame), (1, 1, 0)), (Some(Fault::Silent), (0, 1, 1))] {
            let Counts { answers, faulty, silent, .. } = counted(Kind { fault, ..KIND }, "a.example");
            assert_eq!((answers, faulty, silent), expected, "{fault:?}");
        }
    }

    #[test]
    fn a_name_is_not_in_the_world_unless_that_is_meant_or_a_resolvers_own_question() {
        for (kind, name, expected) in [
            (NXDOMAIN, "No.Such.Example", 1),
            (KIND, "no.such.example", 0),
            (NXDOMAIN, "no-nx.example", 0),
            (NXDOMAIN, "1.0.0.10.in-addr.arpa", 0),
            (NXDOMAIN, "_.example", 0),
            (Kind { rtype: Rtype::DS.to_int(), ..NXDOMAIN }, "no.such.example", 0),
        ] {
            let counts = counted(kind, name);
            assert_eq!((counts.not_in_world, counts.unknown.len() as u64), (expected, expected), "{name}");
        }
        let mut counts = Counts::default();
        let name = |number: usize| Labels::parse(&format!("a{number}.example")).unwrap();
        (0..UNKNOWN_MAX + 2).for_each(|number| counts.count(NXDOMAIN, 0, &name(number)));
        counts.count(NXDOMAIN, 0, &name(0));
        assert_eq!((counts.not_in_world, counts.unknown.len()), (UNKNOWN_MAX as u64 + 3, UNKNOWN_MAX));
        assert_eq!([0, 1].map(|number| counts.unknown[name(number).wire()]), [2, 1]);
    }

    #[test]
    fn each_second_has_the_queries_of_each_kind() {
        let mut counts = Counts::default();
        let name = Labels::parse("a.example").unwrap();
        assert!(counts.turn(7).is_none(), "nothing is left");
        for (kind, bytes) in [(KIND, 10), (NXDOMAIN, 20), (KIND, 30)] {
            counts.count(kind, bytes, &name);
        }
        assert!(counts.turn(7).is_none(), "it is the same second");
        let (second, volumes) = counts.turn(9).unwrap();
        let of = |kind: Kind| (volumes[&kind].queries, volumes[&kind].bytes);
        assert_eq!((second, volumes.len(), of(KIND), of(NXDOMAIN)), (7, 2, (2, 40), (1, 20)));
        assert!(counts.turn(10).is_none(), "they are given once");
    }
}
