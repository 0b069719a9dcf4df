//! The command line of `link`.

use std::path::PathBuf;

use dnsrig_core::{failure::Failure, units::parse_delay};
use serde::Serialize;

use super::{
    delay_queue,
    spec::{self, Spec},
};

const HINT: &str = "see `dnsrig-engine link --help`";

/// The most bytes that may wait in one direction.
const WAITING_BYTES_MAX: usize = 1 << 32;

/// Where one end of the link is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct End {
    /// The file of the network namespace.
    pub netns: PathBuf,
    /// The name of the interface.
    pub interface: String,
}

/// Emulate a path between two network namespaces: delay, jitter, loss, rate, a queue and a path MTU.
///
/// It makes a TUN interface in each namespace, prints `ready`, and carries IP packets between them. You set addresses,
/// routes and `up`; the interfaces disappear when it ends. --forward (from left to right) and --reverse each take a
/// SPEC, which is KEY=VALUE separated by commas. What is not given is as fast, near and good as the machine:
///
///   rate=20mbit   bits per second (kbit, mbit, gbit), counting the bytes of IP packets without Ethernet headers
///   delay=125ms   one way
///   jitter=50ms   random addition, up or down, uniform, at most the delay
///   order=kept    packets do not overtake each other (free: they do, each has its own delay)
///   loss=0.1%     share of packets that are lost, independently
///   loss-at=60s:5%   loss from 60 s after `ready`; may be repeated, in order
///   limit=5000    number of packets that can wait, for the wire or for their time; others are dropped [1000]
///   mtu=1400      larger packets are dropped, and counted, with DF set or not
///   icmp=sent     the sender of such a packet over IPv6, or over IPv4 with DF set, gets a message from the packet's
///                 destination (RFC 4443, RFC 1191; blocked: no message). Over IPv6 there is no message for an mtu
///                 below the minimum, 1280
///   far=198.18.64.0/18   packets from and to these addresses have a further delay, which is fixed for each address;
///                 may be repeated
///   far-delay=1ms..5ms:80+5ms..50ms:20   the further delays: classes LOW..HIGH:WEIGHT. A hash of the address draws
///                 a class by its weight, and a delay within it, whose logarithm is uniform
///   far-seed=1    seed of these delays; another seed gives other delays [0]
///
/// A packet meets loss, MTU, limit and delay in this order. With a rate and order=kept it is due at max(due time of
/// the packet ahead, now + its delay) + its time on the wire, as in netem: then jitter raises the typical delay. With
/// a rate and order=free, it first waits for the wire and then takes its own delay. Without a rate, order=kept means
/// that it is due no earlier than the packet ahead. The delay of the far end comes after that, so that packets of
/// different far ends overtake each other, whatever the order, and packets of one far end do not. The limit must
/// exceed rate × (delay + jitter), in packets; otherwise the limit bounds the throughput, not the rate: 20 Mbit/s ×
/// 175 ms are 292 packets of 1,500 bytes.
///
/// --out FILE gets a row for each direction and --interval: time_ns, direction, packets, bytes,
/// delivered_packets, delivered_bytes, lost, overflowed, too_big, refused (the interface was down), queue_packets,
/// queue_bytes, late_ns_max. The queue is as it was at the end of the interval.
///
/// One thread does everything. It sleeps until the next packet comes or is due, with a timer of nanoseconds, and stays
/// awake only if the next packet is due within 5 µs. In the summary, `late_ns` is how late packets left, and `missed`
/// is the number of packets that the kernel dropped because they were not read in time.
///
/// Events: `started`, `ready`, `anchor` every ten seconds, `progress` every second, `summary`. It ends on a signal
/// (SIGTERM, SIGINT, SIGHUP, SIGQUIT) or, with --until-eof, when standard input ends; packets on their way are then not
/// delivered.
///
/// Exit codes: 0 ended as asked, 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Example: a path around the world between two namespaces:\n  \
    dnsrig-engine link --left /run/netns/a,far --right /run/netns/b,far --until-eof \\\n    \
    --forward rate=20mbit,delay=125ms,jitter=50ms,loss=0.1%,limit=5000 --reverse delay=125ms &\n  \
    ip -n a address add 198.18.0.1 peer 198.18.0.2 dev far && ip -n a link set far up\n  \
    ip -n b address add 198.18.0.2 peer 198.18.0.1 dev far && ip -n b link set far up\n  \
    ip netns exec a ping 198.18.0.2"
)]
pub struct Arguments {
    /// Left end: network namespace, as a file, and name of the interface to make there
    #[arg(long, value_name = "NETNS-PATH,IFNAME", value_parser = parse_end)]
    pub left: End,
    /// Right end: network namespace, as a file, and name of the interface to make there
    #[arg(long, value_name = "NETNS-PATH,IFNAME", value_parser = parse_end)]
    pub right: End,
    /// Path from left to right
    #[arg(long, value_name = "SPEC", default_value = "", hide_default_value = true, value_parser = spec::parse)]
    pub forward: Spec,
    /// Path from right to left
    #[arg(long, value_name = "SPEC", default_value = "", hide_default_value = true, value_parser = spec::parse)]
    pub reverse: Spec,
    /// MTU of both interfaces, in bytes. Do not raise it while the link works
    #[arg(long, value_name = "BYTES", default_value = "1500", value_parser = spec::parse_mtu)]
    pub mtu: u16,
    /// Seed of the random numbers. Another seed loses other packets and gives them other delays
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// File for the rows (Arrow IPC stream)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Time between rows, at least 10ms
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse_interval)]
    pub interval: i64,
    /// Stop when standard input ends
    #[arg(long)]
    pub until_eof: bool,
}

