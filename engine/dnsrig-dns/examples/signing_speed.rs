//! What a signed answer costs: `cargo run --release --example signing_speed`.
//!
//! Prints a second of one core: fresh signatures of each algorithm, kept ones, and proofs. The median of 9 rounds, and
//! the slowest and the fastest. First, what a kept signature takes in memory, beside what the cache counts.
//! Nothing is asserted: run it on a machine that does nothing else.

use std::{borrow::Cow, fs, hint::black_box};

use dnsrig_dns::dnssec::{
    denial::{self, Claim, Hashes, Link},
    key::{Algorithm, Nonces, Role},
    nsec3::{Hash, Params, Table},
    pool::Pool,
    rrset::{Rrset, Validity},
    signer::{Cache, SignedZone, Signer},
};
use domain::base::Rtype;
use nix::time::{ClockId, clock_gettime};

const ROUNDS: usize = 9;
const APEX: &[u8] = b"\x04zone\x07example\x00";
/// Of a large zone that delegates.
const NAMES: u32 = 1_000_000;
/// Signatures, twice; after each half the hash table has doubled.
const KEPT: u32 = 1_000_000;

fn main() {
    memory();
    let pool = Pool::new(1, 1);
    for algorithm in Algorithm::ALL {
        for nonces in [Nonces::Random, Nonces::Reproducible] {
            let count = if algorithm == Algorithm::RsaSha256 { 500 } else { 5_000 };
            let mut signer = Signer::new(nonces, 0);
            sign(&format!("{algorithm:?} {nonces:?}, fresh"), &pool, algorithm, &mut signer, count, count);
        }
        let mut signer = Signer::new(Nonces::Random, 64 << 20);
        sign(&format!("{algorithm:?}, kept"), &pool, algorithm, &mut signer, 100_000, 1_000);
    }
    let params = Params::default();
    let table = Table::new((0..NAMES).map(|number| (params.hash(&owner(number)), number)));
    let chain = Chain { params, table, types: denial::bitmap([Rtype::NS, Rtype::DS, Rtype::RRSIG]) };
    measure("NXDOMAIN by hashes, not signed", 50_000, |number| {
        let missing = [b"\x03nx-", &owner(number)[..]].concat();
        black_box(denial::nsec3(&chain, APEX, &missing[4..], Claim::NxDomain, None));
    });
}

/// Keeps signatures, and compares the memory of this process with what is counted. The first half fills what the
/// allocator has left over from before.
fn memory() {
    let mut cache = Cache::new(usize::MAX);
    let mut fill = |numbers: std::ops::Range<u32>| {
        for number in numbers {
            cache.append(&number.to_be_bytes(), &mut Vec::new(), |to| to.resize(64, 0));
        }
        (cache.bytes() as u64, resident_bytes())
    };
    let (counted, resident) = fill(0..KEPT);
    let (counted_after, resident_after) = fill(KEPT..2 * KEPT);
    let of = |bytes: u64| bytes / u64::from(KEPT);
    println!(
        "a signature of 64 bytes: {} bytes, {} counted",
        of(resident_after - resident),
        of(counted_after - counted)
    );
}

fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("resident memory");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

/// Signs an A record of `names` names in turn.
fn sign(what: &str, pool: &Pool, algorithm: Algorithm, signer: &mut Signer, count: u32, names: u32) {
    let key = |role| pool.key(algorithm, role, 0);
    let zone = SignedZone {
        name: APEX,
        key_signing: key(Role::KeySigning),
        zone_signing: key(Role::ZoneSigning),
        validity: Validity { inception_s: 1_700_000_000, expiration_s: 1_800_000_000 },
        fault: None,
    };
    let mut rrsig = Vec::new();
    measure(what, count, |number| {
        let owner = owner(number % names);
        let rrset = Rrset { owner: &owner, rtype: Rtype::A, ttl_s: 300, data: [&[192, 0, 2, 1][..]] };
        rrsig.clear();
        black_box(signer.rrsig(&zone, &rrset, &mut rrsig).expect("an address"));
    });
}

fn owner(number: u32) -> Vec<u8> {
    [format!("\x07{number:07}").as_bytes(), APEX].concat()
}

struct Chain {
    params: Params,
    table: Table,
    types: Vec<u8>,
}

impl Hashes for Chain {
    fn params(&self) -> &Params {
        &self.params
    }

    fn link(&self, hash: &Hash) -> Link<'_, Hash> {
        let (own, _, next) = self.table.link(hash).expect("a zone with names");
        Link { own, next, types: Cow::Borrowed(&self.types) }
    }
}

fn measure(what: &str, count: u32, mut one: impl FnMut(u32)) {
    let mut rates: Vec<f64> = (0..ROUNDS as u32)
        .map(|round| {
            let start_ns = cpu_ns();
            (0..count).for_each(|number| one(round * count + number));
            f64::from(count) * 1e9 / (cpu_ns() - start_ns) as f64
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    println!("{what:40} {:10.0}/s  {:.0}..{:.0}", rates[ROUNDS / 2], rates[0], rates[ROUNDS - 1]);
}

fn cpu_ns() -> i64 {
    let now = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("a clock");
    now.tv_sec() * 1_000_000_000 + now.tv_nsec()
}
