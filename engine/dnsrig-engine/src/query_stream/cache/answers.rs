//! A cache that forgets nothing before its time, and who asked for what is in it.

use std::collections::HashMap;

use serde::Serialize;

/// Clients are dealt out to so many groups; a share of them is several groups.
const GROUPS: usize = 16;

/// The most answers that are kept: at most 40 bytes each, 640 MB.
pub const ANSWERS_MAX: usize = 1 << 24;

/// Times are kept as so many ticks, which takes 32 bits for more than a year.
const TICK_NS: i64 = 10_000_000;
const TICKS_A_SECOND: u32 = 100;

/// The hit ratio of a share of the clients, where answers hold forever.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HitRatio {
    pub share: f64,
    /// Groups put together in several ways give several figures.
    pub lowest: f64,
    pub middle: f64,
    pub highest: f64,
}

/// What the cache has for a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The question was asked before, however long ago.
    pub before: bool,
    /// And what was answered then still holds.
    pub holds: bool,
}

#[derive(Clone, Copy)]
struct Answer {
    /// In ticks.
    expires: u32,
    /// A bit for each group that asked; none of what clients did not ask for themselves.
    groups: u16,
}

/// The cache.
#[derive(Default)]
pub struct Answers {
    /// By 48 bits of a hash.
    answers: HashMap<[u8; 6], Answer>,
    queries: [u64; GROUPS],
    is_full: bool,
}

