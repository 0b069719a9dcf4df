//! What a thread counts, in total and for each secondary.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    ops::AddAssign,
};

use dnsrig_net::connection::limits::Connections;
use domain::base::Rtype;
use serde::Serialize;

use super::{content::Content, notify::NotifyCounts};

/// What was asked and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Messages that are queries, NOTIFY among them.
    pub queries: u64,
    /// Messages that are not queries: too short, or responses.
    pub ignored: u64,
    /// Queries for a SOA.
    pub soa: u64,
    /// Transfers begun, by what they bring.
    pub transfers: Transfers,
    /// How answers ended.
    pub outcomes: Outcomes,
    /// Messages written, of whatever kind.
    pub messages: u64,
    /// Bytes of them, with their lengths before them on a stream.
    pub bytes: u64,
    /// Connections of TCP and XoT.
    pub connections: Connections,
    /// NOTIFYs of ours.
    pub notify: NotifyCounts,
    /// Of all this, what concerns zones that change since they do, by secondary.
    #[serde(skip)]
    pub secondaries: Secondaries,
    /// CPU time of the thread, user and system.
    pub cpu_ns: i64,
}

/// How answers ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcomes {
    /// The last message was handed to the connection or the kernel.
    pub done: u64,
    /// A fault cut a transfer.
    pub cut: u64,
    /// The connection was gone before the transfer was.
    pub abandoned: u64,
    pub servfail: u64,
    pub refused: u64,
    /// The zone is not ours, or a signature is not accepted.
    pub notauth: u64,
    pub formerr: u64,
    pub notimp: u64,
}

impl AddAssign<&Counts> for Counts {
    fn add_assign(&mut self, other: &Counts) {
        self.queries += other.queries;
        self.ignored += other.ignored;
        self.soa += other.soa;
        self.transfers += other.transfers;
        self.outcomes += other.outcomes;
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.connections += other.connections;
        self.notify += other.notify;
        self.secondaries.add(&other.secondaries);
        self.cpu_ns += other.cpu_ns;
    }
}

impl AddAssign for Outcomes {
    fn add_assign(&mut self, other: Outcomes) {
        self.done += other.done;
        self.cut += other.cut;
        self.abandoned += other.abandoned;
        self.servfail += other.servfail;
        self.refused += other.refused;
        self.notauth += other.notauth;
        self.formerr += other.formerr;
        self.notimp += other.notimp;
    }
}

impl AddAssign for NotifyCounts {
    fn add_assign(&mut self, other: NotifyCounts) {
        self.sent += other.sent;
        self.retries += other.retries;
        self.answered += other.answered;
        self.unanswered += other.unanswered;
        self.changes_skipped += other.changes_skipped;
    }
}

/// The most secondaries that are counted one by one; queries of further ones are not counted here.
const SECONDARIES_MAX: usize = 65_536;

/// Transfers by what they bring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Transfers {
    /// Whole zones that were asked for with AXFR.
    pub axfr: u64,
    /// Changes.
    pub ixfr: u64,
    /// Whole zones that were asked for with IXFR: the serial is too old, or from nowhere.
    pub axfr_for_ixfr: u64,
    /// Nothing but a SOA: there is no newer version.
    pub up_to_date: u64,
}

impl Transfers {
    /// Counts one that was asked for as `asked` and brings `content`.
    pub fn count(&mut self, asked: Rtype, content: Content) {
        *match (asked, content) {
            (Rtype::AXFR, _) => &mut self.axfr,
            (_, Content::Soa) => &mut self.up_to_date,
            (_, Content::Whole | Content::Endless) => &mut self.axfr_for_ixfr,
            (_, Content::Changes { .. } | Content::Backwards { .. }) => &mut self.ixfr,
        } += 1;
    }
}

impl AddAssign for Transfers {
    fn add_assign(&mut self, other: Transfers) {
        self.axfr += other.axfr;
        self.ixfr += other.ixfr;
        self.axfr_for_ixfr += other.axfr_for_ixfr;
        self.up_to_date += other.up_to_date;
    }
}

/// What one of them did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Secondary {
    /// NOTIFYs sent to it, and answered by it.
    pub notifies: u64,
    pub notifies_answered: u64,
    /// Its queries for a SOA.
    pub soa: u64,
    /// Its transfers that began.
    pub asked: Transfers,
    /// Transfers whose last message was handed to the connection.
    pub served: Transfers,
    /// The newest version that they brought, as the number of changes that lie behind it.
    #[serde(skip)]
    pub version: Option<u64>,
}

/// All of them, by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secondaries(HashMap<IpAddr, Secondary>);

