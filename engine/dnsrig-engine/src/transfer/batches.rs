//! Full batches of rows on their way from the threads to the files.

use std::{
    collections::VecDeque,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
};

use super::row_buffer::Batch;

/// Full batches that may wait to be written, about 6 MB each; with more, rows are lost, and counted by who had them.
const WAITING_MAX: usize = 64;

/// So many are left waiting while zones are transferred: writing takes CPU, of which the transfers may need all.
const LEFT_MAX: usize = 8;

/// Batches that were handed over and not written.
pub struct Batches {
    handed_over: Receiver<Batch>,
    /// At most [`LEFT_MAX`]; the others wait in the channel, which has room for so many.
    left: VecDeque<Batch>,
}

impl Batches {
    /// None yet, and where threads hand them over.
    pub fn new() -> (SyncSender<Batch>, Self) {
        let (sender, handed_over) = sync_channel(WAITING_MAX - LEFT_MAX);
        (sender, Batches { handed_over, left: VecDeque::with_capacity(LEFT_MAX + 1) })
    }

    /// One that is to be written now, although transfers go on.
    pub fn take_urgent(&mut self) -> Option<Batch> {
        while self.left.len() <= LEFT_MAX {
            self.left.push_back(self.handed_over.try_recv().ok()?);
        }
        self.left.pop_front()
    }

    /// All that wait, at the end.
    pub fn finish(self) -> impl Iterator<Item = Batch> {
        let Batches { handed_over, left } = self;
        left.into_iter().chain(std::iter::from_fn(move || handed_over.try_recv().ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(rows: usize) -> Batch {
        Batch::Info(vec![Default::default(); rows])
    }

    #[test]
    fn no_more_wait_than_may_however_slow_the_disk_is() {
        let (sender, mut batches) = Batches::new();
        let (mut accepted, mut written) = (0, 0);
        // One is written in the time in which ten are filled.
        for number in 0..1_000 {
            accepted += usize::from(sender.try_send(batch(1)).is_ok());
            written += usize::from(number % 10 == 0 && batches.take_urgent().is_some());
            assert!(accepted - written <= WAITING_MAX, "{} wait", accepted - written);
        }
        assert_eq!(batches.finish().count(), accepted - written, "what was accepted is written");
        assert!(written > 50 && accepted < 250, "{written} of {accepted}");
    }

    #[test]
    fn they_are_left_waiting_and_written_in_their_order() {
        let (sender, mut batches) = Batches::new();
        (0..LEFT_MAX).for_each(|rows| sender.try_send(batch(rows)).unwrap());
        assert!(batches.take_urgent().is_none(), "there is no hurry");
        sender.try_send(batch(LEFT_MAX)).unwrap();
        assert_eq!(batches.take_urgent().map(|batch| batch.len()), Some(0));
        assert_eq!(batches.finish().map(|batch| batch.len()).collect::<Vec<_>>(), (1..=LEFT_MAX).collect::<Vec<_>>());
    }
}
