//! `serve echo`: the reflector. An instrument that is tested against it must measure what its faults are set to, and it
//! is the floor under every chart.
//!
//! Cores without I/O: [`answerer`] (what happens to a query), [`faults`]. [`service`] has them answer in the
//! [`shell`](super::shell).

mod answerer;
pub mod faults;
pub mod service;

use std::{net::SocketAddr, process::ExitCode, sync::Arc};

use clap::ValueEnum;
use dnsrig_core::{
    clock,
    events::{self, emit},
    failure::Failure,
    target,
    units::{parse_delay, parse_share},
};
use dnsrig_net::{
    http2::ServerFault,
    quic::{self, server::Config},
    tls::{
        self, Protocol,
        identity::{self, Identity},
    },
};
use rustls::ServerConfig;
use serde::Serialize;

use self::{answerer::Answerer, faults::Settings};
use crate::serve::{
    failure::bad_arguments,
    shell::{
        self, Server, Summary,
        connection::{Http, Tls},
        listeners::{self, Asked, Listeners},
    },
};

/// The most early data of a connection, in bytes.
const EARLY_BYTES_MAX: u32 = 16_384;

/// What becomes of queries that come with the first flight of a resumed session (0-RTT).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EarlyData {
    /// They are answered at once
    Accept,
    /// Tickets permit them, and each is refused, so that clients send it again
    Refuse,
}

impl EarlyData {
    /// The settings with early data, of which a ticket permits this number of bytes.
    fn applied(self, config: &ServerConfig, bytes_max: u32) -> Arc<ServerConfig> {
        match self {
            EarlyData::Accept => identity::with_early_data(config, bytes_max),
            EarlyData::Refuse => identity::refusing_early_data(config, bytes_max),
        }
    }
}

#[derive(Serialize)]
struct Ready {
    /// The first stall period starts here.
    start_ns: i64,
    threads: usize,
    udp: Option<SocketAddr>,
    tcp: Option<SocketAddr>,
    dot: Option<SocketAddr>,
    doh: Option<SocketAddr>,
    doq: Option<SocketAddr>,
}

/// Echoes until someone ends it.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { address, shell, .. } = arguments;
    let faults = arguments.faults()?;
    let mut server = Server::new(address.ip(), shell)?;
    let asked = |transport| arguments.transport.contains(&transport);
    let listeners = Listeners::claim(&Asked {
        address: *address,
        udp: asked(Transport::Udp),
        tcp: asked(Transport::Tcp),
        tls: asked(Transport::Dot).then_some(arguments.dot_port),
        tls_name: "DNS over TLS",
    })?;
    let over_https = Listeners::claim(&Asked {
        address: *address,
        udp: false,
        tcp: false,
        tls: asked(Transport::Doh).then_some(arguments.doh_port),
        tls_name: "DNS over HTTPS",
    })?;
    let identity = (listeners.tls.or(over_https.tls)).map(|address| shell.identity(address)).transpose()?;
    let receive_bytes = arguments.receive_buffer_bytes as usize;
    let bind = |listeners: &Listeners, protocol, http| {
        let tls = identity.as_ref().map(|identity| arguments.tls(identity, protocol, http)).transpose()?;
        listeners.bind(shell, tls.as_ref(), receive_bytes, arguments.segmentation)
    };
    let mut sockets = bind(&listeners, tls::DOT, None)?;
    let http = Http { fault: arguments.doh_fault };
    for (mine, more) in sockets.iter_mut().zip(bind(&over_https, tls::DOH, Some(http))?) {
        mine.listeners.extend(more.listeners);
    }
    let doq = asked(Transport::Doq).then(|| listeners::claim_quic(SocketAddr::new(address.ip(), arguments.doq_port)));
    let doq = doq.transpose()?;
    if let Some(address) = doq {
        listeners::bind_quic(&mut sockets, address, &arguments.quic_config(address)?, receive_bytes)?;
    }
    let start_ns = clock::monotonic_ns();
    server.start("echo", sockets, shell, |number| arguments.answerer(faults, number, start_ns))?;
    let Listeners { udp, tcp, tls: dot, .. } = listeners;
    let doh = over_https.tls;
    emit("ready", clock::monotonic_ns(), &Ready { start_ns, threads: shell.threads(), udp, tcp, dot, doh, doq })?;
    let (now_ns, threads) = server.serve()?;
    events::summary(now_ns, &Summary::new(now_ns - start_ns, threads))?;
    Ok(ExitCode::SUCCESS)
}