impl Secondaries {
    /// The one with this address, unless there are too many.
    pub fn of(&mut self, address: IpAddr) -> Option<&mut Secondary> {
        if self.0.len() >= SECONDARIES_MAX && !self.0.contains_key(&address) {
            return None;
        }
        Some(self.0.entry(address).or_default())
    }

    /// Adds what another thread counted.
    pub fn add(&mut self, other: &Secondaries) {
        for (address, more) in &other.0 {
            let Some(sum) = self.of(*address) else { continue };
            sum.notifies += more.notifies;
            sum.notifies_answered += more.notifies_answered;
            sum.soa += more.soa;
            sum.asked += more.asked;
            sum.served += more.served;
            sum.version = sum.version.max(more.version);
        }
    }

    /// In order of their addresses.
    pub fn sorted(&self) -> BTreeMap<IpAddr, Secondary> {
        self.0.iter().map(|(address, secondary)| (*address, *secondary)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::testing::{CONNECTIONS, assert_adds_each};

    fn address(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(0xc612_0000 + number).into()
    }

    #[test]
    fn what_threads_counted_is_added_up() {
        let [mut one, mut other] = [Secondaries::default(), Secondaries::default()];
        *one.of(address(1)).unwrap() = Secondary { soa: 1, version: Some(7), ..Secondary::default() };
        *other.of(address(1)).unwrap() = Secondary { soa: 2, notifies: 4, ..Secondary::default() };
        other.of(address(0)).unwrap().served.ixfr = 3;
        one.add(&other);
        let sum = one.sorted();
        assert_eq!(sum[&address(1)], Secondary { soa: 3, notifies: 4, version: Some(7), ..Secondary::default() });
        assert!(sum.keys().copied().eq([address(0), address(1)]));
    }

    #[test]
    fn each_count_of_a_thread_is_added() {
        let outcomes =
            Outcomes { done: 1, cut: 2, abandoned: 3, servfail: 4, refused: 5, notauth: 6, formerr: 7, notimp: 8 };
        let counts = Counts {
            queries: 9,
            ignored: 10,
            soa: 11,
            transfers: Transfers { axfr: 12, ixfr: 13, axfr_for_ixfr: 14, up_to_date: 15 },
            outcomes,
            messages: 16,
            bytes: 17,
            connections: CONNECTIONS,
            notify: NotifyCounts { sent: 18, retries: 19, answered: 20, unanswered: 21, changes_skipped: 22 },
            secondaries: Secondaries::default(),
            cpu_ns: 23,
        };
        assert_adds_each(&counts, |sum, more| *sum += more);
        let secondary = Secondary {
            notifies: 1,
            notifies_answered: 2,
            soa: 3,
            asked: Transfers { axfr: 4, ixfr: 5, axfr_for_ixfr: 6, up_to_date: 7 },
            served: Transfers { axfr: 8, ixfr: 9, axfr_for_ixfr: 10, up_to_date: 11 },
            version: Some(7),
        };
        assert_adds_each(&secondary, |sum, more| {
            let [mut one, mut other] = [*sum, *more].map(|secondary| Secondaries([(address(0), secondary)].into()));
            one.add(&other);
            *sum = *one.of(address(0)).unwrap();
            assert_eq!((sum.version, other.of(address(0)).unwrap().version), (Some(7), Some(7)));
        });
    }

    #[test]
    fn a_transfer_is_counted_by_what_was_asked_and_what_it_brings() {
        let changes = Content::Changes { from: 0 };
        for (asked, content, expected) in [
            (Rtype::AXFR, Content::Whole, [1, 0, 0, 0]),
            (Rtype::AXFR, Content::Endless, [1, 0, 0, 0]),
            (Rtype::IXFR, changes, [0, 1, 0, 0]),
            (Rtype::IXFR, Content::Backwards { from: 0 }, [0, 1, 0, 0]),
            (Rtype::IXFR, Content::Whole, [0, 0, 1, 0]),
            (Rtype::IXFR, Content::Endless, [0, 0, 1, 0]),
            (Rtype::IXFR, Content::Soa, [0, 0, 0, 1]),
        ] {
            let mut transfers = Transfers::default();
            transfers.count(asked, content);
            let Transfers { axfr, ixfr, axfr_for_ixfr, up_to_date } = transfers;
            assert_eq!([axfr, ixfr, axfr_for_ixfr, up_to_date], expected, "{asked} {content:?}");
        }
    }

    #[test]
    fn no_more_are_told_apart_than_planned() {
        let mut all = Secondaries::default();
        assert_eq!((0..70_000).filter(|number| all.of(address(*number)).is_some()).count(), SECONDARIES_MAX);
        assert!(all.of(address(7)).is_some(), "who is known stays known");
    }
}