impl Arguments {
    /// Whether everything goes together.
    pub fn check(&self) -> Result<(), Failure> {
        if self.left == self.right {
            return Err(Failure::bad_input("--left and --right are the same interface", HINT));
        }
        let waiting_bytes = |spec: &Spec| spec.limit_packets as usize * delay_queue::slot_bytes(self.mtu);
        if [&self.forward, &self.reverse].into_iter().any(|spec| waiting_bytes(spec) > WAITING_BYTES_MAX) {
            return Err(Failure::bad_input("limit × --mtu is more than 4 GB in one direction", HINT));
        }
        Ok(())
    }
}

/// Reads `NETNS-PATH,IFNAME`.
fn parse_end(text: &str) -> Result<End, String> {
    let expected = || {
        "expected NETNS-PATH,IFNAME, such as /run/netns/a,far; a name has up to 15 letters, digits and . _ -".to_owned()
    };
    let (netns, interface) = text.rsplit_once(',').ok_or_else(expected)?;
    // The kernel would also take other bytes, and make a number of `%d`.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let is_name = (1..libc::IFNAMSIZ).contains(&interface.len()) && interface.bytes().all(is_plain);
    if netns.is_empty() || !is_name || matches!(interface, "." | "..") {
        return Err(expected());
    }
    Ok(End { netns: netns.into(), interface: interface.to_owned() })
}

fn parse_interval(text: &str) -> Result<i64, String> {
    let interval_ns = parse_delay(text)?;
    if interval_ns < 10_000_000 { Err("at least 10ms".into()) } else { Ok(interval_ns) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_a_namespace_and_a_name() {
        let end = parse_end("/run/netns/a,b,far-0.1").unwrap();
        assert_eq!((end.netns, end.interface.as_str()), ("/run/netns/a,b".into(), "far-0.1"));
        assert!(parse_end("/a,fifteen-letters").is_ok());
        for wrong in ["", "/a", "/a,", ",b", "/a,sixteen--letters", "/a,b c", "/a,tun%d", "/a,b/c", "/a,.", "/a,.."] {
            assert!(parse_end(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rows_are_not_closer_than_ten_milliseconds() {
        assert_eq!(parse_interval("10ms"), Ok(10_000_000));
        assert!(parse_interval("9ms").is_err() && parse_interval("10").is_err());
    }
}
