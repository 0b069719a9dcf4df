//! What a resolver's cache would make of a stream: a simulation that begins empty.
//!
//! A question is answered from the cache while its TTL lasts. Two caches are simulated: one that forgets nothing else,
//! and one of so many entries, of which the least recently used goes first. A stream has no answers, so names that
//! `generate` made not to exist are known by their form, and TTLs by a table, or as published over all names.

use std::{
    collections::{HashMap, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
};

use domain::base::iana::Rtype;
use lru::LruCache;
use serde::Serialize;

use crate::dns::{
    dataset::{NEGATIVE_TTL_S, is_missing},
    header::HEADER_BYTES,
    name,
    name_table::{NameTable, ttl_of_s},
    stream::Record,
};

/// The cache that forgets nothing has room for so many entries, in about 1.5 GB.
const ENTRIES_MAX: usize = 1 << 24;

/// The TTL of delegations: two days at the root and in .com.
const DELEGATION_TTL_S: u32 = 172_800;

/// Delegations are below the root and below its children.
const DELEGATION_LABELS_MAX: usize = 2;

const MINUTE_NS: i64 = 60_000_000_000;
const SECOND_NS: i64 = 1_000_000_000;

/// A minute of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Minute {
    pub queries: u64,
    /// Answered by the cache that forgets nothing before its time.
    pub hits: u64,
    /// Answered by the one of limited size.
    pub hits_limited: u64,
}

/// What came out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Simulated {
    pub entries_limited: usize,
    pub minutes: Vec<Minute>,
    /// Queries for names that do not exist, and for types that their names do not have, as far as is known.
    pub missing: u64,
    pub no_data: u64,
    /// What follows is of the second half of the stream, as a minute has it.
    pub second_half: Minute,
    /// Queries to other servers, without any sent again, and those of them for names that do not exist.
    pub upstream: u64,
    pub upstream_missing: u64,
    /// Distinct names, and those that were asked for once; of the first 16,777,216.
    pub names: u64,
    pub names_once: u64,
    /// Of those that exist.
    pub names_existing: u64,
    pub names_existing_once: u64,
}

/// A name that was asked for.
struct Name {
    is_once: bool,
    is_missing: bool,
}

/// Simulates both caches.
pub struct Simulation<'t> {
    table: Option<&'t NameTable>,
    /// The number in the table by a name's hash.
    numbers: HashMap<u64, u32>,
    unlimited: Cache,
    limited: Cache,
    half_ns: i64,
    names: HashMap<u64, Name>,
    found: Simulated,
}

impl<'t> Simulation<'t> {
    /// Of a stream of so long, with a limited cache of so many entries, and the TTLs of a table.
    pub fn new(duration_ns: i64, entries_max: usize, table: Option<&'t NameTable>) -> Self {
        let numbers =
            |table: &NameTable| (0..table.count()).map(|number| (hash(table.wire(number), 0), number)).collect();
        Simulation {
            table,
            numbers: table.map(numbers).unwrap_or_default(),
            unlimited: Cache::new(ENTRIES_MAX),
            limited: Cache::new(entries_max),
            half_ns: duration_ns / 2,
            names: HashMap::new(),
            found: Simulated { entries_limited: entries_max, ..Simulated::default() },
        }
    }

    pub fn add(&mut self, record: &Record) {
        let message = record.message;
        let Ok(behind) = name::skip_plain(message, HEADER_BYTES) else { return };
        let Some(&[high, low]) = message.get(behind..).and_then(<[u8]>::first_chunk) else { return };
        let rtype = u16::from_be_bytes([high, low]);
        let asked = message[HEADER_BYTES..behind].to_ascii_lowercase();
        let is_missing = is_missing(&asked);
        let of_name = hash(&asked, 0);
        self.count_name(of_name, is_missing);
        // NXDOMAIN is of a name, whatever the type (RFC 2308 §5).
        let key = if is_missing { of_name } else { hash(&asked, rtype) };
        let ttl_s = if is_missing { NEGATIVE_TTL_S } else { self.ttl_s(&asked, of_name, rtype) };
        let hit = self.unlimited.ask(key, record.due_ns, ttl_s);
        let hit_limited = self.limited.ask(key, record.due_ns, ttl_s);
        let upstream = if hit { 0 } else { 1 + self.delegations(&asked, is_missing, record.due_ns) };
        self.count(record.due_ns, hit, hit_limited, is_missing, upstream);
    }

    /// How long an answer about a name that exists is kept.
    fn ttl_s(&mut self, asked: &[u8], of_name: u64, rtype: u16) -> u32 {
        match (self.table, self.numbers.get(&of_name)) {
            (Some(table), Some(&number)) if table.has(number, Rtype::from_int(rtype)) => table.ttl_s(number),
            (Some(_), Some(_)) => {
                self.found.no_data += 1;
                NEGATIVE_TTL_S
            }
            _ => ttl_of_s(asked),
        }
    }

    /// How many delegations towards a name have to be asked for first.
    fn delegations(&mut self, asked: &[u8], is_missing: bool, due_ns: i64) -> u64 {
        let mut labels = vec![0];
        while asked[labels[labels.len() - 1]] != 0 {
            let at = labels[labels.len() - 1];
            labels.push(at + 1 + usize::from(asked[at]));
        }
        // What does not exist is not delegated.
        labels.drain(..usize::from(is_missing));
        let root = labels.pop().unwrap_or(0);
        let ends = labels.iter().rev().take(DELEGATION_LABELS_MAX);
        ends.filter(|at| !self.unlimited.ask(hash(&asked[**at..root], u16::MAX), due_ns, DELEGATION_TTL_S)).count()
            as u64
    }

