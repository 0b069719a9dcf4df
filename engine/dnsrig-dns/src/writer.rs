//! Writes messages: questions and records, into a vector or into room that is there, with names compressed or not.

use dnsrig_core::hash::fnv1a;
use domain::base::{Rtype, iana::Class};

use super::name;

/// Appends a question in class IN; `name` is in wire format.
pub fn append_question(to: &mut Vec<u8>, name: &[u8], rtype: Rtype) {
    to.extend_from_slice(name);
    to.extend_from_slice(&rtype.to_int().to_be_bytes());
    to.extend_from_slice(&Class::IN.to_int().to_be_bytes());
}

/// TYPE, CLASS, TTL and RDLENGTH, which follow the owner of a record (RFC 1035 §4.1.3).
#[inline]
pub fn record_head(rtype: Rtype, class: Class, ttl_s: u32, data_bytes: u16) -> [u8; 10] {
    let [[type_high, type_low], [class_high, class_low], [data_high, data_low]] =
        [rtype.to_int(), class.to_int(), data_bytes].map(u16::to_be_bytes);
    let [a, b, c, d] = ttl_s.to_be_bytes();
    [type_high, type_low, class_high, class_low, a, b, c, d, data_high, data_low]
}

/// Appends a record; the names in it are written as they are given.
///
/// # Panics
///
/// If the data has more than 65,535 bytes.
pub fn append_record(to: &mut Vec<u8>, owner: &[u8], rtype: Rtype, class: Class, ttl_s: u32, data: &[u8]) {
    let data_bytes = data.len().try_into().expect("the data of a record has a length of 16 bits");
    to.extend_from_slice(owner);
    to.extend_from_slice(&record_head(rtype, class, ttl_s, data_bytes));
    to.extend_from_slice(data);
}

/// A place in a buffer, behind what was written. Nothing is allocated on the way out.
pub struct MessageWriter<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> MessageWriter<'a> {
    /// Writes into `bytes` from `at` on.
    pub fn new(bytes: &'a mut [u8], at: usize) -> Self {
        MessageWriter { bytes, at }
    }

    /// Where the next byte goes.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Takes back all that was written from `at` on.
    #[inline]
    pub fn return_to(&mut self, at: usize) {
        self.at = at;
    }

    /// What was written, the bytes before the first place included.
    #[inline]
    pub fn message(&self) -> &[u8] {
        &self.bytes[..self.at]
    }

    /// What was written, the bytes before the first place included.
    pub fn written(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.at]
    }

    /// Writes `bytes`.
    ///
    /// # Panics
    ///
    /// If there is no room: the caller sees to it that the largest message fits.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// Room for a whole block, of which only the first `length` bytes count: quicker than a length that varies.
    ///
    /// # Panics
    ///
    /// Like [`MessageWriter::put`], if there is no room for the whole block.
    #[inline]
    pub fn block<const N: usize>(&mut self, length: usize) -> &mut [u8; N] {
        let block = self.bytes[self.at..].first_chunk_mut().expect("room for the block");
        self.at += length;
        block
    }

    /// Has `append` write behind what was written from `start` on. It gets all the room from there, and the length of
    /// what was written; it gives the new length.
    pub fn extend(&mut self, start: usize, append: impl FnOnce(&mut [u8], usize) -> usize) {
        self.at = start + append(&mut self.bytes[start..], self.at - start);
    }

    /// Writes a number, the most significant byte first.
    #[inline]
    pub fn put_u16(&mut self, number: u16) {
        self.put(&number.to_be_bytes());
    }

    /// Overwrites two bytes at `at`.
    #[inline]
    pub fn set_u16(&mut self, at: usize, number: u16) {
        self.bytes[at..at + 2].copy_from_slice(&number.to_be_bytes());
    }
}

/// The largest number of names in a message that others may point to.
const NAMES_MAX: usize = 48;

/// A pointer has 14 bits (RFC 1035 §4.1.4).
const POINTER_MAX: usize = 0x3fff;

/// The names in a message that later ones may point to (RFC 1035 §4.1.4).
pub struct NameCompressor {
    /// Where names begin, each with a hash of what follows.
    names: [(u32, u16); NAMES_MAX],
    count: usize,
}

impl Default for NameCompressor {
    fn default() -> Self {
        NameCompressor { names: [(0, 0); NAMES_MAX], count: 0 }
    }
}