impl Answers {
    /// A client asks for something, of which the hash is given; without a TTL the answer holds forever.
    pub fn ask(&mut self, client: u32, key: u64, now_ns: i64, ttl_s: Option<u32>) -> Found {
        // Numbers of clients need not be spread evenly, the high bits of these products are (Knuth, TAOCP 3, 6.4).
        let group = (u64::from(client).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize;
        self.queries[group] += 1;
        self.find(1 << group, key, now_ns, ttl_s)
    }

    /// Looks a question up that no client asks, but the resolver itself.
    pub fn find(&mut self, groups: u16, key: u64, now_ns: i64, ttl_s: Option<u32>) -> Found {
        let [key @ .., _, _] = key.to_le_bytes();
        let now = u32::try_from(now_ns / TICK_NS).unwrap_or(u32::MAX - 1);
        let expires = ttl_s.map_or(u32::MAX, |ttl_s| now.saturating_add(ttl_s.saturating_mul(TICKS_A_SECOND)));
        if let Some(answer) = self.answers.get_mut(&key) {
            answer.groups |= groups;
            let holds = answer.expires > now;
            if !holds {
                answer.expires = expires;
            }
            return Found { before: true, holds };
        }
        if self.answers.len() < ANSWERS_MAX {
            self.answers.insert(key, Answer { expires, groups });
        } else {
            self.is_full = true;
        }
        Found::default()
    }

    /// How many different questions clients asked, or at least asked.
    pub fn questions(&self) -> u64 {
        self.answers.values().filter(|answer| answer.groups != 0).count() as u64
    }

    /// The hit ratios of a sixteenth of the clients, an eighth, a quarter, half of them, and all; none if there are too
    /// many questions.
    pub fn hit_ratios(&self) -> Vec<HitRatio> {
        if self.is_full || self.answers.is_empty() {
            return Vec::new();
        }
        let mut asked_by = vec![0_u64; 1 << GROUPS];
        self.answers.values().for_each(|answer| asked_by[usize::from(answer.groups)] += 1);
        (0..=GROUPS.ilog2()).filter_map(|power| self.of_groups(1 << power, &asked_by)).collect()
    }

    /// The hit ratio of `count` neighbouring groups, beginning with each of them.
    fn of_groups(&self, count: usize, asked_by: &[u64]) -> Option<HitRatio> {
        let ways = if count == GROUPS { 1 } else { GROUPS };
        let mut ratios: Vec<_> = (0..ways).filter_map(|first| self.ratio(first, count, asked_by)).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let (&lowest, &highest) = (ratios.first()?, ratios.last()?);
        Some(HitRatio { share: count as f64 / GROUPS as f64, lowest, middle: ratios[ratios.len() / 2], highest })
    }

    fn ratio(&self, first: usize, count: usize, asked_by: &[u64]) -> Option<f64> {
        let members = (first..first + count).map(|group| group % GROUPS);
        let mask = members.clone().fold(0, |mask, group| mask | 1 << group);
        let queries: u64 = members.map(|group| self.queries[group]).sum();
        let distinct: u64 = asked_by.iter().enumerate().filter(|(groups, _)| groups & mask != 0).map(|(_, n)| n).sum();
        (queries > 0).then(|| 1.0 - distinct as f64 / queries as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_with_names_of_their_own_gain_nothing_and_those_with_the_same_gain_all() {
        let (mut own, mut same) = (Answers::default(), Answers::default());
        for client in 0..1_000_u32 {
            for question in 0..10_u64 {
                own.ask(client, u64::from(client) << 8 | question, 0, None);
                own.ask(client, u64::from(client) << 8 | question, 0, None);
                same.ask(client, question, 0, None);
            }
        }
        let shares = [0.0625, 0.125, 0.25, 0.5, 1.0];
        assert_eq!(own.hit_ratios().iter().map(|ratio| ratio.share).collect::<Vec<_>>(), shares);
        assert!(own.hit_ratios().iter().all(|ratio| ratio.lowest == 0.5 && ratio.highest == 0.5));
        let same: Vec<_> = same.hit_ratios().iter().map(|ratio| 1.0 - ratio.middle).collect();
        // Ten questions of 10,000 queries, and of half of them about 5,000.
        assert!((same[4] - 0.001).abs() < 1e-9 && (same[3] - 0.002).abs() < 0.000_2, "{same:?}");
    }

    #[test]
    fn few_clients_are_in_few_groups_and_none_in_none() {
        let mut answers = Answers::default();
        assert!(answers.hit_ratios().is_empty());
        (0..4).for_each(|_| _ = answers.ask(7, 1, 0, None));
        answers.find(0, 2, 0, Some(60));
        let ratios = answers.hit_ratios();
        assert!(ratios.len() == 5 && ratios.iter().all(|ratio| ratio.middle == 0.75));
        assert_eq!(answers.questions(), 1);
    }

    #[test]
    fn an_answer_holds_for_its_ttl_or_forever() {
        let mut answers = Answers::default();
        let mut ask = |key, now_s: i64, ttl_s| answers.ask(0, key, now_s * 1_000_000_000, ttl_s);
        let (fresh, stale) = (Found { before: true, holds: true }, Found { before: true, holds: false });
        assert_eq!((ask(1, 0, Some(60)), ask(1, 59, Some(60)), ask(1, 60, Some(60))), (Found::default(), fresh, stale));
        assert_eq!(
            (ask(1, 119, Some(60)), ask(2, 0, None), ask(2, i64::MAX >> 30, None)),
            (fresh, Found::default(), fresh)
        );
    }

    /// Two of sixteen groups of clients have asked: one for two names, the other one for one of these.
    #[test]
    fn neighbouring_groups_are_put_together_in_all_ways() {
        let mut answers = Answers::default();
        let asked = [(0, 1), (0, 2), (1, 1)].map(|(client, key)| answers.ask(client, key, 0, None).before);
        assert_eq!((asked, answers.questions()), ([false, false, true], 2));
        let none = |share| HitRatio { share, lowest: 0.0, middle: 0.0, highest: 0.0 };
        // Only one way to choose half of the groups has both.
        let all = 1.0 - 2.0 / 3.0;
        let half = HitRatio { highest: all, ..none(0.5) };
        let whole = HitRatio { share: 1.0, lowest: all, middle: all, highest: all };
        assert_eq!(answers.hit_ratios(), [none(0.0625), none(0.125), none(0.25), half, whole]);
    }
}
