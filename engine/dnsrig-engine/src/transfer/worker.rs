//! A thread that does what a schedule orders, and reports to it what happens.

use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use dnsrig_core::clock;
use dnsrig_net::{
    poller::{Poller, Timeout},
    quic,
    tls::Fault,
};

use super::{
    connections::Connections,
    notify::{NOTIFY_NUMBERS, NotifyReceiver},
    quic::QuicConnections,
    row_buffer::Batch,
    schedule::{Order, Schedule},
};

/// How often a thread looks at the wish to stop, wall time, full batches and progress.
const LOOK_INTERVAL_NS: i64 = 20_000_000;

/// How often it is looked, at the end, whether the primary has ended its side of connections too.
const CLOSE_CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// The progress of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    pub done: u64,
    pub failed: u64,
    pub left: u64,
    pub outstanding: u64,
    pub records: u64,
    pub bytes: u64,
    pub connections_open: u64,
}

/// What a thread shares with the one that reports.
pub struct Shared {
    pub stop: Arc<AtomicBool>,
    pub progress: Arc<Mutex<Progress>>,
    /// Full batches; where there is no room for more, rows are lost and counted.
    pub batches: mpsc::SyncSender<Batch>,
}

/// The result of a thread.
pub struct WorkerResult {
    pub schedule: Schedule,
    pub busy_ns: i64,
    pub rows_lost: u64,
    pub end_ns: i64,
    pub fault: Option<Fault>,
    pub congestion: Option<String>,
    pub quic: Option<quic::counts::Counts>,
    /// The number of TCP connections for NOTIFY that were refused.
    pub notify_refused: u64,
}

/// A thread's state.
pub struct Worker {
    pub schedule: Schedule,
    pub connections: Connections,
    pub poller: Poller,
    /// With --on-notify.
    pub notify_receiver: Option<NotifyReceiver>,
    pub shared: Shared,
    /// No transfer is begun after this time.
    pub deadline_ns: i64,
    /// How often the kernel's counters of the connections are read; 0: never.
    pub info_interval_ns: i64,
}

impl Worker {
    /// Works until all is over.
    pub fn run(mut self) -> io::Result<WorkerResult> {
        // Where it is refused, timers are a little late.
        let _ = clock::wait_exactly();
        let (mut busy_ns, mut rows_lost, mut look_ns, mut info_ns) = (0, 0, 0, 0);
        let mut now_ns = clock::monotonic_ns();
        loop {
            if now_ns >= look_ns {
                look_ns = now_ns + LOOK_INTERVAL_NS;
                rows_lost += self.look(now_ns);
                if let Some(notify_receiver) = &mut self.notify_receiver {
                    notify_receiver.sweep(now_ns, &self.poller)?;
                }
            }
            if self.info_interval_ns > 0 && now_ns >= info_ns {
                info_ns = now_ns + self.info_interval_ns;
                self.look_at_connections(now_ns);
            }
            let worked = self.turn(now_ns)?;
            if self.schedule.is_over() {
                break;
            }
            let then_ns = clock::monotonic_ns();
            if worked {
                busy_ns += then_ns - now_ns;
                now_ns = then_ns;
            } else {
                let quic_ns = self.connections.quic.as_ref().map_or(i64::MAX, QuicConnections::due_ns);
                let until_ns = self.schedule.due_ns().min(look_ns).min(self.deadline_ns).min(quic_ns);
                self.poller.sleep(until_ns - then_ns)?;
                now_ns = clock::monotonic_ns();
            }
        }
        let end_ns = clock::monotonic_ns();
        self.close_all(end_ns);
        rows_lost += self.look(end_ns);
        while self.connections.look_after(clock::monotonic_ns()) > 0 {
            thread::sleep(CLOSE_CHECK_INTERVAL);
        }
        let Worker { schedule, connections, notify_receiver, .. } = self;
        let notify_refused = notify_receiver.map_or(0, |notify_receiver| notify_receiver.connection_counts.refused);
        let Connections { fault, congestion, quic, .. } = connections;
        let fault = fault.or(quic.as_ref().and_then(|quic| quic.fault));
        let quic = quic.map(|quic| quic.counts());
        Ok(WorkerResult { schedule, busy_ns, rows_lost, end_ns, fault, congestion, quic, notify_refused })
    }

