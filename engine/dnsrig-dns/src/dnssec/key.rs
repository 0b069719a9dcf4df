//! Keys of zones: their private halves, and their DNSKEY and DS records.

use p256::ecdsa::{Signature, SigningKey, signature::Signer};
use ring::{
    digest::{SHA256, digest},
    rand::SystemRandom,
    rsa::PublicKeyComponents,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair},
};

/// The protocol field of DNSKEY records (RFC 4034 §2.1.2).
const PROTOCOL: u8 = 3;

/// The digest type of DS records: SHA-256 (RFC 4509).
const DIGEST_SHA256: u8 = 2;

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A DS record names it, and it signs the keys. It may sign all else, too: then it is the zone's only key.
    KeySigning,
    /// It signs all but the keys.
    ZoneSigning,
}

impl Role {
    /// The flags of the DNSKEY record: zone key, and for key-signing keys the secure entry point (RFC 4034 §2.1.1).
    pub fn flags(self) -> u16 {
        match self {
            Role::KeySigning => 257,
            Role::ZoneSigning => 256,
        }
    }
}

/// A key of a zone, with its private half.
pub struct Key {
    secret: Secret,
    dnskey: Vec<u8>,
    tag: u16,
}

impl Key {
    /// The key in this role.
    pub fn new(secret: Secret, role: Role) -> Self {
        let public = secret.public();
        let dnskey = [&role.flags().to_be_bytes()[..], &[PROTOCOL, secret.algorithm().number()], &public].concat();
        let tag = key_tag(&dnskey);
        Key { secret, dnskey, tag }
    }

    /// Its algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.secret.algorithm()
    }

    /// The data of its DNSKEY record (RFC 4034 §2.1).
    pub fn dnskey(&self) -> &[u8] {
        &self.dnskey
    }

    /// Its key tag.
    pub fn tag(&self) -> u16 {
        self.tag
    }

    /// The data of the DS record for it in the parent of `zone` (RFC 4034 §5.1), with SHA-256.
    pub fn ds(&self, zone: &[u8]) -> Vec<u8> {
        ds(zone, &self.dnskey)
    }

    /// Appends the signature of a message.
    pub fn sign(&self, message: &[u8], nonces: Nonces, to: &mut Vec<u8>) {
        self.secret.sign(message, nonces, to);
    }
}

/// The key tag of the data of a DNSKEY record (RFC 4034, appendix B).
pub fn key_tag(dnskey: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    let sum: u32 = dnskey.chunks(2).map(word).sum();
    (sum + (sum >> 16)) as u16
}

/// The data of the DS record for the DNSKEY record of `zone` with this data.
fn ds(zone: &[u8], dnskey: &[u8]) -> Vec<u8> {
    let digested = digest(&SHA256, &[&zone.to_ascii_lowercase(), dnskey].concat());
    [&key_tag(dnskey).to_be_bytes()[..], &[dnskey[3], DIGEST_SHA256], digested.as_ref()].concat()
}

/// The algorithm of a key and its signatures (IANA, DNS Security Algorithm Numbers).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Algorithm {
    /// RSA with SHA-256 (RFC 5702), here always of 2048 bits.
    RsaSha256 = 8,
    /// ECDSA with P-256 and SHA-256 (RFC 6605).
    EcdsaP256Sha256 = 13,
    /// Ed25519 (RFC 8080).
    Ed25519 = 15,
}

impl Algorithm {
    /// All that can be signed with.
    pub const ALL: [Algorithm; 3] = [Algorithm::RsaSha256, Algorithm::EcdsaP256Sha256, Algorithm::Ed25519];

    /// The number in records.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The length of its signatures.
    pub fn signature_bytes(self) -> usize {
        match self {
            Algorithm::RsaSha256 => 256,
            Algorithm::EcdsaP256Sha256 | Algorithm::Ed25519 => 64,
        }
    }
}

/// Where the nonces of ECDSA signatures come from. Signatures of the other algorithms have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nonces {
    /// From the system's random numbers: fast, and each signature is another.
    #[default]
    Random,
    /// From key and message (RFC 6979): the same message has the same signature.
    Reproducible,
}

/// A private key.
pub enum Secret {
    Rsa(RsaKeyPair),
    /// One key in two forms, for random and for reproducible nonces.
    P256(Box<(EcdsaKeyPair, SigningKey)>),
    Ed25519(Ed25519KeyPair),
}

impl Secret {
    /// An RSA key in the DER of RFC 8017, appendix A.1.2; `None` if it has less than 2048 bits or is not valid.
    pub fn rsa(der: &[u8]) -> Option<Self> {
        RsaKeyPair::from_der(der).ok().map(Secret::Rsa)
    }

    /// The key of P-256 with this private number; `None` if it is 0 or not below the order of the curve.
    pub fn p256(number: &[u8; 32]) -> Option<Self> {
        let reproducible = SigningKey::from_slice(number).ok()?;
        let point = reproducible.verifying_key().to_sec1_point(false);
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let fast = EcdsaKeyPair::from_private_key_and_public_key(algorithm, number, point.as_ref(), &random).ok()?;
        Some(Secret::P256(Box::new((fast, reproducible))))
    }

    /// The Ed25519 key of a seed (RFC 8032 §5.1.5).
    pub fn ed25519(seed: &[u8; 32]) -> Option<Self> {
        Ed25519KeyPair::from_seed_unchecked(seed).ok().map(Secret::Ed25519)
    }

    /// The algorithm of the key.
    pub fn algorithm(&self) -> Algorithm {
        match self {
            Secret::Rsa(_) => Algorithm::RsaSha256,
            Secret::P256(_) => Algorithm::EcdsaP256Sha256,
            Secret::Ed25519(_) => Algorithm::Ed25519,
        }
    }

    /// The public key as DNSKEY records contain it.
    pub fn public(&self) -> Vec<u8> {
        match self {
            // Exponent, with its length before it, and modulus (RFC 3110 §2).
            Secret::Rsa(key) => {
                let PublicKeyComponents { n, e } = PublicKeyComponents::<Vec<u8>>::from(key.public());
                [&[e.len() as u8], &e[..], &n].concat()
            }
            // The point without the byte that says that both coordinates follow (RFC 6605 §4).
            Secret::P256(keys) => keys.0.public_key().as_ref()[1..].to_vec(),
            Secret::Ed25519(key) => key.public_key().as_ref().to_vec(),
        }
    }

    /// Appends the signature of a message.
    ///
    /// # Panics
    ///
    /// If the system has no random numbers, which no Linux since 5.6 is without once it has started.
    pub fn sign(&self, message: &[u8], nonces: Nonces, to: &mut Vec<u8>) {
        const RANDOM: &str = "the system has random numbers";
        match (self, nonces) {
            (Secret::Rsa(key), _) => {
                let at = to.len();
                to.resize(at + key.public().modulus_len(), 0);
                key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut to[at..]).expect(RANDOM);
            }
            (Secret::P256(keys), Nonces::Random) => {
                to.extend_from_slice(keys.0.sign(&SystemRandom::new(), message).expect(RANDOM).as_ref());
            }
            (Secret::P256(keys), Nonces::Reproducible) => {
                let signature: Signature = keys.1.sign(message);
                to.extend_from_slice(&signature.to_bytes());
            }
            (Secret::Ed25519(key), _) => to.extend_from_slice(key.sign(message).as_ref()),
        }
    }
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
