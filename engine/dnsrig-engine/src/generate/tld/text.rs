//! The records of the zone, as text (RFC 1035 §5.1), each counted, and the size of its AXFR estimated on the wire.

use dnsrig_core::random::Random;
use dnsrig_dns::dnssec::nsec3::{Hash, LABEL_BYTES, Params, Table, label};
use domain::base::Name;

use crate::generate::{
    dataset::SOA_TIMERS,
    zones::{push, push_a, push_aaaa},
};

/// The TTL of delegations, in seconds: a day, as is usual for TLDs.
const TTL: u32 = 86_400;

/// The TTL of denials, in seconds: the minimum of the SOA (RFC 9077 §3).
const DENIAL_TTL: u32 = 300;

/// From when to when the signatures claim to be valid: long enough for no server to call them expired.
const VALIDITY: &str = "20450101000000 20250101000000";

/// ECDSA P-256 with SHA-256 (RFC 6605 §4) and the bytes of its signatures and of a SHA-256 digest.
const ALGORITHM: u8 = 13;
const SIGNATURE_BYTES: u64 = 64;
const DIGEST_BYTES: u64 = 32;

/// Public keys whose private halves were thrown away: flags (RFC 4034 §2.1.1), key, key tag.
const KEYS: [(u16, &str, u16); 2] = [
    (257, "gwjo248lGrX6D1zJdSolisY5HCLwWyFA5/YtPXStZqL4/yQKMpvI/lBLlSvh4TGmaRRQAZppGEhW+MOSKAz+Vg==", 44591),
    (256, "7Xb+Zz8ETkHmL4P+o6w3+vQ9u+EWONtKSE+fi2JhwDMQQS5I+N0tu2PjGLOXWJ6GiYwZC7OeALW6JNnsS4Tksw==", 41446),
];

/// The domain of all hosters (RFC 2606).
const HOSTER_PARENT: &str = "example.net";

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const HEX: &[u8; 16] = b"0123456789abcdef";

/// The message that a hoster's domain, and each of its name servers 1 to 4, was in last.
type LastMessages = [u64; 5];

/// The owner of a denial: a delegation without DS, a delegation with DS, or the apex.
#[derive(Clone, Copy)]
pub enum Owner {
    Unsigned,
    Signed,
    Apex,
}

/// A zone being written.
pub struct ZoneText {
    text: String,
    origin: String,
    serial: u32,
    records: u64,
    axfr: Axfr,
    hosters: Vec<LastMessages>,
    /// Random bytes for digests and signatures.
    random: Random,
    /// The owner of the last record, relative to the zone.
    owner: String,
    /// With NSEC3.
    chain: Option<Chain>,
}

impl ZoneText {
    /// A zone named `origin`, without a final dot.
    pub fn new(origin: &str, serial: u32, hosters: usize, random: Random, chain: Option<Chain>) -> Self {
        let mut text = String::with_capacity(16 * 1024);
        push(&mut text, format_args!("$ORIGIN {origin}.\n$TTL {TTL}\n"));
        let hosters = vec![LastMessages::default(); hosters];
        ZoneText {
            text,
            origin: origin.to_owned(),
            serial,
            records: 0,
            axfr: Axfr::default(),
            hosters,
            random,
            owner: String::new(),
            chain,
        }
    }

    /// The text since it was last forgotten.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Makes room for more text.
    pub fn forget_text(&mut self) {
        self.text.clear();
    }

    /// The number of records so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Bytes and messages of the AXFR, with the SOA that ends it (RFC 5936 §2.2).
    pub fn axfr(&self) -> (u64, u64) {
        let (bytes, messages) = self.axfr.total();
        (bytes + 2 * POINTER_BYTES + 44, messages)
    }

    /// SOA and its RRSIG.
    pub fn soa(&mut self) {
        let serial = self.serial;
        let owner_bytes = self.push_owner("@");
        push(&mut self.text, format_args!("\tIN SOA a.nic hostmaster.nic {serial} {SOA_TIMERS}\n"));
        self.count(owner_bytes, 2 * name_bytes("hostmaster.nic") + 20);
        self.signature("SOA");
    }

