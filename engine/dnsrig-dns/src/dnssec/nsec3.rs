//! NSEC3: hashes of names, and the table of those that a zone has (RFC 5155).

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

const HASH_BYTES: usize = 20;
const BASE32HEX: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// The hash algorithm of the records: SHA-1, the only one there is (RFC 5155 §11).
const SHA1: u8 = 1;

/// The flag of records that span unsigned delegations (RFC 5155 §3.1.2.1).
const OPT_OUT: u8 = 1;

/// The length of a hash in base32hex, which is the first label of an NSEC3 record's owner.
pub const LABEL_BYTES: usize = 32;

/// A longer salt has no place in the records (RFC 5155 §3.1.4).
const SALT_BYTES_MAX: usize = 255;

/// The hash of a name.
pub type Hash = [u8; HASH_BYTES];

/// How a zone hashes its names. Without further iterations and salt by default (RFC 9276 §3.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params {
    pub iterations: u16,
    /// At most 255 bytes.
    pub salt: Vec<u8>,
    /// Whether unsigned delegations have no record (RFC 5155 §6).
    pub opt_out: bool,
}

impl Params {
    /// The hash of a name in wire format, which is not compressed.
    pub fn hash(&self, name: &[u8]) -> Hash {
        let hash = |bytes: &[u8]| -> Hash {
            digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref().try_into().expect("SHA-1 has 20 bytes")
        };
        let mut text = Vec::with_capacity(name.len() + self.salt.len());
        text.extend(name.iter().map(u8::to_ascii_lowercase));
        text.extend_from_slice(&self.salt);
        (0..self.iterations).fold(hash(&text), |last, _| {
            text.clear();
            text.extend_from_slice(&last);
            text.extend_from_slice(&self.salt);
            hash(&text)
        })
    }

    /// The data of the zone's NSEC3PARAM record, whose flags are always 0 (RFC 5155 §4.1.2).
    pub fn nsec3param(&self) -> Vec<u8> {
        self.begin(0)
    }

    /// The data of an NSEC3 record (RFC 5155 §3.2). `types` is a bitmap.
    pub fn nsec3(&self, next: &Hash, types: &[u8]) -> Vec<u8> {
        let flags = if self.opt_out { OPT_OUT } else { 0 };
        [&self.begin(flags), &[HASH_BYTES as u8][..], next, types].concat()
    }

    fn begin(&self, flags: u8) -> Vec<u8> {
        let salt = &self.salt[..self.salt.len().min(SALT_BYTES_MAX)];
        let [high, low] = self.iterations.to_be_bytes();
        [&[SHA1, flags, high, low, salt.len() as u8], salt].concat()
    }
}

/// The label of a hash: RFC 4648 §7 in lower case; 20 bytes need no padding.
pub fn label(hash: &Hash) -> [u8; LABEL_BYTES] {
    let mut label = [0; LABEL_BYTES];
    for (digits, bytes) in label.chunks_exact_mut(8).zip(hash.chunks_exact(5)) {
        let bits = bytes.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        for (place, digit) in digits.iter_mut().rev().enumerate() {
            *digit = BASE32HEX[(bits >> (5 * place)) as usize & 31];
        }
    }
    label
}

/// The name of the NSEC3 record of a hash in a zone, in wire format.
pub fn owner(hash: &Hash, apex: &[u8]) -> Vec<u8> {
    [&[LABEL_BYTES as u8][..], &label(hash), apex].concat()
}

/// The hash behind this one, as if it were a number.
pub fn successor(hash: &Hash) -> Hash {
    let mut next = *hash;
    for byte in next.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            break;
        }
    }
    next
}

/// The hashes of a zone's names in order, each with what the caller knows its name by: with a number, 24 bytes a name.
///
/// With opt-out only names with signed data are in it, so the table of a large delegating zone is small.
#[derive(Clone, Debug, Default)]
pub struct Table<N = u32>(Vec<(Hash, N)>);

impl<N: Copy + Ord> Table<N> {
    /// The table of these hashes.
    pub fn new(hashes: impl IntoIterator<Item = (Hash, N)>) -> Self {
        let mut table: Vec<(Hash, N)> = hashes.into_iter().collect();
        table.sort_unstable();
        table.dedup_by_key(|entry| entry.0);
        table.shrink_to_fit();
        Table(table)
    }

    /// How many hashes there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The last hash that is not beyond `hash`, the last of all before the first; its name; the hash behind it. None
    /// of an empty table.
    pub fn link(&self, hash: &Hash) -> Option<(Hash, N, Hash)> {
        let behind = self.0.partition_point(|(other, _)| other <= hash);
        let at = behind.checked_sub(1).or_else(|| self.0.len().checked_sub(1))?;
        let ((own, name), (next, _)) = (self.0[at], self.0[(at + 1) % self.0.len()]);
        Some((own, name, next))
    }
}

