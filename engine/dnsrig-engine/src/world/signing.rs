//! Which zones are signed, and how: keys, algorithm, and the kind of chain that proves what does not exist.

use dnsrig_core::{draw::is_share, hash::fnv1a, random::Random};
use dnsrig_dns::dnssec::{
    key::{Algorithm, Nonces, Role},
    nsec3::Params,
    pool::Pool,
    rrset::{Rrset, Validity},
    signer::{Counts, SignedZone, Signer},
};
use domain::base::Rtype;

use super::{
    Node, World, Zone,
    chain::{Builder, Chain},
    names::{Labels, Wire},
    records::{Records, Types},
    spec::{self, SignedZones},
};

/// Streams of random numbers.
const PURPOSE_SIGNED: u64 = 54;
const PURPOSE_SIGNING: u64 = 55;

const DAY_S: u32 = 86_400;

/// NSEC3PARAM is for the zone's servers, and nobody keeps it (RFC 5155 §4).
const NSEC3PARAM_TTL_S: u32 = 0;

/// How a zone is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signing {
    pub algorithm: Algorithm,
    /// Of NSEC3; none: NSEC.
    pub params: Option<Params>,
    /// One key signs everything.
    pub has_one_key: bool,
    /// The number of its keys in the pool.
    keys: u64,
}

impl World {
    /// How a zone is signed, if it is. Then its parent is, too, and has its DS record.
    pub fn signing(&self, zone: Zone) -> Option<Signing> {
        let spec = &self.spec.signing;
        match zone {
            Zone::Tld(number) if number != self.tlds.arpa => {
                let is_signed = self.is_tld_signed(number);
                is_signed.then(|| self.draw_signing(&spec.tlds, fnv1a(&self.name(zone)), true))
            }
            Zone::Second(number) if number < self.seconds.forward() => {
                let tld = self.seconds.tld(number);
                let share = spec.share.or(self.tlds.get(tld).signed_zones).unwrap_or(spec.zones.signed);
                let seed = fnv1a(&self.name(zone));
                let mut random = Random::new(self.spec.seed ^ seed, PURPOSE_SIGNED);
                let is_one = is_share(&mut random, share) || self.dnssec_fault(zone).is_some();
                (is_one && self.is_tld_signed(tld)).then(|| self.draw_signing(&spec.zones, seed, false))
            }
            Zone::Root | Zone::Tld(_) | Zone::Second(_) => {
                let keys = fnv1a(&self.name(zone));
                Some(Signing { algorithm: Algorithm::RsaSha256, params: None, has_one_key: false, keys })
            }
        }
    }

    pub(super) fn is_below_signed(&self, second: u32) -> bool {
        self.is_tld_signed(self.seconds.tld(second))
    }

    fn is_tld_signed(&self, number: u32) -> bool {
        let (tld, share) = (self.tlds.get(number), self.spec.signing.tlds.signed);
        let mut random = Random::new(self.spec.seed ^ fnv1a(&tld.label), PURPOSE_SIGNED);
        if tld.is_named { share > 0.0 } else { is_share(&mut random, share) }
    }

    fn draw_signing(&self, shares: &SignedZones, seed: u64, opt_out: bool) -> Signing {
        let random = &mut Random::new(self.spec.seed ^ seed, PURPOSE_SIGNING);
        let is_p256 = is_share(random, shares.p256);
        let is_ed25519 = is_share(random, if shares.p256 < 1.0 { shares.ed25519 / (1.0 - shares.p256) } else { 0.0 });
        let algorithm = match (is_p256, is_ed25519) {
            (true, _) => Algorithm::EcdsaP256Sha256,
            (_, true) => Algorithm::Ed25519,
            _ => Algorithm::RsaSha256,
        };
        let params = is_share(random, shares.nsec3).then(|| Params { opt_out, ..Params::default() });
        Signing { algorithm, params, has_one_key: is_share(random, shares.one_key), keys: seed }
    }

    /// The keys and the validity of a zone, if it is signed; `name` is the zone's.
    pub fn signed<'w>(&'w self, zone: Zone, name: &'w [u8]) -> Option<SignedZone<'w>> {
        self.signing(zone).map(|signing| self.signed_as(signing, zone, name))
    }

    fn signed_as<'w>(&'w self, signing: Signing, zone: Zone, name: &'w [u8]) -> SignedZone<'w> {
        let Signing { algorithm, has_one_key, keys, .. } = signing;
        let key_signing = self.pool().key(algorithm, Role::KeySigning, keys);
        let zone_signing = self.pool().key(algorithm, Role::ZoneSigning, keys);
        SignedZone {
            name,
            key_signing,
            zone_signing: if has_one_key { key_signing } else { zone_signing },
            validity: self.validity(),
            fault: self.dnssec_fault(zone),
        }
    }

    /// When all signatures are valid.
    pub fn validity(&self) -> Validity {
        let spec::Signing { epoch_s, validity_days, .. } = &self.spec.signing;
        Validity { inception_s: *epoch_s, expiration_s: epoch_s + validity_days * DAY_S }
    }

    fn pool(&self) -> &Pool {
        self.pool.get_or_init(|| Pool::new(self.spec.seed, self.spec.signing.keys as usize))
    }

    /// Draws all keys, and puts the chains of the root and the TLDs in order, so that no question waits for that.
    pub fn prepare_signing(&self) {
        self.pool();
        self.zones().take_while(|zone| zone.depth() < 2).for_each(|zone| {
            self.with_chain(zone, &mut |_| {});
        });
    }

