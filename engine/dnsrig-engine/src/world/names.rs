//! Names in wire format and lower case, with the places of their labels.

use std::ops::Deref;

use dnsrig_dns::name::NAME_BYTES_MAX;
use domain::base::Name;

/// A name of 255 bytes has at most so many labels, the root's not counted.
const LABELS_MAX: usize = 127;

/// A name.
#[derive(Clone, Debug)]
pub struct Labels {
    bytes: [u8; NAME_BYTES_MAX],
    length: usize,
    starts: [u8; LABELS_MAX],
    count: usize,
}

impl Labels {
    /// Reads a name that is not compressed; none if it is no name. Behind it there may be more.
    pub fn read(wire: &[u8]) -> Option<Self> {
        let mut labels = Labels { bytes: [0; NAME_BYTES_MAX], length: 0, starts: [0; LABELS_MAX], count: 0 };
        let mut at = 0;
        loop {
            let length = usize::from(*wire.get(at)?);
            let behind = at + 1 + length;
            if length > 63 || behind > NAME_BYTES_MAX {
                return None;
            }
            if length == 0 {
                labels.length = behind;
                break;
            }
            labels.starts[labels.count] = at as u8;
            labels.count += 1;
            at = behind;
        }
        labels.bytes[..labels.length].copy_from_slice(wire.get(..labels.length)?);
        // Lengths of labels are no letters.
        labels.bytes[..labels.length].make_ascii_lowercase();
        Some(labels)
    }

    /// Reads a name as it is written; errors are sentences.
    pub fn parse(text: &str) -> Result<Self, String> {
        let name = text.parse::<Name<Vec<u8>>>().map_err(|error| format!("`{text}` is no domain name: {error}"))?;
        Labels::read(name.as_slice()).ok_or_else(|| format!("`{text}` is no domain name"))
    }

    /// How many labels there are, the root's not counted.
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn wire(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Where the last `labels` labels begin; there are so many.
    pub fn suffix_at(&self, labels: usize) -> usize {
        if labels == 0 { self.length - 1 } else { usize::from(self.starts[self.count - labels]) }
    }

    /// The name of the last `labels` labels.
    pub fn suffix(&self, labels: usize) -> &[u8] {
        &self.bytes[self.suffix_at(labels)..self.length]
    }

    /// What stands before the last `outside` labels, from the `inside`th label from the end on: not a whole name.
    pub fn between(&self, inside: usize, outside: usize) -> &[u8] {
        &self.bytes[self.suffix_at(inside)..self.suffix_at(outside)]
    }

    /// The label with this number, counted from the end: 0 is the top-level domain.
    pub fn from_end(&self, number: usize) -> Option<&[u8]> {
        let at = usize::from(self.starts[self.count.checked_sub(number + 1)?]);
        Some(&self.bytes[at + 1..at + 1 + usize::from(self.bytes[at])])
    }
}

#[derive(Clone, Copy)]
pub struct Wire {
    bytes: [u8; NAME_BYTES_MAX],
    length: usize,
}

impl Wire {
    /// Puts parts together, which are not longer than a name may be.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut wire = Wire { bytes: [0; NAME_BYTES_MAX], length: 0 };
        for part in parts {
            let end = wire.length + part.len();
            wire.bytes[wire.length..end].copy_from_slice(part);
            wire.length = end;
        }
        wire
    }
}

impl Deref for Wire {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use dnsrig_dns::testing::name;
    use dnsrig_testing::any_bytes;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn labels_are_counted_from_the_end() {
        let labels = Labels::read(&name("A.b.Example")).unwrap();
        assert_eq!((labels.count(), labels.wire()), (3, &name("a.b.example")[..]));
        assert_eq!(
            (labels.from_end(0), labels.from_end(2), labels.from_end(3)),
            (Some(&b"example"[..]), Some(&b"a"[..]), None)
        );
        assert_eq!((labels.suffix(0), labels.suffix(2)), (&[0][..], &name("b.example")[..]));
        assert_eq!((labels.between(2, 1), labels.between(1, 1)), (&b"\x01b"[..], &b""[..]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_name_or_none(bytes in any_bytes(300)) {
            if let Some(labels) = Labels::read(&bytes) {
                prop_assert!(labels.wire().eq_ignore_ascii_case(&bytes[..labels.wire().len()]));
                prop_assert_eq!(labels.suffix(labels.count()), labels.wire());
            }
        }
    }
}
