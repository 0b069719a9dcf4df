//! `link`: an emulated path between two hosts, for machines whose kernel has no netem, and for what netem does not
//! have.
//!
//! Cores without I/O: [`spec`] (what is asked for), [`delay_queue`] (one direction, in virtual time),
//! [`address_delays`] (an extra delay for each address), [`icmp`] (the error message for packets that are too large),
//! [`counters`]. Shells: [`tun`] (interfaces), [`forwarder`] (between them), [`report`] (events and rows).

mod address_delays;
pub mod counters;
mod delay_queue;
mod forwarder;
pub mod icmp;
mod options;
pub mod report;
pub mod spec;
pub mod tun;

use std::process::ExitCode;

use dnsrig_core::{
    clock,
    events::Anchors,
    failure::{Failure, system_failed},
    stop::Stop,
};

pub use self::options::{Arguments, End};
use delay_queue::DelayQueue;
use forwarder::Forwarder;
use report::Report;
use tun::Tun;

/// We look at whether to end this often, and not at each packet.
const STOP_INTERVAL_NS: i64 = 20_000_000;

/// The kernel keeps at least so many packets for us between two reads, whatever the limit: 10 ms of 10 Gbit/s. What
/// comes while we sleep or write must find room.
const KERNEL_QUEUE_PACKETS_MIN: u32 = 10_000;

/// Carries packets until someone ends it.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    arguments.check()?;
    let stop = Stop::new(arguments.until_eof)?;
    let anchors = Anchors::start()?;
    clock::wait_exactly().map_err(|errno| system_failed("wait exactly", errno))?;
    let make = |end: &End, spec: &spec::Spec| {
        Tun::create(end, arguments.mtu, spec.limit_packets.max(KERNEL_QUEUE_PACKETS_MIN))
    };
    let tuns = [make(&arguments.left, &arguments.forward)?, make(&arguments.right, &arguments.reverse)?];
    let start_ns = clock::monotonic_ns();
    let line =
        |spec: &spec::Spec, purpose| DelayQueue::new(spec.clone(), arguments.mtu, arguments.seed, purpose, start_ns);
    let mut forwarder = Forwarder::new(tuns, [line(&arguments.forward, 0), line(&arguments.reverse, 1)]);
    let rows = arguments.out.as_deref().map(report::create_rows).transpose()?;
    let mut report = Report::new(arguments, rows, start_ns, anchors)?;
    carry(&mut forwarder, &mut report, &stop)?;
    report.finish(forwarder)?;
    Ok(ExitCode::SUCCESS)
}

fn carry(forwarder: &mut Forwarder, report: &mut Report, stop: &Stop) -> Result<(), Failure> {
    let mut stop_due_ns = 0;
    loop {
        let more = forwarder.turn()?;
        let now_ns = clock::monotonic_ns();
        if now_ns >= report.due_ns() {
            report.emit_due(now_ns, forwarder)?;
        }
        if now_ns >= stop_due_ns {
            stop_due_ns = now_ns + STOP_INTERVAL_NS;
            if stop.asked()? {
                return Ok(());
            }
        }
        let idle_ns = forwarder.idle_ns().min(report.due_ns().min(stop_due_ns) - now_ns);
        forwarder.sleep(if more { 0 } else { idle_ns })?;
    }
}
