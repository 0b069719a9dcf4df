//! What is done to a stream on its way: a share of the clients, a cut, another speed, several times as many clients,
//! other transports, and EDNS and DO. All of it is decided by hashes of clients with a seed, so the same arguments give
//! the same stream.

use std::net::Ipv6Addr;

use dnsrig_core::{
    random::{Random, scale},
    units::parse_share,
};
use dnsrig_dns::{
    edns::{self, Edns, OPT_BYTES, Opt, UDP_PAYLOAD_BYTES},
    header::{ARCOUNT, Header},
    query::Question,
    record::Walk,
};

use crate::query_stream::Transport;

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

/// Shares of the clients that have EDNS and that set DO, by hashes of their addresses; none leaves it as captured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shares {
    pub edns: Option<f64>,
    pub dnssec_ok: Option<f64>,
    pub seed: u64,
}

/// What a client's queries are to have; none leaves it as it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub edns: Option<bool>,
    pub dnssec_ok: Option<bool>,
}

impl Shares {
    /// What a client is to have. The same number decides both, so who sets DO is among those with EDNS.
    pub fn of(&self, client: Ipv6Addr, copy: u16) -> Wanted {
        if self.edns.is_none() && self.dnssec_ok.is_none() {
            return Wanted::default();
        }
        let number = hash(self.seed, EDNS, client, copy) as f64 / 2f64.powi(64);
        let is_below = |share: f64| number < share;
        Wanted { edns: self.edns.map(is_below), dnssec_ok: self.dnssec_ok.map(is_below) }
    }
}

impl Wanted {
    /// Writes a query as it is to be into `to`; false if it has to stay as it was: it has records other than OPT, such
    /// as a signature, or bytes behind its end.
    pub fn rewrite(self, message: &[u8], to: &mut Vec<u8>) -> bool {
        to.clear();
        let Some(Parts { question_end, opt }) = parts(message) else { return false };
        to.extend_from_slice(&message[..question_end]);
        let has_edns = match self {
            Wanted { dnssec_ok: Some(true), .. } => true,
            Wanted { edns: Some(edns), .. } => edns,
            Wanted { edns: None, .. } => !opt.is_empty(),
        };
        if has_edns {
            let added = Opt::new(Edns { udp_payload_bytes: UDP_PAYLOAD_BYTES, dnssec_ok: false }).head();
            let start = to.len();
            to.extend_from_slice(if opt.is_empty() { &added } else { opt });
            if let Some(dnssec_ok) = self.dnssec_ok {
                edns::set_dnssec_ok(&mut to[start..], dnssec_ok);
            }
        }
        to[ARCOUNT..ARCOUNT + 2].copy_from_slice(&u16::from(has_edns).to_be_bytes());
        true
    }
}

/// A query of a question and perhaps OPT.
struct Parts<'m> {
    question_end: usize,
    /// Empty without options.
    opt: &'m [u8],
}

fn parts(message: &[u8]) -> Option<Parts<'_>> {
    let header = Header::read(message).ok()?;
    let question_end = Question::read(message).ok()?.end();
    let opt = &message[question_end..];
    let is_opt = || {
        let mut walk = Walk::from(message, question_end);
        let record = walk.any_record().ok().filter(|_| header.additional == 1 && walk.end().is_ok());
        let is_plain = |options: &[u8]| opt[0] == 0 && opt.len() == OPT_BYTES + options.len();
        record.and_then(|record| Opt::read(&record)).is_some_and(|opt| is_plain(opt.options))
    };
    let is_known = header.questions == 1
        && match header.records() {
            0 => opt.is_empty(),
            1 => is_opt(),
            _ => false,
        };
    is_known.then_some(Parts { question_end, opt })
}

#[cfg(test)]
mod tests {
    use dnsrig_dns::{query::Options, testing::name};
    use dnsrig_testing::any_bytes;
    use domain::base::Message;
    use proptest::prelude::*;

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

    /// A stretch as long as the limit stays, a longer one is shortened to it, and what was left out adds up.
    #[test]
    fn gaps_are_counted_with_what_was_left_out() {
        let mut timeline = Timeline::new(2 * S, (0, i64::MAX));
        let times = [5 * S, 7 * S, 7 * S, 9 * S + 1, 20 * S];
        let due = times.map(|time_ns| timeline.due_ns(time_ns));
        assert_eq!(due, [0, 2 * S, 2 * S, 4 * S, 6 * S].map(Some));
        assert_eq!((timeline.gaps, timeline.gaps_ns, timeline.first_wall_ns), (2, 9 * S, 5 * S));
    }

    /// A cut has its first nanosecond, and not its last.
    #[test]
    fn a_cut_ends_before_its_end() {
        let mut timeline = Timeline::new(100 * S, (S, 2 * S));
        let due = [10 * S, 11 * S - 1, 11 * S, 12 * S - 1, 12 * S].map(|time_ns| timeline.due_ns(time_ns));
        assert_eq!(due, [None, None, Some(0), Some(S - 1), None]);
        assert_eq!((timeline.gaps, timeline.gaps_ns, timeline.first_wall_ns), (0, 0, 11 * S));
    }

