//! What each client saw: counts in an interval, counts and latencies over a whole replay, and whether the server served
//! all alike. No clock, no socket.
//!
//! All memory for a replay is taken, and touched, at the start: 56 bytes a client and thread, and 192 more where
//! percentiles are wanted. For 100,000 clients that is 5.6 MB and 19.2 MB.

use dnsrig_core::stats::{Distribution, TIME_MAX_NS, Times, times};
use dnsrig_net::connection::CloseReason;

use super::{
    classes::Classes as ClientClasses,
    counter::{Counter, counters},
    expect::judge::WrongKind,
};
use serde::Serialize;
use std::{hint::black_box, iter};

/// The number of classes of latencies in an octave. They have equal widths: a percentile is at most a quarter too high.
const CLASSES_PER_OCTAVE: u32 = 4;

/// The first class ends here, in ns: no answer over a network comes sooner.
const FIRST_OCTAVE: u32 = 12;

/// Up to 2^36 ns, 69 s: longer than any time-out.
const OCTAVES: u32 = 24;

const CLASSES: usize = (OCTAVES * CLASSES_PER_OCTAVE) as usize;

/// The response codes that have a count of their own (RFC 6895 §2.3).
const SERVFAIL: u8 = 2;
const NXDOMAIN: u8 = 3;

/// How a query ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Answered {
        rcode: u8,
        truncated: bool,
        authenticated: bool,
    },
    /// The answer is not what was expected.
    Wrong {
        kind: WrongKind,
        rcode: u8,
        truncated: bool,
        authenticated: bool,
    },
    Timeout,
    Lost(CloseReason),
}

/// What one client saw, in an interval or over all intervals. Latencies count from the due time, and queries without an
/// answer count at the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCounts {
    pub answered: u32,
    pub unanswered: u32,
    pub sum_ns: i64,
    pub max_ns: i64,
    /// The shortest time from sending to an answer; meaningless without an answer.
    pub fastest_ns: i64,
}

impl ClientCounts {
    /// Counts a query that ended, `sent_latency_ns` after it was sent.
    pub fn count(&mut self, latency_ns: i64, sent_latency_ns: i64, is_answered: bool) {
        if is_answered {
            self.answer_within(sent_latency_ns);
            self.answered += 1;
        } else {
            self.unanswered += 1;
        }
        self.sum_ns += latency_ns;
        self.max_ns = self.max_ns.max(latency_ns);
    }

    fn answer_within(&mut self, fastest_ns: i64) {
        self.fastest_ns = if self.answered == 0 { fastest_ns } else { self.fastest_ns.min(fastest_ns) };
    }
}

impl Counter for ClientCounts {
    fn add(&mut self, other: &Self) {
        if other.answered > 0 {
            self.answer_within(other.fastest_ns);
        }
        self.answered += other.answered;
        self.unanswered += other.unanswered;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

/// Adds the counts of clients whose numbers begin with `first`.
pub fn add_from(all: &mut Vec<ClientCounts>, first: usize, some: &[ClientCounts]) {
    all.resize(all.len().max(first + some.len()), ClientCounts::default());
    all[first..].iter_mut().zip(some).for_each(|(mine, other)| mine.add(other));
}

counters! {
    /// What one client saw over a whole replay.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ClientTotal {
        pub counts: ClientCounts,
        /// Unanswered queries that timed out. The others were lost with their connection.
        pub timeouts: u32,
        /// Truncated answers, also of queries that were then asked again.
        pub truncated: u32,
        /// Answers with AD set.
        pub authenticated: u32,
        pub nxdomain: u32,
        pub servfail: u32,
    }
}

/// The number of latencies of a client in each class. When one is full all are halved, which keeps percentiles.
type Classes = [u16; CLASSES];

/// All clients, by number.
pub struct ClientTotals {
    totals: Vec<ClientTotal>,
    /// Empty if percentiles are not wanted.
    classes: Vec<Classes>,
    /// The classes of clients, with the latencies of each. `None` if clients have no classes.
    by_class: Option<(ClientClasses, Vec<Times>)>,
}

/// What the clients of one class saw.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ClassTotal {
    /// The number of clients that had a query.
    pub clients: u64,
    pub answered: u64,
    pub unanswered: u64,
    /// Unanswered queries that timed out. The others were lost with their connection.
    pub timeouts: u64,
    /// From the due time.
    pub latency_ns: Distribution,
}

impl ClientTotals {
    /// Totals of `clients` clients, with percentiles or without.
    pub fn new(clients: usize, percentiles: bool) -> Self {
        // Zeros that the compiler does not know as such are written, so that memory does not grow later.
        let empty = || [black_box(0); CLASSES];
        let classes = iter::repeat_with(empty).take(if percentiles { clients } else { 0 }).collect();
        ClientTotals { totals: vec![ClientTotal::default(); clients], classes, by_class: None }
    }

