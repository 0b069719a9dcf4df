//! How connections are used, and what is asked for again, when and how often.

use dnsrig_dns::xfr::{self, Outcome};
use dnsrig_net::outstanding::Outstanding;

use super::{slots::Slot, transfers::Transfer};

/// Schedules that may need more memory than this are not begun.
pub const MEMORY_BYTES_MAX: u64 = 4_000_000_000;

/// The longest wait before a zone is asked for again.
const WAIT_NS_MAX: i64 = 60_000_000_000;

/// How the zones of a secondary share its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// A connection for each zone, closed after it, as BIND and PowerDNS do
    One,
    /// Lasting connections, with one zone after another on each
    Reused,
    /// Lasting connections, with many zones at a time on each (RFC 5936 §4.1, RFC 9103 §6)
    #[default]
    Pipelined,
}

/// Whether the serial is asked for before a zone is, as secondaries do (RFC 1034 §4.3.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SoaFirst {
    /// Not at all: the zone is asked for at once
    #[default]
    None,
    /// Over UDP
    Udp,
    /// On the connection that the zone is then asked for on
    Same,
}

/// The settings of a schedule.
#[derive(Clone, Debug)]
pub struct Settings {
    pub policy: Policy,
    /// Each query has a stream of its own (RFC 9250 §4.2), so a transfer ends without its connection.
    pub streams: bool,
    /// The number of zones at a time on a connection, from 1 to
    /// [`OUTSTANDING_MAX`](dnsrig_net::outstanding::OUTSTANDING_MAX).
    pub window: u32,
    /// Connections of each secondary.
    pub connections: u32,
    pub soa: SoaFirst,
    /// Ask for what changed since this serial (RFC 1995); None: for whole zones.
    pub serial: Option<u32>,
    /// With NOTIFY, the serial that the secondaries have if they do not ask for changes.
    pub serial_before: Option<u32>,
    pub retry: Retry,
    /// Time without a record after which a transfer is given up, and without a sign of life after which a connection
    /// is, in nanoseconds.
    pub timeout_ns: i64,
    /// Time from its first message after which a transfer is given up, in nanoseconds.
    pub time_ns_max: i64,
    pub limits: xfr::Limits,
    /// A zone with another number of records is not done.
    pub records_expected: Option<u64>,
    /// The highest number of zones a second.
    pub rate: Option<f64>,
    /// Begin again when all zones are done.
    pub repeat: bool,
    /// Ask for a zone when a NOTIFY comes, and only then.
    pub on_notify: bool,
}

impl Settings {
    /// How many transfers a connection has at a time.
    pub fn window(&self) -> u32 {
        if self.policy == Policy::Pipelined { self.window } else { 1 }
    }

    /// How much memory the slots of this number of secondaries and their transfers under way take at most, if all
    /// `zones` are on the list of each.
    pub fn memory_bytes(&self, secondaries: u32, zones: u32) -> u64 {
        let (secondaries, zones) = (u64::from(secondaries), zones.max(1));
        let slots = secondaries * u64::from(self.connections);
        let window = self.window().min(zones);
        let under_way = (slots * u64::from(window)).min(secondaries * u64::from(zones));
        slots * (size_of::<Slot>() + Outstanding::<u32>::bytes(window)) as u64
            + under_way * size_of::<Transfer>() as u64
    }
}

/// How often a failed attempt is made again, and after how long.
///
/// Outcomes that may be better next time are tried again: SERVFAIL and REFUSED (with which servers answer when they are
/// at a limit), connections that ended, and silence. The n-th time comes `after_ns` · 2ⁿ⁻¹ later, at most a minute. An
/// answer that is wrong in itself is a result, and so are one that goes on without end, NOTAUTH, FORMERR and NOTIMP.
///
/// When a connection ends with transfers outstanding, the transfers that had begun have failed. If none had begun and
/// nothing had come on that connection at all, the transfer that was asked for first has failed. All others are asked
/// for again at once, and have not used up a retry: servers may close connections (RFC 7766 §6.2.3). Their rows contain
/// the end of the connection all the same. A connection that brought nothing is followed by the next after a pause that
/// grows in the same way. After more of them in a row than `times` (at least three if they were accepted), no further
/// connection is made in that slot.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    pub times: u16,
    pub after_ns: i64,
}

impl Retry {
    /// The time after which an attempt with this `outcome` is made again, after `failures` in all; None: never.
    pub fn wait_ns(&self, outcome: Outcome, failures: u16) -> Option<i64> {
        (is_worth_it(outcome) && failures <= self.times).then(|| self.pause_ns(failures))
    }

    /// How long to wait after this number of failures in a row.
    pub fn pause_ns(&self, failures: u16) -> i64 {
        let doubled = self.after_ns.saturating_mul(1 << failures.saturating_sub(1).min(32));
        doubled.min(WAIT_NS_MAX.max(self.after_ns))
    }
}

/// Whether another attempt may have a better outcome.
fn is_worth_it(outcome: Outcome) -> bool {
    use Outcome::{Abandoned, Closed, Cut, NoConnection, Refused, Reset, Servfail, Stalled, TimedOut, TlsFailed};
    matches!(
        outcome,
        Servfail | Refused | Closed | Cut | Reset | NoConnection | TlsFailed | Abandoned | TimedOut | Stalled
    )
}

#[cfg(test)]
mod tests {
    use dnsrig_net::outstanding::OUTSTANDING_MAX;

    use super::{super::virtual_primary::settings, *};

    fn memory_bytes(window: u32, secondaries: u32, zones: u32) -> u64 {
        Settings { policy: Policy::Pipelined, window, connections: 1, ..settings() }.memory_bytes(secondaries, zones)
    }

    #[test]
    fn a_slot_needs_what_its_zones_need_and_not_what_all_ids_would() {
        assert!(memory_bytes(OUTSTANDING_MAX, 1, 10) < 8 << 10);
        assert!(memory_bytes(OUTSTANDING_MAX, 1_000, 10) < 8 << 20);
        assert!(memory_bytes(OUTSTANDING_MAX, 1, 1_000_000) > 600_000);
    }

    #[test]
    fn the_default_window_fits_for_as_many_slots_as_there_may_be() {
        assert!(memory_bytes(100, 100_000, 1_000_000) < MEMORY_BYTES_MAX);
        assert!(memory_bytes(OUTSTANDING_MAX, 100_000, 1_000_000) > 60 << 30);
    }

    #[test]
    fn waits_double_up_to_a_minute_and_then_end() {
        let retry = Retry { times: 8, after_ns: 1_000_000_000 };
        let waits_s: Vec<_> =
            (1..=9).map(|failures| retry.wait_ns(Outcome::Servfail, failures).map(|ns| ns / 1_000_000_000)).collect();
        assert_eq!(waits_s, [1, 2, 4, 8, 16, 32, 60, 60].map(Some).into_iter().chain([None]).collect::<Vec<_>>());
        assert_eq!(retry.wait_ns(Outcome::OutOfZone, 1), None, "a wrong answer is a result");
    }
}
