//! `change`: dynamic updates (RFC 2136) of a primary at a constant rate, so that its zones change during a measurement.
//!
//! [`plan`] has the k-th change, [`core`] decides when it is sent and how it ended, and [`update`] writes its bytes;
//! this file has the socket.

mod arguments;
mod core;
mod plan;
mod report;

use std::{
    collections::HashMap,
    net::{SocketAddr, UdpSocket},
    ops::ControlFlow,
    process::ExitCode,
    str::FromStr,
    sync::Arc,
};

use dnsrig_core::{
    clock,
    events::Anchors,
    failure::Failure,
    output,
    stop::{Outcome, Stop},
    target::{self, Authority},
    units::nanoseconds,
};
use dnsrig_dns::{
    tsig::{
        sign::{Signer, parse_key},
        verify::Verifier,
    },
    update,
};
use dnsrig_net::udp_client::{self, UdpClient};
use domain::base::Name;

pub use self::arguments::Arguments;
use crate::dataset::{
    churn::{self, Churn, Row},
    zone_list,
};
use arguments::{CHANGES_MAX, RATE_VOUCHED_MAX};
use core::{Action, Answer, Core, End, Settings};
use plan::Plan;
use report::Report;

/// Changes zones until the time is over or someone ends it.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let authority = target::authorise(arguments.primary.ip(), arguments.i_am_authorized)?;
    if authority == Authority::Vouched && arguments.changes_per_s > RATE_VOUCHED_MAX {
        return Err(too_many(format!("a server outside the rig gets at most {RATE_VOUCHED_MAX} changes per second")));
    }
    let key = arguments.tsig.as_deref().map(parse_key).transpose()?;
    output::check(&[arguments.out.as_deref()], &[arguments.zones.as_deref(), arguments.members.as_deref()])?;
    let plan = plan(arguments)?;
    let stop = Stop::new(arguments.until_eof)?;
    let socket = udp_client::connect(arguments.primary, None)?;
    let anchors = Anchors::start()?;
    let start_ns = clock::monotonic_ns();
    let mut changes = Changes {
        key,
        verifiers: HashMap::new(),
        core: Core::new(settings(arguments, start_ns)?, start_ns),
        report: Report::new(start_ns, anchors),
        plan,
    };
    let outcome = udp_client::run(&mut changes, &socket, arguments.primary, &stop)?;
    if let Some(path) = &arguments.out {
        churn::write_rows(path, changes.rows())?;
    }
    let timeout_ns = nanoseconds(arguments.timeout);
    changes.report.summary(outcome, &changes.core, &changes.plan, arguments.changes_per_s, timeout_ns)?;
    Ok(outcome.exit_code())
}

fn plan(arguments: &Arguments) -> Result<Plan, Failure> {
    if let Some(path) = &arguments.zones {
        return Ok(Plan::Zones(zone_list::read(path)?));
    }
    let (Some(catalog), Some(members)) = (&arguments.catalog, &arguments.members) else {
        unreachable!("clap asks for --catalog with --members, or for --zone-list")
    };
    let catalog = Name::from_str(catalog).map_err(|_| {
        let hint = "give the name as in the catalog's zone file, such as catalog.example";
        Failure::bad_input(format!("`{catalog}` is not a domain name"), hint)
    })?;
    let (members, first) = (zone_list::read(members)?, arguments.first_member);
    match Churn::new(members.count(), first, arguments.absent) {
        Some(churn) => Ok(Plan::Catalog { catalog, members, churn }),
        None => Err(Failure::bad_input(
            format!("--first-member {first} leaves fewer than two of {} members to change", members.count()),
            "lower --first-member, or use a catalog with more members",
        )),
    }
}

fn settings(arguments: &Arguments, start_ns: i64) -> Result<Settings, Failure> {
    let changes = (arguments.changes_per_s * arguments.duration.as_secs_f64()).ceil();
    if changes > CHANGES_MAX as f64 {
        return Err(too_many(format!("--changes-per-s × --duration is more than {CHANGES_MAX} changes")));
    }
    Ok(Settings {
        rate_per_s: arguments.changes_per_s,
        changes: changes as u64,
        window: arguments.window as usize,
        timeout_ns: nanoseconds(arguments.timeout),
        end_ns: start_ns.saturating_add(nanoseconds(arguments.duration + arguments.timeout)),
    })
}

fn too_many(sentence: String) -> Failure {
    Failure::bad_input(sentence, "lower --changes-per-s or --duration")
}

/// The changes of one run.
struct Changes {
    key: Option<Arc<Signer>>,
    /// By id: what checks the answers that are waited for.
    verifiers: HashMap<u16, Verifier>,
    plan: Plan,
    core: Core,
    report: Report,
}

impl Changes {
    fn send(&mut self, socket: &UdpSocket, id: u16, number: u64) -> Result<(), Failure> {
        let change = self.plan.change(number);
        let edits = self.plan.edits(number, change)?;
        let (zone, now_s) = (self.plan.edited(change), clock::wall_time_s());
        let (update, verifier) = update::write_update(id, zone, &edits, self.key.as_ref(), now_s)?;
        // The error may belong to an earlier datagram (ICMP); this one was not sent in any case.
        if socket.send(&update).is_err() {
            self.core.on_not_sent(id);
        } else if let Some(verifier) = verifier {
            self.verifiers.insert(id, verifier);
        }
        Ok(())
    }

    fn rows(&self) -> impl Iterator<Item = Row> {
        self.core.sent().iter().zip(0..).map(|(sent, number)| {
            let change = self.plan.change(number);
            let (answered_ns, rcode) = match sent.end {
                End::Answered { answered_ns, rcode } => (Some(answered_ns), Some(rcode)),
                _ => (None, None),
            };
            Row {
                zone: self.plan.subject(change).to_string(),
                kind: change.kind,
                due_ns: sent.due_ns,
                sent_ns: sent.sent_ns,
                accepted_ns: answered_ns.filter(|_| rcode == Some(0)),
                rcode,
                serial: None,
            }
        })
    }
}

impl UdpClient for Changes {
    fn act(&mut self, socket: &UdpSocket, now_ns: i64) -> Result<ControlFlow<Outcome, i64>, Failure> {
        Ok(match self.core.next(now_ns) {
            Action::Done => ControlFlow::Break(Outcome::Done),
            Action::Wait { until_ns } => ControlFlow::Continue(until_ns),
            Action::Send { id, number } => {
                self.send(socket, id, number)?;
                ControlFlow::Continue(now_ns)
            }
        })
    }

    fn on_message(&mut self, now_ns: i64, _from: SocketAddr, message: &[u8]) -> Result<(), Failure> {
        let Some((id, rcode)) = update::read_answer(message) else {
            self.report.unexpected += 1;
            return Ok(());
        };
        let is_signed = |verifier| update::is_signed(message, &verifier, clock::wall_time_s());
        if self.verifiers.remove(&id).is_some_and(|verifier| !is_signed(verifier)) {
            self.report.unsigned += 1;
        }
        match self.core.on_answer(now_ns, id, rcode) {
            Answer::Expected => self.report.count_rcode(rcode),
            Answer::Late => self.report.late += 1,
            Answer::Unexpected => self.report.unexpected += 1,
        }
        Ok(())
    }

    fn on_unreachable(&mut self, _now_ns: i64) {
        // Changes without an answer are given up in their time.
        self.report.unreachable += 1;
    }

    fn report(&mut self, now_ns: i64) -> Result<i64, Failure> {
        self.report.emit_if_due(now_ns, &self.core)?;
        Ok(self.report.due_ns())
    }
}
