//! The secondaries that are played: what each still has to transfer.

use std::collections::VecDeque;

use crate::dns::xfr::Outcome;

/// How a zone stands that is asked for when NOTIFY comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    #[default]
    Rest,
    /// It is being transferred, or will be.
    Asked,
    /// Likewise, and another NOTIFY has come since.
    AskedAgain,
}

/// Zones whose serial was asked for over UDP wait for a connection; with so many no further serial is asked for.
const CLEARED_MAX: usize = 16_384;

/// One zone for one secondary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Job {
    pub secondary: u32,
    pub zone: u32,
    /// So many times it was asked for.
    pub attempt: u16,
    /// So many of these have used up a retry, or the first attempt.
    pub failures: u16,
}

/// One secondary: its list of zones, and what has become of them in this round.
#[derive(Default)]
pub struct Secondary {
    /// The next zone that was never asked for.
    next: u32,
    /// Where its list ends; 0 if it waits for NOTIFY.
    end: u32,
    /// To be asked for again, as a connection was lost or a NOTIFY came.
    ready: VecDeque<Job>,
    /// Likewise, as they have failed before.
    failed_before: VecDeque<Job>,
    /// The SOA says that they are to be transferred.
    cleared: VecDeque<Job>,
    /// Connections on their way.
    pub opening: u32,
    /// It has given up: there is no connection to be had.
    pub given_up: Option<Outcome>,
    pub done: u64,
    pub failed: u64,
    /// When it had its last zone; 0: it has none.
    pub last_ns: i64,
    /// When the first NOTIFY came that began a transfer; 0: none came.
    pub notify_ns: i64,
}

impl Secondary {
    /// One that is to transfer the zones 0 to `zones` - 1.
    pub fn new(zones: u32) -> Self {
        Secondary { end: zones, ..Secondary::default() }
    }

    /// Begins again with the first zone.
    pub fn restart(&mut self) {
        self.next = 0;
        self.given_up = None;
    }

    /// How many zones wait to be asked for.
    pub fn waiting(&self) -> usize {
        (self.end - self.next) as usize + self.ready.len() + self.failed_before.len()
    }

    /// How many wait for a connection behind their SOA.
    pub fn cleared(&self) -> usize {
        self.cleared.len()
    }

    /// Whether another SOA may be asked for over UDP.
    pub fn takes_soa(&self) -> bool {
        self.waiting() > 0 && self.cleared.len() < CLEARED_MAX
    }

    /// The next zone that waits; `number` is the secondary's own. Those that have failed before come last, so that one
    /// which takes its connection with it does not keep the others from coming.
    pub fn take(&mut self, number: u32) -> Option<Job> {
        if let Some(job) = self.ready.pop_front() {
            return Some(job);
        }
        let zone = self.next;
        if zone >= self.end {
            return self.failed_before.pop_front();
        }
        self.next += 1;
        Some(Job { secondary: number, zone, attempt: 0, failures: 0 })
    }

    /// The next that waits behind its SOA.
    pub fn take_cleared(&mut self) -> Option<Job> {
        self.cleared.pop_front()
    }

    /// Asks for a zone, again or because of a NOTIFY, behind others of its kind.
    pub fn add(&mut self, job: Job) {
        self.queue(job).push_back(job);
    }

    /// Asks for a zone again, before all others of its kind.
    pub fn put_back(&mut self, job: Job) {
        self.queue(job).push_front(job);
    }

    fn queue(&mut self, job: Job) -> &mut VecDeque<Job> {
        if job.failures > 0 { &mut self.failed_before } else { &mut self.ready }
    }

    /// Its SOA says that it is to be transferred.
    pub fn clear(&mut self, job: Job) {
        self.cleared.push_back(job);
    }

    /// All that waits, which then waits no longer.
    pub fn drain(&mut self, number: u32) -> Option<Job> {
        self.take_cleared().or_else(|| self.take(number))
    }
}
