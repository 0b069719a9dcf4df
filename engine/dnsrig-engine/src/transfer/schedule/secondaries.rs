//! The secondaries that are played, and what each still has to transfer.

use std::collections::VecDeque;

use dnsrig_dns::xfr::Outcome;

/// The state of a zone that is asked for when NOTIFY comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    #[default]
    Rest,
    /// It is being transferred, or will be.
    Asked,
    /// It is being transferred, or will be, and another NOTIFY has come since.
    AskedAgain,
}

/// The number of zones that wait for a connection after their serial was asked for over UDP. With as many, no further
/// serial is asked for.
const CLEARED_MAX: usize = 16_384;

/// One zone for one secondary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Job {
    pub secondary: u32,
    pub zone: u32,
    /// How often it was asked for.
    pub attempt: u16,
    /// How many of these attempts have used up a retry, or were the first.
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
    /// To be asked for again, as they have failed before.
    failed_before: VecDeque<Job>,
    /// To be transferred, by their SOA.
    cleared: VecDeque<Job>,
    /// Connections on their way.
    pub opening: u32,
    /// The outcome of zones for which no connection can be had.
    pub given_up: Option<Outcome>,
    pub done: u64,
    pub failed: u64,
    /// When it had its last zone; 0: it has none.
    pub last_ns: i64,
    /// When the first NOTIFY came that began a transfer; 0: none came.
    pub notify_ns: i64,
}

impl Secondary {
    /// A secondary that is to transfer the zones 0 to `zones` - 1.
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

    /// How many zones wait for a connection after their SOA came.
    pub fn cleared(&self) -> usize {
        self.cleared.len()
    }

    /// Whether another SOA may be asked for over UDP.
    pub fn takes_soa(&self) -> bool {
        self.waiting() > 0 && self.cleared.len() < CLEARED_MAX
    }

    /// The next zone that waits; `number` is the secondary's own. Zones that have failed before come last, so that a
    /// zone that ends its connection does not keep the others from coming.
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

    /// The next zone that waits after its SOA came.
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

    /// Notes that a zone is to be transferred, by its SOA.
    pub fn clear(&mut self, job: Job) {
        self.cleared.push_back(job);
    }

    /// Takes the next zone of all that wait, after its SOA or before.
    pub fn drain(&mut self, number: u32) -> Option<Job> {
        self.take_cleared().or_else(|| self.take(number))
    }
}