    /// Does all that can be done now, and returns whether there was anything to do.
    fn turn(&mut self, now_ns: i64) -> io::Result<bool> {
        self.schedule.tick(now_ns);
        let mut count = 0;
        while let Some(order) = self.schedule.order(now_ns) {
            count += 1;
            self.carry_out(order, now_ns)?;
        }
        // After the orders: nothing may happen on a connection that counts as closed.
        if let Some(quic) = &mut self.connections.quic {
            count += quic.on_time(&mut self.schedule, now_ns)?;
        }
        let now_ns = clock::monotonic_ns();
        count += self.connections.read_on(&mut self.schedule, now_ns);
        for at in 0..self.poller.wait(Timeout::Exact(0))? {
            let (number, flags) = self.poller.event(at);
            count += 1;
            if number < NOTIFY_NUMBERS {
                self.connections.event(number as u32, flags, &mut self.schedule, now_ns)?;
            } else if let Some(notify_receiver) = &mut self.notify_receiver {
                notify_receiver.event(number, now_ns, &self.poller, |secondary, zone, serial| {
                    self.schedule.notify(secondary, zone, serial, now_ns);
                })?;
            }
        }
        Ok(count > 0)
    }

    fn carry_out(&mut self, order: Order, now_ns: i64) -> io::Result<()> {
        match order {
            Order::Open(slot) => self.connections.open(slot, &mut self.schedule, &self.poller, now_ns)?,
            Order::Fill(slot) => self.connections.fill(slot, &mut self.schedule, now_ns)?,
            Order::Close(slot) => self.connections.close(slot, &self.poller, now_ns),
            Order::Cancel(slot, id) => {
                if let Some(quic) = &mut self.connections.quic {
                    quic.cancel(slot, id, now_ns)?;
                }
            }
        }
        Ok(())
    }

    /// Updates wall time and progress, hands over full batches, and returns how many rows were lost.
    fn look(&mut self, now_ns: i64) -> u64 {
        self.schedule.set_wall_time(clock::wall_time_s());
        self.connections.look_after(now_ns);
        if now_ns >= self.deadline_ns || self.shared.stop.load(Ordering::Relaxed) {
            self.schedule.stop(now_ns);
        }
        let (outstanding, connections_open) = self.schedule.under_way();
        let counters = &self.schedule.counters;
        *self.shared.progress.lock().unwrap_or_else(PoisonError::into_inner) = Progress {
            done: counters.done() + counters.up_to_date(),
            failed: counters.failed(),
            left: self.schedule.left(),
            outstanding,
            records: counters.totals.records,
            bytes: counters.totals.bytes,
            connections_open,
        };
        let mut lost = 0;
        while let Some(batch) = self.schedule.row_buffer.take_full() {
            if let Err(mpsc::TrySendError::Full(batch) | mpsc::TrySendError::Disconnected(batch)) =
                self.shared.batches.try_send(batch)
            {
                lost += batch.len() as u64;
            }
        }
        lost
    }

    fn look_at_connections(&mut self, now_ns: i64) {
        let mut row_buffer = std::mem::take(&mut self.schedule.row_buffer);
        self.connections.look(|slot| self.schedule.connection_of(slot), now_ns, &mut row_buffer);
        self.schedule.row_buffer = row_buffer;
    }

    /// Closes what is still open, in order.
    fn close_all(&mut self, now_ns: i64) {
        self.schedule.stop(now_ns);
        while let Some(order) = self.schedule.order(now_ns) {
            if let Order::Close(slot) = order {
                self.connections.close(slot, &self.poller, now_ns);
            }
        }
    }
}
