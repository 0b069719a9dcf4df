//! Keys for any number of zones: few keys, drawn from a seed, that zones share.
//!
//! For a validator, a zone's keys are its own even if other zones have them: names are part of what is signed. The keys
//! of a seed are the same in every run. RSA keys take long to find, so they are not drawn but [stored](RSA_KEYS).

use domain::utils::base64;
use ring::digest::{SHA256, digest};

use super::key::{Algorithm, Key, Role, Secret};

/// Private keys, each in its paragraph.
const RSA_KEYS: &str = include_str!("rsa_keys.txt");

/// A pool has at least one key for each algorithm and role, and at most so many: they share the 65,536 key tags.
pub const KEYS_MAX: usize = 1024;

/// Keys of every algorithm and role. No two of one algorithm have the same key tag.
pub struct Pool(Vec<Group>);

struct Group {
    algorithm: Algorithm,
    role: Role,
    keys: Vec<Key>,
}

impl Pool {
    /// `count` keys for each algorithm and role; of RSA, no more than are stored.
    pub fn new(seed: u64, count: usize) -> Self {
        let count = count.clamp(1, KEYS_MAX);
        let mut groups: Vec<Group> = Vec::new();
        for algorithm in Algorithm::ALL {
            for role in [Role::KeySigning, Role::ZoneSigning] {
                let mut group = Group { algorithm, role, keys: Vec::new() };
                // A number gives no key in one of 2^32 cases, and one with a known tag in few.
                let candidates: Box<dyn Iterator<Item = Secret>> = match algorithm {
                    Algorithm::RsaSha256 => Box::new(stored_rsa(role)),
                    _ => Box::new((0..u32::MAX).filter_map(move |number| drawn(seed, algorithm, role, number))),
                };
                for key in candidates.map(|secret| Key::new(secret, role)) {
                    let known =
                        groups.iter().filter(|group| group.algorithm == algorithm).flat_map(|group| &group.keys);
                    if known.chain(&group.keys).all(|other| other.tag() != key.tag()) {
                        group.keys.push(key);
                    }
                    if group.keys.len() == count {
                        break;
                    }
                }
                groups.push(group);
            }
        }
        Pool(groups)
    }

    /// The key for the zone with this number.
    pub fn key(&self, algorithm: Algorithm, role: Role, number: u64) -> &Key {
        let group = self.0.iter().find(|group| (group.algorithm, group.role) == (algorithm, role));
        let keys = &group.expect("a group for each algorithm and role").keys;
        &keys[(number % keys.len() as u64) as usize]
    }
}

/// The key of a seed with this number.
fn drawn(seed: u64, algorithm: Algorithm, role: Role, number: u32) -> Option<Secret> {
    let [seed, role] = [seed.to_be_bytes(), u64::from(role.flags()).to_be_bytes()];
    let text = [&b"dnsrig key"[..], &seed, &[algorithm.number()], &role, &number.to_be_bytes()].concat();
    let bytes = digest(&SHA256, &text).as_ref().try_into().expect("SHA-256 has 32 bytes");
    match algorithm {
        Algorithm::RsaSha256 => None,
        Algorithm::EcdsaP256Sha256 => Secret::p256(&bytes),
        Algorithm::Ed25519 => Secret::ed25519(&bytes),
    }
}

/// The stored keys for this role: half of all.
fn stored_rsa(role: Role) -> impl Iterator<Item = Secret> {
    let keys = || RSA_KEYS.split("\n\n").skip(1);
    let half = keys().count() / 2;
    let first = if role == Role::KeySigning { 0 } else { half };
    keys().skip(first).take(half).map(|text| {
        let der: Vec<u8> = base64::decode(&text.split_whitespace().collect::<String>()).expect("stored as base64");
        Secret::rsa(&der).expect("a stored key is a key")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_seed_and_differ_in_their_tags() {
        let (pool, again, other) = (Pool::new(7, 5), Pool::new(7, 3), Pool::new(8, 5));
        for algorithm in Algorithm::ALL {
            let tags = |pool: &Pool, role| [0, 1, 2].map(|number| pool.key(algorithm, role, number).tag());
            let [keys, zones] = [Role::KeySigning, Role::ZoneSigning].map(|role| tags(&pool, role));
            assert_eq!(keys, tags(&again, Role::KeySigning), "fewer keys are the first ones");
            assert_eq!(keys == tags(&other, Role::KeySigning), algorithm == Algorithm::RsaSha256);
            let mut all = [keys, zones].concat();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 6, "{algorithm:?}");
        }
        let [first, same] = [3, 6].map(|number| again.key(Algorithm::Ed25519, Role::ZoneSigning, number).dnskey());
        assert_eq!(first, same, "zones share keys");
    }
}
