//! Which change is sent when, and how it ended: `change` without its socket and its clock.
//!
//! Changes are due at a constant rate, whatever the server does. At most `window` of them wait for an answer; a change
//! that is due meanwhile is sent later, and its lateness is kept. A change without an answer is given up after a time
//! and never repeated: whether the server made it is not known.

use dnsrig_net::outstanding::{OUTSTANDING_MAX, Outstanding};

/// How to send changes.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Changes a second, above 0.
    pub rate_per_s: f64,
    /// The number of changes in all.
    pub changes: u64,
    /// At most this many wait for an answer, 1 to 4096.
    pub window: usize,
    /// Time after which a change without an answer is given up.
    pub timeout_ns: i64,
    /// Changes that could not be sent by this time are left out.
    pub end_ns: i64,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send the update of this change under this id; call [`Core::on_not_sent`] if that fails.
    Send { id: u16, number: u64 },
    /// Nothing, until this time or until an answer comes.
    Wait { until_ns: i64 },
    /// All changes were sent, and each was answered or given up.
    Done,
}

/// How a change ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It waits for its answer.
    Open,
    /// The server answered at this time, with this RCODE (0: accepted).
    Answered { answered_ns: i64, rcode: u8 },
    /// No answer came in time.
    Timeout,
    /// The kernel did not take the datagram.
    NotSent,
}

/// What is known of a change that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    pub due_ns: i64,
    pub sent_ns: i64,
    pub end: End,
}

/// What an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It ends its change.
    Expected,
    /// Its change was given up before.
    Late,
    /// Nothing waits for it.
    Unexpected,
}

/// The state of all changes.
pub struct Core {
    settings: Settings,
    start_ns: i64,
    sent: Vec<Sent>,
    /// The numbers of changes that wait for an answer.
    open: Outstanding<u64>,
}

impl Core {
    /// The changes of a run, the first of which is due at `start_ns`.
    pub fn new(settings: Settings, start_ns: i64) -> Self {
        Core { settings, start_ns, sent: Vec::new(), open: Outstanding::new(OUTSTANDING_MAX) }
    }

    /// What to do now. Sending counts as done.
    pub fn next(&mut self, now_ns: i64) -> Action {
        self.give_up_overdue(now_ns);
        let number = self.sent.len() as u64;
        let due_ns = self.due_ns(number);
        let overdue_ns = self.open.oldest().map_or(i64::MAX, |(_, oldest)| self.overdue_at(oldest));
        if number >= self.settings.changes || now_ns >= self.settings.end_ns {
            return if self.open.is_empty() { Action::Done } else { Action::Wait { until_ns: overdue_ns } };
        }
        if self.open.len() >= self.settings.window {
            return Action::Wait { until_ns: overdue_ns.min(self.settings.end_ns) };
        }
        if now_ns < due_ns {
            return Action::Wait { until_ns: due_ns.min(overdue_ns).min(self.settings.end_ns) };
        }
        self.sent.push(Sent { due_ns, sent_ns: now_ns, end: End::Open });
        let id = self.open.add(number).expect("the window is smaller than the number of ids");
        Action::Send { id, number }
    }

    /// Takes in an answer to the update with this id.
    pub fn on_answer(&mut self, now_ns: i64, id: u16, rcode: u8) -> Answer {
        let Some(number) = self.open.last_with(id) else { return Answer::Unexpected };
        match self.sent[number as usize].end {
            End::Open => {
                self.end(id, End::Answered { answered_ns: now_ns, rcode });
                Answer::Expected
            }
            End::Timeout => Answer::Late,
            End::Answered { .. } | End::NotSent => Answer::Unexpected,
        }
    }

    /// Takes back the [`Action::Send`] of this id: the kernel did not take it.
    pub fn on_not_sent(&mut self, id: u16) {
        self.end(id, End::NotSent);
    }

    /// All that were sent, in order of their numbers.
    pub fn sent(&self) -> &[Sent] {
        &self.sent
    }

    /// How many wait for an answer.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// How many changes were due until `now_ns`, or until the end if that was earlier.
    pub fn due_by(&self, now_ns: i64) -> u64 {
        let past_ns = now_ns.min(self.settings.end_ns) - self.start_ns;
        let due = (past_ns as f64 * self.settings.rate_per_s / 1e9).ceil().max(0.0);
        (due as u64).min(self.settings.changes).max(self.sent.len() as u64)
    }

    fn due_ns(&self, number: u64) -> i64 {
        self.start_ns + (number as f64 * 1e9 / self.settings.rate_per_s) as i64
    }

    fn overdue_at(&self, number: u64) -> i64 {
        self.sent[number as usize].sent_ns + self.settings.timeout_ns
    }

    fn end(&mut self, id: u16, end: End) {
        if let Some(number) = self.open.get(id) {
            self.sent[number as usize].end = end;
            self.open.end(id);
        }
    }

    fn give_up_overdue(&mut self, now_ns: i64) {
        while let Some((id, _)) = self.open.oldest().filter(|(_, oldest)| self.overdue_at(*oldest) <= now_ns) {
            self.end(id, End::Timeout);
        }
    }
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