/// How queries come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// UDP.
    Udp,
    /// TCP (RFC 7766).
    Tcp,
    /// DNS over TLS (RFC 7858).
    Dot,
    /// DNS over HTTPS (RFC 8484), over HTTP/2.
    Doh,
    /// DNS over QUIC (RFC 9250).
    Doq,
}

/// Echo every query: answer with QR and AA set, NOERROR, and everything else unchanged.
///
/// This is the cheapest possible server. It is the floor in the charts of real servers and, with faults of known size,
/// what instruments are tested against. Each thread has its own sockets (SO_REUSEPORT), and the kernel spreads queries
/// by address and port. UDP queries of more than 1232 bytes and messages that are not queries are dropped and counted.
///
/// Faults apply to all transports. A delay starts when the query is read. Answers leave when they are due, so jitter
/// changes their order. For the last 50 µs before an answer is due, its thread looks at the clock all the time: with
/// some 20,000 answers per second, that takes a whole CPU. During a stall, a thread neither reads nor sends, as if it
/// were blocked; what came meanwhile is answered at the end. Stalls end --stall-every after the start_ns of the `ready`
/// event, and then again and again.
///
/// Events: `started`, `ready` (all sockets are bound), `anchor` every ten seconds, `summary`. It ends on a signal
/// (SIGTERM, SIGINT, SIGHUP, SIGQUIT) or, with --until-eof, when standard input ends.
///
/// Exit codes: 0 ended as asked, 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: a server with two threads, where the first stalls for 200 ms every second:\n  \
    dnsrig serve echo 127.0.0.1:5300 --threads 2 --stall 200ms --stall-every 1s --stall-threads 1")]
pub struct Arguments {
    /// Address to listen on: an IP address and optionally a port, such as 198.18.0.2, 127.0.0.1:5300 or [::1]:53
    #[arg(value_name = "ADDRESS[:PORT]", value_parser = target::parse)]
    pub address: SocketAddr,
    /// Transports to listen on
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "udp,tcp")]
    pub transport: Vec<Transport>,
    /// Port for DNS over TLS
    #[arg(long, value_name = "PORT", default_value_t = 853)]
    pub dot_port: u16,
    /// Port for DNS over HTTPS. Queries are asked at /dns-query, with GET or POST
    #[arg(long, value_name = "PORT", default_value_t = 443)]
    pub doh_port: u16,
    /// Fault of every connection of DNS over HTTPS: goaway=N (GOAWAY after N requests), streams=N (at most N streams at
    /// a time), status=N (every response has this status), content-type (every response is text/html), reset (every
    /// stream is reset), cut=N (the connection ends in the middle of response N)
    #[arg(long, value_name = "FAULT")]
    doh_fault: Option<ServerFault>,
    /// Port for DNS over QUIC
    #[arg(long, value_name = "PORT", default_value_t = 853)]
    pub doq_port: u16,
    /// Over QUIC: highest number of streams that a client may have open at a time, which is one for each query
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub streams_max: u32,
    /// Over QUIC: have every client prove its address before its handshake (Retry)
    #[arg(long)]
    pub retry: bool,
    /// Over DoT, DoH and DoQ: permit queries in the first flight of a resumed session (0-RTT), and accept or refuse
    /// them [default: they are not permitted; without a value: accept]
    #[arg(long, value_enum, value_name = "accept|refuse", num_args = 0..=1, require_equals = true, default_missing_value = "accept", hide_possible_values = true)]
    pub early_data: Option<EarlyData>,
    /// Delay of every answer, such as 10ms
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = parse_delay)]
    delay: i64,
    /// Random addition to the delay, up or down, uniform, at most the delay
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = parse_delay)]
    jitter: i64,
    /// Share of the queries that get no answer, such as 1%
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = parse_share)]
    loss: f64,
    /// Length of a stall: at the end of every --stall-every, nothing is done for this time
    #[arg(long, value_name = "TIME", requires = "stall_every", value_parser = parse_delay)]
    stall: Option<i64>,
    /// Time between the ends of two stalls
    #[arg(long, value_name = "TIME", requires = "stall", value_parser = parse_delay)]
    stall_every: Option<i64>,
    /// Number of threads that stall, counted from the first [default: all]
    #[arg(long, value_name = "N", requires = "stall")]
    stall_threads: Option<usize>,
    /// Seed of the random numbers. Another seed loses other queries and draws other jitter
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Highest number of answers of a thread that wait for their delay. Further ones are dropped
    #[arg(long, value_name = "N", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    delayed_max: u32,
    /// Let the kernel cut large buffers into answers (UDP_SEGMENT). This is cheaper, but real servers do not do it
    #[arg(long)]
    pub segmentation: bool,
    /// Receive buffer of each UDP socket, in bytes. Without CAP_NET_ADMIN, at most net.core.rmem_max
    #[arg(long, value_name = "N", default_value_t = 8 * 1024 * 1024, value_parser = clap::value_parser!(u32).range(4096..=1_073_741_823))]
    pub receive_buffer_bytes: u32,
    #[command(flatten)]
    pub shell: shell::options::Options,
}