    fn count_name(&mut self, of_name: u64, is_missing: bool) {
        if let Some(name) = self.names.get_mut(&of_name) {
            name.is_once = false;
        } else if self.names.len() < ENTRIES_MAX {
            self.names.insert(of_name, Name { is_once: true, is_missing });
        }
    }

    fn count(&mut self, due_ns: i64, hit: bool, hit_limited: bool, is_missing: bool, upstream: u64) {
        let found = &mut self.found;
        let minute = (due_ns / MINUTE_NS) as usize;
        if minute >= found.minutes.len() {
            found.minutes.resize(minute + 1, Minute::default());
        }
        let add = |minute: &mut Minute| {
            minute.queries += 1;
            minute.hits += u64::from(hit);
            minute.hits_limited += u64::from(hit_limited);
        };
        add(&mut found.minutes[minute]);
        found.missing += u64::from(is_missing);
        if due_ns >= self.half_ns {
            add(&mut found.second_half);
            found.upstream += upstream;
            found.upstream_missing += u64::from(is_missing && !hit);
        }
    }

    pub fn finish(self) -> Simulated {
        let count = |holds: fn(&&Name) -> bool| self.names.values().filter(holds).count() as u64;
        Simulated {
            names: self.names.len() as u64,
            names_once: count(|name| name.is_once),
            names_existing: count(|name| !name.is_missing),
            names_existing_once: count(|name| !name.is_missing && name.is_once),
            ..self.found
        }
    }
}

/// A cache: when each entry expires.
struct Cache {
    entries: LruCache<u64, i64>,
    entries_max: usize,
}

impl Cache {
    fn new(entries_max: usize) -> Self {
        Cache { entries: LruCache::unbounded(), entries_max }
    }

    /// Whether there is an entry; if not, there is one now.
    fn ask(&mut self, key: u64, now_ns: i64, ttl_s: u32) -> bool {
        let expires_ns = now_ns.saturating_add(i64::from(ttl_s) * SECOND_NS);
        if let Some(entry) = self.entries.get_mut(&key) {
            let hit = *entry > now_ns;
            if !hit {
                *entry = expires_ns;
            }
            return hit;
        }
        if self.entries.len() >= self.entries_max {
            self.entries.pop_lru();
        }
        self.entries.put(key, expires_ns);
        false
    }
}

fn hash(name: &[u8], rtype: u16) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, rtype).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dns::{stream::Transport, testing::name};

    const S: i64 = SECOND_NS;

    /// Asks for names at times, in seconds; all TTLs are those of a table.
    fn simulate(entries_max: usize, asked: &[(i64, &str, u16)]) -> Simulated {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("names");
        std::fs::write(&path, "a.example\t60\tA,AAAA\nb.example\t600\nc.example\t600\n").unwrap();
        let table = NameTable::read(&path).unwrap();
        let mut simulation = Simulation::new(100 * S, entries_max, Some(&table));
        for (due_s, text, rtype) in asked {
            let message = [&[0; HEADER_BYTES][..], &name(text), &rtype.to_be_bytes(), &[0, 1]].concat();
            let record =
                Record { due_ns: due_s * S, client: 0, transport: Transport::Udp, flags: 0, message: &message };
            simulation.add(&record);
        }
        simulation.finish()
    }

    fn hits(found: &Simulated) -> Vec<(u64, u64)> {
        found.minutes.iter().map(|minute| (minute.hits, minute.hits_limited)).collect()
    }

    #[test]
    fn an_answer_is_kept_for_its_ttl() {
        let found =
            simulate(10, &[(0, "a.example", 1), (59, "A.example", 1), (59, "a.example", 28), (60, "a.example", 1)]);
        assert_eq!(hits(&found), [(1, 1), (0, 0)]);
        assert_eq!((found.names, found.names_once), (1, 0));
    }

    #[test]
    fn a_full_cache_forgets_what_was_asked_longest_ago() {
        let asked = [
            (0, "b.example", 1),
            (1, "c.example", 1),
            (2, "b.example", 1),
            (3, "a.example", 1),
            (4, "b.example", 1),
            (5, "c.example", 1),
        ];
        assert_eq!(hits(&simulate(2, &asked)), [(3, 2)]);
    }

    #[test]
    fn what_does_not_exist_is_one_entry_for_all_types() {
        let found = simulate(10, &[(0, "x-nx.example", 1), (1, "x-nx.example", 28), (301, "x-nx.example", 1)]);
        assert_eq!(hits(&found)[0], (1, 1));
        assert_eq!(found.missing, 3);
        assert_eq!((found.upstream, found.upstream_missing, found.second_half.queries), (1, 1, 1));
    }

    #[test]
    fn a_type_that_a_name_does_not_have_is_kept_as_one() {
        let found = simulate(10, &[(0, "a.example", 15), (299, "a.example", 15), (300, "a.example", 15)]);
        assert_eq!(found.no_data, 3);
        assert_eq!(found.minutes.iter().map(|minute| minute.hits).collect::<Vec<_>>(), [0, 0, 0, 0, 1, 0]);
    }

    #[test]
    fn a_first_query_asks_for_delegations_too() {
        // Of the second half only: the root's, the delegation's and the answer; then the answer alone; then two.
        let asked = [(50, "www.a.example", 1), (51, "www.a.example", 28), (52, "b.example", 1), (53, "b.example", 1)];
        let found = simulate(10, &asked);
        assert_eq!((found.upstream, found.second_half.hits), (3 + 1 + 2, 1));
    }
}
