//! What all connections of a server share: its zones, how it cuts messages, what is wrong with it. No I/O.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use super::{faults::Faults, shape::Shape, tsig::Key};

/// In which order a connection's messages leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// One transfer after another, as they were asked for
    InOrder,
    /// One message of each transfer in turn, so that a small zone does not wait behind a large one
    Interleaved,
}

/// How transfers are cut into messages.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// A message has at most so many octets, unless a single record needs more.
    pub octets_max: usize,
    /// And at most so many records.
    pub records_max: u16,
    pub order: Order,
    /// Of a transfer's messages the first, the last, and one in so many are signed.
    pub signed_every: u32,
}

/// A server's nature.
pub struct Primary {
    pub shape: Shape,
    pub cut: Cut,
    pub faults: Faults,
    pub key: Option<Key>,
    pub concurrent: Option<Concurrent>,
    /// When the first change was due, in monotonic nanoseconds.
    pub start_ns: i64,
}

/// Now, on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    pub monotonic_ns: i64,
    /// Wall time, for signatures; 0 where there is no key.
    pub wall_s: u64,
}

/// How many transfers there may be at a time, on all connections.
#[derive(Clone)]
pub struct Concurrent {
    max: u32,
    now: Arc<AtomicU32>,
}

/// One of the transfers that there may be; it counts until it is dropped.
#[derive(Debug)]
pub struct Place(Arc<AtomicU32>);

impl Concurrent {
    /// None yet, and never more than `max`.
    pub fn new(max: u32) -> Self {
        Concurrent { max, now: Arc::default() }
    }

    /// One more, if there may be.
    pub fn enter(&self) -> Option<Place> {
        let place = Place(Arc::clone(&self.now));
        // The place gives back what it counts even if it is one too many.
        (self.now.fetch_add(1, Ordering::Relaxed) < self.max).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_back() {
        let concurrent = Concurrent::new(2);
        let [one, two] = [(); 2].map(|()| concurrent.enter());
        assert!(one.is_some() && two.is_some() && concurrent.enter().is_none());
        drop(one);
        assert!(concurrent.enter().is_some());
    }
}