    /// An NS record of `owner` for a name server in this zone.
    pub fn own_server(&mut self, owner: &str, target: &str) {
        let owner_bytes = self.push_owner(owner);
        push(&mut self.text, format_args!("\tIN NS {target}\n"));
        // `target` ends in names that are in the message already, mostly in `owner`: its first label is new.
        let first_label = target.split('.').next().map_or(0, str::len) as u64 + 1;
        self.count(owner_bytes, first_label + POINTER_BYTES);
    }

    /// An NS record of `owner` for name server `number`, 1 to 4, of a hoster.
    pub fn hosted_server(&mut self, owner: &str, hoster: usize, number: usize) {
        let owner_bytes = self.push_owner(owner);
        push(&mut self.text, format_args!("\tIN NS ns{number}.dns-{hoster:05}.{HOSTER_PARENT}.\n"));
        let message = self.axfr.message();
        let last = &mut self.hosters[hoster];
        let target_bytes = match (last[number] == message, last[0] == message) {
            (true, _) => POINTER_BYTES,
            (false, true) => 4 + POINTER_BYTES,
            (false, false) => 4 + 10 + POINTER_BYTES,
        };
        (last[0], last[number]) = (message, message);
        self.count(owner_bytes, target_bytes);
    }

    /// DS of the current owner, with a random digest, and its RRSIG.
    pub fn delegation_signer(&mut self) {
        let tag = self.random.below(1 << 16);
        push(&mut self.text, format_args!("\tIN DS {tag} {ALGORITHM} 2 "));
        for _ in 0..DIGEST_BYTES / 8 {
            push_digits::<16, 4>(&mut self.text, HEX, self.random.bits());
        }
        self.text.push('\n');
        self.count(POINTER_BYTES, 4 + DIGEST_BYTES);
        self.signature("DS");
    }

    /// Both keys and their RRSIG, by the first one; and the parameters of NSEC3, where the zone has that.
    pub fn keys(&mut self) {
        for (flags, key, _) in KEYS {
            push(&mut self.text, format_args!("\tIN DNSKEY {flags} 3 {ALGORITHM} {key}\n"));
            self.count(POINTER_BYTES, 4 + SIGNATURE_BYTES);
        }
        self.signature("DNSKEY");
        if self.chain.is_some() {
            self.text.push_str("\tIN NSEC3PARAM 1 0 0 -\n");
            self.count(POINTER_BYTES, 5);
            self.signature("NSEC3PARAM");
        }
    }

    /// NSEC or NSEC3 of the current owner and its RRSIG, perhaps a renewed one. `next` is relative to the zone, or `@`.
    pub fn denial(&mut self, next: &str, owner: Owner, is_renewed: bool) {
        // One block of the bitmap (RFC 4034 §4.1.2): up to NSEC (47) 6 bytes, up to DNSKEY (48) one more.
        if let Some((own, next)) = self.chain.as_ref().map(|chain| chain.link(&self.owner)) {
            let (types, bitmap_bytes) = match owner {
                Owner::Unsigned => ("NS", 3),
                Owner::Signed => ("NS DS RRSIG", 8),
                Owner::Apex => ("NS SOA RRSIG DNSKEY NSEC3PARAM", 9),
            };
            self.push_owner(&own);
            push(&mut self.text, format_args!("\t{DENIAL_TTL} IN NSEC3 1 0 0 - {next} {types}\n"));
            self.count(1 + LABEL_BYTES as u64 + POINTER_BYTES, 6 + 20 + bitmap_bytes);
            return self.sign("NSEC3", is_renewed);
        }
        let (types, bitmap_bytes) = match owner {
            Owner::Unsigned => ("NS RRSIG NSEC", 8),
            Owner::Signed => ("NS DS RRSIG NSEC", 8),
            Owner::Apex => ("NS SOA RRSIG NSEC DNSKEY", 9),
        };
        push(&mut self.text, format_args!("\t{DENIAL_TTL} IN NSEC {next} {types}\n"));
        let next_bytes = if next == "@" { 0 } else { next.len() as u64 + 1 };
        self.count(POINTER_BYTES, next_bytes + name_bytes(&self.origin) + bitmap_bytes);
        self.sign("NSEC", is_renewed);
    }

