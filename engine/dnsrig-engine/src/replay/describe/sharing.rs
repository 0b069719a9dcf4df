//! What clients would have from sharing a cache: how much a cache that has room for all and forgets nothing answers, of
//! all clients and of shares of them. No clock, no file.

use std::collections::HashMap;

use serde::Serialize;

/// Clients are dealt out to so many groups; a share of them is several groups.
const GROUPS: usize = 16;

/// So many distinct questions are counted, 8 bytes each and as much again for the table.
const QUESTIONS_MAX: usize = 1 << 24;

/// The hit ratio of a share of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HitRatio {
    pub share: f64,
    /// Groups put together in several ways give several figures.
    pub lowest: f64,
    pub middle: f64,
    pub highest: f64,
}

/// Who asked for what.
#[derive(Default)]
pub struct Sharing {
    /// By 48 bits of a question's hash: a bit for each group that asked for it.
    questions: HashMap<[u8; 6], u16>,
    queries: [u64; GROUPS],
    is_full: bool,
}

impl Sharing {
    /// A client asked a question, of which the hash is given.
    pub fn add(&mut self, client: u32, question: u64) {
        // Numbers of clients need not be spread evenly, the high bits of these products are (Knuth, TAOCP 3, 6.4).
        let group = (u64::from(client).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize;
        let [key @ .., _, _] = question.to_le_bytes();
        if self.questions.len() == QUESTIONS_MAX && !self.questions.contains_key(&key) {
            self.is_full = true;
            return;
        }
        self.queries[group] += 1;
        *self.questions.entry(key).or_default() |= 1 << group;
    }

    /// How many distinct questions there are, or at least are.
    pub fn questions(&self) -> u64 {
        self.questions.len() as u64
    }

    /// Of a sixteenth of the clients, an eighth, a quarter, half of them, and all; none if there are too many
    /// questions.
    pub fn hit_ratios(&self) -> Vec<HitRatio> {
        if self.is_full || self.questions.is_empty() {
            return Vec::new();
        }
        let mut asked_by = vec![0_u64; 1 << GROUPS];
        self.questions.values().for_each(|groups| asked_by[usize::from(*groups)] += 1);
        (0..=GROUPS.ilog2()).filter_map(|power| self.of_groups(1 << power, &asked_by)).collect()
    }

    /// Of `count` groups that stand beside each other, from each on.
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
        let (mut own, mut same) = (Sharing::default(), Sharing::default());
        for client in 0..1_000_u32 {
            for question in 0..10_u64 {
                own.add(client, u64::from(client) << 8 | question);
                own.add(client, u64::from(client) << 8 | question);
                same.add(client, question);
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
        let mut sharing = Sharing::default();
        assert!(sharing.hit_ratios().is_empty());
        (0..4).for_each(|_| sharing.add(7, 1));
        let ratios = sharing.hit_ratios();
        assert!(ratios.len() == 5 && ratios.iter().all(|ratio| ratio.middle == 0.75));
    }
}
