//! How generators on several machines, and the threads of each, share one schedule. No clock, no socket.

use std::net::IpAddr;

use dnsrig_net::prefix::Prefix;
use serde::{Deserialize, Serialize};

/// The highest number of generators that share a schedule.
const SEGMENTS_MAX: u32 = 64;

/// The number of this generator among those that share a schedule, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    pub number: u32,
    pub of: u32,
}

impl Default for Segment {
    fn default() -> Self {
        Segment { number: 1, of: 1 }
    }
}

impl std::fmt::Display for Segment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.number, self.of)
    }
}

impl Segment {
    /// The segment, if the schedule has other generators as well.
    pub fn if_shared(self) -> Option<Self> {
        (self.of > 1).then_some(self)
    }

    /// Whether a client of captured queries belongs to this generator.
    #[inline]
    pub fn has_client(self, client: u32) -> bool {
        client % self.of == self.number - 1
    }

    /// The number of a client of this generator, counted among its own clients.
    #[inline]
    pub fn own_number(self, client: u32) -> u32 {
        client / self.of
    }

    /// The number of clients of this generator, if captured queries have `clients` clients.
    pub fn clients(self, clients: u64) -> u64 {
        (clients + u64::from(self.of - self.number)) / u64::from(self.of)
    }
}

/// The addresses that the clients of this generator send from, if queries are captured ones.
#[derive(Clone, Copy, Debug)]
pub struct ClientAddresses {
    /// Each client has an address of this prefix. `None`: all clients have the address of this host.
    pub prefix: Option<Prefix>,
    pub segment: Segment,
}

impl ClientAddresses {
    /// The address of a client. The generator has the prefix for itself.
    #[inline]
    pub fn of(self, client: u32) -> Option<IpAddr> {
        self.prefix?.client(self.segment.own_number(client))
    }
}

/// One thread of one generator. All threads share a rate, or the outstanding queries, evenly, and all generators have
/// the same number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub thread: usize,
    pub threads: usize,
    pub segment: Segment,
}

impl Part {
    /// The number of the thread among the threads of all generators.
    pub fn number(self) -> usize {
        (self.segment.number as usize - 1) * self.threads + self.thread
    }

    /// The number of threads of all generators.
    pub fn count(self) -> usize {
        self.segment.of as usize * self.threads
    }

    /// The share of this thread, if `all` is divided among all threads. If it does not come out even, the first threads
    /// have one more.
    pub fn share(self, all: usize) -> usize {
        all / self.count() + usize::from(self.number() < all % self.count())
    }

    /// The shares of all threads before this one together.
    pub fn before(self, all: usize) -> usize {
        all / self.count() * self.number() + self.number().min(all % self.count())
    }
}

/// Reads `I/N`.
pub fn parse(text: &str) -> Result<Segment, String> {
    let numbers = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
    match numbers {
        Some((number, of)) if (1..=of).contains(&number) && of <= SEGMENTS_MAX => Ok(Segment { number, of }),
        _ => Err(format!("expected which of how many generators, such as 2/3, of at most {SEGMENTS_MAX}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_one_of_a_number() {
        assert_eq!(parse("64/64").map(|segment| segment.to_string()), Ok("64/64".into()));
        for wrong in ["", "1", "0/1", "2/1", "1/65", "-1/2", "1/2/3", "a/b"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shares_of_all_parts_follow_each_other_without_a_gap() {
        for (of, threads, all) in [(1, 1, 7), (3, 2, 16), (5, 3, 4), (2, 2, 0)] {
            let segments = (1..=of).map(|number| Segment { number, of });
            let parts = segments.flat_map(|segment| (0..threads).map(move |thread| Part { thread, threads, segment }));
            let end = parts.fold(0, |before, part| {
                assert_eq!(part.before(all), before);
                before + part.share(all)
            });
            assert_eq!(end, all);
        }
    }

    #[test]
    fn every_client_belongs_to_one_generator_and_has_a_number_of_its_own_there() {
        for of in 1..6 {
            let segments: Vec<_> = (1..=of).map(|number| Segment { number, of }).collect();
            for segment in &segments {
                let own = (0..17).filter(|client| segment.has_client(*client));
                let numbers: Vec<_> = own.map(|client| segment.own_number(client)).collect();
                assert_eq!(numbers, (0..segment.clients(17) as u32).collect::<Vec<_>>());
            }
            assert_eq!(segments.iter().map(|segment| segment.clients(17)).sum::<u64>(), 17);
        }
    }
}
