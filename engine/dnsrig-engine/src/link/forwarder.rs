//! Carries packets between two interfaces: the shell around two [`DelayQueue`]s.

use std::{os::fd::AsFd, time::Duration};

use dnsrig_core::{
    clock,
    failure::{Failure, system_failed},
};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, ppoll},
    sys::time::TimeSpec,
};

use super::{
    counters::Counters,
    delay_queue::{DelayQueue, Fate},
    icmp::{self, ANSWER_BYTES_MAX},
    tun::Tun,
};

/// The number of packets of one direction that are read, and written, before the other direction has its turn.
const BATCH_PACKETS: usize = 64;

/// Packets that are due sooner than this are not slept for: to fall asleep and wake up takes longer.
const AWAKE_NS: i64 = 5_000;

/// One direction: what waits and what was counted.
pub struct Direction {
    pub line: DelayQueue,
    pub counters: Counters,
}

/// Two interfaces and what is under way between them: first from left to right, then from right to left.
pub struct Forwarder {
    tuns: [Tun; 2],
    pub directions: [Direction; 2],
    /// Where there may be something to read.
    readable: [bool; 2],
}

impl Forwarder {
    /// Nothing is under way.
    pub fn new(tuns: [Tun; 2], lines: [DelayQueue; 2]) -> Self {
        let directions = lines.map(|line| Direction { line, counters: Counters::default() });
        Forwarder { tuns, directions, readable: [true; 2] }
    }

    /// Reads what has come, delivers what is due, a batch each. Returns whether there may be more to do at once.
    pub fn turn(&mut self) -> Result<bool, Failure> {
        let mut more = false;
        for from in [0, 1] {
            // Not asked otherwise: to learn that there is nothing costs a system call.
            self.readable[from] = self.readable[from] && self.read(from)?;
            more |= self.readable[from];
        }
        for from in [0, 1] {
            more |= self.deliver(from);
        }
        Ok(more)
    }

    /// Sleeps for `ns`, less if a packet comes; none or less: only sees whether one has come.
    pub fn sleep(&mut self, ns: i64) -> Result<(), Failure> {
        let mut fds = self.tuns.each_ref().map(|tun| PollFd::new(tun.as_fd(), PollFlags::POLLIN));
        let time = TimeSpec::from_duration(Duration::from_nanos(ns.max(0).unsigned_abs()));
        match ppoll(&mut fds, Some(time), None) {
            Ok(_) => self.readable = fds.map(|fd| fd.any().unwrap_or(true)),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(system_failed("wait for packets", errno)),
        }
        Ok(())
    }

    /// How long nothing will be due, in nanoseconds; zero or less if something is, or is so soon that sleep is no use.
    pub fn idle_ns(&self) -> i64 {
        let due_ns = self.directions.iter().filter_map(|direction| direction.line.due_ns()).min();
        let wait_ns = due_ns.map_or(i64::MAX, |due_ns| due_ns - clock::monotonic_ns());
        if wait_ns < AWAKE_NS { 0 } else { wait_ns }
    }

    /// How many packets the kernel dropped where each direction begins, because they were not read in time.
    pub fn missed_packets(&self) -> [Option<u64>; 2] {
        self.tuns.each_ref().map(Tun::missed_packets)
    }

    /// Takes a batch into the direction that begins at interface `from`; whether that was not all.
    fn read(&mut self, from: usize) -> Result<bool, Failure> {
        let Direction { line, counters } = &mut self.directions[from];
        for _ in 0..BATCH_PACKETS {
            let Some(bytes) = self.tuns[from].read(line.room())? else { return Ok(false) };
            let fate = line.take(bytes, clock::monotonic_ns());
            counters.took(bytes, fate, line.waiting_packets());
            if fate == Fate::TooBig && line.is_icmp_sent() {
                refuse(&self.tuns[from], line, bytes);
            }
        }
        Ok(true)
    }

    /// Delivers a batch of what is due; whether that was not all.
    fn deliver(&mut self, from: usize) -> bool {
        let Direction { line, counters } = &mut self.directions[from];
        for _ in 0..BATCH_PACKETS {
            let now_ns = clock::monotonic_ns();
            let Some(departure) = line.pop(now_ns) else { return false };
            let delivered = self.tuns[1 - from].write(departure.bytes);
            counters.gave(departure, now_ns, delivered);
        }
        true
    }
}

/// Tells the sender of the packet in the line's room that it is too big, at once: as if the narrow hop were the first.
fn refuse(tun: &Tun, line: &mut DelayQueue, bytes: usize) {
    let mtu_bytes = line.mtu_bytes();
    let room = line.room();
    let packet = &room[..bytes.min(room.len())];
    let mut answer = [0; ANSWER_BYTES_MAX];
    if let Some(length) = icmp::too_big(packet, mtu_bytes, &mut answer) {
        // An interface that takes none is down by now; there is nobody to tell.
        tun.write(&answer[..length]);
    }
}
