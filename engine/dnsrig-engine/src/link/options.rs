//! The command line of `link`.

use std::path::PathBuf;

use serde::Serialize;

use super::{
    error::LinkError,
    slots,
    spec::{self, Spec},
};
use crate::base::units::parse_delay;

/// So many bytes may wait in one direction at most.
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
/// It makes a TUN interface in each namespace, says `ready`, and carries IP packets between them. Addresses, routes
/// and `up` are yours to set; the interfaces go when it ends. Give each direction as
/// --forward (from left to right) and --reverse a SPEC, KEY=VALUE separated by commas; what is not given is as fast, as
/// near and as good as the machine:
///
///   rate=20mbit   bits a second (kbit, mbit, gbit), counting the bytes of IP packets, no Ethernet header
///   delay=125ms   one way
///   jitter=50ms   uniformly so much more or less; at most the delay
///   order=kept    packets do not overtake each other (free: they do, each has a delay of its own)
///   loss=0.1%     of packets, each by itself
///   loss-at=60s:5%   from 60 s after `ready` on; may be given several times, in order
///   limit=5000    packets that wait, for the wire or for their time; more are dropped [1000]
///   mtu=1400      larger packets are dropped, and counted, with DF set or not
///   icmp=sent     who sent one over IPv6, or over IPv4 with DF set, is told, by a message from the packet's
///                 destination (RFC 4443, RFC 1191; blocked: is not). Over IPv6 nobody is told of an mtu below its
///                 least, 1280
///   far=198.18.64.0/18   packets from and to these addresses have a delay more, each address its own and always the
///                 same; may be given several times
///   far-delay=1ms..5ms:80+5ms..50ms:20   which: classes LOW..HIGH:WEIGHT. A hash of the address draws one by its
///                 weight, and a delay within it, whose logarithm is uniform
///   far-seed=1    another one gives the addresses other delays [0]
///
/// A packet meets loss, MTU, limit and delay in this order. With a rate and order=kept it is due at max(due time of
/// the packet ahead, now + its delay) + its time on the wire, as in netem: then jitter raises the typical delay. With
/// a rate and order=free it first waits for the wire, then takes a delay of its own. Without a rate, order=kept lets
/// it be due no earlier than the packet ahead. The far end's own delay comes after that, so that packets of different
/// far ends overtake each other, whatever the order, and those of one do not. The limit has to exceed rate × (delay +
/// jitter), in packets, or it and not the rate is what limits: 20 Mbit/s × 175 ms are 292 packets of 1,500 bytes.
///
/// Set --interval to see more of it in --out FILE, a row a direction and interval: time_ns, direction, packets, bytes,
/// delivered_packets, delivered_bytes, lost, overflowed, too_big, refused (the interface was down), queue_packets,
/// queue_bytes, late_ns_max; the queue is that at the end of the interval.
///
/// One thread does everything. It sleeps until the next packet comes or is due, to the nanosecond that it asks for, and
/// stays awake only when the next is due within 5 µs. How late packets left is told in the summary, as `late_ns`;
/// `missed` are packets that the kernel dropped because they were not read in time.
///
/// Events: `started`, `ready`, `anchor` every ten seconds, `progress` every second, `summary`. It ends by a signal
/// (SIGTERM, SIGINT, SIGHUP, SIGQUIT) or, with --until-eof, when standard input ends; what is under way then is not
/// delivered.
///
/// Exit codes: 0 ended as asked, 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Example: the far side of the world between two namespaces:\n  \
    dnsrig-engine link --left /run/netns/a,far --right /run/netns/b,far --until-eof \\\n    \
    --forward rate=20mbit,delay=125ms,jitter=50ms,loss=0.1%,limit=5000 --reverse delay=125ms &\n  \
    ip -n a address add 198.18.0.1 peer 198.18.0.2 dev far && ip -n a link set far up\n  \
    ip -n b address add 198.18.0.2 peer 198.18.0.1 dev far && ip -n b link set far up\n  \
    ip netns exec a ping 198.18.0.2"
)]
pub struct Arguments {
    /// The network namespace of the left end, as a file, and the name of the interface to make there
    #[arg(long, value_name = "NETNS-PATH,IFNAME", value_parser = parse_end)]
    pub left: End,
    /// The same of the right end
    #[arg(long, value_name = "NETNS-PATH,IFNAME", value_parser = parse_end)]
    pub right: End,
    /// What packets from left to right meet
    #[arg(long, value_name = "SPEC", default_value = "", hide_default_value = true, value_parser = spec::parse)]
    pub forward: Spec,
    /// What packets from right to left meet
    #[arg(long, value_name = "SPEC", default_value = "", hide_default_value = true, value_parser = spec::parse)]
    pub reverse: Spec,
    /// The MTU of both interfaces, in bytes; do not raise it while the link works
    #[arg(long, value_name = "BYTES", default_value = "1500", value_parser = spec::parse_mtu)]
    pub mtu: u16,
    /// Another seed loses other packets and gives them other delays
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// A file for rows (Arrow IPC stream)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The time between rows, at least 10ms
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse_interval)]
    pub interval: i64,
    /// End when standard input ends
    #[arg(long)]
    pub until_eof: bool,
}

impl Arguments {
    /// Whether everything goes together.
    pub fn check(&self) -> Result<(), LinkError> {
        if self.left == self.right {
            return Err(LinkError::Arguments("--left and --right are the same interface"));
        }
        let waiting_bytes = |spec: &Spec| spec.limit_packets as usize * slots::slot_bytes(self.mtu);
        if [&self.forward, &self.reverse].into_iter().any(|spec| waiting_bytes(spec) > WAITING_BYTES_MAX) {
            return Err(LinkError::Arguments("limit × --mtu is more than 4 GB in one direction"));
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
