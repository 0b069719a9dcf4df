//! The command line of `serve echo`.

use std::net::SocketAddr;

use clap::ValueEnum;

use super::{answerer::Answerer, faults::Settings};
use crate::{
    base::{
        target,
        units::{parse_delay, parse_share},
    },
    serve::{error::ServeError, shell},
};

/// How queries come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// UDP.
    Udp,
    /// TCP (RFC 7766).
    Tcp,
    /// DNS over TLS (RFC 7858).
    Dot,
}

impl Transport {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Udp => "UDP",
            Transport::Tcp => "TCP",
            Transport::Dot => "DNS over TLS",
        }
    }
}

/// Echo every query: QR and AA set, NOERROR, all else as it came.
///
/// The cheapest server there can be: the floor under the charts of real ones, and, with faults of known size, what an
/// instrument is tested against. Each thread has its own sockets (SO_REUSEPORT); the kernel spreads queries by address
/// and port. A UDP query of more than 1232 bytes is dropped, as is what is no query; both are counted.
///
/// Faults apply to all transports. Delays start when the query is read; answers leave when they are due, so jitter
/// changes their order. For the last 50 µs before an answer is due its thread looks at the clock all the time: with
/// some 20,000 answers a second, that is a whole CPU. In a stall a thread neither reads nor sends, as one that is
/// blocked: what came meanwhile is answered at its end. Stalls end --stall-every after the start_ns of the `ready`
/// event, and then again and again.
///
/// Events: `started`, `ready` (all sockets are bound), `anchor` every ten seconds, `summary`. It ends by a signal
/// (SIGTERM, SIGINT, SIGHUP, SIGQUIT) or, with --until-eof, when standard input ends.
///
/// Exit codes: 0 ended as asked, 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: a server with two threads, of which the first stalls for 200 ms every second:\n  \
    dnsrig serve echo 127.0.0.1:5300 --threads 2 --stall 200ms --stall-every 1s --stall-threads 1")]
pub struct Arguments {
    /// Where to listen: an IP address and perhaps a port, such as 198.18.0.2, 127.0.0.1:5300 or [::1]:53
    #[arg(value_name = "ADDRESS[:PORT]", value_parser = target::parse)]
    pub address: SocketAddr,
    /// What to listen for
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "udp,tcp")]
    pub transport: Vec<Transport>,
    /// The port for DNS over TLS
    #[arg(long, value_name = "PORT", default_value_t = 853)]
    pub dot_port: u16,
    /// Over DNS over TLS: take queries with the first flight of a resumed session (0-RTT), and answer them at once
    #[arg(long)]
    pub early_data: bool,
    /// Every answer waits so long, such as 10ms
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = parse_delay)]
    delay: i64,
    /// And up to so much more or less, uniformly; at most the delay
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = parse_delay)]
    jitter: i64,
    /// This share of the queries has no answer, such as 1%
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = parse_share)]
    loss: f64,
    /// At the end of every period nothing is done for so long
    #[arg(long, value_name = "TIME", requires = "stall_every", value_parser = parse_delay)]
    stall: Option<i64>,
    /// The period of stalls
    #[arg(long, value_name = "TIME", requires = "stall", value_parser = parse_delay)]
    stall_every: Option<i64>,
    /// Only the first so many threads stall [default: all]
    #[arg(long, value_name = "N", requires = "stall")]
    stall_threads: Option<usize>,
    /// Another seed loses other queries and draws other jitter
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// So many answers of a thread may wait for their delay; others are dropped
    #[arg(long, value_name = "N", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    delayed_max: u32,
    /// Let the kernel cut large buffers into answers (UDP_SEGMENT): cheaper, but real servers do not
    #[arg(long)]
    pub segmentation: bool,
    /// The receive buffer of each UDP socket; without CAP_NET_ADMIN at most net.core.rmem_max
    #[arg(long, value_name = "N", default_value_t = 8 * 1024 * 1024, value_parser = clap::value_parser!(u32).range(4096..=1_073_741_823))]
    pub receive_buffer_bytes: u32,
    #[command(flatten)]
    pub shell: shell::options::Options,
}

impl Arguments {
    /// The faults, if they go together.
    pub fn faults(&self) -> Result<Settings, ServeError> {
        if self.jitter > self.delay {
            return Err(ServeError::Arguments(
                "--jitter is more than --delay, so answers would be due before their queries: raise --delay",
            ));
        }
        let (stall_ns, stall_every_ns) = (self.stall.unwrap_or(0), self.stall_every.unwrap_or(0));
        if stall_ns > 0 && stall_ns >= stall_every_ns {
            return Err(ServeError::Arguments(
                "--stall is not less than --stall-every, so nothing would be answered: lower it",
            ));
        }
        let Arguments { delay: delay_ns, jitter: jitter_ns, loss, seed, .. } = *self;
        Ok(Settings { delay_ns, jitter_ns, loss, stall_ns, stall_every_ns, seed })
    }

    /// What thread `number` does with queries.
    pub fn answerer(&self, faults: Settings, number: usize, start_ns: i64) -> Answerer {
        let stalls = faults.stall_ns > 0 && self.stall_threads.is_none_or(|count| number < count);
        let faults = if stalls { faults } else { Settings { stall_ns: 0, stall_every_ns: 0, ..faults } };
        Answerer::new(faults, number, start_ns, self.delayed_max as usize)
    }
}
