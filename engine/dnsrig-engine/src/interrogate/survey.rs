//! What zones there are, and of which size: found by transferring them, before anything else is asked.

use std::time::{Duration, Instant};

use dnsrig_dns::query::Ask;
use serde_json::{Map, Value};

use super::{
    answer::Transport,
    connection::{CloseReason, Connection, Records},
    exchange::Exchange,
    limits::{
        CONNECTINGS_A_LOOK, FIRST_LOOK_MAX, LARGE_BYTES_MAX, SURVEY_BYTES_MAX, SURVEY_CONNECTIONS_MAX, SURVEY_MAX,
        ZONES_MAX,
    },
    server::{Server, Talk},
    transfer::{Transfer, ZoneName},
};

/// A small zone is not larger, in bytes.
const SMALL_BYTES_MAX: u64 = 16_384;

/// The least bytes of a large zone, which does not fit into the buffers on the way.
const LARGE_BYTES_MIN: u64 = 131_072;

/// The least messages of a large zone.
const LARGE_MESSAGES_MIN: usize = 4;

/// A zone that was transferred, or of which that was tried.
pub struct Known {
    pub name: ZoneName,
    pub transfer: Transfer,
    /// The bytes of each message, in their order.
    pub message_bytes: Vec<usize>,
    /// Why no more came of it, if something is missing.
    pub close_reason: Option<CloseReason>,
}

/// What became of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It came.
    Whole,
    /// It was larger than we take in, or slower than we wait, and nothing was wrong until then.
    Cut,
    /// It did not come, for this reason.
    Failed(String),
}

impl Known {
    pub fn bytes(&self) -> u64 {
        self.message_bytes.iter().map(|bytes| *bytes as u64).sum()
    }

    pub fn messages(&self) -> usize {
        self.message_bytes.len()
    }

    /// What became of it.
    pub fn fate(&self) -> Fate {
        use CloseReason::{Enough, TimedOut, Unfinished};
        let has_begun = self.transfer.counts().records > 0;
        match (self.transfer.outcome, &self.close_reason) {
            (Some(outcome), _) if outcome.is_good() => Fate::Whole,
            (Some(outcome), _) => Fate::Failed(outcome.word().to_owned()),
            (None, Some(Enough | Unfinished)) if has_begun => Fate::Cut,
            (None, close_reason) => Fate::Failed(close_reason.as_ref().unwrap_or(&TimedOut).to_string()),
        }
    }

    /// Whether it has no answer because the connection ended, and nothing had come.
    fn was_not_answered(&self) -> bool {
        let ended = matches!(self.close_reason, Some(CloseReason::Closed | CloseReason::Reset));
        ended && self.message_bytes.is_empty()
    }

    /// Whether its time was over.
    fn took_too_long(&self) -> bool {
        use CloseReason::{Fruitless, TimedOut, Unfinished};
        matches!(self.close_reason, Some(TimedOut | Unfinished | Fruitless(_)))
    }
}

/// What is known of the zones.
pub struct Survey {
    /// The transport over which zones were transferred.
    pub transport: Transport,
    /// How many zones were to be looked at.
    pub given: usize,
    /// What became of those that were.
    pub zones: Vec<Known>,
    /// Why no further connection could be made.
    pub close_reason: Option<CloseReason>,
    pub connections: u32,
    /// How long the last one took to come about.
    pub connecting: Duration,
}

impl Survey {
    pub fn new(transport: Transport, given: usize) -> Self {
        let connecting = Duration::ZERO;
        Survey { transport, given, zones: Vec::new(), close_reason: None, connections: 0, connecting }
    }

    pub fn done(&self) -> impl Iterator<Item = &Known> + Clone {
        self.zones.iter().filter(|known| known.transfer.is_done())
    }

    /// The smallest of the small zones.
    pub fn small(&self) -> Option<&Known> {
        self.small_zones().min_by_key(|known| known.bytes())
    }

    /// The zones that take a few kilobytes at most, with as few messages as the smallest.
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

    /// Any zone to ask for: best a small one, then one that came, then one that did not.
    pub fn any(&self) -> Option<&Known> {
        self.small().or(self.done().next()).or(self.zones.first())
    }

    /// The zone of most messages, which may have been cut.
    pub fn most_messages(&self) -> Option<&Known> {
        self.zones.iter().max_by_key(|known| known.messages()).filter(|known| known.messages() > 0)
    }

