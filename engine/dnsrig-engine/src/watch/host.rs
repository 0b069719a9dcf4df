//! What is watched of each host: opens the files, and says what a machine does not have.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use dnsrig_core::{
    failure::Failure,
    kernel_text::{Column, lines, words},
};
use dnsrig_net::namespace::inside;
use nix::unistd::{SysconfVar, sysconf};

use super::{
    metrics::{CGROUP, CPU, FileMetrics, LINK, MACHINE, Metric, NETWORK, Unit},
    rows::Series,
    source::{Source, Wanted},
};

/// The largest file that is read, in bytes. `/proc/stat` of a machine with hundreds of CPUs comes near it.
pub const FILE_BYTES_MAX: usize = 256 * 1024;

/// At most this many interfaces of a host, and CPUs of the machine, are watched.
const PARTS_MAX: usize = 1024;

/// The host name of the machine itself.
const MACHINE_NAME: &str = "machine";

/// USER_HZ on every architecture that dnsrig runs on, if sysconf(3) does not say.
const USER_HZ_DEFAULT: i64 = 100;

/// A `--host`: which namespace and which cgroups it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostArgument {
    /// Its name in the rows.
    pub name: String,
    /// The file of its network namespace.
    pub netns: Option<PathBuf>,
    /// Its directories in the cgroup hierarchies.
    pub cgroups: Vec<PathBuf>,
    /// Whether its TCP sockets are listed one by one.
    pub sockets: bool,
}

/// Reads `NAME[,netns=PATH][,cgroup=DIR]...[,sockets]`.
pub fn parse_host(text: &str) -> Result<HostArgument, String> {
    let mut parts = text.split(',');
    let name = parts.next().unwrap_or_default().to_owned();
    if name.is_empty() || name == MACHINE_NAME || name.contains('=') {
        return Err(format!("expected NAME[,netns=PATH][,cgroup=DIR]…[,sockets], NAME not being `{MACHINE_NAME}`"));
    }
    let mut host = HostArgument { name, netns: None, cgroups: Vec::new(), sockets: false };
    for part in parts {
        match part.split_once('=') {
            Some(("netns", path)) if host.netns.is_none() => host.netns = Some(path.into()),
            Some(("cgroup", path)) => host.cgroups.push(path.into()),
            None if part == "sockets" => host.sockets = true,
            _ => return Err(format!("`{part}` is neither netns=PATH (once) nor cgroup=DIR nor sockets")),
        }
    }
    if host.netns.is_none() && host.cgroups.is_empty() {
        return Err("a host needs netns=PATH or cgroup=DIR, or there is nothing to watch".into());
    }
    if host.sockets && host.netns.is_none() {
        return Err("sockets are those of a network namespace: give netns=PATH with them".into());
    }
    Ok(host)
}

/// A file of a host that the user named cannot be opened.
pub fn cannot_watch(host: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::bad_input(
        format!("cannot watch host {host}: {}: {error}", path.display()),
        "make the namespace and the cgroup before you start `watch`, and run it as root",
    )
}

/// Everything that is watched.
#[derive(Default)]
pub struct Watched {
    /// The series, by number.
    pub series: Vec<Series>,
    /// The open files.
    pub sources: Vec<Source>,
    /// What this machine lacks, as host/source/metric.
    pub missing: Vec<String>,
    buffer: Vec<u8>,
    user_hz: i64,
}

impl Watched {
    /// Opens the files of all hosts and of the machine.
    pub fn open(hosts: &[HostArgument]) -> Result<Self, Failure> {
        let user_hz = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(USER_HZ_DEFAULT);
        let mut watched = Watched { buffer: vec![0; FILE_BYTES_MAX], user_hz, ..Watched::default() };
        for (index, host) in hosts.iter().enumerate() {
            if hosts[..index].iter().any(|other| other.name == host.name) {
                let hint = "give each host once, with all its parts in one --host";
                return Err(Failure::bad_input(format!("--host {} is given twice", host.name), hint));
            }
            watched.open_host(host)?;
        }
        watched.open_machine();
        Ok(watched)
    }

    fn open_host(&mut self, host: &HostArgument) -> Result<(), Failure> {
        let failed = |path: &Path, error: &io::Error| cannot_watch(&host.name, path, error);
        for directory in &host.cgroups {
            fs::read_dir(directory).map_err(|error| failed(directory, &error))?;
        }
        if !host.cgroups.is_empty() {
            let open = |file: &FileMetrics| {
                host.cgroups.iter().filter_map(|directory| File::open(directory.join(file.file)).ok()).collect()
            };
            self.add_files(&host.name, CGROUP, open);
        }
        if let Some(path) = &host.netns {
            let files = open_network(path).map_err(|error| failed(path, &error))?;
            self.add_network(&host.name, files);
        }
        Ok(())
    }

