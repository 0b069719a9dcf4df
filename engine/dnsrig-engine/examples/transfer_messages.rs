//! What the messages of a transfer cost: `cargo run --release --example transfer_messages`.
//!
//! Prints, for messages as servers make them, nanoseconds of CPU time a record and a message: the median of 9 rounds,
//! and the fastest and the slowest. Nothing is asserted: run it before and after a change, on a machine that does
//! nothing else.

use std::{fmt::Debug, hint::black_box, sync::Arc, time::Duration};

use dnsrig_dns::{
    query::{Ask, write_query},
    tsig::{
        sign::{Parts, Signer, parse_key, read_key},
        verify::Verifier,
    },
    xfr::{Incoming, Limits, Outcome, Sink, Step},
    zonemd,
};
use dnsrig_engine::transfer::zonefile;
use domain::{
    base::{Message, MessageBuilder, Name, Rtype, Serial, StaticCompressor, Ttl, iana::Class, wire::Composer},
    rdata::{A, Ns, Soa, tsig::Time48},
    tsig::{Key, ServerSequence},
};
use nix::time::{ClockId, clock_gettime};

const ROUNDS: usize = 9;
/// At least so many records a round.
const RECORDS: usize = 1 << 18;
const NOW_S: u64 = 1_700_000_000;
const LIMITS: Limits = Limits { bytes_max: u64::MAX, records_max: u64::MAX, messages_max: u32::MAX };
/// What a server fits into a message of 64 KiB, and leaves for a signature.
const MESSAGE_BYTES: usize = 65_000;

const KEY: &str = "hmac-sha256:key.example:c2VjcmV0IG9mIGEga2V5IQ==";

type Zone = Name<Vec<u8>>;
type Sequence = ServerSequence<Arc<Key>>;

fn main() {
    let tiny: Zone = "z000000.example".parse().expect("a name");
    let large: Zone = "example".parse().expect("a name");
    let compressed = || StaticCompressor::new(Vec::new());
    let signer = parse_key(KEY).expect("a key");

    let messages = answer(&tiny, 4, compressed, None);
    report("tiny zone of 4 records", &messages, &measure(&tiny, &messages, None, || ()));
    let messages = answer(&tiny, 4, compressed, Some(asked(&tiny)));
    report("tiny zone, hmac-sha256", &messages, &measure(&tiny, &messages, Some(&signer), || ()));
    let messages = answer(&large, 100_000, Vec::new, None);
    report("large zone, not compressed", &messages, &measure(&large, &messages, None, || ()));
    let messages = answer(&large, 100_000, compressed, Some(asked(&large)));
    report("large zone, hmac-sha256", &messages, &measure(&large, &messages, Some(&signer), || ()));
    let messages = answer(&large, 100_000, compressed, None);
    report("large zone, compressed", &messages, &measure(&large, &messages, None, || ()));
    let zone_file = || zonefile::Writer::new(std::io::sink());
    report("large zone, its zone file", &messages, &measure(&large, &messages, None, zone_file));
    // There is no ZONEMD record: only records are kept and sorted.
    let kept = || zonemd::Digest::new(1 << 30);
    report("large zone, kept in order", &messages, &measure(&large, &messages, None, kept));
}

/// What signs the answers to the query that [`measure`] asks.
fn asked(zone: &Zone) -> Sequence {
    let mut query = Vec::new();
    write_query(&mut query, 0, zone.as_slice(), Ask::Axfr);
    let _ = Verifier::sign(&parse_key(KEY).expect("a key"), &mut query, 0, NOW_S);
    let mut query = Message::from_octets(query).expect("a message");
    let Parts { algorithm, name, secret } = read_key(KEY).expect("a key");
    let key = Arc::new(Key::new(algorithm, &secret, name, None, None).expect("a key"));
    ServerSequence::request(&key, &mut query, Time48::from_u64(NOW_S)).ok().flatten().expect("signed by the key")
}

