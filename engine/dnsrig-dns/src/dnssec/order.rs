//! The canonical order of names (RFC 4034 §6.1). Names are in wire format and not compressed.

use std::cmp::Ordering;

/// A name of 255 bytes has at most so many labels, the root's not counted.
const LABELS_MAX: usize = 127;

/// Where the labels of a name begin, from the first to the last before the root.
#[derive(Clone, Copy)]
pub struct Labels {
    starts: [u8; LABELS_MAX],
    count: usize,
}

impl Labels {
    /// Finds the labels of a name. If the bytes are no name, the labels end where they stop being one.
    pub fn of(name: &[u8]) -> Self {
        let (mut starts, mut count, mut at) = ([0; LABELS_MAX], 0, 0);
        while let Some(length @ 1..=63) = name.get(at).copied() {
            let behind = at + 1 + usize::from(length);
            if count == LABELS_MAX || behind > name.len() || behind > 255 {
                break;
            }
            starts[count] = at as u8;
            count += 1;
            at = behind;
        }
        Labels { starts, count }
    }

    /// How many there are, without the root's.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Where the last `labels` labels begin.
    pub fn suffix_at(&self, labels: usize) -> Option<usize> {
        let first = self.count.checked_sub(labels)?;
        self.starts[..self.count].get(first).map(|start| usize::from(*start))
    }
}

/// The end of a name with `labels` labels before the root; the whole name if it has fewer.
pub fn suffix(name: &[u8], labels: usize) -> &[u8] {
    if labels == 0 {
        return &name[name.len().saturating_sub(1)..];
    }
    &name[Labels::of(name).suffix_at(labels).unwrap_or(0)..]
}

/// The order of two names: label by label from the root, in lower case; a name comes before what lies below it.
pub fn cmp(one: &[u8], other: &[u8]) -> Ordering {
    let [ones, others] = [one, other].map(Labels::of);
    for labels in 1..=ones.count.min(others.count) {
        let (one, other) = (label(one, &ones, labels), label(other, &others, labels));
        match lower(one).cmp(lower(other)) {
            Ordering::Equal => (),
            order => return order,
        }
    }
    ones.count.cmp(&others.count)
}

/// How many labels two names have in common, counted from the root, which does not count.
pub fn labels_in_common(one: &[u8], other: &[u8]) -> usize {
    let [ones, others] = [one, other].map(Labels::of);
    (1..=ones.count.min(others.count))
        .take_while(|labels| label(one, &ones, *labels).eq_ignore_ascii_case(label(other, &others, *labels)))
        .count()
}

/// The label that stands `number`-th from the end.
fn label<'n>(name: &'n [u8], labels: &Labels, number: usize) -> &'n [u8] {
    let start = usize::from(labels.starts[labels.count - number]);
    &name[start + 1..start + 1 + usize::from(name[start])]
}

fn lower(label: &[u8]) -> impl Iterator<Item = u8> {
    label.iter().map(u8::to_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use domain::base::{CanonicalOrd, Name};
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::testing::name;

    #[test]
    fn the_example_of_rfc_4034_is_in_order() {
        // RFC 4034 §6.1.
        let names = [
            name("example"),
            name("a.example"),
            name("yljkjljk.a.example"),
            name("Z.a.example"),
            name("zABC.a.EXAMPLE"),
            name("z.example"),
            [&b"\x01\x01"[..], &name("z.example")].concat(),
            [&b"\x01*"[..], &name("z.example")].concat(),
            [&b"\x01\xc8"[..], &name("z.example")].concat(),
        ];
        assert!(names.is_sorted_by(|one, other| cmp(one, other).is_lt()));
        assert_eq!(labels_in_common(&names[2], &names[3]), 2);
        assert_eq!(suffix(&names[2], 2), names[1]);
        assert_eq!((suffix(&names[2], 0), suffix(&[0], 3)), (&[0][..], &[0][..]));
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_another_library(
            names in vec(vec(vec(prop_oneof![any::<u8>(), b'A'..b'd'], 1..4), 0..5), 2),
        ) {
            let wire = |labels: &Vec<Vec<u8>>| {
                let mut wire: Vec<u8> = labels.iter().flat_map(|l| [&[l.len() as u8], &l[..]].concat()).collect();
                wire.push(0);
                wire
            };
            let (one, other) = (wire(&names[0]), wire(&names[1]));
            let of = |wire: &[u8]| Name::from_octets(wire.to_vec()).unwrap();
            prop_assert_eq!(cmp(&one, &other), of(&one).canonical_cmp(&of(&other)));
        }

        #[test]
        fn any_bytes_have_labels_within_them(bytes in vec(any::<u8>(), 0..300)) {
            let labels = Labels::of(&bytes);
            prop_assert!((1..=labels.count()).all(|number| label(&bytes, &labels, number).len() <= 63));
        }
    }
}