impl Arguments {
    /// The faults, if they go together.
    pub fn faults(&self) -> Result<Settings, Failure> {
        if self.jitter > self.delay {
            return Err(bad_arguments(
                "--jitter is more than --delay, so that answers would be due before their queries: raise --delay, or lower --jitter",
            ));
        }
        let (stall_ns, stall_every_ns) = (self.stall.unwrap_or(0), self.stall_every.unwrap_or(0));
        if stall_ns > 0 && stall_ns >= stall_every_ns {
            return Err(bad_arguments(
                "--stall is not less than --stall-every, so that nothing would be answered: lower --stall",
            ));
        }
        let Arguments { delay: delay_ns, jitter: jitter_ns, loss, seed, .. } = *self;
        Ok(Settings { delay_ns, jitter_ns, loss, stall_ns, stall_every_ns, seed })
    }

    /// How connections use TLS, with this certificate and key.
    fn tls(&self, (chain, key): &Identity, protocol: Protocol, http: Option<Http>) -> Result<Tls, Failure> {
        let config = identity::server_config((chain.clone(), key.clone_key()), protocol, None)?;
        let config = self.early_data.map_or(config.clone(), |early| early.applied(&config, EARLY_BYTES_MAX));
        Ok(Tls { config, http })
    }

    /// The settings of QUIC, with a certificate for `address`.
    fn quic_config(&self, address: SocketAddr) -> Result<Config, Failure> {
        let tls = identity::server_config(self.shell.identity(address)?, tls::DOQ, None)?;
        let tls = self.early_data.map_or(tls.clone(), |early| early.applied(&tls, u32::MAX));
        Ok(Config::new(&quic::server::Settings {
            tls,
            flow: quic::Flow::default(),
            streams_max: self.streams_max,
            idle_ns: self.shell.idle_timeout,
            connections_max: (self.shell.connections_max as usize).div_ceil(self.shell.threads()),
            retry: self.retry,
        }))
    }

    /// What thread `number` does with queries.
    fn answerer(&self, faults: Settings, number: usize, start_ns: i64) -> Answerer {
        let stalls = faults.stall_ns > 0 && self.stall_threads.is_none_or(|count| number < count);
        let faults = if stalls { faults } else { Settings { stall_ns: 0, stall_every_ns: 0, ..faults } };
        Answerer::new(faults, number, start_ns, self.delayed_max as usize)
    }
}