    /// Adds the latencies of each class of clients, if there are classes.
    pub fn with_classes(self, classes: ClientClasses) -> Self {
        let latencies = (0..classes.count()).map(|_| times()).collect();
        ClientTotals { by_class: (classes.count() > 1).then_some((classes, latencies)), ..self }
    }

    /// Takes in that a query of a client ended, `sent_latency_ns` after it was sent.
    #[inline]
    pub fn end(&mut self, client: usize, latency_ns: i64, sent_latency_ns: i64, end: End) {
        let Some(total) = self.totals.get_mut(client) else { return };
        total.counts.count(latency_ns, sent_latency_ns, matches!(end, End::Answered { .. }));
        if let Some((classes, latencies)) = &mut self.by_class {
            let latency_ns = latency_ns.max(0).unsigned_abs().min(TIME_MAX_NS);
            latencies[classes.of(client as u32)].saturating_record(latency_ns);
        }
        match end {
            End::Answered { rcode, truncated, authenticated } | End::Wrong { rcode, truncated, authenticated, .. } => {
                total.truncated += u32::from(truncated);
                total.authenticated += u32::from(authenticated);
                total.nxdomain += u32::from(rcode == NXDOMAIN);
                total.servfail += u32::from(rcode == SERVFAIL);
            }
            End::Timeout => total.timeouts += 1,
            End::Lost(_) => {}
        }
        if let Some(classes) = self.classes.get_mut(client) {
            let count = &mut classes[class(latency_ns)];
            *count += 1;
            if *count == u16::MAX {
                classes.iter_mut().for_each(|count| *count = count.div_ceil(2));
            }
        }
    }

    /// Counts a truncated answer to a query of a client, which is asked again.
    pub fn truncated(&mut self, client: usize) {
        if let Some(total) = self.totals.get_mut(client) {
            total.truncated += 1;
        }
    }

    /// Adds what another thread counted, whose clients are others.
    pub fn add(&mut self, other: &ClientTotals) {
        self.totals.iter_mut().zip(&other.totals).for_each(|(mine, other)| mine.add(other));
        for (mine, other) in self.classes.iter_mut().zip(&other.classes) {
            mine.iter_mut().zip(other).for_each(|(mine, other)| *mine = mine.saturating_add(*other));
        }
        if let (Some((_, mine)), Some((_, other))) = (&mut self.by_class, &other.by_class) {
            for (mine, other) in mine.iter_mut().zip(other) {
                mine.add(other).expect("all histograms have the same bounds");
            }
        }
    }

    /// What each class saw. Empty if clients have no classes.
    pub fn by_class(&self) -> Vec<ClassTotal> {
        let Some((classes, latencies)) = &self.by_class else { return Vec::new() };
        let empty = |latencies| ClassTotal { latency_ns: Distribution::from(latencies), ..ClassTotal::default() };
        let mut all: Vec<_> = latencies.iter().map(empty).collect();
        for (client, total) in self.active() {
            let class = &mut all[classes.of(client)];
            class.clients += 1;
            class.answered += u64::from(total.counts.answered);
            class.unanswered += u64::from(total.counts.unanswered);
            class.timeouts += u64::from(total.timeouts);
        }
        all
    }

    /// The latencies of each class. Empty if clients have no classes.
    pub fn class_latencies(&self) -> &[Times] {
        self.by_class.as_ref().map_or(&[], |(_, latencies)| latencies)
    }

    /// The class of a client. 0 if clients have no classes.
    pub fn class(&self, client: u32) -> u8 {
        self.by_class.as_ref().map_or(0, |(classes, _)| classes.of(client) as u8)
    }

    /// The clients that had a query, with their numbers.
    pub fn active(&self) -> impl Iterator<Item = (u32, &ClientTotal)> {
        (0..).zip(&self.totals).filter(|(_, total)| total.counts.answered + total.counts.unanswered > 0)
    }

    /// The latency, in ns, that `percent` of a client's queries did not exceed: the upper bound of its class, and not
    /// more than the longest.
    pub fn latency_ns(&self, client: u32, percent: u64) -> Option<i64> {
        let classes = self.classes.get(client as usize)?;
        let all: u64 = classes.iter().copied().map(u64::from).sum();
        let rank = (all * percent).div_ceil(100).max(1);
        let mut passed = 0;
        let found = classes.iter().position(|count| {
            passed += u64::from(*count);
            passed >= rank
        })?;
        Some(upper_ns(found).min(self.totals[client as usize].counts.max_ns))
    }
}

