//! `watch`: samples what the operating system counts.
//!
//! Every file is opened once; a sample is a `pread` of each, parsed without allocating.
//! [`kernel_text`](dnsrig_core::kernel_text) and [`schedule`] do the parsing and the timing without I/O; [`metrics`] is
//! the list of what is read. [`sockets`] asks the kernel for the TCP connections of hosts, one by one.

mod host;
pub mod metrics;
mod rows;
pub mod schedule;
pub mod sockets;
mod source;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use dnsrig_core::{
    clock,
    events::{self, Anchors},
    failure::Failure,
    output,
    row_writer::RowWriter,
    stop::{Stop, Wake},
    units::{MINUTE, duration, nanoseconds, parse_duration},
};
use serde::Serialize;

use host::{FILE_BYTES_MAX, HostArgument, Watched};
use rows::Row;
use schedule::Schedule;
use sockets::{SocketSummary, Sockets};

/// Rows go to the writer this often: what a crash of the machine may cost.
const FLUSH_INTERVAL_NS: i64 = 1_000_000_000;

/// Sample what the operating system counts: CPU, memory, pressure, sockets, links.
///
/// For each host, `watch` reads its cgroup (CPU, memory), psi (pressure stall information), sockets, tcp, udp and each
/// interface that its network namespace has when `watch` starts. For the host `machine`, which is always there, it
/// reads each CPU and psi. What a machine does not have is not an error: the summary lists it under `missing`.
///
/// If a host has `sockets`, the TCP connections in its namespace are listed one by one in their own file, at most 256
/// of them, with their TCP_INFO (tcp(7)).
///
/// A row has host, source, metric, time_ns and value. Counters are as the kernel reports them. A namespace stays alive
/// until `watch` ends, even if it is deleted. `watch` ends after --duration, on a signal (SIGTERM, SIGINT, SIGHUP,
/// SIGQUIT), or, with --until-eof, when standard input ends.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: watch a secondary for ten seconds, on a machine with both versions of cgroups:\n  \
    dnsrig watch --duration 10s --out samples.arrow --host \\\n    \
    secondary,netns=/run/netns/secondary,cgroup=/sys/fs/cgroup/memory/secondary,cgroup=/sys/fs/cgroup/unified/secondary")]
pub struct Arguments {
    /// Host to watch: its name, its network namespace, its cgroup in each hierarchy, and whether to list its sockets.
    /// May be repeated
    #[arg(long, value_name = "NAME[,netns=PATH][,cgroup=DIR]...[,sockets]", value_parser = host::parse_host)]
    host: Vec<HostArgument>,
    /// Time between samples
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = duration(Duration::from_millis(1)..=MINUTE))]
    interval: Duration,
    /// File for the rows (Arrow IPC stream)
    #[arg(long, value_name = "FILE", default_value = "samples.arrow")]
    out: PathBuf,
    /// Time between listings of sockets
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = duration(Duration::from_millis(10)..=MINUTE))]
    sockets_interval: Duration,
    /// File for the rows of sockets (Arrow IPC stream). Made only if a host has `sockets`
    #[arg(long, value_name = "FILE", default_value = "sockets.arrow")]
    sockets_out: PathBuf,
    /// Duration of the sampling [default: until it is stopped]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// Stop when standard input ends
    #[arg(long)]
    until_eof: bool,
}

#[derive(Serialize)]
struct Summary {
    series: usize,
    samples: u64,
    missed_ticks: u64,
    lateness_p50_ns: u64,
    lateness_max_ns: u64,
    rows: u64,
    rows_dropped: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sockets: Option<SocketSummary>,
    cpu_ns: i64,
    missing: Vec<String>,
}

