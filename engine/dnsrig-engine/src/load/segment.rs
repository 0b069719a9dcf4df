//! How generators on several machines, and the threads of each, share one schedule. No clock, no socket.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::net::prefix::Prefix;

/// A schedule has at most so many generators.
pub const SEGMENTS_MAX: u32 = 64;

/// Which of the generators that share a schedule this one is, counted from 1.
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
    /// Itself, if the schedule has other generators as well.
    pub fn if_shared(self) -> Option<Self> {
        (self.of > 1).then_some(self)
    }

    /// Whether a client of a stream is this generator's.
    #[inline]
    pub fn has_client(self, client: u32) -> bool {
        client % self.of == self.number - 1
    }

    /// The number of such a client among those of this generator.
    #[inline]
    pub fn own_number(self, client: u32) -> u32 {
        client / self.of
    }

    /// How many of so many clients of a stream are this generator's.
    pub fn clients(self, clients: u64) -> u64 {
        (clients + u64::from(self.of - self.number)) / u64::from(self.of)
    }
}

/// Where the clients of a stream that are this generator's send from.
#[derive(Clone, Copy, Debug)]
pub struct ClientAddresses {
    /// Each has an address of it; none: all are this host.
    pub prefix: Option<Prefix>,
    pub segment: Segment,
}

impl ClientAddresses {
    /// The address of a client, by its number among this generator's, which has the prefix for itself.
    #[inline]
    pub fn of(self, client: u32) -> Option<IpAddr> {
        self.prefix?.client(self.segment.own_number(client))
    }
}

/// Which thread of which generator this one is; all share a rate, or the outstanding queries, evenly. Each generator
/// has as many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub thread: usize,
    pub threads: usize,
    pub segment: Segment,
}

impl Part {
    /// Its number among the threads of all generators.
    pub fn number(self) -> usize {
        (self.segment.number as usize - 1) * self.threads + self.thread
    }

    /// How many threads all generators have.
    pub fn count(self) -> usize {
        self.segment.of as usize * self.threads
    }

    /// Its share of what is divided among all, the first ones having one more where that does not come out even.
    pub fn share(self, all: usize) -> usize {
        all / self.count() + usize::from(self.number() < all % self.count())
    }

    /// How many of them are those of parts before it.
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
    fn every_client_of_a_stream_is_one_generators_and_has_a_number_of_its_own_there() {
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