/// An AXFR of a zone of delegations: SOA, NS and A by turns, SOA; the question stands in the first message only.
fn answer<T>(zone: &Zone, records: usize, target: impl Fn() -> T, mut sequence: Option<Sequence>) -> Vec<Vec<u8>>
where
    T: Composer + AsRef<[u8]>,
    T::AppendError: Debug,
{
    let ttl = Ttl::from_secs(3600);
    let host: Zone = "ns1.hoster.test".parse().expect("a name");
    let mut messages: Vec<Vec<u8>> = Vec::new();
    let mut next = 0;
    while next <= records {
        let mut builder = MessageBuilder::from_target(target()).expect("a vector grows");
        builder.set_push_limit(MESSAGE_BYTES);
        builder.header_mut().set_qr(true);
        let mut question = builder.question();
        if messages.is_empty() {
            question.push((zone, Rtype::AXFR, Class::IN)).expect("it fits");
        }
        let mut answer = question.answer();
        while next <= records {
            let owner: Zone = format!("domain{:06}.{zone}", next.saturating_sub(1) / 2).parse().expect("a name");
            let soa = Soa::new(host.clone(), host.clone(), Serial(7), ttl, ttl, ttl, ttl);
            let pushed = match next {
                _ if next % records == 0 => answer.push((zone, ttl, soa)),
                _ if next % 2 == 1 => answer.push((&owner, ttl, Ns::new(host.clone()))),
                _ => answer.push((&owner, ttl, A::from_octets(192, 0, 2, 1))),
            };
            if pushed.is_err() {
                break;
            }
            next += 1;
        }
        let mut additional = answer.additional();
        additional.clear_push_limit();
        if let Some(sequence) = &mut sequence {
            sequence.answer(&mut additional, Time48::from_u64(NOW_S)).expect("it fits");
        }
        messages.push(additional.finish().as_ref().to_vec());
    }
    messages
}

/// The nanoseconds of each round for one transfer, and its records, the SOA at the end included.
struct Measured {
    transfer_ns: Vec<f64>,
    records: u64,
}

fn measure<S: Sink>(zone: &Zone, messages: &[Vec<u8>], signer: Option<&Arc<Signer>>, sink: impl Fn() -> S) -> Measured {
    let mut query = Vec::new();
    let mut transfer = || {
        query.clear();
        write_query(&mut query, 0, zone.as_slice(), Ask::Axfr);
        let verifier = signer.map(|signer| Box::new(Verifier::sign(signer, &mut query, 0, NOW_S)));
        let mut incoming = Incoming::new(Ask::Axfr, verifier);
        let mut sink = sink();
        let mut step = Step::More;
        for message in messages {
            step = incoming.take(black_box(message), zone.as_slice(), NOW_S, &LIMITS, &mut sink);
        }
        assert!(matches!(step, Step::Done(Outcome::Done | Outcome::ZonemdMissing)), "{step:?}");
        incoming.counts().records + 1
    };
    let records = transfer();
    let transfers = RECORDS.div_ceil(records as usize);
    let mut transfer_ns = Vec::new();
    for _ in 0..ROUNDS {
        let start = cpu_time();
        for _ in 0..transfers {
            black_box(transfer());
        }
        transfer_ns.push((cpu_time() - start).as_nanos() as f64 / transfers as f64);
    }
    transfer_ns.sort_by(f64::total_cmp);
    Measured { transfer_ns, records }
}

/// The CPU time of this thread: others that want the CPU do not count, but the caches they empty do.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("Linux has this clock").into()
}

fn report(what: &str, messages: &[Vec<u8>], measured: &Measured) {
    let bytes: usize = messages.iter().map(Vec::len).sum();
    let [min, median, max] =
        [0, ROUNDS / 2, ROUNDS - 1].map(|place| measured.transfer_ns[place] / measured.records as f64);
    println!(
        "{what:<28} {median:7.1} ns a record ({min:.1} to {max:.1}), {:9.0} ns a message of {:.1} records, {:.2} GB/s",
        median * measured.records as f64 / messages.len() as f64,
        measured.records as f64 / messages.len() as f64,
        bytes as f64 / (median * measured.records as f64),
    );
}
