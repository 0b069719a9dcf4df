//! When connections have to be looked at: one time for each.

use std::collections::BTreeSet;

/// The times of connections that are numbered from 0.
#[derive(Default)]
pub struct Timers {
    order: BTreeSet<(i64, usize)>,
    /// The time of each connection in `order`.
    times: Vec<Option<i64>>,
}

impl Timers {
    /// Looks at a connection at this time or earlier. A later time than before is not entered, which saves most of the
    /// work: acknowledgements put timers off all the time.
    pub fn by(&mut self, number: usize, time_ns: i64) {
        if self.times.len() <= number {
            self.times.resize(number + 1, None);
        }
        match self.times[number] {
            Some(earlier_ns) if earlier_ns <= time_ns => return,
            Some(later_ns) => drop(self.order.remove(&(later_ns, number))),
            None => {}
        }
        self.times[number] = Some(time_ns);
        self.order.insert((time_ns, number));
    }

    /// Forgets the time of a connection.
    pub fn remove(&mut self, number: usize) {
        if let Some(time_ns) = self.times.get_mut(number).and_then(Option::take) {
            self.order.remove(&(time_ns, number));
        }
    }

    /// The next time.
    pub fn next_ns(&self) -> Option<i64> {
        self.order.first().map(|(time_ns, _)| *time_ns)
    }

    /// Takes out a connection whose time has come.
    pub fn pop(&mut self, now_ns: i64) -> Option<usize> {
        let (_, number) = *self.order.first().filter(|(time_ns, _)| *time_ns <= now_ns)?;
        self.remove(number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_has_its_earliest_time() {
        let mut timers = Timers::default();
        [(3, 50), (0, 20), (3, 10), (0, 90)].into_iter().for_each(|(number, time_ns)| timers.by(number, time_ns));
        assert_eq!((timers.next_ns(), timers.pop(9)), (Some(10), None));
        assert_eq!((timers.pop(10), timers.pop(10), timers.next_ns()), (Some(3), None, Some(20)));
        timers.remove(0);
        timers.remove(7);
        assert_eq!((timers.pop(100), timers.next_ns()), (None, None));
    }
}
