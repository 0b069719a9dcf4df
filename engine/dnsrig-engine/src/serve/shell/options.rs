//! The options that every server has.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    thread,
};

use dnsrig_core::{failure::Failure, units::parse_delay};
use dnsrig_net::tls::identity::{self, Identity};

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Number of threads [default: the number of CPUs that it may run on]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Highest number of open connections. Further ones are closed at once. Over QUIC, each thread has its share
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub connections_max: u32,
    /// Time after which a connection is closed if no query was completed and no answer taken on it
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_delay)]
    pub idle_timeout: i64,
    /// File with the certificates for TLS, the server's own first (PEM) [default: one is made (ECDSA P-256)]
    #[arg(long, value_name = "PEM", requires = "key")]
    pub certificate: Option<PathBuf>,
    /// File with the private key of --certificate (PEM)
    #[arg(long, value_name = "PEM", requires = "certificate")]
    pub key: Option<PathBuf>,
    /// Stop when standard input ends
    #[arg(long)]
    pub until_eof: bool,
    /// Address that you are allowed to serve on, if it is neither loopback nor in 198.18.0.0/15 or 2001:2::/48
    #[arg(long, value_name = "ADDRESS")]
    pub i_am_authorized: Option<IpAddr>,
}

impl Options {
    /// How many threads.
    pub fn threads(&self) -> usize {
        // It looks at the affinity and at the cgroup's quota.
        let cpus = || thread::available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(cpus, usize::from)
    }

    /// The certificate and key that were given, or some for `address`.
    pub fn identity(&self, address: SocketAddr) -> Result<Identity, Failure> {
        identity::identity(self.certificate.as_ref().zip(self.key.as_ref()), address.ip())
    }
}
