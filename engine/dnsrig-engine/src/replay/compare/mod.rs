//! `replay compare`: how a stream arrived that was replayed.

mod arrival;
mod report;

use std::{
    collections::hash_map::DefaultHasher, hash::Hasher, net::IpAddr, path::PathBuf, process::ExitCode, time::Duration,
};

use dnsrig_core::{clock, events, failure::Failure, units};
use dnsrig_net::prefix::{self, Prefix};

use self::{
    arrival::{Arrivals, Query},
    report::{Summary, text},
};
use crate::{
    query_stream::{Record, StreamReader, Transport},
    replay::bad_arguments,
};

/// A query that comes so much earlier or later than when it was due is another one: where one of several equal queries
/// is lost, the next ones would else be taken for those before them.
const WINDOW_NS: i64 = 1_000_000_000;

/// Compare a stream with what arrived: whether every query came, byte by byte, in which order and at which intervals.
///
/// Capture the packets of a replay where they arrive, make a stream from the capture with `replay prepare --addresses`,
/// and compare it with the stream that was replayed. Two queries are the same if they come from the same client
/// address, differ in nothing but the message id, and are at most 1 s apart. A query is out of order if one that
/// follows it in the stream came before it (RFC 4737 §3). Intervals are between queries that follow each other in the
/// stream, so no two clocks are compared.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  \
    tcpdump -i eth0 -s 0 -w arrived.pcap dst port 53      # during the replay, at the server\n  \
    dnsrig replay prepare arrived.pcap --addresses --out arrived.stream\n  \
    dnsrig replay compare clients.stream arrived.stream --clients-from 198.19.0.0/16")]
pub struct Arguments {
    /// Stream that was replayed
    pub stream: PathBuf,
    /// Stream that arrived, made from a capture by `replay prepare --addresses`
    #[arg(value_name = "ARRIVED")]
    pub arrived: PathBuf,
    /// Prefix that `replay play` gave its clients addresses from
    #[arg(long, value_name = "PREFIX", value_parser = prefix::parse)]
    pub clients_from: Prefix,
    /// Speed of the replay: 2 is twice as fast as the stream
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = parse_speed)]
    pub speed: f64,
    /// Duration of the replay [default: the whole stream]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    pub duration: Option<Duration>,
}

fn parse_speed(text: &str) -> Result<f64, String> {
    units::parse_number(text, 0.001..=100_000.0, "a factor")
}

/// Reads both streams, and says how one arrived.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let summary = compare(arguments)?;
    events::say(text(&summary));
    events::summary(clock::monotonic_ns(), &summary)?;
    Ok(ExitCode::SUCCESS)
}

fn compare(arguments: &Arguments) -> Result<Summary, Failure> {
    let (mut sent, mut arrived) = (StreamReader::open(&arguments.stream)?, StreamReader::open(&arguments.arrived)?);
    let numbers = numbers(&arrived, arguments)?;
    let mut arrivals = Arrivals::default();
    let mut due = next_due(&mut sent, arguments)?;
    while let Some(record) = arrived.next()? {
        let now_ns = record.due_ns;
        let query = numbers[record.client as usize].map(|client| query(&record, client));
        let length = record.message.len();
        while let Some(next) = due.take_if(|next| next.due_ns <= now_ns.saturating_add(WINDOW_NS)) {
            arrivals.due(next);
            due = next_due(&mut sent, arguments)?;
        }
        arrivals.give_up(now_ns.saturating_sub(WINDOW_NS));
        arrivals.arrived(now_ns, length, query.map(|query| query.key));
    }
    while let Some(next) = due {
        arrivals.due(next);
        due = next_due(&mut sent, arguments)?;
    }
    Ok(arrivals.finish())
}

/// The stream's number of each client that arrived; none: its address is no client's.
fn numbers(arrived: &StreamReader, arguments: &Arguments) -> Result<Vec<Option<u32>>, Failure> {
    let header = arrived.header();
    if header.addresses_at == 0 && header.clients > 0 {
        let name = arguments.arrived.display();
        let sentence = format!("{name} has no addresses: make it with `replay prepare --addresses`");
        return Err(bad_arguments(sentence));
    }
    let number = |client| {
        let address = arrived.address(client)?.map(|address| IpAddr::V6(address).to_canonical());
        Ok(address.and_then(|address| arguments.clients_from.number(address)))
    };
    (0..header.clients as u32).map(number).collect()
}

/// The next query that the replay was to send.
fn next_due(sent: &mut StreamReader, arguments: &Arguments) -> Result<Option<Query>, Failure> {
    let Some(record) = sent.next()? else { return Ok(None) };
    let due_ns = (record.due_ns as f64 / arguments.speed) as i64;
    let is_over = arguments.duration.is_some_and(|longest| due_ns >= units::nanoseconds(longest));
    Ok((!is_over).then(|| Query { due_ns, ..query(&record, record.client) }))
}