/// The class of a latency.
fn class(latency_ns: i64) -> usize {
    let latency_ns = latency_ns.max(1).unsigned_abs();
    let octave = latency_ns.ilog2();
    if octave < FIRST_OCTAVE {
        return 0;
    }
    // The two bits behind the leading one select one of four classes of equal width.
    let within = (latency_ns >> (octave - 2)) & 3;
    let class = (octave - FIRST_OCTAVE) * CLASSES_PER_OCTAVE + within as u32;
    (class as usize).min(CLASSES - 1)
}

/// The longest latency of a class.
fn upper_ns(class: usize) -> i64 {
    let (octave, within) = (class as u32 / CLASSES_PER_OCTAVE, class as i64 % i64::from(CLASSES_PER_OCTAVE));
    ((5 + within) << (FIRST_OCTAVE + octave - 2)) - 1
}

/// The number of queries below which a client is left out.
const QUERIES_MIN: u32 = 20;

/// Between the fastest answers of two groups there is at least this factor …
const TIMES_MIN: i64 = 3;

/// … and this time: one thread of a server may answer some tenths of a millisecond faster than another.
const GAP_NS_MIN: i64 = 1_000_000;

/// Clients that the server serves unequally: two groups, by their fastest answers, and those without any answer. Then
/// two servers are behind one address, or the threads of one differ.
///
/// A client is one flow, and the network, or the kernel of the server's host (SO_REUSEPORT), brings all queries of a
/// flow to the same place. What a queue or a pause adds passes, so the fastest answer of each client shows which place
/// it was brought to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct UnequalClients {
    pub near: u32,
    /// The fastest answer of each near client took this time or less.
    pub near_ns: i64,
    pub far: u32,
    /// The fastest answer of each far client took this time or more.
    pub far_ns: i64,
    pub unanswered: u32,
}

