//! Which zone is asked for when, and what an answer changes: `probe follow` without its socket and its clock.
//!
//! Zones are asked for in turn, at a constant rate, whatever the server does. What is known of a zone changes with an
//! answer that differs from the one before; each such change is a row, between the last question that was answered with
//! the old state and the answer that showed the new one. A question without an answer changes nothing.

use dnsrig_core::pacer::Pacer;
use dnsrig_net::outstanding::{OUTSTANDING_MAX, Outstanding};

/// The most questions that wait for an answer: half of the ids.
const OPEN_MAX: usize = 32_768;

/// The number of rows that are kept at most, 40 bytes each.
pub const ROWS_MAX: usize = 1_000_000;

/// What a server answers for a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It serves the zone, with this serial.
    Served { serial: u32 },
    /// It has no such zone, or cannot serve it.
    Unserved,
}

/// A change of the state of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub zone: u32,
    /// When the last question was sent that was answered with the state before; None: this is the first known state.
    pub before_ns: Option<i64>,
    /// When the answer came that showed this state.
    pub seen_ns: i64,
    pub state: State,
}

#[derive(Clone, Copy)]
struct Known {
    asked_ns: i64,
    state: State,
}

/// A question that waits for its answer.
#[derive(Clone, Copy)]
struct Open {
    zone: u32,
    asked_ns: i64,
}

/// The state of all zones that are followed.
pub struct Core {
    pacer: Pacer,
    asked: u64,
    known: Vec<Option<Known>>,
    open: Outstanding<Open>,
    rows: Vec<Row>,
    changed: u64,
    dropped: u64,
    answered: u64,
}

impl Core {
    /// Follows zones 0 to `zones` - 1; the first question is due at `start_ns`.
    pub fn new(zones: u32, rate_per_s: u32, start_ns: i64) -> Self {
        Core {
            // If a question is late by less than an interval, the next one is due as if it had been in time.
            pacer: Pacer::new(f64::from(rate_per_s), 1e9 / f64::from(rate_per_s)).starting(start_ns),
            asked: 0,
            known: vec![None; zones as usize],
            open: Outstanding::new(OUTSTANDING_MAX),
            rows: Vec::new(),
            changed: 0,
            dropped: 0,
            answered: 0,
        }
    }

    /// When the next question is due.
    pub fn due_ns(&self) -> i64 {
        self.pacer.ready_ns()
    }

    /// Asks now, and returns the id and the zone. An overdue question is asked at once; lost time is not made up for.
    pub fn ask(&mut self, now_ns: i64) -> (u16, u32) {
        // A question ends without an answer when too many newer ones wait. So many ids always rest: a late or repeated
        // answer is not taken for the answer to the next question with its id.
        if let Some((oldest, _)) = self.open.oldest().filter(|_| self.open.len() >= OPEN_MAX) {
            self.open.end(oldest);
        }
        let zone = (self.asked % self.known.len() as u64) as u32;
        let id = self.open.add(Open { zone, asked_ns: now_ns }).expect("an id is free");
        self.asked += 1;
        self.pacer.take(now_ns);
        (id, zone)
    }

    /// The zone that was asked for under this id.
    pub fn zone_of(&self, id: u16) -> Option<u32> {
        self.open.get(id).map(|open| open.zone)
    }

    /// Takes in the answer to the question with this id.
    pub fn on_answer(&mut self, now_ns: i64, id: u16, state: State) {
        let Some(open) = self.open.get(id) else { return };
        self.open.end(id);
        self.answered += 1;
        let known = &mut self.known[open.zone as usize];
        if known.is_some_and(|known| open.asked_ns < known.asked_ns) {
            return; // overtaken by a later one
        }
        let before = known.replace(Known { asked_ns: open.asked_ns, state });
        if before.is_some_and(|before| before.state == state) {
            return;
        }
        self.changed += u64::from(before.is_some());
        if self.rows.len() == ROWS_MAX {
            self.dropped += 1;
            return;
        }
        let before_ns = before.map(|before| before.asked_ns);
        self.rows.push(Row { zone: open.zone, before_ns, seen_ns: now_ns, state });
    }

    /// What was seen, in order.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// How often a zone was seen in another state than before.
    pub fn changed(&self) -> u64 {
        self.changed
    }

    /// The numbers of zones, of questions, of answers, and of rows for which there was no room.
    pub fn counts(&self) -> (u64, u64, u64, u64) {
        (self.known.len() as u64, self.asked, self.answered, self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVED: State = State::Served { serial: 7 };

    #[test]
    fn zones_are_asked_for_in_turn_at_the_rate() {
        let mut core = Core::new(3, 100, 0);
        let asked: Vec<_> = (0..4).map(|_| (core.due_ns(), core.ask(core.due_ns()))).collect();
        assert_eq!(asked, [(0, (0, 0)), (10_000_000, (1, 1)), (20_000_000, (2, 2)), (30_000_000, (3, 0))]);
    }

    #[test]
    fn lost_time_is_not_made_up_for() {
        let mut core = Core::new(3, 100, 0);
        core.ask(1_000_000_000);
        assert_eq!(core.due_ns(), 1_000_000_000);
        core.ask(1_000_000_000);
        assert_eq!(core.due_ns(), 1_010_000_000);
    }

    #[test]
    fn a_row_stands_between_the_last_question_before_and_the_answer() {
        let mut core = Core::new(1, 100, 0);
        for (asked_ns, state) in [(0, SERVED), (10, SERVED), (20, State::Unserved), (30, State::Unserved), (40, SERVED)]
        {
            let (id, _) = core.ask(asked_ns);
            core.on_answer(asked_ns + 5, id, state);
        }
        let seen: Vec<_> = core.rows().iter().map(|row| (row.before_ns, row.seen_ns, row.state)).collect();
        assert_eq!(seen, [(None, 5, SERVED), (Some(10), 25, State::Unserved), (Some(30), 45, SERVED)]);
    }

    #[test]
    fn another_serial_is_another_state() {
        let mut core = Core::new(1, 100, 0);
        for serial in [7, 7, 8] {
            let (id, _) = core.ask(i64::from(serial));
            core.on_answer(i64::from(serial) + 1, id, State::Served { serial });
        }
        assert_eq!(core.rows().len(), 2);
    }

    #[test]
    fn an_id_rests_while_many_others_are_used_however_many_questions_wait() {
        let mut core = Core::new(3, 100, 0);
        let mut last_used = vec![None; 1 << 16];
        for number in 0..200_000_i64 {
            let (id, _) = core.ask(number);
            let before: Option<i64> = last_used[usize::from(id)].replace(number);
            assert!(before.is_none_or(|before| number - before >= 32_768), "{before:?} and {number} have the id {id}");
            if number > 60_000 {
                core.on_answer(number, id, SERVED);
            }
        }
    }

    #[test]
    fn an_answer_that_was_overtaken_changes_nothing() {
        let mut core = Core::new(1, 100, 0);
        let ((old, _), (new, _)) = (core.ask(0), core.ask(10));
        core.on_answer(20, new, State::Unserved);
        core.on_answer(30, old, SERVED);
        core.on_answer(40, old, SERVED);
        assert_eq!((core.rows().len(), core.counts()), (1, (1, 2, 2, 0)));
    }
}
