//! What is watched: for each file of the kernel, which of its values become which metric.
//!
//! The names of metrics are dnsrig's own, unit last; the names beside them are the kernel's, as documented in
//! Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst, accounting/psi.rst and filesystems/proc.rst of the
//! kernel's sources, and, for `/proc/net/snmp`, in RFC 1213.

use dnsrig_core::kernel_text::Column;

/// A value of a file, and the metric that it becomes.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// The column `source` of the rows.
    pub source: &'static str,
    /// The column `metric` of the rows.
    pub name: &'static str,
    /// The first word of its line; empty for the first line.
    pub line: &'static str,
    /// Which word of that line.
    pub column: Column,
    /// From the kernel's unit to ours.
    pub unit: Unit,
}

/// The unit that the kernel counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The one that the metric has.
    Same,
    /// Nanoseconds, for a metric in microseconds.
    Nanoseconds,
    /// Ticks of USER_HZ (proc(5)), for a metric in microseconds.
    Ticks,
}

/// A file and the metrics in it.
pub struct FileMetrics {
    /// Relative to the cgroup, or to the directory of /proc that the list is for.
    pub file: &'static str,
    /// Its metrics.
    pub metrics: &'static [Metric],
}

const fn cgroup(name: &'static str, line: &'static str, column: Column, unit: Unit) -> Metric {
    Metric { source: "cgroup", name, line, column, unit }
}

const fn keyed(name: &'static str, line: &'static str) -> Metric {
    cgroup(name, line, Column::At(1), Unit::Same)
}

const fn single(name: &'static str, unit: Unit) -> Metric {
    cgroup(name, "", Column::At(0), unit)
}

const fn pressure(name: &'static str, line: &'static str) -> Metric {
    Metric { source: "psi", name, line, column: Column::After("total"), unit: Unit::Same }
}

const fn sockets(name: &'static str, line: &'static str, word: &'static str) -> Metric {
    Metric { source: "sockets", name, line, column: Column::After(word), unit: Unit::Same }
}

const fn table(source: &'static str, name: &'static str, line: &'static str, word: &'static str) -> Metric {
    Metric { source, name, line, column: Column::Under(word), unit: Unit::Same }
}

const fn tcp(name: &'static str, word: &'static str) -> Metric {
    table("tcp", name, "Tcp", word)
}

const fn tcp_extension(name: &'static str, word: &'static str) -> Metric {
    table("tcp", name, "TcpExt", word)
}

const fn udp(name: &'static str, word: &'static str) -> Metric {
    table("udp", name, "Udp", word)
}

const fn udp6(name: &'static str, line: &'static str) -> Metric {
    Metric { source: "udp6", name, line, column: Column::At(1), unit: Unit::Same }
}

/// Metrics of a cgroup. If two files have the same metric, the first that exists counts: version 2 before version 1,
/// and of version 1 the hierarchical figures, so that children are included in both.
pub const CGROUP: &[FileMetrics] = &[
    FileMetrics {
        file: "cpu.stat",
        metrics: &[
            keyed("cpu_usage_us", "usage_usec"),
            keyed("cpu_user_us", "user_usec"),
            keyed("cpu_system_us", "system_usec"),
        ],
    },
    FileMetrics { file: "cpuacct.usage", metrics: &[single("cpu_usage_us", Unit::Nanoseconds)] },
    FileMetrics { file: "cpuacct.usage_user", metrics: &[single("cpu_user_us", Unit::Nanoseconds)] },
    FileMetrics { file: "cpuacct.usage_sys", metrics: &[single("cpu_system_us", Unit::Nanoseconds)] },
    FileMetrics {
        file: "memory.stat",
        metrics: &[
            keyed("memory_anonymous_bytes", "anon"),
            keyed("memory_kernel_bytes", "kernel"),
            keyed("memory_file_bytes", "file"),
            keyed("memory_anonymous_bytes", "total_rss"),
            keyed("memory_file_bytes", "total_cache"),
        ],
    },
    FileMetrics { file: "memory.kmem.usage_in_bytes", metrics: &[single("memory_kernel_bytes", Unit::Same)] },
    FileMetrics { file: "memory.current", metrics: &[single("memory_total_bytes", Unit::Same)] },
    FileMetrics { file: "memory.usage_in_bytes", metrics: &[single("memory_total_bytes", Unit::Same)] },
    FileMetrics { file: "cpu.pressure", metrics: CPU_PRESSURE },
    FileMetrics { file: "io.pressure", metrics: IO_PRESSURE },
    FileMetrics { file: "memory.pressure", metrics: MEMORY_PRESSURE },
];