    fn open_machine(&mut self) {
        self.add_files(MACHINE_NAME, MACHINE, |file| {
            File::open(Path::new("/proc").join(file.file)).into_iter().collect()
        });
        if let Ok(file) = File::open("/proc/stat") {
            // The line `cpu`, without a number, is the sum.
            let is_cpu = |name: &str| name.strip_prefix("cpu").is_some_and(|number| !number.is_empty());
            self.add_parts(file, is_cpu, |cpu| (MACHINE_NAME.to_owned(), cpu.to_owned()), CPU, Unit::Ticks);
        }
    }

    fn add_network(&mut self, host: &str, mut files: Vec<Option<File>>) {
        let links = files.pop().flatten();
        // In the order of `NETWORK`, as `open_network` opened them.
        let mut files = files.into_iter();
        self.add_files(host, NETWORK, |_| files.next().flatten().into_iter().collect());
        if let Some(file) = links {
            let is_link = |name: &str| !matches!(name, "lo" | "Inter-|" | "face");
            self.add_parts(file, is_link, |name| (host.to_owned(), format!("link:{name}")), LINK, Unit::Same);
        }
    }

    /// Adds the metrics of a list of files; `open` gives the files that there are for an entry of the list.
    fn add_files(&mut self, host: &str, list: &[FileMetrics], mut open: impl FnMut(&FileMetrics) -> Vec<File>) {
        for entry in list {
            for file in open(entry) {
                let mut source = Source::new(file, self.user_hz);
                let text = source.content(&mut self.buffer).map(<[u8]>::to_vec).unwrap_or_default();
                entry.metrics.iter().for_each(|metric| self.add_metric(host, &mut source, &text, metric));
                self.keep(source);
            }
        }
        for metric in list.iter().flat_map(|entry| entry.metrics) {
            let missing = format!("{host}/{}/{}", metric.source, metric.name);
            if !self.has(host, metric) && !self.missing.contains(&missing) {
                self.missing.push(missing);
            }
        }
    }

    fn add_metric(&mut self, host: &str, source: &mut Source, text: &[u8], metric: &Metric) {
        if self.has(host, metric) {
            return;
        }
        let Metric { line, column, unit, .. } = *metric;
        let series = self.series.len() as u32;
        if source.add_if_there(text, || Wanted { series, line: line.into(), column, unit }, line, column) {
            let (host, source) = (host.to_owned(), metric.source.to_owned());
            self.series.push(Series { host, source, metric: metric.name });
        }
    }

