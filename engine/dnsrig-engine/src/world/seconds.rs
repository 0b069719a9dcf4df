//! The names of all second-level zones: a table in which each is found by halving.
//!
//! A name takes its letters and four bytes: 16 MB for a million.

use super::{spec::Spec, tlds::Tlds};
use crate::dns::tld_names::Names;

/// What every world has below `arpa`: the reverse zones of IPv4 and of IPv6 (RFC 1035 §3.5, RFC 3596 §2.5), and a zone
/// that is bogus, so that it is seen who validates.
const FIXED: [&[u8]; 3] = [b"in-addr", b"ip6", b"dnssec-failed"];

pub struct Seconds {
    labels: Vec<u8>,
    ends: Vec<u32>,
    /// The first and the end of each TLD.
    ranges: Vec<(u32, u32)>,
    /// Where the zones of `arpa` begin: they come last.
    first_of_arpa: u32,
}

impl Seconds {
    /// Those of `arpa` come last, and all others TLD by TLD.
    /// `more`: TLDs and labels of more zones, sorted, each once; some may be drawn as well.
    pub fn new(spec: &Spec, tlds: &Tlds, more: &[(&[u8], Option<&[u8]>)]) -> Self {
        let (labels, ends, ranges) = (Vec::new(), Vec::new(), Vec::new());
        let mut seconds = Seconds { labels, ends, ranges, first_of_arpa: 0 };
        let more_of = |tld: u32| {
            let label = tlds.get(tld).label.as_slice();
            let first = more.partition_point(|(tld, _)| *tld < label);
            more[first..].iter().take_while(move |(tld, _)| *tld == label).filter_map(|(_, second)| *second)
        };
        for tld in 0..tlds.count() {
            let start = seconds.count();
            if tld != tlds.arpa {
                let mut more = more_of(tld).peekable();
                for label in Names::new(tlds.get(tld).zones.into(), spec.zones.names_seed) {
                    while let Some(before) = more.next_if(|more| *more < label.as_bytes()) {
                        seconds.push(before);
                    }
                    more.next_if_eq(&label.as_bytes());
                    seconds.push(label.as_bytes());
                }
                more.for_each(|label| seconds.push(label));
            }
            seconds.ranges.push((start, seconds.count()));
        }
        let start = seconds.count();
        seconds.first_of_arpa = start;
        more_of(tlds.arpa).filter(|label| !FIXED.contains(label)).for_each(|label| seconds.push(label));
        FIXED.into_iter().for_each(|label| seconds.push(label));
        seconds.ranges[tlds.arpa as usize] = (start, seconds.count());
        seconds
    }

    fn push(&mut self, label: &[u8]) {
        self.labels.extend_from_slice(label);
        self.ends.push(self.labels.len() as u32);
    }

    pub fn count(&self) -> u32 {
        self.ends.len() as u32
    }

    /// Those that not every world has: they come first.
    pub fn forward(&self) -> u32 {
        self.count() - FIXED.len() as u32
    }

    /// The zone that is bogus whatever a specification says.
    pub fn bogus(&self) -> u32 {
        self.count() - 1
    }

    /// The numbers of a TLD's zones, in the order of their names.
    pub fn of(&self, tld: u32) -> std::ops::Range<u32> {
        let (start, end) = self.ranges[tld as usize];
        start..end
    }

    pub fn label(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1] as usize };
        &self.labels[start..self.ends[number] as usize]
    }

    /// The TLD of a zone. That of `arpa` begins behind all others.
    pub fn tld(&self, number: u32, arpa: u32) -> u32 {
        if number >= self.first_of_arpa {
            return arpa;
        }
        // The range of arpa is out of order: it is passed over as if it were empty.
        let is_before = |tld: u32| {
            let (start, end) = if tld == arpa { self.empty_at(tld) } else { self.ranges[tld as usize] };
            start <= number && end <= number
        };
        let (mut low, mut high) = (0, self.ranges.len() as u32);
        while low < high {
            let middle = low.midpoint(high);
            if is_before(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The end of the TLD before `tld`.
    fn empty_at(&self, tld: u32) -> (u32, u32) {
        let end = tld.checked_sub(1).map_or(0, |before| self.ranges[before as usize].1);
        (end, end)
    }

    /// The zone with this label in a TLD.
    pub fn find(&self, tld: u32, label: &[u8]) -> Option<u32> {
        let range = self.of(tld);
        if range.start == self.first_of_arpa {
            // These are few, and not sorted.
            return range.into_iter().find(|number| self.label(*number) == label);
        }
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let middle = low.midpoint(high);
            match self.label(middle).cmp(label) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(middle),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_zone_is_found_by_its_name() {
        let spec = Spec::parse("zones.count = 3000").unwrap();
        let tlds = Tlds::new(&spec, std::iter::empty());
        let seconds = Seconds::new(&spec, &tlds, &[]);
        // Each TLD but arpa has `nic`, too.
        assert_eq!(seconds.count(), 3000 + 1438 + 3);
        for number in 0..seconds.count() {
            let tld = seconds.tld(number, tlds.arpa);
            assert_eq!(seconds.find(tld, seconds.label(number)), Some(number));
        }
        let com = tlds.find(b"com").unwrap();
        assert_eq!((seconds.find(com, b"zzzzzzzz"), seconds.find(com, b"")), (None, None));
        let expected: Vec<_> = Names::new(tlds.get(com).zones.into(), 1).collect();
        assert!(seconds.of(com).map(|number| seconds.label(number)).eq(expected.iter().map(String::as_bytes)));
        assert_eq!(seconds.label(seconds.find(tlds.arpa, b"ip6").unwrap()), b"ip6");
        assert_eq!(seconds.find(tlds.arpa, b"dnssec-failed"), Some(seconds.bogus()));
    }
}