impl NameCompressor {
    /// The number of names that are remembered, for [`NameCompressor::forget_from`].
    pub fn count(&self) -> usize {
        self.count
    }

    /// Forgets the names after the first `count`.
    pub fn forget_from(&mut self, count: usize) {
        self.count = count;
    }

    /// Remembers the name at `start` of a message, which is not compressed, and all that it ends with.
    pub fn remember_name(&mut self, message: &[u8], start: usize) {
        let end = name::skip_plain(message, start).unwrap_or(start);
        let mut at = start;
        while at < end && message[at] != 0 {
            self.remember(hash(&message[at..end]), at);
            at += 1 + usize::from(message[at]);
        }
    }

    fn remember(&mut self, hash: u32, at: usize) {
        if self.count < NAMES_MAX && at <= POINTER_MAX {
            self.names[self.count] = (hash, at as u16);
            self.count += 1;
        }
    }

    /// How many bytes of `name` are written out in `message`, and where the pointer to the rest leads.
    fn plain_bytes(&self, message: &[u8], name: &[u8]) -> (usize, Option<u16>) {
        let mut at = 0;
        while name.get(at).is_some_and(|length| *length != 0) {
            let suffix = &name[at..];
            let hash = hash(suffix);
            let found = self.names[..self.count].iter().find(|(known, place)| {
                *known == hash && name::equals(message, usize::from(*place), suffix).is_ok_and(|(same, _)| same)
            });
            if let Some((_, place)) = found {
                return (at, Some(*place));
            }
            at += 1 + usize::from(name[at]);
        }
        (name.len(), None)
    }

    /// The length of `name` when it is compressed.
    pub fn compressed_bytes(&self, message: &[u8], name: &[u8]) -> usize {
        match self.plain_bytes(message, name) {
            (plain, Some(_)) => plain + 2,
            (plain, None) => plain,
        }
    }

    /// Writes `name`, compressed, and remembers what of it is new.
    pub fn put(&mut self, to: &mut MessageWriter<'_>, name: &[u8]) {
        let (plain, pointer) = self.plain_bytes(to.message(), name);
        let start = to.at();
        let mut at = 0;
        while at < plain && name[at] != 0 {
            self.remember(hash(&name[at..]), start + at);
            at += 1 + usize::from(name[at]);
        }
        to.put(&name[..plain]);
        if let Some(place) = pointer {
            to.put_u16(0xc000 | place);
        }
    }
}

/// The hash of a name, whatever the case of its letters: half of a hash is enough to find it.
fn hash(name: &[u8]) -> u32 {
    (fnv1a(name) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use domain::base::{MessageBuilder, Name, StaticCompressor};
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::{name::expand, testing::name};

    /// Names that share labels at their ends.
    fn names() -> impl Strategy<Value = Vec<String>> {
        let label = prop_oneof!["[a-c]", "[A-C]", "www", "example"];
        vec(vec(label, 0..5).prop_map(|labels| labels.join(".") + "."), 1..80)
    }

    proptest! {
        /// Every name is read as it was given, and a message takes no more bytes than as another library compresses it
        /// (which remembers fewer names, each as it was written).
        #[test]
        fn compressed_names_are_read_as_they_were_given(names in names()) {
            let mut space = vec![0; 16_384];
            let mut to = MessageWriter::new(&mut space, 12);
            let mut compressor = NameCompressor::default();
            let mut starts = Vec::new();
            for text in &names {
                let wire = name(text);
                let bytes = compressor.compressed_bytes(to.message(), &wire);
                starts.push(to.at());
                compressor.put(&mut to, &wire);
                prop_assert_eq!(to.at() - starts[starts.len() - 1], bytes);
                to.put(&[0, 1, 0, 1]);
            }
            for (text, start) in names.iter().zip(&starts) {
                let mut found = Vec::new();
                expand(to.message(), *start, &mut found).unwrap();
                prop_assert!(found.eq_ignore_ascii_case(&name(text)), "{} as {:?}", text, found);
            }
            if names.len() <= 8 {
                let mut questions = MessageBuilder::from_target(StaticCompressor::new(Vec::new())).unwrap().question();
                for text in &names {
                    questions.push((text.parse::<Name<Vec<u8>>>().unwrap(), Rtype::A)).unwrap();
                }
                prop_assert!(to.at() <= questions.finish().into_target().len());
            }
        }
    }
}