/// Metrics of the machine, in /proc.
pub const MACHINE: &[FileMetrics] = &[
    FileMetrics { file: "pressure/cpu", metrics: CPU_PRESSURE },
    FileMetrics { file: "pressure/io", metrics: IO_PRESSURE },
    FileMetrics { file: "pressure/memory", metrics: MEMORY_PRESSURE },
];

const CPU_PRESSURE: &[Metric] = &[pressure("cpu_some_us", "some"), pressure("cpu_full_us", "full")];
const IO_PRESSURE: &[Metric] = &[pressure("io_some_us", "some"), pressure("io_full_us", "full")];
const MEMORY_PRESSURE: &[Metric] = &[pressure("memory_some_us", "some"), pressure("memory_full_us", "full")];

/// Metrics of a network namespace, in /proc/net. Counters of TCP include both families, except for sockets in use.
pub const NETWORK: &[FileMetrics] = &[
    FileMetrics {
        file: "sockstat",
        metrics: &[
            sockets("tcp_inuse", "TCP", "inuse"),
            sockets("tcp_time_wait", "TCP", "tw"),
            sockets("tcp_orphan", "TCP", "orphan"),
            sockets("tcp_alloc", "TCP", "alloc"),
            sockets("udp_inuse", "UDP", "inuse"),
        ],
    },
    FileMetrics {
        file: "snmp",
        metrics: &[
            tcp("active_opens", "ActiveOpens"),
            tcp("passive_opens", "PassiveOpens"),
            tcp("attempt_fails", "AttemptFails"),
            tcp("estab_resets", "EstabResets"),
            tcp("curr_estab", "CurrEstab"),
            tcp("in_segs", "InSegs"),
            tcp("out_segs", "OutSegs"),
            tcp("retrans_segs", "RetransSegs"),
            tcp("out_rsts", "OutRsts"),
            udp("in_datagrams", "InDatagrams"),
            udp("out_datagrams", "OutDatagrams"),
            udp("no_ports", "NoPorts"),
            udp("in_errors", "InErrors"),
            udp("rcvbuf_errors", "RcvbufErrors"),
            udp("sndbuf_errors", "SndbufErrors"),
        ],
    },
    FileMetrics {
        file: "sockstat6",
        metrics: &[sockets("tcp6_inuse", "TCP6", "inuse"), sockets("udp6_inuse", "UDP6", "inuse")],
    },
    FileMetrics {
        file: "snmp6",
        metrics: &[
            udp6("in_datagrams", "Udp6InDatagrams"),
            udp6("out_datagrams", "Udp6OutDatagrams"),
            udp6("no_ports", "Udp6NoPorts"),
            udp6("in_errors", "Udp6InErrors"),
            udp6("rcvbuf_errors", "Udp6RcvbufErrors"),
            udp6("sndbuf_errors", "Udp6SndbufErrors"),
        ],
    },
    FileMetrics {
        file: "netstat",
        metrics: &[
            tcp_extension("listen_drops", "ListenDrops"),
            tcp_extension("listen_overflows", "ListenOverflows"),
            tcp_extension("time_wait_overflow", "TCPTimeWaitOverflow"),
        ],
    },
];

/// Metrics of an interface, in its line of /proc/net/dev: the names, and their words of the line.
pub const LINK: &[(&str, usize)] =
    &[("rx_bytes", 1), ("rx_packets", 2), ("rx_dropped", 4), ("tx_bytes", 9), ("tx_packets", 10), ("tx_dropped", 12)];

/// Metrics of a CPU, in its line of /proc/stat: the names, and their words of the line.
pub const CPU: &[(&str, usize)] = &[
    ("user_us", 1),
    ("nice_us", 2),
    ("system_us", 3),
    ("idle_us", 4),
    ("iowait_us", 5),
    ("irq_us", 6),
    ("softirq_us", 7),
    ("steal_us", 8),
];
