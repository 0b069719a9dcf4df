//! The names of all second-level zones: a table in which each is found by halving.
//!
//! A name takes its letters and five bytes.

use super::{spec::Spec, tlds::Tlds};
use crate::dataset::tld_names::Names;

/// What every world has below `arpa`: the reverse zones of IPv4 and of IPv6 (RFC 1035 §3.5, RFC 3596 §2.5), and a zone
/// that is bogus, so that it is seen who validates.
const FIXED: [&[u8]; 3] = [b"in-addr", b"ip6", b"dnssec-failed"];

pub struct Seconds {
    /// Each with its length before it.
    labels: Vec<u8>,
    starts: Vec<u32>,
    /// The end of each TLD's zones; `arpa`, whose come last, has none among them.
    ends: Vec<u32>,
    first_of_arpa: u32,
    /// The number of that TLD.
    arpa: u32,
}

impl Seconds {
    /// Makes the names TLD by TLD; the names below `arpa` come last.
    /// `more`: TLDs and labels of more zones, sorted, each once; some may be drawn as well.
    pub fn new(spec: &Spec, tlds: &Tlds, more: &[(&[u8], Option<&[u8]>)]) -> Self {
        let (labels, starts, ends) = (Vec::new(), Vec::new(), Vec::new());
        let mut seconds = Seconds { labels, starts, ends, first_of_arpa: 0, arpa: tlds.arpa };
        let more_of = |tld: u32| {
            let label = tlds.get(tld).label.as_slice();
            let first = more.partition_point(|(tld, _)| *tld < label);
            more[first..].iter().take_while(move |(tld, _)| *tld == label).filter_map(|(_, second)| *second)
        };
        for tld in 0..tlds.count() {
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
            seconds.ends.push(seconds.count());
        }
        seconds.first_of_arpa = seconds.count();
        more_of(tlds.arpa).filter(|label| !FIXED.contains(label)).for_each(|label| seconds.push(label));
        FIXED.into_iter().for_each(|label| seconds.push(label));
        seconds
    }

    fn push(&mut self, label: &[u8]) {
        self.starts.push(self.labels.len() as u32);
        self.labels.push(label.len() as u8);
        self.labels.extend_from_slice(label);
    }

    pub fn count(&self) -> u32 {
        self.starts.len() as u32
    }

    /// The zones that not every world has: they come first.
    pub fn forward(&self) -> u32 {
        self.count() - FIXED.len() as u32
    }

    /// The zone that is bogus whatever a specification says.
    pub fn bogus(&self) -> u32 {
        self.count() - 1
    }

    /// The numbers of a TLD's zones, in the order of their names.
    pub fn of(&self, tld: u32) -> std::ops::Range<u32> {
        if tld == self.arpa {
            return self.first_of_arpa..self.count();
        }
        let start = tld.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        start..self.ends[tld as usize]
    }

    pub fn label(&self, number: u32) -> &[u8] {
        self.label_at(self.starts[number as usize])
    }

    fn label_at(&self, start: u32) -> &[u8] {
        let start = start as usize;
        &self.labels[start + 1..start + 1 + usize::from(self.labels[start])]
    }

    /// The TLD of a zone.
    pub fn tld(&self, number: u32) -> u32 {
        if number >= self.first_of_arpa { self.arpa } else { self.ends.partition_point(|end| *end <= number) as u32 }
    }

    /// The zone with this label in a TLD.
    pub fn find(&self, tld: u32, label: &[u8]) -> Option<u32> {
        let mut range = self.of(tld);
        if tld == self.arpa {
            // These are few, and not sorted.
            return range.find(|number| self.label(*number) == label);
        }
        let starts = &self.starts[range.start as usize..range.end as usize];
        let found = starts.binary_search_by(|start| self.label_at(*start).cmp(label)).ok()?;
        Some(range.start + found as u32)
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
            let tld = seconds.tld(number);
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
