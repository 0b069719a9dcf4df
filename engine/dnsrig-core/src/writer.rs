//! A writer with a thread of its own, so that the program does not wait for the reader of its output.

use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::threads::Thread;

/// The most bytes that wait: some thousand events. Further ones are dropped and counted.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// What is to be written, and what became of it.
#[derive(Default)]
struct State {
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    /// One was taken out of those that wait and is not written yet.
    is_writing: bool,
    dropped: u64,
    failed: Option<io::Error>,
}

/// The side of the threads that write.
pub struct Writer {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Writer {
    /// Starts the thread that writes to `sink`, which may block for as long as it likes.
    pub fn start(name: &str, sink: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let writer = Writer { shared: Arc::clone(&shared) };
        Thread::start(name, move || shared.write_all_to(sink)).map_err(io::Error::other)?;
        Ok(writer)
    }

    /// Has `bytes` written if there is room. An error is one of an earlier writing.
    pub fn write(&self, bytes: Vec<u8>) -> io::Result<()> {
        let mut state = self.shared.lock();
        if state.waiting_bytes + bytes.len() > WAITING_BYTES_MAX {
            state.dropped += 1;
            return state.check();
        }
        self.shared.push(state, bytes)
    }

    /// Has `bytes` written whatever waits: the last word.
    pub fn write_last(&self, bytes: Vec<u8>) -> io::Result<()> {
        self.shared.push(self.shared.lock(), bytes)
    }

    /// How many had no room.
    pub fn dropped(&self) -> u64 {
        self.shared.lock().dropped
    }

    /// Waits until all is written, but no longer than `patience`; whether it is.
    pub fn flush(&self, patience: Duration) -> io::Result<bool> {
        let is_busy = |state: &mut State| state.failed.is_none() && (state.is_writing || !state.waiting.is_empty());
        let waited = self.shared.changed.wait_timeout_while(self.shared.lock(), patience, is_busy);
        let (state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        state.check()?;
        Ok(!waited.timed_out())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, mut state: MutexGuard<'_, State>, bytes: Vec<u8>) -> io::Result<()> {
        state.waiting_bytes += bytes.len();
        state.waiting.push_back(bytes);
        self.changed.notify_all();
        state.check()
    }

    /// Writes what comes until it cannot.
    fn write_all_to(&self, mut sink: impl Write) -> io::Result<()> {
        loop {
            let bytes = self.next();
            let written = sink.write_all(&bytes).and_then(|()| sink.flush());
            let mut state = self.lock();
            state.is_writing = false;
            state.failed = written.err();
            self.changed.notify_all();
            if state.failed.is_some() {
                return Ok(());
            }
        }
    }

    fn next(&self) -> Vec<u8> {
        let waited = self.changed.wait_while(self.lock(), |state| state.waiting.is_empty());
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        let bytes = state.waiting.pop_front().unwrap_or_default();
        state.waiting_bytes -= bytes.len();
        state.is_writing = true;
        bytes
    }
}

impl State {
    /// Returns the error of an earlier write, as often as it is asked for.
    fn check(&self) -> io::Result<()> {
        self.failed.as_ref().map_or(Ok(()), |error| Err(io::Error::new(error.kind(), error.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc::{Receiver, Sender, channel},
        time::Instant,
    };

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// Passes on what it is given as soon as it may.
    struct Gate(Receiver<io::Result<()>>, Sender<Vec<u8>>);

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().unwrap_or(Ok(()))?;
            self.1.send(bytes.to_vec()).unwrap_or_default();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn gated() -> (Writer, Sender<io::Result<()>>, Receiver<Vec<u8>>) {
        let ((open, gate), (sender, read)) = (channel(), channel());
        (Writer::start("test", Gate(gate, sender)).unwrap(), open, read)
    }

    #[test]
    fn who_writes_does_not_wait_and_what_has_no_room_is_counted() {
        let (writer, open, read) = gated();
        let line = vec![b'x'; 1 << 10];
        (0..3_000).for_each(|_| writer.write(line.clone()).unwrap());
        assert!(!writer.flush(Duration::ZERO).unwrap());
        writer.write_last(writer.dropped().to_string().into()).unwrap();
        drop(open);
        assert!(writer.flush(PATIENCE).unwrap());
        let lines: Vec<_> = read.try_iter().collect();
        let dropped: usize = std::str::from_utf8(lines.last().unwrap()).unwrap().parse().unwrap();
        // One may be on its way to the reader.
        assert!((1_024..=1_025).contains(&(lines.len() - 1)), "{}", lines.len());
        assert_eq!(lines.len() - 1 + dropped, 3_000);
    }

    #[test]
    fn the_end_is_waited_for_no_longer_than_asked() {
        let (writer, _open, _read) = gated();
        writer.write(b"one".into()).unwrap();
        let begun = Instant::now();
        assert!(!writer.flush(Duration::from_millis(20)).unwrap());
        assert!((Duration::from_millis(20)..PATIENCE).contains(&begun.elapsed()));
    }

    #[test]
    fn a_reader_that_has_gone_is_told_to_who_writes_next() {
        let (writer, open, _read) = gated();
        writer.write(b"one".into()).unwrap();
        open.send(Err(io::ErrorKind::BrokenPipe.into())).unwrap();
        assert_eq!(writer.flush(PATIENCE).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(writer.write(b"two".into()).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
