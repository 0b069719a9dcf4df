//! What a resolver's cache would make of a stream: a simulation that begins empty.
//!
//! A question is answered from the cache while its TTL lasts. Two caches are simulated: one that forgets nothing else,
//! and one of limited size, from which the least recently used entry goes first. A stream has no answers, so names that
//! `generate` made not to exist are known by their form, and TTLs are assumed ([`Ttls`]).

mod answers;

use std::{
    collections::{HashMap, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
};

use dnsrig_dns::query::Asked;
use domain::base::iana::Rtype;
use lru::LruCache;
use serde::Serialize;

use self::answers::{ANSWERS_MAX, Answers};
pub use self::answers::{Found, HitRatio};
use crate::dataset::{
    NEGATIVE_TTL_S, is_missing,
    name_table::{NameTable, ttl_of_s},
};

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

/// What came out where TTLs are known.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Simulated {
    pub entries_limited: usize,
    pub minutes: Vec<Minute>,
    /// Queries for names that do not exist, and for types that their names do not have, as far as is known.
    pub missing: u64,
    pub no_data: u64,
    /// The counts of a minute, for the second half of the stream. So are the fields that follow.
    pub second_half: Minute,
    /// Queries to other servers, without any sent again, and how many of them are for names that do not exist.
    pub upstream: u64,
    pub upstream_missing: u64,
    /// Distinct names, and those that were asked for once; of the first 16,777,216.
    pub names: u64,
    pub names_once: u64,
    /// Names that exist, and which of them were asked for once.
    pub names_existing: u64,
    pub names_existing_once: u64,
}

/// How long answers hold.
#[derive(Clone, Copy)]
pub enum Ttls<'t> {
    /// Drawn for each name, so that all together are as published. Negative answers are as `generate` makes them.
    Drawn,
    /// From a table, if it has the name.
    Table(&'t NameTable),
    /// The same number of seconds for all.
    Same(u32),
}

/// Simulates the caches; without TTLs the one that forgets nothing.
pub struct Simulation<'t> {
    answers: Answers,
    timed: Option<Timed<'t>>,
}

impl<'t> Simulation<'t> {
    /// TTLs are not known, so answers hold forever.
    pub fn forever() -> Self {
        Simulation { answers: Answers::default(), timed: None }
    }

    /// Simulates a stream of this length; also with a cache of `entries_max` entries, if one is given.
    pub fn timed(duration_ns: i64, entries_max: Option<usize>, ttls: Ttls<'t>) -> Self {
        let timed = Timed::new(duration_ns, entries_max, ttls);
        Simulation { answers: Answers::default(), timed: Some(timed) }
    }

    pub fn add(&mut self, client: u32, due_ns: i64, asked: &Asked) -> Found {
        let is_missing = is_missing(&asked.name);
        // NXDOMAIN is of a name, whatever the type (RFC 2308 §5).
        let key = hash(&asked.name, if is_missing { 0 } else { asked.rtype });
        match &mut self.timed {
            None => self.answers.ask(client, key, due_ns, None),
            Some(timed) => {
                let ttl_s = timed.ttl_s(asked, is_missing);
                let found = self.answers.ask(client, key, due_ns, Some(ttl_s));
                let limited = timed.limited.as_mut().is_some_and(|limited| limited.ask(key, due_ns, ttl_s));
                let upstream =
                    if found.holds { 0 } else { 1 + delegations(&mut self.answers, asked, is_missing, due_ns) };
                timed.count_name(client, asked, is_missing);
                timed.count(due_ns, found.holds, limited, is_missing, upstream);
                found
            }
        }
    }

    pub fn questions(&self) -> u64 {
        self.answers.questions()
    }

    pub fn hit_ratios(&self) -> Vec<HitRatio> {
        self.answers.hit_ratios()
    }

    /// The names that were asked for; none where TTLs are not known.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.timed.iter().flat_map(|timed| timed.names.values())
    }

    /// None where TTLs are not known.
    pub fn finish(self) -> Option<Simulated> {
        self.timed.map(Timed::finish)
    }
}

/// How many delegations towards a name have to be asked for first.
fn delegations(answers: &mut Answers, asked: &Asked, is_missing: bool, due_ns: i64) -> u64 {
    let name = &asked.name;
    let mut labels = vec![0];
    while name[labels[labels.len() - 1]] != 0 {
        let at = labels[labels.len() - 1];
        labels.push(at + 1 + usize::from(name[at]));
    }
    // What does not exist is not delegated.
    labels.drain(..usize::from(is_missing));
    let root = labels.pop().unwrap_or(0);
    let ends = labels.iter().rev().take(DELEGATION_LABELS_MAX);
    let mut is_known =
        |at: usize| answers.find(0, hash(&name[at..root], u16::MAX), due_ns, Some(DELEGATION_TTL_S)).holds;
    ends.filter(|at| !is_known(**at)).count() as u64
}

/// A name that was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    pub queries: u32,
    /// Who asked first, and whether for the name of an address.
    pub client: u32,
    pub is_reverse: bool,
    pub is_missing: bool,
}

/// What is known with TTLs only.
struct Timed<'t> {
    ttls: Ttls<'t>,
    /// The number in the table by a name's hash.
    numbers: HashMap<u64, u32>,
    limited: Option<Limited>,
    half_ns: i64,
    names: HashMap<u64, Name>,
    found: Simulated,
}