impl UnequalClients {
    /// The groups. `None` if all clients were served alike.
    pub fn of(clients: &[ClientCounts]) -> Option<Self> {
        let asked: Vec<_> =
            clients.iter().filter(|client| client.answered + client.unanswered >= QUERIES_MIN).collect();
        let mut fastest_ns: Vec<_> =
            asked.iter().filter(|client| client.answered >= QUERIES_MIN).map(|client| client.fastest_ns).collect();
        fastest_ns.sort_unstable();
        let unanswered = asked.iter().filter(|client| client.answered == 0).count() as u32;
        let gaps = (1..fastest_ns.len()).map(|place| (place, fastest_ns[place] - fastest_ns[place - 1]));
        let is_wide = |(place, gap_ns): &(usize, i64)| {
            *gap_ns >= GAP_NS_MIN && fastest_ns[*place] >= TIMES_MIN * fastest_ns[*place - 1]
        };
        let groups = gaps.filter(is_wide).max_by_key(|(_, gap_ns)| *gap_ns);
        let near = groups.map_or(fastest_ns.len(), |(place, _)| place);
        // If no client has an answer, all are alike.
        (groups.is_some() || unanswered > 0 && !fastest_ns.is_empty()).then(|| UnequalClients {
            near: near as u32,
            near_ns: near.checked_sub(1).map_or(0, |last| fastest_ns[last]),
            far: (fastest_ns.len() - near) as u32,
            far_ns: fastest_ns.get(near).copied().unwrap_or(0),
            unanswered,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn answered(rcode: u8) -> End {
        End::Answered { rcode, truncated: false, authenticated: rcode == 0 }
    }

    #[test]
    fn every_latency_is_within_its_class_and_classes_are_narrow() {
        for latency_ns in (12..36).flat_map(|octave| [0, 1, 777].map(|more| (1_i64 << octave) + more)) {
            let upper_ns = upper_ns(class(latency_ns));
            assert!(upper_ns >= latency_ns && upper_ns <= latency_ns * 5 / 4, "{latency_ns}: {upper_ns}");
            assert_eq!(class(upper_ns + 1), (class(latency_ns) + 1).min(CLASSES - 1));
        }
        assert_eq!((class(-1), class(0), class(4_095), class(i64::MAX)), (0, 0, 0, CLASSES - 1));
    }

    #[test]
    fn a_client_has_its_counts_and_percentiles() {
        let mut totals = ClientTotals::new(3, true);
        for number in 1..=100 {
            totals.end(1, number * MS, number * MS, answered(if number > 90 { NXDOMAIN } else { 0 }));
        }
        totals.end(1, 2_000 * MS, 2_000 * MS, End::Timeout);
        totals.truncated(1);
        let active: Vec<_> = totals.active().collect();
        let [(1, total)] = active[..] else { panic!("{active:?}") };
        assert_eq!((total.counts.answered, total.counts.unanswered, total.timeouts), (100, 1, 1));
        assert_eq!((total.authenticated, total.nxdomain, total.servfail, total.truncated), (90, 10, 0, 1));
        let [median_ns, tail_ns] = [50, 99].map(|percent| totals.latency_ns(1, percent).unwrap());
        assert!((51 * MS..=51 * MS * 5 / 4).contains(&median_ns), "{median_ns}");
        assert!((100 * MS..=100 * MS * 5 / 4).contains(&tail_ns), "{tail_ns}");
        assert_eq!(totals.latency_ns(1, 100), Some(2_000 * MS), "never more than the longest");
        assert_eq!(totals.latency_ns(0, 50), None);
    }

    #[test]
    fn a_class_has_what_its_clients_saw_on_all_threads() {
        let classes = ClientClasses::by_shares(100, &[0.5], 1);
        let new = || ClientTotals::new(100, false).with_classes(classes.clone());
        let (mut one, mut other) = (new(), new());
        for client in 0..100 {
            let latency_ns = if classes.of(client) == 1 { 5 * MS } else { MS };
            let totals = if client % 2 == 0 { &mut one } else { &mut other };
            totals.end(client as usize, latency_ns, latency_ns, answered(0));
        }
        one.end(0, 2_000 * MS, 2_000 * MS, End::Timeout);
        one.add(&other);
        let [rest, first] = one.by_class()[..] else { panic!("two classes") };
        assert_eq!((rest.clients + first.clients, rest.answered + first.answered), (100, 100));
        assert_eq!((rest.timeouts + first.timeouts, rest.unanswered + first.unanswered), (1, 1));
        assert!((MS..2 * MS).contains(&(rest.latency_ns.p50 as i64)) && rest.latency_ns.p50 < first.latency_ns.p50);
        assert_eq!((0..100).filter(|client| one.class(*client) == 1).count() as u64, first.clients);
        assert!(ClientTotals::new(100, false).by_class().is_empty());
    }

    #[test]
    fn a_busy_client_keeps_its_percentiles_and_threads_add_up() {
        let mut totals = ClientTotals::new(1, true);
        // Five times as many as a counter holds: one in 50 is slow.
        (0..300_000).for_each(|number| totals.end(0, if number % 50 == 0 { 80 * MS } else { MS }, MS, answered(0)));
        assert!(totals.latency_ns(0, 97).unwrap() < 2 * MS && totals.latency_ns(0, 99).unwrap() >= 80 * MS);
        let mut all = ClientTotals::new(1, true);
        all.add(&totals);
        assert_eq!(all.active().next().unwrap().1.counts.answered, 300_000);
        assert_eq!(all.latency_ns(0, 99), totals.latency_ns(0, 99));
        assert_eq!(ClientTotals::new(1, false).latency_ns(0, 99), None);
    }

    fn client_counts(answered: u32, fastest_ns: i64) -> ClientCounts {
        // Each client had 100 queries, and a pause of 300 ms.
        ClientCounts { answered, unanswered: 100 - answered, sum_ns: 0, max_ns: 300 * MS, fastest_ns }
    }

    fn unequal(groups: &[(usize, ClientCounts)]) -> Option<UnequalClients> {
        let clients: Vec<_> = groups.iter().flat_map(|(count, client)| vec![*client; *count]).collect();
        UnequalClients::of(&clients)
    }

    #[test]
    fn two_servers_behind_one_address_are_found() {
        let found =
            unequal(&[(4, client_counts(100, 50 * MS)), (6, client_counts(100, MS)), (6, client_counts(90, 51 * MS))])
                .unwrap();
        let expected = UnequalClients { near: 6, near_ns: MS, far: 10, far_ns: 50 * MS, unanswered: 0 };
        assert_eq!(found, expected);
    }

    #[test]
    fn clients_without_an_answer_stand_out_if_others_have_answers() {
        let found = unequal(&[(12, client_counts(100, MS)), (4, client_counts(0, 0))]).unwrap();
        assert_eq!((found.near, found.far, found.unanswered), (12, 0, 4));
        assert_eq!(unequal(&[(16, client_counts(0, 0))]), None);
    }

    #[test]
    fn clients_of_one_server_are_alike() {
        assert_eq!(unequal(&[(8, client_counts(100, MS / 20)), (8, client_counts(70, MS / 2))]), None);
        assert_eq!(unequal(&[(8, client_counts(100, 20 * MS)), (8, client_counts(100, 45 * MS))]), None);
        assert_eq!(UnequalClients::of(&[]), None);
        // Too few queries.
        let few = ClientCounts { answered: 2, fastest_ns: 90 * MS, ..ClientCounts::default() };
        assert_eq!(unequal(&[(15, client_counts(100, MS)), (1, few)]), None);
    }
}
