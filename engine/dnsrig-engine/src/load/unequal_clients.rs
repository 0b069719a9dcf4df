//! Clients that the server serves unequally: two servers behind one address, or threads of one that differ. No clock,
//! no socket.
//!
//! A client is one flow, and the network, or the kernel of the server's host (SO_REUSEPORT), brings all queries of a
//! flow to the same place. What a queue or a pause adds passes. So the fastest answer of each client tells places
//! apart.

use super::client_totals::ClientCounts;

/// A client with fewer queries says nothing.
const QUERIES_MIN: u32 = 20;

/// Between the fastest answers of two groups there is at least this factor …
const TIMES_MIN: i64 = 3;

/// … and this time: one thread of a server may answer some tenths of a millisecond faster than another.
const GAP_NS_MIN: i64 = 1_000_000;

/// Clients in two groups, by their fastest answers, and those without any answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct UnequalClients {
    pub near: u32,
    /// The fastest answer of each near client took this time or less.
    pub near_ns: i64,
    pub far: u32,
    /// The fastest answer of each far client took this time or more.
    pub far_ns: i64,
    pub unanswered: u32,
}

impl UnequalClients {
    /// None if all clients were served alike.
    pub fn of(clients: &[ClientCounts]) -> Option<Self> {
        let asked: Vec<_> =
            clients.iter().filter(|client| client.answered + client.unanswered >= QUERIES_MIN).collect();
        let mut fastest_ns: Vec<_> =
            asked.iter().filter(|client| client.answered >= QUERIES_MIN).map(|client| client.fastest_ns).collect();
        fastest_ns.sort_unstable();
        let unanswered = asked.iter().filter(|client| client.answered == 0).count() as u32;
        let gaps = (1..fastest_ns.len()).map(|place| (place, fastest_ns[place] - fastest_ns[place - 1]));
        let is_wide = |(place, gap_ns): &(usize, i64)| {
            *gap_ns >= GAP_NS_MIN && fastest_ns[*place] >= TIMES_MIN * fastest_ns[*place - 1]
        };
        let groups = gaps.filter(is_wide).max_by_key(|(_, gap_ns)| *gap_ns);
        let near = groups.map_or(fastest_ns.len(), |(place, _)| place);
        // Where nobody has an answer, or few clients have, all are alike.
        (groups.is_some() || unanswered > 0 && !fastest_ns.is_empty()).then(|| UnequalClients {
            near: near as u32,
            near_ns: near.checked_sub(1).map_or(0, |last| fastest_ns[last]),
            far: (fastest_ns.len() - near) as u32,
            far_ns: fastest_ns.get(near).copied().unwrap_or(0),
            unanswered,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn client(answered: u32, fastest_ns: i64) -> ClientCounts {
        // Each had 100 queries, and a pause of 300 ms.
        ClientCounts { answered, unanswered: 100 - answered, sum_ns: 0, max_ns: 300 * MS, fastest_ns }
    }

    fn unequal(groups: &[(usize, ClientCounts)]) -> Option<UnequalClients> {
        let clients: Vec<_> = groups.iter().flat_map(|(count, client)| vec![*client; *count]).collect();
        UnequalClients::of(&clients)
    }

    #[test]
    fn two_servers_behind_one_address_are_told_apart() {
        let found = unequal(&[(4, client(100, 50 * MS)), (6, client(100, MS)), (6, client(90, 51 * MS))]).unwrap();
        let expected = UnequalClients { near: 6, near_ns: MS, far: 10, far_ns: 50 * MS, unanswered: 0 };
        assert_eq!(found, expected);
    }

    #[test]
    fn clients_without_an_answer_stand_out_if_others_have_answers() {
        let found = unequal(&[(12, client(100, MS)), (4, client(0, 0))]).unwrap();
        assert_eq!((found.near, found.far, found.unanswered), (12, 0, 4));
        assert_eq!(unequal(&[(16, client(0, 0))]), None);
    }

    #[test]
    fn clients_of_one_server_are_alike() {
        assert_eq!(unequal(&[(8, client(100, MS / 20)), (8, client(70, MS / 2))]), None);
        assert_eq!(unequal(&[(8, client(100, 20 * MS)), (8, client(100, 45 * MS))]), None);
        assert_eq!(UnequalClients::of(&[]), None);
        // Too few queries.
        let few = ClientCounts { answered: 2, fastest_ns: 90 * MS, ..ClientCounts::default() };
        assert_eq!(unequal(&[(15, client(100, MS)), (1, few)]), None);
    }
}