    /// A record, and perhaps another, with the address of a name server below a delegation; the first perhaps in
    /// another network.
    pub fn glue(&mut self, owner: &str, has_ipv6: bool, random: &mut Random, is_moved: bool) {
        // The name stood in an NS record just before, so it is a pointer however often it is owner.
        self.push_owner(owner);
        if is_moved {
            push(&mut self.text, format_args!("\tIN A 198.51.100.{}\n", random.below(256)));
        } else {
            push_a(&mut self.text, "", random);
        }
        self.count(POINTER_BYTES, 4);
        if has_ipv6 {
            push_aaaa(&mut self.text, "", random);
            self.count(POINTER_BYTES, 16);
        }
    }

    /// RRSIG of the current owner over its records of a type, made of random bytes.
    pub fn signature(&mut self, covered: &str) {
        self.sign(covered, false);
    }

    /// The same; a renewed one has every bit of the signature turned.
    fn sign(&mut self, covered: &str, is_renewed: bool) {
        let ZoneText { text, origin, random, owner, .. } = self;
        let tag = if covered == "DNSKEY" { KEYS[0].2 } else { KEYS[1].2 };
        let ttl = if matches!(covered, "NSEC" | "NSEC3") { DENIAL_TTL } else { TTL };
        let labels = origin.split('.').count() + usize::from(owner != "@");
        push(text, format_args!("\t{ttl} IN RRSIG {covered} {ALGORITHM} {labels} {ttl} {VALIDITY} {tag} {origin}. "));
        push_signature(text, random, if is_renewed { u64::MAX } else { 0 });
        let signer_bytes = name_bytes(origin);
        self.count(POINTER_BYTES, 18 + signer_bytes + SIGNATURE_BYTES);
    }

    fn count(&mut self, owner_bytes: u64, data_bytes: u64) {
        self.records += 1;
        self.axfr.add(owner_bytes, data_bytes);
    }

    /// Writes the owner of a record, if the record before had another, and returns its bytes.
    fn push_owner(&mut self, owner: &str) -> u64 {
        if self.owner == owner {
            return POINTER_BYTES;
        }
        owner.clone_into(&mut self.owner);
        self.text.push_str(owner);
        if owner == "@" { name_bytes(&self.origin) } else { owner.len() as u64 + 1 + POINTER_BYTES }
    }
}

/// A name in wire format, uncompressed: a length before each label, and the root.
fn name_bytes(name: &str) -> u64 {
    name.len() as u64 + 2
}

/// 64 random bytes in base64 (RFC 4648 §4): 86 digits, of the last only two bits are used, and the padding.
/// The bits that are set in `turned` are turned.
fn push_signature(text: &mut String, random: &mut Random, turned: u64) {
    for _ in 0..8 {
        push_digits::<10, 6>(text, BASE64, random.bits() ^ turned);
    }
    let last = random.bits() ^ turned;
    push_digits::<5, 6>(text, BASE64, last);
    text.push(char::from(BASE64[((last >> 60) & 0b11) as usize * 16]));
    text.push_str("==\n");
}

/// `COUNT` digits of `BITS` bits each, from the lowest bits of `bits` on.
fn push_digits<const COUNT: usize, const BITS: u32>(text: &mut String, alphabet: &[u8], bits: u64) {
    let digits: [u8; COUNT] =
        std::array::from_fn(|index| alphabet[(bits >> (index as u32 * BITS)) as usize & ((1 << BITS) - 1)]);
    text.push_str(str::from_utf8(&digits).expect("the alphabets are ASCII"));
}

/// A message is full at this many bytes: what .ch's AXFR had, 691 MB in 47,700 messages.
const MESSAGE_BYTES: u64 = 14_486;

/// The header of a message, and the length before it on TCP (RFC 1035 §4.1.1 and §4.2.2).
const HEADER_BYTES: u64 = 12 + 2;

/// Type, class, TTL and the length of the data (RFC 1035 §4.1.3).
const RECORD_BYTES: u64 = 10;

/// A compressed name, or the rest of one.
const POINTER_BYTES: u64 = 2;