    #[test]
    fn copies_fill_the_same_time() {
        let places = |copy| [0, 10, 60, 100].map(|due_ns| rotated_ns(due_ns, 100, copy, 4));
        assert_eq!(places(0), [0, 10, 60, 100]);
        assert_eq!(places(2), [49, 59, 9, 49]);
        assert_eq!(rotated_ns(0, 0, 1, 2), 0);
    }

    fn query(edns: Option<Edns>) -> Vec<u8> {
        let options = Options { recursion_desired: true, edns };
        [&options.header()[..], &name("a.example"), &[0, 1, 0, 1], &options.opt()].concat()
    }

    /// Whether there is EDNS, and DO, once rewritten.
    fn rewritten(message: &[u8], edns: Option<bool>, dnssec_ok: Option<bool>) -> (bool, bool) {
        let mut to = vec![1; 3];
        assert!(Wanted { edns, dnssec_ok }.rewrite(message, &mut to));
        let message = Message::from_octets(&to).unwrap();
        assert_eq!(message.sole_question().unwrap().qname().to_string(), "a.example");
        let opt = message.opt();
        (opt.is_some(), opt.is_some_and(|opt| opt.dnssec_ok()))
    }

    #[test]
    fn edns_and_do_come_and_go() {
        let plain = query(None);
        let with = |dnssec_ok| query(Some(Edns { udp_payload_bytes: 4096, dnssec_ok }));
        assert_eq!(rewritten(&plain, None, Some(false)), (false, false));
        assert_eq!(rewritten(&plain, Some(true), None), (true, false));
        assert_eq!(rewritten(&plain, None, Some(true)), (true, true));
        assert_eq!(rewritten(&with(false), None, Some(true)), (true, true));
        assert_eq!(rewritten(&with(true), None, Some(false)), (true, false));
        assert_eq!(rewritten(&with(true), Some(true), None), (true, true));
        assert_eq!(rewritten(&with(true), Some(false), None), (false, false));
    }

    #[test]
    fn what_is_there_stays() {
        let message = query(Some(Edns { udp_payload_bytes: 4096, dnssec_ok: true }));
        let mut to = Vec::new();
        assert!(Wanted { edns: Some(true), dnssec_ok: Some(true) }.rewrite(&message, &mut to));
        assert_eq!(to, message);
    }

    #[test]
    fn signed_queries_and_odd_ones_are_left() {
        let mut two = query(Some(Edns { udp_payload_bytes: 4096, dnssec_ok: true }));
        two[ARCOUNT + 1] = 2;
        let longer = [query(None), vec![0]].concat();
        for message in [two, longer] {
            assert!(!Wanted { edns: Some(false), dnssec_ok: None }.rewrite(&message, &mut Vec::new()));
        }
    }

    #[test]
    fn shares_are_of_clients() {
        let shares = Shares { edns: Some(0.5), dnssec_ok: Some(0.2), seed: 1 };
        let wanted: Vec<_> = (0..10_000_u32).map(|number| shares.of(Ipv6Addr::from_bits(number.into()), 0)).collect();
        let count = |holds: fn(&Wanted) -> bool| wanted.iter().filter(|wanted| holds(wanted)).count();
        // The deviation of a share of 10,000 is 50 at most.
        assert!((4_750..5_250).contains(&count(|wanted| wanted.edns == Some(true))));
        assert!((1_800..2_200).contains(&count(|wanted| wanted.dnssec_ok == Some(true))));
        assert_eq!(count(|wanted| wanted.edns == Some(false) && wanted.dnssec_ok == Some(true)), 0);
        assert_eq!(Shares::default().of(Ipv6Addr::LOCALHOST, 0), Wanted::default());
    }

    proptest! {
        #[test]
        fn any_bytes_are_rewritten_or_left(bytes in any_bytes(600), edns: Option<bool>, dnssec_ok: Option<bool>) {
            let mut to = Vec::new();
            if (Wanted { edns, dnssec_ok }).rewrite(&bytes, &mut to) {
                prop_assert!(parts(&to).is_some());
                prop_assert!(to.len() <= bytes.len() + 11);
            }
        }

        #[test]
        fn any_end_of_a_query_is_rewritten_or_left(end in any_bytes(60), additional in 0_u8..3) {
            let mut message = [query(None), end].concat();
            message[ARCOUNT + 1] = additional;
            let mut to = Vec::new();
            if (Wanted { edns: None, dnssec_ok: Some(true) }).rewrite(&message, &mut to) {
                prop_assert!(Message::from_octets(&to).unwrap().opt().is_some());
            }
        }
    }
}