    /// Calls `with` with the chain of a zone, if it is signed. That of the root and of TLDs is kept; of all others it
    /// is put in order each time: they are small.
    pub fn with_chain(&self, zone: Zone, with: &mut dyn FnMut(&Chain)) {
        let Some(signing) = self.signing(zone) else { return };
        let kept = match zone {
            Zone::Root => &self.chains[0],
            Zone::Tld(number) => &self.chains[1 + number as usize],
            Zone::Second(_) => return with(&self.chain(zone, &signing)),
        };
        with(kept.get_or_init(|| self.chain(zone, &signing)));
    }

    fn chain(&self, zone: Zone, signing: &Signing) -> Chain {
        let apex = self.name(zone);
        let mut chain = Builder::new(signing.params.as_ref());
        self.names(zone, &mut |relative, node| {
            let types = match node {
                Node::Types(types) => types,
                Node::Cut(child) => Types::of(&[Rtype::NS]).with(Rtype::DS, self.signing(child).is_some()),
                Node::Missing => return,
            };
            chain.add(&Wire::of(&[relative, &apex]), types);
            // What is above it, and may have no records.
            let mut above = relative;
            while let Some((length, rest)) = above.split_first() {
                above = &rest[usize::from(*length)..];
                if !above.is_empty() && self.node(zone, above) == Node::Types(Types::default()) {
                    chain.add(&Wire::of(&[above, &apex]), Types::default());
                }
            }
        });
        chain.finish()
    }

    /// What signing adds to what is at a name.
    pub(super) fn with_signing(&self, zone: Zone, relative: &[u8], node: Node) -> Node {
        let (Node::Types(types), true) = (node, relative.is_empty()) else { return node };
        let Some(signing) = self.signing(zone) else { return node };
        let types = types.with(Rtype::NSEC3PARAM, signing.params.is_some());
        let has_keys = self.signed_as(signing, zone, &self.name(zone)).dnskeys().next().is_some();
        Node::Types(types.with(Rtype::DNSKEY, has_keys))
    }

    /// Appends what is at the apex of a signed zone: DNSKEY or NSEC3PARAM.
    pub(super) fn add_signing(&self, zone: Zone, rtype: Rtype, owner: &[&[u8]], to: &mut Records) {
        if rtype == Rtype::NSEC3PARAM {
            to.begin(owner, rtype, NSEC3PARAM_TTL_S);
            self.signing(zone).and_then(|signing| signing.params).iter().for_each(|params| {
                to.push(&[&params.nsec3param()]);
            });
        } else {
            to.begin(owner, rtype, self.apex_ttl_s(zone));
            let name = self.name(zone);
            self.signed(zone, &name).iter().flat_map(SignedZone::dnskeys).for_each(|dnskey| to.push(&[dnskey]));
        }
    }

    /// Appends the DS record of a zone, if it is signed: whether it is.
    pub fn add_ds(&self, parent: Zone, zone: Zone, owner: &[&[u8]], to: &mut Records) -> bool {
        let name = self.name(zone);
        let Some(signed) = self.signed(zone, &name) else { return false };
        to.begin(owner, Rtype::DS, self.delegation_ttl_s(parent));
        to.push(&[&signed.ds()]);
        true
    }

    /// The TTL of the records that prove what does not exist: as of the SOA in such an answer (RFC 9077).
    pub fn denial_ttl_s(&self, zone: Zone) -> u32 {
        self.spec.ttls.negative_s.min(self.apex_ttl_s(zone))
    }
}

/// The signer of a thread, which keeps the signatures that it made.
#[derive(Clone)]
pub struct Signatures {
    signer: Signer,
    rdata: Vec<u8>,
}

impl Signatures {
    /// At most `bytes_max` bytes of signatures are kept.
    pub fn new(nonces: Nonces, bytes_max: usize) -> Self {
        Signatures { signer: Signer::new(nonces, bytes_max), rdata: Vec::new() }
    }

    pub fn counts(&self) -> Counts {
        self.signer.counts()
    }

    /// The counts so far; they begin again.
    pub fn take_counts(&mut self) -> Counts {
        self.signer.take_counts()
    }

    /// Appends the signatures of RRsets of a zone, but for the NS records of delegations, which are the child's (RFC
    /// 4035 §2.2).
    ///
    /// `expanded` says from which RRset on they are a wildcard's, and below how many last labels that is: then the
    /// wildcard is signed (RFC 4035 §3.1.3.3).
    pub fn sign(&mut self, zone: &SignedZone<'_>, records: &mut Records, expanded: Option<(usize, usize)>) {
        for number in 0..records.len() {
            let set = records.get(number);
            if set.rtype == Rtype::NS && set.owner != zone.name {
                continue;
            }
            let wildcard = expanded
                .filter(|(first, _)| number >= *first)
                .and_then(|(_, labels)| Some(Wire::of(&[b"\x01*", Labels::read(set.owner)?.suffix(labels)])));
            let owner = wildcard.as_deref().unwrap_or(set.owner);
            self.rdata.clear();
            let rrset = Rrset { owner, rtype: set.rtype, ttl_s: set.zone_ttl_s, data: set.data() };
            // The data that a world makes are as their types ask for.
            let is_signed = self.signer.rrsig(zone, &rrset, &mut self.rdata) == Ok(true);
            drop(rrset);
            if is_signed {
                records.begin_beside(number, Rtype::RRSIG);
                records.push(&[&self.rdata]);
            }
        }
    }
}