    /// The numbers for the summary.
    pub fn summary(&self) -> Map<String, Value> {
        let (done, bytes) = (self.done().count(), self.done().map(|known| known.bytes()));
        let mut map = Map::new();
        map.insert("given".into(), self.given.into());
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
    let (start, mut survey) = (Instant::now(), Survey::new(transport, names.len()));
    let mut connection = None;
    let ask = |survey: &mut Survey, name: &ZoneName, most: Option<Duration>| loop {
        let (mut open, is_new) = match connection.take() {
            Some(open) => (open, false),
            None if survey.connections == SURVEY_CONNECTIONS_MAX => return None,
            None => (connect(server, survey)?, true),
        };
        let first_look = FIRST_LOOK_MAX.max(CONNECTINGS_A_LOOK * survey.connecting);
        let known = ask_for(server, &mut open, name, most.unwrap_or(first_look));
        if known.close_reason.is_none() {
            connection = Some(open);
        }
        // A server that closes a connection that was used before reports nothing about the zone (RFC 7766 §6.2.3).
        if is_new || !known.was_not_answered() {
            return Some(known);
        }
    };
    visit(&mut survey, &names[..names.len().min(ZONES_MAX)], || start.elapsed(), ask);
    survey
}

/// Asks for each zone, and again, for longer, for those that took too long: whichever of them stalls, the others have
/// been looked at before. `elapsed` says how much of the time is over. `ask` asks for a zone, at first for a moment,
/// then for as long as it is given; None: it cannot.
fn visit(
    survey: &mut Survey,
    names: &[ZoneName],
    elapsed: impl Fn() -> Duration,
    mut ask: impl FnMut(&mut Survey, &ZoneName, Option<Duration>) -> Option<Known>,
) {
    let (mut bytes, mut slow) = (0, Vec::new());
    for name in names {
        if elapsed() > SURVEY_MAX || bytes > SURVEY_BYTES_MAX {
            break;
        }
        let Some(known) = ask(survey, name, None) else { break };
        bytes += known.bytes();
        if known.took_too_long() { slow.push(known) } else { survey.zones.push(known) }
    }
    for left in (1..=slow.len()).rev() {
        // What is left of the time is shared among them.
        let most = SURVEY_MAX.saturating_sub(elapsed()) / left as u32;
        if most < FIRST_LOOK_MAX || bytes > SURVEY_BYTES_MAX {
            break;
        }
        let known = &mut slow[left - 1];
        let Some(again) = ask(survey, &known.name, Some(most)) else { break };
        bytes += again.bytes();
        *known = again;
    }
    survey.zones.append(&mut slow);
}

fn connect(server: &Server, survey: &mut Survey) -> Option<Connection> {
    let start = Instant::now();
    survey.connections += 1;
    let opened = server.open(survey.transport).map_err(|close_reason| survey.close_reason = Some(close_reason));
    let mut opened = opened.ok()?;
    survey.connecting = start.elapsed();
    opened.acknowledge_at_once();
    Some(opened)
}

fn ask_for(server: &Server, connection: &mut Connection, name: &ZoneName, most: Duration) -> Known {
    let mut talk = Talk::new(server.signer.clone()).at_most(LARGE_BYTES_MAX).within(most).check_digests();
    let query = talk.draft(name, Ask::Axfr);
    talk.note(connection.send(&[query], Records::OneEach));
    talk.listen(connection);
    let Exchange { mut transfers, arrivals, close_reason, .. } = talk.exchange;
    let message_bytes = arrivals.iter().map(|arrival| arrival.bytes).collect();
    Known { name: name.clone(), transfer: transfers.remove(0), message_bytes, close_reason }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use dnsrig_dns::xfr::Outcome;

    use super::*;
    use crate::interrogate::exchange::tests::Script;

    /// A zone of `messages` messages of `bytes` bytes.
    fn known(bytes: usize, messages: usize) -> Known {
        let name = b"\x01z\0".to_vec();
        let mut transfer = Transfer::new(name.clone(), Ask::Axfr, None, Duration::ZERO, false);
        transfer.outcome = Some(Outcome::Done);
        Known { name, transfer, message_bytes: vec![bytes; messages], close_reason: None }
    }

    fn survey(zones: &[(usize, usize)]) -> Survey {
        let zones = zones.iter().map(|(bytes, messages)| known(*bytes, *messages)).collect();
        Survey { zones, ..Survey::new(Transport::Tcp, 0) }
    }

    /// What becomes of zones whose transfers take so many milliseconds, or never end.
    fn visited(took_ms: &[Option<u64>]) -> Vec<(u8, Fate)> {
        let names: Vec<ZoneName> = (0..took_ms.len()).map(|zone| vec![1, b'a' + zone as u8, 0]).collect();
        let (clock, mut survey) = (Cell::new(Duration::ZERO), Survey::new(Transport::Tcp, names.len()));
        visit(
            &mut survey,
            &names,
            || clock.get(),
            |_, name, most| {
                let most = most.unwrap_or(FIRST_LOOK_MAX);
                let took = took_ms[usize::from(name[1] - b'a')].map(Duration::from_millis).filter(|took| *took < most);
                clock.set(clock.get() + took.unwrap_or(most));
                let known = Known { name: name.clone(), ..known(100, 1) };
                let mut transfer = Transfer::new(name.clone(), Ask::Axfr, None, Duration::ZERO, false);
                transfer.outcome = took.map(|_| Outcome::Done);
                Some(Known { transfer, close_reason: took.is_none().then_some(CloseReason::TimedOut), ..known })
            },
        );
        let mut fates: Vec<_> = survey.zones.iter().map(|known| (known.name[1], known.fate())).collect();
        fates.sort_by_key(|(name, _)| *name);
        fates
    }

    #[test]
    fn no_zone_that_stalls_keeps_another_from_coming() {
        let came = |took_ms: &[Option<u64>]| {
            visited(took_ms).into_iter().map(|(_, fate)| fate == Fate::Whole).collect::<Vec<_>>()
        };
        // Wherever they stand: a zone that never ends, and one that takes longer than a moment.
        assert_eq!(came(&[None, Some(1)]), [false, true]);
        assert_eq!(came(&[Some(1), None]), [true, false]);
        assert_eq!(came(&[None, Some(2_000), Some(1), None]), [false, true, true, false]);
        assert_eq!(came(&[Some(2_000), None, None, Some(1)]), [true, false, false, true]);
        assert_eq!(visited(&[None; 20]).len(), 17, "the time is over");
    }

    #[test]
    fn a_zone_that_we_cut_has_not_failed() {
        let of = |close_reason| Known { close_reason: Some(close_reason), ..unfinished() };
        assert_eq!(of(CloseReason::Enough).fate(), Fate::Cut);
        assert_eq!(of(CloseReason::Unfinished).fate(), Fate::Cut);
        assert_eq!(of(CloseReason::Closed).fate(), Fate::Failed("the server closed the connection".into()));
    }

    /// A zone whose first message came.
    fn unfinished() -> Known {
        Script::asked(1).first(0).survey().zones.remove(0)
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
