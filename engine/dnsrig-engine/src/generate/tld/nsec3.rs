//! The hashed names of a zone and their order (RFC 5155), without salt and further iterations (RFC 9276 §3.1).

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

const HASH_BYTES: usize = 20;
const BASE32HEX: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// Of a hash in base32hex: the first label of an NSEC3 record's owner.
pub const LABEL_BYTES: u64 = 32;

type Hash = [u8; HASH_BYTES];

/// The hashes of all names that have an NSEC3 record, in order.
pub struct Chain {
    origin: String,
    hashes: Vec<Hash>,
}

impl Chain {
    /// Of the zone `origin` with these delegations, and of its apex.
    pub fn new(origin: &str, delegations: impl Iterator<Item = String>) -> Self {
        let mut hashes: Vec<Hash> = delegations.map(|label| hash(&label, origin)).collect();
        hashes.push(hash("@", origin));
        hashes.sort_unstable();
        Chain { origin: origin.to_owned(), hashes }
    }

    /// The hash of `owner`, which is relative to the zone or `@`, and the next one, as text; after the last the first.
    pub fn link(&self, owner: &str) -> (String, String) {
        let own = hash(owner, &self.origin);
        let after = self.hashes.partition_point(|other| *other <= own);
        (base32hex(&own), base32hex(&self.hashes[after % self.hashes.len()]))
    }
}

/// The hash of a name in wire format, in lower case.
fn hash(owner: &str, origin: &str) -> Hash {
    let relative = if owner == "@" { "" } else { owner };
    let labels = relative.split('.').chain(origin.split('.')).filter(|label| !label.is_empty());
    let mut wire = Vec::with_capacity(relative.len() + origin.len() + 3);
    for label in labels {
        wire.push(label.len() as u8);
        wire.extend(label.bytes().map(|byte| byte.to_ascii_lowercase()));
    }
    wire.push(0);
    digest(&SHA1_FOR_LEGACY_USE_ONLY, &wire).as_ref().try_into().expect("SHA-1 has 20 bytes")
}

/// RFC 4648 §7, in lower case; 20 bytes need no padding.
fn base32hex(hash: &Hash) -> String {
    hash.chunks(5)
        .flat_map(|chunk| {
            let bits = chunk.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
            (0..8).rev().map(move |digit| char::from(BASE32HEX[(bits >> (5 * digit)) as usize & 31]))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_other_programs() {
        // As dnspython computes them.
        let chain = Chain::new("Example", ["a".to_owned()].into_iter());
        let (apex, after_apex) = chain.link("@");
        let (a, after_a) = chain.link("A");
        assert_eq!((after_apex.as_str(), after_a.as_str()), (a.as_str(), apex.as_str()), "a circle");
        assert_eq!(
            (apex.as_str(), a.as_str()),
            ("3msev9usmd4br9s97v51r2tdvmr9iqo1", "6cd522290vma0nr8lqu1ivtcofj94rga")
        );
    }
}