/// The size of an AXFR, estimated while the zone is written.
///
/// Every message begins anew with name compression (RFC 1035 §4.1.4): the first time that a name is in a message, it is
/// written out, up to the part that is there already; later it is a pointer of two bytes. This is followed for owner
/// names and name servers, which are what can be compressed; names in RRSIG and NSEC are not (RFC 3597 §4).
#[derive(Default)]
struct Axfr {
    bytes: u64,
    messages: u64,
    in_message: u64,
}

impl Axfr {
    /// Adds a record with the bytes of its owner name and of its data.
    fn add(&mut self, owner_bytes: u64, data_bytes: u64) {
        let record = owner_bytes + RECORD_BYTES + data_bytes;
        if self.messages == 0 || self.in_message + record > MESSAGE_BYTES {
            self.messages += 1;
            self.in_message = HEADER_BYTES;
            self.bytes += HEADER_BYTES;
        }
        self.in_message += record;
        self.bytes += record;
    }

    /// The number of the message that is being filled; names are remembered by it.
    fn message(&self) -> u64 {
        self.messages
    }

    /// Bytes and messages so far.
    fn total(&self) -> (u64, u64) {
        (self.bytes, self.messages)
    }
}

/// The hashes of all names that have an NSEC3 record, in order, without salt and extra iterations (RFC 9276 §3.1).
pub struct Chain {
    apex: Vec<u8>,
    table: Table<()>,
}

impl Chain {
    /// Hashes the names of the zone `origin`: its delegations and its apex.
    pub fn new(origin: &str, delegations: impl Iterator<Item = String>) -> Self {
        let apex = origin.parse::<Name<Vec<u8>>>().expect("the command line has a name").into_octets();
        let owners = delegations.chain(["@".into()]);
        let table = Table::new(owners.map(|owner| (hash(&owner, &apex), ())));
        Chain { apex, table }
    }

    /// The hash of `owner`, which is a label or `@`, and the next one, as text; after the last the first.
    pub fn link(&self, owner: &str) -> (String, String) {
        let own = hash(owner, &self.apex);
        let (_, (), next) = self.table.link(&own).expect("the apex has a hash");
        (hash_text(&own), hash_text(&next))
    }
}

fn hash(owner: &str, apex: &[u8]) -> Hash {
    match owner {
        "@" => Params::default().hash(apex),
        label => Params::default().hash(&[&[label.len() as u8], label.as_bytes(), apex].concat()),
    }
}

fn hash_text(hash: &Hash) -> String {
    label(hash).map(char::from).iter().collect()
}

#[cfg(test)]
mod tests {
    use domain::{base::iana::SecurityAlgorithm, rdata::Dnskey, utils::base64};

    use super::*;

    #[test]
    fn the_key_tags_belong_to_the_keys() {
        for (flags, key, tag) in KEYS {
            let bytes: Vec<u8> = base64::decode(key).unwrap();
            assert_eq!(bytes.len() as u64, SIGNATURE_BYTES);
            let key = Dnskey::new(flags, 3, SecurityAlgorithm::from_int(ALGORITHM), bytes).unwrap();
            assert_eq!(key.key_tag(), tag);
        }
    }

    #[test]
    fn a_signature_is_64_bytes_of_clean_base64() {
        let mut random = Random::new(1, 0);
        for _ in 0..100 {
            let mut text = String::new();
            push_signature(&mut text, &mut random, 0);
            let bytes: Vec<u8> = base64::decode(text.trim()).unwrap();
            assert_eq!(bytes.len(), 64);
        }
    }

    #[test]
    fn a_full_message_is_followed_by_another() {
        let mut axfr = Axfr::default();
        axfr.add(2, MESSAGE_BYTES - HEADER_BYTES - RECORD_BYTES - 2);
        assert_eq!(axfr.total(), (MESSAGE_BYTES, 1));
        axfr.add(2, 4);
        assert_eq!(axfr.total(), (MESSAGE_BYTES + HEADER_BYTES + 16, 2));
    }

    #[test]
    fn hashes_are_those_of_other_programs() {
        // dnspython computes these.
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