    /// Adds the metrics of a file with a line for each of many parts: CPUs or interfaces.
    ///
    /// `name` gives the host and the source of a part.
    fn add_parts(
        &mut self,
        file: File,
        is_part: impl Fn(&str) -> bool,
        name: impl Fn(&str) -> (String, String),
        metrics: &[(&'static str, usize)],
        unit: Unit,
    ) {
        let mut source = Source::new(file, self.user_hz);
        let text = source.content(&mut self.buffer).map(<[u8]>::to_vec).unwrap_or_default();
        let parts = lines(&text).filter_map(|line| str::from_utf8(words(line).next()?).ok());
        for part in parts.filter(|part| is_part(part)).take(PARTS_MAX) {
            for (metric, word) in metrics {
                let (series, column) = (self.series.len() as u32, Column::At(*word));
                let wanted = || Wanted { series, line: part.into(), column, unit };
                if source.add_if_there(&text, wanted, part, column) {
                    let (host, source) = name(part);
                    self.series.push(Series { host, source, metric });
                }
            }
        }
        self.keep(source);
    }

    fn keep(&mut self, source: Source) {
        if !source.is_empty() {
            self.sources.push(source);
        }
    }

    fn has(&self, host: &str, metric: &Metric) -> bool {
        let is_it = |one: &Series| one.host == host && one.source == metric.source && one.metric == metric.name;
        self.series.iter().any(is_it)
    }
}

/// Opens the files of [`NETWORK`], and `dev` last, in a network namespace; none where the kernel has no such file, as
/// those of IPv6.
fn open_network(path: &Path) -> io::Result<Vec<Option<File>>> {
    let names = NETWORK.iter().map(|entry| entry.file).chain(["dev"]);
    let open = |name: &str| match File::open(Path::new("/proc/thread-self/net").join(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    };
    inside(path, || names.map(open).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(hosts: &[HostArgument]) -> String {
        Watched::open(hosts).err().expect("it is refused").sentence
    }

    #[test]
    fn a_host_has_a_name_and_parts() {
        let host = parse_host("a,netns=/run/netns/a,cgroup=/x,cgroup=/y").unwrap();
        assert_eq!((host.name.as_str(), host.netns), ("a", Some("/run/netns/a".into())));
        assert_eq!(host.cgroups, [Path::new("/x"), Path::new("/y")]);
        assert!(!host.sockets && parse_host("a,netns=/run/netns/a,sockets").unwrap().sockets);
        let wrong = ["", "a", "machine,cgroup=/x", "a,b", "a,netns=/x,netns=/y", "netns=/x", "a,cgroup=/x,sockets"];
        for wrong in wrong {
            assert!(parse_host(wrong).is_err(), "{wrong}");
        }
    }

    fn values(watched: &mut Watched) -> Vec<(String, i64)> {
        let Watched { series, sources, buffer, .. } = watched;
        let mut values = Vec::new();
        for source in sources {
            let found = |number: u32, value| {
                let Series { host, source, metric } = &series[number as usize];
                values.push((format!("{host}/{source}/{metric}"), value));
            };
            source.sample(buffer, found).unwrap();
        }
        values
    }

    /// Directories that look like a hybrid machine's: version 2 with CPU and pressure, version 1 with memory.
    #[test]
    fn a_host_may_have_both_versions_of_cgroups() {
        let [v2, v1] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        fs::write(v2.path().join("cpu.stat"), "usage_usec 30\nuser_usec 20\nsystem_usec 10\n").unwrap();
        fs::write(v2.path().join("io.pressure"), "some avg10=0.00 total=5\nfull avg10=0.00 total=4\n").unwrap();
        fs::write(v1.path().join("cpuacct.usage"), "99000\n").unwrap();
        fs::write(v1.path().join("memory.stat"), "cache 1\nrss 2\ntotal_cache 300\ntotal_rss 400\n").unwrap();
        fs::write(v1.path().join("memory.usage_in_bytes"), "1000\n").unwrap();
        let argument = format!("h,cgroup={},cgroup={}", v1.path().display(), v2.path().display());
        let mut watched = Watched { buffer: vec![0; 4096], user_hz: 100, ..Watched::default() };
        watched.open_host(&parse_host(&argument).unwrap()).unwrap();
        let mut values = values(&mut watched);
        values.sort();
        let expected = [
            ("h/cgroup/cpu_system_us", 10),
            ("h/cgroup/cpu_usage_us", 30),
            ("h/cgroup/cpu_user_us", 20),
            ("h/cgroup/memory_anonymous_bytes", 400),
            ("h/cgroup/memory_file_bytes", 300),
            ("h/cgroup/memory_total_bytes", 1000),
            ("h/psi/io_full_us", 4),
            ("h/psi/io_some_us", 5),
        ];
        assert_eq!(values, expected.map(|(name, value)| (name.to_owned(), value)));
        assert!(watched.missing.contains(&"h/cgroup/memory_kernel_bytes".to_owned()));
        assert!(watched.missing.contains(&"h/psi/cpu_some_us".to_owned()));
        assert_eq!(watched.missing.len(), 5);
    }

    #[test]
    fn a_cgroup_that_is_not_there_is_an_error() {
        let host = parse_host("h,cgroup=/nowhere/at/all").unwrap();
        assert!(refusal(&[host]).starts_with("cannot watch host"));
    }

    #[test]
    fn a_host_named_twice_is_an_error() {
        let host = parse_host("h,cgroup=/").unwrap();
        assert!(refusal(&[host.clone(), host]).ends_with("is given twice"));
    }

    fn file(text: &str) -> File {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        file
    }

    /// The files of [`NETWORK`], and of the interfaces, as Linux 6.1 writes them, but with a number of its own in every
    /// place.
    const NETWORK_FILES: [&str; 6] = [
        "sockets: used 100\nTCP: inuse 101 orphan 102 tw 103 alloc 104 mem 105\nUDP: inuse 106 mem 107\n\
         UDPLITE: inuse 108\nRAW: inuse 109\nFRAG: inuse 110 memory 111\n",
        "Ip: Forwarding DefaultTTL\nIp: 201 202\n\
         Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs \
         OutSegs RetransSegs InErrs OutRsts InCsumErrors\n\
         Tcp: 203 204 205 -1 206 207 208 209 210 211 212 213 214 215 216\n\
         Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors\n\
         Udp: 217 218 219 220 221 222 223 224 225\n\
         UdpLite: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors\n\
         UdpLite: 226 227 228 229 230 231 232\n",
        "TCP6: inuse 301\nUDP6: inuse 302\nUDPLITE6: inuse 303\nRAW6: inuse 304\nFRAG6: inuse 305 memory 306\n",
        "Ip6InReceives                   \t401\nUdp6InDatagrams                 \t402\n\
         Udp6NoPorts                     \t403\nUdp6InErrors                    \t404\n\
         Udp6OutDatagrams                \t405\nUdp6RcvbufErrors                \t406\n\
         Udp6SndbufErrors                \t407\nUdp6InCsumErrors                \t408\n",
        "TcpExt: SyncookiesSent ListenOverflows ListenDrops TW TCPTimeWaitOverflow TCPReqQFullDrop\n\
         TcpExt: 501 502 503 504 505 506\nIpExt: InNoRoutes\nIpExt: 507\n",
        "Inter-|   Receive                                                |  Transmit\n \
         face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls \
         carrier compressed\n    lo:     601      602    0    0    0     0          0         0      603      604 \
         0    0    0     0       0          0\n  eth0:     605      606  607  608  609   610        611       612 \
         613      614  615  616  617   618     619        620\n",
    ];

    #[test]
    fn every_counter_of_a_network_is_found_in_its_place() {
        let mut watched = Watched { buffer: vec![0; 4096], user_hz: 100, ..Watched::default() };
        watched.add_network("h", NETWORK_FILES.map(|text| Some(file(text))).into());
        let expected = [
            ("sockets/tcp_inuse", 101),
            ("sockets/tcp_orphan", 102),
            ("sockets/tcp_time_wait", 103),
            ("sockets/tcp_alloc", 104),
            ("sockets/udp_inuse", 106),
            ("tcp/active_opens", 206),
            ("tcp/passive_opens", 207),
            ("tcp/attempt_fails", 208),
            ("tcp/estab_resets", 209),
            ("tcp/curr_estab", 210),
            ("tcp/in_segs", 211),
            ("tcp/out_segs", 212),
            ("tcp/retrans_segs", 213),
            ("tcp/out_rsts", 215),
            ("udp/in_datagrams", 217),
            ("udp/no_ports", 218),
            ("udp/in_errors", 219),
            ("udp/out_datagrams", 220),
            ("udp/rcvbuf_errors", 221),
            ("udp/sndbuf_errors", 222),
            ("sockets/tcp6_inuse", 301),
            ("sockets/udp6_inuse", 302),
            ("udp6/in_datagrams", 402),
            ("udp6/no_ports", 403),
            ("udp6/in_errors", 404),
            ("udp6/out_datagrams", 405),
            ("udp6/rcvbuf_errors", 406),
            ("udp6/sndbuf_errors", 407),
            ("tcp/listen_overflows", 502),
            ("tcp/listen_drops", 503),
            ("tcp/time_wait_overflow", 505),
            ("link:eth0/rx_bytes", 605),
            ("link:eth0/rx_packets", 606),
            ("link:eth0/rx_dropped", 608),
            ("link:eth0/tx_bytes", 613),
            ("link:eth0/tx_packets", 614),
            ("link:eth0/tx_dropped", 616),
        ];
        let mut values = values(&mut watched);
        values.sort_by_key(|(_, value)| *value);
        assert_eq!(values, expected.map(|(name, value)| (format!("h/{name}"), value)));
        assert_eq!(watched.missing, [""; 0]);
    }

    #[test]
    fn the_time_of_a_cpu_is_in_microseconds_however_long_a_tick_is() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 5\n";
        let names = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
        for (user_hz, tick_us) in [(100, 10_000), (250, 4_000)] {
            let mut watched = Watched { buffer: vec![0; 4096], user_hz, ..Watched::default() };
            let name = |cpu: &str| (MACHINE_NAME.to_owned(), cpu.to_owned());
            watched.add_parts(file(stat), |part| part == "cpu0", name, CPU, Unit::Ticks);
            let expected =
                names.iter().zip(1..).map(|(name, ticks)| (format!("machine/cpu0/{name}_us"), ticks * tick_us));
            assert_eq!(values(&mut watched), expected.collect::<Vec<_>>());
        }
    }
}
