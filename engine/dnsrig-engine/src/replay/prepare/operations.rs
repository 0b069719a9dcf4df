//! What is done to a stream on its way: a share of the clients, a cut, another speed, several times as many clients,
//! other transports; [`edns`](super::edns) has EDNS and DO. All of it is decided by hashes of clients with a seed, so
//! the same arguments give the same stream.

use std::net::Ipv6Addr;

use crate::{
    base::{
        random::{Random, scale},
        units::parse_share,
    },
    query_stream::Transport,
};

/// Purposes of hashes, so that a client's share does not depend on its transport.
const KEEP: u64 = 1;
const TRANSPORT: u64 = 2;
pub const EDNS: u64 = 3;

/// A number of a client that is the same wherever it comes up.
pub fn hash(seed: u64, purpose: u64, client: Ipv6Addr, copy: u16) -> u64 {
    let bits = client.to_bits();
    let high = Random::new(seed, (bits >> 64) as u64).bits();
    Random::new(high ^ u64::from(copy), bits as u64 ^ purpose.rotate_left(32)).bits()
}

/// Which clients are kept: all queries of a client, or none.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    pub share: f64,
    pub seed: u64,
}

impl Share {
    pub fn has(&self, client: Ipv6Addr) -> bool {
        self.share >= 1.0 || (hash(self.seed, KEEP, client, 0) as f64) < self.share * 2f64.powi(64)
    }
}

/// Shares of the clients that ask over another transport than they did.
#[derive(Clone, Debug, Default)]
pub struct Transports {
    pub shares: Vec<(Transport, f64)>,
    pub seed: u64,
}

impl Transports {
    /// The transport of a client, if it is to have another one.
    pub fn of(&self, client: Ipv6Addr, copy: u16) -> Option<Transport> {
        if self.shares.is_empty() {
            return None;
        }
        let mut left = hash(self.seed, TRANSPORT, client, copy) as f64 / 2f64.powi(64);
        self.shares.iter().find_map(|&(transport, share)| {
            left -= share;
            (left < 0.0).then_some(transport)
        })
    }
}

/// When queries are due, from the times at which they were captured, in order: long stretches without a query are
/// shortened, and what lies outside of a cut is left out.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// A longer stretch without a query is shortened to this.
    pub gap_ns: i64,
    /// From and to, both from the first query.
    pub cut_ns: (i64, i64),
    /// Stretches that were shortened, and by how much in all.
    pub gaps: u64,
    pub gaps_ns: i64,
    /// The wall time of the first query that is not left out.
    pub first_wall_ns: i64,
    before: Option<(i64, i64)>,
    /// When the first query is due that is not left out, from the first of all.
    start_ns: Option<i64>,
}

impl Timeline {
    pub fn new(gap_ns: i64, cut_ns: (i64, i64)) -> Self {
        Timeline { gap_ns, cut_ns, gaps: 0, gaps_ns: 0, first_wall_ns: 0, before: None, start_ns: None }
    }

    /// When a query is due that was captured at `time_ns`, unless it is left out.
    pub fn due_ns(&mut self, time_ns: i64) -> Option<i64> {
        let (before_ns, before_due_ns) = self.before.unwrap_or((time_ns, 0));
        // Times are in order, and may still jump by centuries.
        let mut step_ns = time_ns.saturating_sub(before_ns);
        if step_ns > self.gap_ns {
            self.gaps += 1;
            self.gaps_ns = self.gaps_ns.saturating_add(step_ns - self.gap_ns);
            step_ns = self.gap_ns;
        }
        let due_ns = before_due_ns.saturating_add(step_ns);
        self.before = Some((time_ns, due_ns));
        if !(self.cut_ns.0..self.cut_ns.1).contains(&due_ns) {
            return None;
        }
        if self.start_ns.is_none() {
            self.first_wall_ns = time_ns;
        }
        Some(due_ns - *self.start_ns.get_or_insert(due_ns))
    }
}

/// When a copy of a query is due: each copy has the whole stream, begun at another place.
pub fn rotated_ns(due_ns: i64, duration_ns: i64, copy: u16, copies: u16) -> i64 {
    if copy == 0 {
        return due_ns;
    }
    let shift_ns = scale(u64::MAX / u64::from(copies) * u64::from(copy), duration_ns as u64) as i64;
    let left_ns = duration_ns - shift_ns;
    if due_ns > left_ns { due_ns - left_ns } else { due_ns + shift_ns }
}

/// Reads a transport and a share, such as `dot=20%`.
pub fn parse_transport(text: &str) -> Result<(Transport, f64), String> {
    let expected = || "expected a transport and a share of the clients, such as tcp=10% or dot=0.2".to_owned();
    let (name, share) = text.split_once('=').ok_or_else(expected)?;
    let transport = match name {
        "udp" => Transport::Udp,
        "tcp" => Transport::Tcp,
        "dot" => Transport::Dot,
        "doh" => Transport::Doh,
        "doq" => Transport::Doq,
        _ => return Err(expected()),
    };
    Ok((transport, parse_share(share)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn clients() -> impl Iterator<Item = Ipv6Addr> {
        (0..10_000u32).map(|number| Ipv6Addr::from_bits(0xffff_0a00_0000 + u128::from(number)))
    }

    #[test]
    fn a_share_of_the_clients_is_near_what_is_asked_for() {
        for seed in 0..3 {
            let share = Share { share: 0.3, seed };
            let kept = clients().filter(|&client| share.has(client)).count();
            assert!((2800..3200).contains(&kept), "{kept}");
        }
        assert!(clients().all(|client| Share { share: 1.0, seed: 1 }.has(client)));
        assert!(!clients().any(|client| Share { share: 0.0, seed: 1 }.has(client)));
        let [one, two] = [1, 2].map(|seed| Share { share: 0.5, seed });
        let same = clients().filter(|&client| one.has(client) == two.has(client)).count();
        assert!((4800..5200).contains(&same), "{same}");
    }

    #[test]
    fn transports_are_those_of_clients() {
        let transports = Transports { shares: vec![(Transport::Tcp, 0.1), (Transport::Dot, 0.2)], seed: 1 };
        let of = |wanted| clients().filter(|&client| transports.of(client, 0) == wanted).count();
        assert!((900..1100).contains(&of(Some(Transport::Tcp))));
        assert!((1800..2200).contains(&of(Some(Transport::Dot))));
        assert!((6800..7200).contains(&of(None)));
        assert_eq!(parse_transport("dot=20%"), Ok((Transport::Dot, 0.2)));
        for wrong in ["dot", "dot=", "dot=101%", "dtls=1%", ""] {
            assert!(parse_transport(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn long_gaps_are_shortened_and_a_cut_begins_at_zero() {
        let mut timeline = Timeline::new(2 * S, (3 * S, 6 * S));
        let times = [i64::MIN, -S, 0, 2 * S, 3 * S, 4 * S, i64::MAX];
        let due = times.map(|time_ns| timeline.due_ns(time_ns));
        assert_eq!(due, [None, None, Some(0), Some(2 * S), None, None, None]);
        assert_eq!((timeline.gaps, timeline.gaps_ns, timeline.first_wall_ns), (2, i64::MAX, 0));
    }

    #[test]
    fn copies_fill_the_same_time() {
        let places = |copy| [0, 10, 60, 100].map(|due_ns| rotated_ns(due_ns, 100, copy, 4));
        assert_eq!(places(0), [0, 10, 60, 100]);
        assert_eq!(places(2), [49, 59, 9, 49]);
        assert_eq!(rotated_ns(0, 0, 1, 2), 0);
    }
}
