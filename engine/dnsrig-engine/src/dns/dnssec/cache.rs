//! Signatures that were made, the last used of them, in bounded memory.
//!
//! They are found by a digest of what they sign: whatever differs (zone, key, validity, owner, TTL, data) has another
//! signature, and one that is found is right.

use lru::LruCache;
use ring::digest::{SHA256, digest};

/// The first half of the SHA-256 of what is signed: among a billion there are two alike in one of 10^20 cases.
type Digest = [u8; 16];

/// What an entry takes beside its signature: digest, four pointers and the length, its share of a hash table that is
/// half full, and what the allocator adds to two pieces. It is on the safe side: a signature of 64 bytes counts
/// 208, and took 179 where a million were kept beside another million (`examples/signing_speed.rs`).
pub const ENTRY_BYTES: usize = 144;

/// Signatures, the one used longest ago leaving first.
#[derive(Clone)]
pub struct Cache {
    entries: LruCache<Digest, Box<[u8]>>,
    bytes: usize,
    bytes_max: usize,
    forgotten: u64,
}

impl Cache {
    /// A cache that takes at most `bytes_max` bytes; none, if that is less than a signature takes.
    pub fn new(bytes_max: usize) -> Self {
        Cache { entries: LruCache::unbounded(), bytes: 0, bytes_max, forgotten: 0 }
    }

    /// The bytes that are taken.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many signatures had no room, or left for others.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Has the signature of a message appended to `to`: the one that is kept, or the one that `sign` appends, which is
    /// kept then. Returns whether it was there.
    pub fn append(&mut self, message: &[u8], to: &mut Vec<u8>, sign: impl FnOnce(&mut Vec<u8>)) -> bool {
        if self.bytes_max < ENTRY_BYTES {
            sign(to);
            self.forgotten += 1;
            return false;
        }
        let found: Digest = *digest(&SHA256, message).as_ref().first_chunk().expect("SHA-256 has 32 bytes");
        if let Some(signature) = self.entries.get(&found) {
            to.extend_from_slice(signature);
            return true;
        }
        let at = to.len();
        sign(to);
        self.keep(found, to[at..].into());
        false
    }

    fn keep(&mut self, digest: Digest, signature: Box<[u8]>) {
        self.bytes += ENTRY_BYTES + signature.len();
        self.entries.push(digest, signature);
        while self.bytes > self.bytes_max {
            let Some((_, oldest)) = self.entries.pop_lru() else { break };
            self.bytes -= ENTRY_BYTES + oldest.len();
            self.forgotten += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_used_longest_ago_leaves_first() {
        let mut cache = Cache::new(2 * (ENTRY_BYTES + 64));
        let mut ask = |message: &[u8]| {
            let mut to = vec![9];
            let found = cache.append(message, &mut to, |to| to.resize(to.len() + 64, message[0]));
            assert_eq!(to, [&[9][..], &[message[0]; 64]].concat());
            assert!(cache.bytes() <= 2 * (ENTRY_BYTES + 64));
            found
        };
        assert_eq!([b"a", b"b", b"a", b"c", b"a", b"b"].map(|one| ask(one)), [false, false, true, false, true, false]);
        assert_eq!(cache.forgotten(), 2, "b, and then c");
    }

    #[test]
    fn a_cache_without_room_keeps_nothing() {
        let mut cache = Cache::new(100);
        for _ in 0..2 {
            assert!(!cache.append(b"a", &mut Vec::new(), |to| to.push(1)));
        }
        assert_eq!(cache.forgotten(), 2);
        let mut cache = Cache::new(ENTRY_BYTES);
        assert!(!cache.append(b"a", &mut Vec::new(), |to| to.push(1)));
        assert_eq!(cache.bytes(), 0);
    }
}
