//! Starts the threads, collects their results, and reports them.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    process::ExitCode,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use dnsrig_core::{
    clock,
    events::{Anchors, ProgressTimer},
    failure::Failure,
    open_files,
    output::{self},
    stop::{INTERRUPTED, Stop, Wake},
    target::{self, Authority},
    threads::{self, Threads},
    units::nanoseconds,
};
use dnsrig_dns::zones::Zones;
use dnsrig_net::{
    poller::Poller,
    source,
    tls::{Client, arguments::TlsArguments},
};

use super::{
    Arguments,
    connections::{Connections, Dial},
    counters::Counters,
    notify::NotifyReceiver,
    quic::QuicConnections,
    report::Reporter,
    row_buffer::{Batches, RowBuffer},
    rows::{FILES, Files},
    schedule::{Schedule, Settings, Share},
    sinks::{SinkFactory, ZONE_SUFFIX},
    summary::Summary,
    worker::{Progress, Shared, Worker, WorkerResult},
};

/// How often progress is reported.
const PROGRESS_INTERVAL_NS: i64 = 1_000_000_000;

/// How often the wish to stop, and whether threads have ended, is checked.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Transfers zones as the arguments say.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let authority = target::authorise(arguments.server().ip(), arguments.instrument.i_am_authorized)?;
    arguments.check(0)?;
    arguments.socket_options().check(arguments.server())?;
    check_outputs(arguments)?;
    source::check(arguments.sources().into_iter().flatten())?;
    let stop = Stop::new(arguments.instrument.until_eof)?;
    let zones = Arc::new(zones(arguments, authority, &stop)?);
    arguments.check(zones.count())?;
    let reporter = Reporter::find(arguments.instrument.json);
    let anchors = if reporter.program { Some(Anchors::start()?) } else { None };
    let files = match &arguments.instrument.out {
        Some(folder) => {
            let any = target::unspecified(arguments.server());
            Some(Files::create(folder, zones.clone(), arguments.sources(), any)?)
        }
        None => None,
    };
    let sink_factory = SinkFactory {
        folder: arguments.checks.write.clone().map(Arc::new),
        digests: arguments.checks.zonemd,
        members: None,
    };
    let cpu_ns = clock::process_cpu_ns();
    let team = Team::start(arguments, authority, &zones, &sink_factory, files.is_some())?;
    if arguments.wanted.on_notify {
        reporter.ready(arguments.wanted.notify_port)?;
    }
    let mut summary = Summary::new(arguments, zones.count(), team.start_ns);
    team.finish(arguments, &stop, reporter, anchors, files, &mut summary)?;
    summary.cpu_ns = clock::process_cpu_ns() - cpu_ns;
    reporter.summary(&summary, arguments.server())?;
    Ok(match summary.interrupted {
        true => ExitCode::from(INTERRUPTED),
        false if summary.is_good() => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Refuses folders of outputs that cannot be written to, or whose files would replace one that is read.
fn check_outputs(arguments: &Arguments) -> Result<(), Failure> {
    let TlsArguments { ca, certificate, key, .. } = &arguments.tls;
    let read = [&arguments.zones.zones, ca, certificate, key].map(Option::as_deref);
    if let Some(folder) = &arguments.instrument.out {
        output::check_folder(folder, &FILES, &read)?;
    }
    let Some(folder) = &arguments.checks.write else { return Ok(()) };
    // Only files with such names are written there.
    let zone_files = read.map(|path| path.filter(|path| path.extension().is_some_and(|suffix| suffix == ZONE_SUFFIX)));
    let names: Vec<_> = zone_files.iter().flatten().filter_map(|path| path.file_name()?.to_str()).collect();
    output::check_folder(folder, &names, &read)
}

/// The zones of the command line; a catalog is transferred for it.
fn zones(arguments: &Arguments, authority: Authority, stop: &Stop) -> Result<Zones, Failure> {
    arguments.zones.zones(|catalog, members| {
        let sink_factory = SinkFactory { members: Some(members), ..SinkFactory::default() };
        let summary = run_one(arguments, authority, &Arc::new(catalog), &sink_factory, stop)?;
        let failed = summary.outcomes.keys().find(|outcome| **outcome != "done");
        Ok(failed.map_or(Ok(()), |outcome| Err((*outcome).to_owned())))
    })
}

/// Transfers one zone, by the same arguments otherwise, and returns how that went. A wish to end is an error.
fn run_one(
    arguments: &Arguments,
    authority: Authority,
    zones: &Arc<Zones>,
    sink_factory: &SinkFactory,
    stop: &Stop,
) -> Result<Summary, Failure> {
    let settings = Settings {
        serial: None,
        records_expected: None,
        repeat: false,
        on_notify: false,
        ..arguments.settings(authority, 1.0)
    };
    let share = Share { secondaries: 1, first: 0, thread: 0, threads: 1 };
    let part = Part { share, settings, clients: arguments.clients()?, keeps_rows: false, deadline_ns: i64::MAX };
    let mut summary = Summary::new(arguments, 1, clock::monotonic_ns());
    let (batches, _) = Batches::new();
    let stopping = Arc::new(AtomicBool::new(false));
    let shared = Shared { stop: stopping.clone(), progress: Arc::default(), batches };
    let worker = part.worker(arguments, zones, sink_factory, shared)?;
    let server = arguments.server();
    let mut team = Threads::new()?;
    team.spawn("catalog", move |_| worker.run().map_err(|error| no_sockets(server, &error)))?;
    if wait(&mut team, stop, &stopping, || Ok(()))? {
        return Err(Failure {
            exit_code: INTERRUPTED,
            ..Failure::new(
                "interrupted during the transfer of the catalog: no zone was asked for",
                "start it again, or give the zones with --zone-list",
            )
        });
    }
    let remains = team.end()?.remove(0);
    summary.fill(&remains.schedule.counters, remains.end_ns);
    Ok(summary)
}

fn no_sockets(server: SocketAddr, error: &io::Error) -> Failure {
    Failure::new(
        format!("cannot make sockets to {server}: {error}"),
        format!("see `ip route get {}`, and `ulimit -n`", server.ip()),
    )
}

/// Waits until all threads have ended, and calls `each` in between. Returns whether someone ended them.
fn wait(
    threads: &mut Threads<WorkerResult>,
    stop: &Stop,
    stopping: &AtomicBool,
    mut each: impl FnMut() -> Result<(), Failure>,
) -> Result<bool, Failure> {
    let mut is_interrupted = false;
    while threads.look()? > 0 {
        if is_interrupted {
            thread::sleep(LOOK_INTERVAL);
        } else if stop.wait(None, nanoseconds(LOOK_INTERVAL))? == Wake::Stop {
            is_interrupted = true;
            stopping.store(true, Ordering::Relaxed);
        }
        each()?;
    }
    Ok(is_interrupted)
}

/// What one thread is to do.
struct Part {
    share: Share,
    settings: Settings,
    /// The TLS clients of its secondaries.
    clients: Vec<Client>,
    keeps_rows: bool,
    deadline_ns: i64,
}

impl Part {
    fn worker(
        self,
        arguments: &Arguments,
        zones: &Arc<Zones>,
        sink_factory: &SinkFactory,
        shared: Shared,
    ) -> Result<Worker, Failure> {
        let Part { share, settings, clients, keeps_rows, deadline_ns } = self;
        let Share { first, secondaries, .. } = share;
        let sources: Vec<Option<IpAddr>> =
            arguments.sources().into_iter().skip(first as usize).take(secondaries as usize).collect();
        let poller = Poller::new().map_err(|error| no_sockets(arguments.server(), &error))?;
        let notify_receiver = match settings.on_notify {
            true => {
                let port = arguments.wanted.notify_port;
                let opened = NotifyReceiver::open(arguments.primary.address, &sources, zones, port, &poller);
                Some(opened.map_err(|error| {
                    Failure::new(
                        format!("cannot wait for NOTIFY on port {port}: {error}"),
                        "run this as root on a host where no DNS server listens (ss -lpn), or choose another \
                         --notify-port",
                    )
                })?)
            }
            false => None,
        };
        let signer = arguments.signer()?;
        let dial = Dial {
            server: arguments.server(),
            server_udp: arguments.server_udp(),
            sources,
            options: arguments.socket_options(),
            clients,
            wants_ports: keeps_rows,
        };
        let row_buffer = RowBuffer::new(keeps_rows);
        let mut schedule = Schedule::new(settings, share, zones.clone(), signer, sink_factory.clone(), row_buffer);
        schedule.set_wall_time(clock::wall_time_s());
        let receive_buffer = arguments.socket.receive_buffer_bytes;
        let quic = arguments.quic(secondaries)?;
        let quic =
            quic.map(|configs| QuicConnections::new(arguments.server(), configs, receive_buffer, schedule.slots()));
        let connections = Connections::new(dial, quic, schedule.slots());
        let info_interval_ns = if keeps_rows { arguments.instrument.info_interval } else { 0 };
        Ok(Worker { schedule, connections, poller, notify_receiver, shared, deadline_ns, info_interval_ns })
    }
}

/// The threads at work.
struct Team {
    threads: Threads<WorkerResult>,
    progress: Vec<Arc<Mutex<Progress>>>,
    stopping: Arc<AtomicBool>,
    batches: Batches,
    start_ns: i64,
}

impl Team {
    fn start(
        arguments: &Arguments,
        authority: Authority,
        zones: &Arc<Zones>,
        sink_factory: &SinkFactory,
        keeps_rows: bool,
    ) -> Result<Self, Failure> {
        let secondaries = arguments.connections.secondaries;
        let connections = u64::from(secondaries) * (u64::from(arguments.connections.count) + 1);
        open_files::allow(connections, "--secondaries or --connections")?;
        let mut clients = arguments.clients()?;
        let threads = arguments.instrument.threads.min(secondaries);
        let (sender, batches) = Batches::new();
        let stopping = Arc::new(AtomicBool::new(false));
        let start_ns = clock::monotonic_ns();
        let deadline_ns =
            arguments.limits.duration.map_or(i64::MAX, |duration| start_ns.saturating_add(nanoseconds(duration)));
        let mut workers = Vec::new();
        let mut first = 0;
        for thread in 0..threads {
            let count = secondaries / threads + u32::from(thread < secondaries % threads);
            let share = Share { secondaries: count, first, thread, threads };
            let settings = arguments.settings(authority, f64::from(count) / f64::from(secondaries));
            let shared = Shared { stop: stopping.clone(), progress: Arc::default(), batches: sender.clone() };
            let clients = clients.drain(..clients.len().min(count as usize)).collect();
            let part = Part { share, settings, clients, keeps_rows, deadline_ns };
            workers.push(part.worker(arguments, zones, sink_factory, shared)?);
            first += count;
        }
        let progress = workers.iter().map(|worker| worker.shared.progress.clone()).collect();
        let (mut team, count, server) = (Threads::new()?, workers.len(), arguments.server());
        for (number, worker) in workers.into_iter().enumerate() {
            team.spawn("transfer", move |_| {
                threads::take_cpu(number, count);
                worker.run().map_err(|error| no_sockets(server, &error))
            })?;
        }
        Ok(Team { threads: team, progress, stopping, batches, start_ns })
    }

    /// Waits until all threads have ended, and fills in the summary.
    fn finish(
        self,
        arguments: &Arguments,
        stop: &Stop,
        reporter: Reporter,
        anchors: Option<Anchors>,
        mut files: Option<Files>,
        summary: &mut Summary,
    ) -> Result<(), Failure> {
        let zones = if arguments.wanted.on_notify || arguments.wanted.repeat {
            0
        } else {
            u64::from(summary.zones) * u64::from(summary.secondaries)
        };
        let mut progress_due = ProgressDue::new(anchors, self.start_ns);
        let Team { mut threads, progress, stopping, mut batches, .. } = self;
        summary.interrupted = wait(&mut threads, stop, &stopping, || {
            if let Some(files) = &mut files
                && let Some(batch) = batches.take_urgent()
            {
                files.write(&batch)?;
            }
            if progress_due.is_due()? { reporter.progress(&sum(&progress), zones) } else { Ok(()) }
        })?;
        let remains = threads.end()?;
        conclude(arguments, summary, &remains);
        if let Some(mut files) = files {
            let left = remains.into_iter().flat_map(|remains| remains.schedule.row_buffer.finish());
            batches.finish().chain(left).try_for_each(|batch| files.write(&batch))?;
            files.finish()?;
        }
        Ok(())
    }
}

/// The progress of all threads together.
fn sum(progress: &[Arc<Mutex<Progress>>]) -> Progress {
    let all = progress.iter().map(|one| *one.lock().unwrap_or_else(PoisonError::into_inner));
    all.fold(Progress::default(), |sum, one| Progress {
        done: sum.done + one.done,
        failed: sum.failed + one.failed,
        left: sum.left + one.left,
        outstanding: sum.outstanding + one.outstanding,
        records: sum.records + one.records,
        bytes: sum.bytes + one.bytes,
        connections_open: sum.connections_open + one.connections_open,
    })
}

/// When progress is due.
struct ProgressDue {
    progress_timer: Option<ProgressTimer>,
    due_ns: i64,
}

impl ProgressDue {
    fn new(anchors: Option<Anchors>, start_ns: i64) -> Self {
        let progress_timer = anchors.map(|anchors| ProgressTimer::new(start_ns, PROGRESS_INTERVAL_NS, anchors));
        ProgressDue { progress_timer, due_ns: start_ns + PROGRESS_INTERVAL_NS }
    }

    fn is_due(&mut self) -> Result<bool, Failure> {
        let now_ns = clock::monotonic_ns();
        if let Some(progress_timer) = &mut self.progress_timer {
            return progress_timer.is_progress_due(now_ns);
        }
        let due = now_ns >= self.due_ns;
        if due {
            self.due_ns = now_ns + PROGRESS_INTERVAL_NS;
        }
        Ok(due)
    }
}

/// Puts the results of the threads together.
fn conclude(arguments: &Arguments, summary: &mut Summary, remains: &[WorkerResult]) {
    let mut counters = Counters::default();
    let sources = arguments.sources();
    for one in remains {
        counters.add(&one.schedule.counters);
        let (secondaries, first) = one.schedule.secondaries();
        summary.add_secondaries(secondaries, first, &sources);
        summary.rows_lost += one.rows_lost;
        summary.notify_refused += one.notify_refused;
        summary.congestion = summary.congestion.take().or_else(|| one.congestion.clone());
        if let (Some(sum), Some(counts)) = (&mut summary.quic, &one.quic) {
            sum.counts.add(counts);
        }
        summary.tls_fault = summary.tls_fault.or(one.fault.map(|fault| fault.word()));
        summary.tls_sentence = summary.tls_sentence.or(one.fault.map(|fault| fault.sentence()));
        // A round that was not over misses no zone.
        summary.unfinished += if arguments.wanted.repeat { 0 } else { one.schedule.left() };
    }
    summary.threads = remains.len();
    let last_ns = remains.iter().map(|one| one.end_ns).max().unwrap_or(summary.start_ns);
    let all_good = counters.failed() == 0 && summary.unfinished == 0 && counters.last_done_ns > 0;
    let ends_by_itself = !arguments.wanted.on_notify && !arguments.wanted.repeat;
    summary.fill(&counters, if all_good && ends_by_itself { counters.last_done_ns } else { last_ns });
    let busy_ns = remains.iter().map(|one| one.busy_ns).max().unwrap_or(0);
    summary.busy_share = (busy_ns as f64 / (last_ns - summary.start_ns).max(1) as f64).min(1.0);
}