#[cfg(test)]
mod tests {
    use domain::{
        base::{Name, iana::Nsec3HashAlgorithm},
        dnssec::common::nsec3_hash,
        rdata::nsec3::{Nsec3Salt, OwnerHash},
    };
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::testing::{line, name};

    /// Of RFC 5155, appendix A.
    fn params() -> Params {
        Params { iterations: 12, salt: vec![0xaa, 0xbb, 0xcc, 0xdd], opt_out: true }
    }

    #[test]
    fn hashes_are_those_of_rfc_5155() {
        for (owner, hash) in [
            ("example", "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom"),
            ("a.Example", "35mthgpgcu1qg68fab165klnsnk3dpvl"),
            ("ns1.example", "2t7b4g4vsa5smi47k61mv5bv1a22bojr"),
            ("*.w.example", "r53bq7cc2uvmubfu5ocmm6pers9tk9en"),
            ("xx.example", "t644ebqk9bibcna874givr6joj62mlhv"),
        ] {
            assert_eq!(label(&params().hash(&name(owner))), hash.as_bytes(), "{owner}");
        }
        // Without salt and iterations, as dnspython computes it.
        assert_eq!(label(&Params::default().hash(&name("example"))), *b"3msev9usmd4br9s97v51r2tdvmr9iqo1");
    }

    #[test]
    fn records_are_those_of_rfc_5155() {
        let apex = name("example");
        let next = params().hash(&name("ns1.example"));
        let expected = line(
            "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom.example. 3600 IN NSEC3 1 1 12 aabbccdd 2t7b4g4vsa5smi47k61mv5bv1a22bojr \
             NS SOA MX RRSIG DNSKEY NSEC3PARAM",
        );
        let types = &expected.data[5 + 4 + 21..];
        assert_eq!(params().nsec3(&next, types), expected.data);
        assert_eq!(owner(&params().hash(&apex), &apex), expected.owner);
        assert_eq!(params().nsec3param(), line("example. 3600 IN NSEC3PARAM 1 0 12 aabbccdd").data);
        assert_eq!(Params::default().nsec3param(), line("example. 3600 IN NSEC3PARAM 1 0 0 -").data);
        assert_eq!(Params { iterations: 258, ..Params::default() }.nsec3param()[2..4], [1, 2]);
        let plain =
            line("0p9mhaveqvm6t7vbl5lop2u3t2rp3tom.example. 60 IN NSEC3 1 0 0 - 2t7b4g4vsa5smi47k61mv5bv1a22bojr NS");
        assert_eq!(Params::default().nsec3(&next, &plain.data[5 + 21..]), plain.data, "without opt-out");
    }

    #[test]
    fn a_table_is_a_circle() {
        let [a, b, c] = [1, 5, 9].map(|byte| [byte; 20]);
        let table = Table::new([(c, 3), (a, 1), (b, 2)]);
        assert_eq!(table.link(&a), Some((a, 1, b)));
        assert_eq!(table.link(&[6; 20]), Some((b, 2, c)));
        assert_eq!(table.link(&[0; 20]), Some((c, 3, a)), "before the first");
        assert_eq!(table.link(&[255; 20]), Some((c, 3, a)));
        assert_eq!(Table::new([(a, 1)]).link(&b), Some((a, 1, a)), "alone");
        assert_eq!((Table::<u32>::new([]).link(&a), table.len(), Table::<u32>::default().is_empty()), (None, 3, true));
        assert_eq!(successor(&[255; 20]), [0; 20]);
        assert_eq!(successor(&a)[18..], [1, 2]);
    }

    proptest! {
        #[test]
        fn hashes_are_those_of_another_library(
            labels in vec("[a-zA-Z0-9]{1,9}", 0..4), iterations in 0_u16..4, salt in vec(any::<u8>(), 0..9),
        ) {
            let text = labels.join(".") + ".";
            let theirs: OwnerHash<Vec<u8>> = nsec3_hash(
                text.parse::<Name<Vec<u8>>>().unwrap(),
                Nsec3HashAlgorithm::SHA1,
                iterations,
                &Nsec3Salt::from_octets(salt.clone()).unwrap(),
            ).unwrap();
            let ours = Params { iterations, salt, opt_out: false }.hash(&name(&text));
            prop_assert_eq!(&ours[..], theirs.as_slice());
            prop_assert_eq!(String::from_utf8_lossy(&label(&ours)).to_uppercase(), theirs.to_string().to_uppercase());
        }
    }
}
