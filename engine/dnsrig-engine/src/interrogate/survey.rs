//! What zones there are, and of which size: found by transferring them, before anything else is asked.

use std::time::Instant;

use serde_json::{Map, Value};

use super::{
    answer::Transport,
    caps::{LARGE_BYTES_MAX, SURVEY_BYTES_MAX, SURVEY_CONNECTIONS_MAX, SURVEY_MAX, ZONES_MAX},
    connection::{CloseReason, Connection, Records},
    message::ZoneName,
    server::{Server, Talk},
    transfer::Transfer,
};
use crate::dns::query::Ask;

/// A small zone is not larger, in bytes.
const SMALL_BYTES_MAX: u64 = 16_384;

/// A large one takes at least so many bytes, so that it does not fit into the buffers on the way.
const LARGE_BYTES_MIN: u64 = 131_072;

/// And at least so many messages.
const LARGE_MESSAGES_MIN: usize = 4;

/// A zone that was transferred, or of which that was tried.
pub struct Known {
    pub name: ZoneName,
    pub transfer: Transfer,
    /// The bytes of each message, in their order.
    pub message_bytes: Vec<usize>,
}

impl Known {
    pub fn bytes(&self) -> u64 {
        self.message_bytes.iter().map(|bytes| *bytes as u64).sum()
    }

    pub fn messages(&self) -> usize {
        self.message_bytes.len()
    }
}

/// What is known of the zones.
pub struct Survey {
    /// Over what zones were transferred.
    pub transport: Transport,
    /// What was asked for, in that order.
    pub zones: Vec<Known>,
    /// How the last connection ended, if not by us.
    pub close_reason: Option<CloseReason>,
    pub connections: u32,
}

impl Survey {
    pub fn new(transport: Transport) -> Self {
        Survey { transport, zones: Vec::new(), close_reason: None, connections: 0 }
    }

    pub fn done(&self) -> impl Iterator<Item = &Known> + Clone {
        self.zones.iter().filter(|known| known.transfer.is_done())
    }

    /// The smallest of the small zones.
    pub fn small(&self) -> Option<&Known> {
        self.small_zones().min_by_key(|known| known.bytes())
    }

    /// Those that take no more than a few kilobytes, of as few messages as the smallest.
    pub fn small_zones(&self) -> impl Iterator<Item = &Known> + Clone {
        let few = self.done_small().map(|known| known.messages()).min();
        self.done_small().filter(move |known| Some(known.messages()) == few)
    }

    fn done_small(&self) -> impl Iterator<Item = &Known> + Clone {
        self.zones.iter().filter(|known| known.transfer.is_done() && known.bytes() <= SMALL_BYTES_MAX)
    }

    /// The largest zone, if it is large enough to be in the way of others.
    pub fn large(&self) -> Option<&Known> {
        let is_large = |known: &&Known| known.bytes() >= LARGE_BYTES_MIN && known.messages() >= LARGE_MESSAGES_MIN;
        self.done().filter(is_large).max_by_key(|known| known.bytes())
    }

    /// The one of most messages, which may have been cut.
    pub fn most_messages(&self) -> Option<&Known> {
        self.zones.iter().max_by_key(|known| known.messages()).filter(|known| known.messages() > 0)
    }

    /// What it comes to, for the summary.
    pub fn summary(&self) -> Map<String, Value> {
        let (done, bytes) = (self.done().count(), self.done().map(|known| known.bytes()));
        let mut map = Map::new();
        map.insert("asked".into(), self.zones.len().into());
        map.insert("done".into(), done.into());
        map.insert("bytes_largest".into(), bytes.clone().max().into());
        map.insert("bytes_smallest".into(), bytes.min().into());
        map
    }
}

/// Some of `names`: the first, the last, and others evenly between, at most [`ZONES_MAX`] of them.
pub fn sample<T>(names: impl ExactSizeIterator<Item = T>) -> Vec<T> {
    let (count, mut taken) = (names.len(), 0);
    let wanted = count.min(ZONES_MAX);
    let mut chosen = Vec::with_capacity(wanted);
    for (number, name) in names.enumerate() {
        // The last of `wanted` lands on the last of all.
        if wanted > 0 && taken < wanted && number == taken * (count - 1) / (wanted - 1).max(1) {
            chosen.push(name);
            taken += 1;
        }
    }
    chosen
}

/// Transfers zones one after another, while there is time.
pub fn look(server: &Server, transport: Transport, names: &[ZoneName]) -> Survey {
    let start = Instant::now();
    let mut survey = Survey::new(transport);
    let (mut connection, mut bytes): (Option<Connection>, u64) = (None, 0);
    for name in names.iter().take(ZONES_MAX) {
        if start.elapsed() > SURVEY_MAX || bytes > SURVEY_BYTES_MAX {
            break;
        }
        if connection.is_none() {
            if survey.connections == SURVEY_CONNECTIONS_MAX {
                break;
            }
            survey.connections += 1;
            match server.open(transport) {
                Ok(mut opened) => {
                    opened.acknowledge_at_once();
                    connection = Some(opened);
                }
                Err(close_reason) => {
                    survey.close_reason = Some(close_reason);
                    break;
                }
            }
        }
        let Some(open) = &mut connection else { break };
        let mut talk = Talk::new(server.signer.clone()).at_most(LARGE_BYTES_MAX).check_digests();
        let query = talk.draft(name, Ask::Axfr);
        talk.note(open.send(&[query], Records::OneEach));
        talk.listen(open);
        bytes += talk.exchange.bytes();
        let message_bytes = talk.exchange.arrivals.iter().map(|arrival| arrival.bytes).collect();
        if talk.exchange.close_reason.is_some() {
            survey.close_reason = talk.exchange.close_reason;
            connection = None;
        }
        survey.zones.extend(talk.exchange.transfers.pop().map(|transfer| Known {
            name: name.clone(),
            transfer,
            message_bytes,
        }));
    }
    survey
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::dns::xfr::Outcome;

    /// A zone of so many messages of so many bytes.
    fn known(bytes: usize, messages: usize) -> Known {
        let name = b"\x01z\0".to_vec();
        let mut transfer = Transfer::new(name.clone(), Ask::Axfr, None, Duration::ZERO, false);
        transfer.outcome = Some(Outcome::Done);
        Known { name, transfer, message_bytes: vec![bytes; messages] }
    }

    fn survey(zones: &[(usize, usize)]) -> Survey {
        let zones = zones.iter().map(|(bytes, messages)| known(*bytes, *messages)).collect();
        Survey { zones, ..Survey::new(Transport::Tcp) }
    }

    #[test]
    fn a_sample_has_the_first_and_the_last() {
        let some = sample(0..10_000);
        assert_eq!((some.len(), some[0], some[ZONES_MAX - 1]), (ZONES_MAX, 0, 9_999));
        assert!(some.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(sample([1, 2, 3].into_iter()), [1, 2, 3]);
        assert_eq!(sample([1].into_iter()), [1]);
        assert!(sample(std::iter::empty::<u8>()).is_empty());
    }

    #[test]
    fn small_and_large_are_far_apart() {
        let found = survey(&[(100, 3), (200, 1), (20_000, 50), (250, 1), (60_000, 3)]);
        assert_eq!(found.small().map(Known::bytes), Some(200));
        assert_eq!(found.small_zones().count(), 2, "of as few messages as the smallest");
        assert_eq!(found.large().map(Known::bytes), Some(1_000_000));
        let alike = survey(&[(20_000, 1), (15_000, 2)]);
        assert!(alike.small().is_none() && alike.large().is_none());
    }
}
