//! EDNS and DO of clients, other than they were captured.

use std::net::Ipv6Addr;

use super::operations::{EDNS, hash};
use crate::dns::{
    edns::{self, Edns, OPT_BYTES, Opt, UDP_PAYLOAD_BYTES},
    header::{ARCOUNT, Header},
    query::Question,
    record::Walk,
};

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
    /// Empty if there is none.
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
    use domain::base::Message;
    use proptest::prelude::*;

    use super::*;
    use crate::{
        base::testing::any_bytes,
        dns::{query::Options, testing::name},
    };

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