impl<'t> Timed<'t> {
    fn new(duration_ns: i64, entries_max: Option<usize>, ttls: Ttls<'t>) -> Self {
        let numbers = match ttls {
            Ttls::Table(table) => (0..table.count()).map(|number| (hash(table.wire(number), 0), number)).collect(),
            _ => HashMap::new(),
        };
        Timed {
            ttls,
            numbers,
            limited: entries_max.map(Limited::new),
            half_ns: duration_ns / 2,
            names: HashMap::new(),
            found: Simulated { entries_limited: entries_max.unwrap_or_default(), ..Simulated::default() },
        }
    }

    /// How long an answer is kept.
    fn ttl_s(&mut self, asked: &Asked, is_missing: bool) -> u32 {
        let table = match self.ttls {
            Ttls::Same(ttl_s) => return ttl_s,
            _ if is_missing => return NEGATIVE_TTL_S,
            Ttls::Drawn => return ttl_of_s(&asked.name),
            Ttls::Table(table) => table,
        };
        match self.numbers.get(&hash(&asked.name, 0)) {
            Some(&number) if table.has(number, Rtype::from_int(asked.rtype)) => table.ttl_s(number),
            Some(_) => {
                self.found.no_data += 1;
                NEGATIVE_TTL_S
            }
            None => ttl_of_s(&asked.name),
        }
    }

    fn count_name(&mut self, client: u32, asked: &Asked, is_missing: bool) {
        let of_name = hash(&asked.name, 0);
        if let Some(name) = self.names.get_mut(&of_name) {
            name.queries = name.queries.saturating_add(1);
        } else if self.names.len() < ANSWERS_MAX {
            let is_reverse = asked.rtype == Rtype::PTR.to_int();
            self.names.insert(of_name, Name { queries: 1, client, is_reverse, is_missing });
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

    fn finish(self) -> Simulated {
        let count = |holds: fn(&&Name) -> bool| self.names.values().filter(holds).count() as u64;
        Simulated {
            names: self.names.len() as u64,
            names_once: count(|name| name.queries == 1),
            names_existing: count(|name| !name.is_missing),
            names_existing_once: count(|name| !name.is_missing && name.queries == 1),
            ..self.found
        }
    }
}

/// A cache of limited size: when each entry expires.
struct Limited {
    entries: LruCache<u64, i64>,
    entries_max: usize,
}

impl Limited {
    fn new(entries_max: usize) -> Self {
        Limited { entries: LruCache::unbounded(), entries_max }
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
    use dnsrig_dns::testing::name;

    use super::*;

    const S: i64 = SECOND_NS;

    /// Asks for names at times, in seconds; all TTLs are from a table.
    fn simulate(entries_max: usize, asked: &[(i64, &str, u16)]) -> Simulated {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("names");
        std::fs::write(&path, "a.example\t60\tA,AAAA\nb.example\t600\nc.example\t600\n").unwrap();
        let table = NameTable::read(&path).unwrap();
        let mut simulation = Simulation::timed(100 * S, Some(entries_max), Ttls::Table(&table));
        for (due_s, text, rtype) in asked {
            let asked = Asked { name: name(text).to_ascii_lowercase(), rtype: *rtype, edns: None };
            simulation.add(0, due_s * S, &asked);
        }
        simulation.finish().unwrap()
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

    /// How often a name was asked for, its first client, and its kind.
    #[test]
    fn a_name_has_its_queries_and_who_asked_first() {
        let mut simulation = Simulation::timed(10 * S, None, Ttls::Same(60));
        let asked = [
            (7, "a.example", Rtype::A),
            (8, "A.example", Rtype::AAAA),
            (9, "a.example", Rtype::A),
            (9, "1.2.0.192.in-addr.arpa", Rtype::PTR),
            (7, "x-nx.example", Rtype::A),
        ];
        for (client, text, rtype) in asked {
            let asked = Asked { name: name(text).to_ascii_lowercase(), rtype: rtype.to_int(), edns: None };
            simulation.add(client, 0, &asked);
        }
        let seen = |name: &Name| (name.queries, name.client, name.is_reverse, name.is_missing);
        let mut names: Vec<_> = simulation.names().map(seen).collect();
        names.sort_unstable();
        assert_eq!(names, [(1, 7, false, true), (1, 9, true, false), (3, 7, false, false)]);
        let found = simulation.finish().unwrap();
        assert_eq!((found.names, found.names_once, found.names_existing, found.names_existing_once), (3, 2, 2, 1));
        assert_eq!((found.missing, found.minutes[0].queries, found.minutes[0].hits), (1, 5, 1));
        assert_eq!(Simulation::forever().names().count(), 0);
    }

    /// An answer holds for as long as its TTL says, and not a nanosecond longer.
    #[test]
    fn an_answer_holds_until_its_ttl_ends() {
        let mut simulation = Simulation::timed(120 * S, Some(5), Ttls::Same(60));
        let asked = Asked { name: name("a.example"), rtype: 1, edns: None };
        let due = [0, 60 * S - 1, 60 * S, 120 * S - 1, 120 * S];
        let holds = due.map(|due_ns| simulation.add(0, due_ns, &asked).holds);
        assert_eq!(holds, [false, true, false, true, false]);
        let found = simulation.finish().unwrap();
        let minute = |queries, hits| Minute { queries, hits, hits_limited: hits };
        assert_eq!(found.minutes, [minute(2, 1), minute(2, 1), minute(1, 0)]);
        assert_eq!((found.second_half, found.upstream), (minute(3, 1), 2));
    }

    #[test]
    fn a_first_query_asks_for_delegations_too() {
        // Only the second half: the root's, the delegation's and the answer; then the answer alone; then two.
        let asked = [(50, "www.a.example", 1), (51, "www.a.example", 28), (52, "b.example", 1), (53, "b.example", 1)];
        let found = simulate(10, &asked);
        assert_eq!((found.upstream, found.second_half.hits), (3 + 1 + 2, 1));
    }
}