/// Samples until someone ends it.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let [interval_ns, sockets_interval_ns] = [arguments.interval, arguments.sockets_interval].map(nanoseconds);
    output::refuse_inputs(&[Some(&arguments.out), Some(&arguments.sockets_out)], &[])?;
    let lists_sockets = arguments.host.iter().any(|host| host.sockets);
    output::check(&[Some(&arguments.out), lists_sockets.then_some(arguments.sockets_out.as_path())], &[])?;
    let stop = Stop::new(arguments.until_eof)?;
    let mut watched = Watched::open(&arguments.host)?;
    let listings = ticks_per_flush(sockets_interval_ns);
    let sockets = Sockets::open(&arguments.host, &arguments.sockets_out, listings, &mut watched.missing)?;
    let rows_per_flush = watched.series.len() * ticks_per_flush(interval_ns);
    let rows = rows::create(&arguments.out, &watched.series, rows_per_flush)?;
    let mut anchors = Anchors::start()?;
    let started_ns = clock::monotonic_ns();
    let end_ns = arguments.duration.map_or(i64::MAX, |duration| started_ns + nanoseconds(duration));
    let mut sampler = Sampler { watched, rows, sockets, buffer: vec![0; FILE_BYTES_MAX] };
    let mut schedule = Schedule::new(started_ns, interval_ns);
    let mut listing = Schedule::new(started_ns, sockets_interval_ns);
    let mut flush_due_ns = started_ns + FLUSH_INTERVAL_NS;
    loop {
        let now_ns = clock::monotonic_ns();
        if now_ns >= end_ns {
            break;
        }
        if schedule.tick(now_ns) {
            sampler.sample();
        }
        if listing.tick(now_ns) {
            sampler.list();
        }
        if now_ns >= flush_due_ns {
            flush_due_ns = now_ns + FLUSH_INTERVAL_NS;
            anchors.emit_if_due(now_ns)?;
            if !sampler.flush() {
                break;
            }
        }
        let next_ns = if sampler.sockets.is_some() { listing.due_ns() } else { i64::MAX };
        let wait_ns = schedule.due_ns().min(next_ns).min(end_ns) - clock::monotonic_ns();
        if stop.wait(None, wait_ns)? == Wake::Stop {
            break;
        }
    }
    finish(sampler, &schedule)
}

/// How many ticks of an interval may lie between two flushes.
fn ticks_per_flush(interval_ns: i64) -> usize {
    (FLUSH_INTERVAL_NS / interval_ns + 2).unsigned_abs() as usize
}

fn finish(sampler: Sampler, schedule: &Schedule) -> Result<ExitCode, Failure> {
    let Sampler { watched, rows, sockets, .. } = sampler;
    let (rows, rows_dropped) = rows.finish()?;
    let summary = Summary {
        series: watched.series.len(),
        samples: schedule.ticks(),
        missed_ticks: schedule.missed(),
        lateness_p50_ns: schedule.lateness_p50_ns(),
        lateness_max_ns: schedule.lateness_max_ns(),
        rows,
        rows_dropped,
        sockets: sockets.map(Sockets::finish).transpose()?,
        cpu_ns: clock::process_cpu_ns(),
        missing: watched.missing,
    };
    events::summary(clock::monotonic_ns(), &summary)?;
    Ok(ExitCode::SUCCESS)
}

/// Reads all files, and lists sockets, each once a tick of its own.
struct Sampler {
    watched: Watched,
    rows: RowWriter<Row>,
    sockets: Option<Sockets>,
    buffer: Vec<u8>,
}

impl Sampler {
    /// Takes a sample. Each row carries the time at which its own file was read.
    fn sample(&mut self) {
        let Sampler { watched: Watched { sources, series, missing, .. }, rows, buffer, .. } = self;
        sources.retain_mut(|source| {
            let time_ns = clock::monotonic_ns();
            let read = source.sample(buffer, |series, value| rows.push(Row { series, time_ns, value }));
            if read.is_err() {
                // A cgroup that was removed (ENODEV): missing from now on.
                missing.extend(source.series().map(|number| {
                    let one = &series[number as usize];
                    format!("{}/{}/{}", one.host, one.source, one.metric)
                }));
            }
            read.is_ok()
        });
    }

    /// Lists the sockets of the hosts that want it.
    fn list(&mut self) {
        if let Some(sockets) = &mut self.sockets {
            sockets.sample(&mut self.watched.missing);
        }
    }

    /// Hands all rows to their writers. False if one has failed.
    fn flush(&mut self) -> bool {
        self.rows.flush() && self.sockets.as_mut().is_none_or(Sockets::flush)
    }
}