/// The query with its key: a hash of its client and of the message without its id.
fn query(record: &Record, client: u32) -> Query {
    let mut hasher = DefaultHasher::new();
    hasher.write_u32(client);
    hasher.write(&record.message[2..]);
    Query {
        due_ns: record.due_ns,
        key: hasher.finish(),
        bytes: record.message.len(),
        is_encrypted: record.transport >= Transport::Dot,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::{Ipv4Addr, Ipv6Addr},
        path::Path,
    };

    use super::*;
    use crate::query_stream::StreamWriter;

    const S: i64 = 1_000_000_000;

    /// Writes a stream in which client 0 sends another message at each time, over a transport.
    fn write(path: &Path, queries: &[(i64, Transport)], has_addresses: bool) {
        let mut writer = StreamWriter::create(path).unwrap();
        for (number, (due_ns, transport)) in (0..).zip(queries) {
            let message = &[number; 17];
            writer.push(Record { due_ns: *due_ns, client: 0, transport: *transport, flags: 0, message }).unwrap();
        }
        let address = Ipv4Addr::new(198, 19, 0, 1).to_ipv6_mapped();
        let addresses: Vec<Ipv6Addr> = queries.first().into_iter().map(|_| address).collect();
        writer.finish(0, has_addresses.then_some(addresses)).unwrap();
    }

    fn compared(
        sent: &[(i64, Transport)],
        arrived: &[(i64, Transport)],
        has_addresses: bool,
        change: impl FnOnce(&mut Arguments),
    ) -> Result<Summary, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let [stream, came] = ["sent", "arrived"].map(|name| folder.path().join(name));
        write(&stream, sent, false);
        write(&came, arrived, has_addresses);
        let clients_from = prefix::parse("198.19.0.0/16").unwrap();
        let mut arguments = Arguments { stream, arrived: came, clients_from, speed: 1.0, duration: None };
        change(&mut arguments);
        compare(&arguments)
    }

    fn over_udp(dues: &[i64]) -> Vec<(i64, Transport)> {
        dues.iter().map(|due_ns| (*due_ns, Transport::Udp)).collect()
    }

    #[test]
    fn addresses_are_needed_of_what_arrived_alone() {
        let found = compared(&over_udp(&[0, S]), &[], false, |_| ()).unwrap();
        assert_eq!((found.queries, found.bytes, found.missing, found.arrived), (2, 34, 2, 0));
        let refused = compared(&over_udp(&[0]), &over_udp(&[0]), false, |_| ()).unwrap_err();
        assert!(
            refused.sentence.ends_with(" has no addresses: make it with `replay prepare --addresses`"),
            "{refused}"
        );
    }

    /// A query is the one of the stream if it comes a second too early or too late at most.
    #[test]
    fn a_query_has_a_second_to_arrive() {
        for (off_ns, missing) in [(-S - 1, 1), (-S, 0), (0, 0), (S, 0), (S + 1, 1)] {
            let found = compared(&over_udp(&[0, 5 * S]), &over_udp(&[0, 5 * S + off_ns]), true, |_| ()).unwrap();
            assert_eq!((found.arrived, found.missing, found.unknown), (2, missing, missing), "{off_ns}");
        }
    }

    #[test]
    fn what_is_due_at_the_end_of_the_replay_is_not_sent() {
        let sent = over_udp(&[0, S, 2 * S, 3 * S]);
        let second = Some(Duration::from_secs(1));
        for (speed, duration, queries) in [(1.0, None, 4), (1.0, second, 1), (2.0, second, 2), (4.0, second, 4)] {
            let change = |arguments: &mut Arguments| (arguments.speed, arguments.duration) = (speed, duration);
            assert_eq!(compared(&sent, &[], true, change).unwrap().queries, queries, "{speed} {duration:?}");
        }
    }

    #[test]
    fn a_capture_shows_no_encrypted_query() {
        for transport in Transport::ALL {
            let found = compared(&[(0, transport)], &[], true, |_| ()).unwrap();
            let encrypted = u64::from(!matches!(transport, Transport::Udp | Transport::Tcp));
            assert_eq!((found.encrypted, found.missing), (encrypted, 1 - encrypted), "{transport:?}");
        }
    }

    #[test]
    fn a_speed_has_limits() {
        assert_eq!(["0.001", "100000"].map(|text| parse_speed(text).ok()), [Some(0.001), Some(100_000.0)]);
        assert_eq!(["0.0009", "100001", "0"].map(|text| parse_speed(text).ok()), [None; 3]);
    }
}
