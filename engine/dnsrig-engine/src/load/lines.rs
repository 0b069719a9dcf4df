//! Lines on standard input, for a generator that is told what to do while it runs.
//!
//! A thread of its own reads them, so that the end of standard input is heard whatever the others do.

use std::{
    io::{self, BufRead, BufReader, Read},
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    time::Duration,
};

use crate::base::{
    failure::{Advice, Failure},
    stop::Stop,
    threads::Thread,
};

/// A line is at most so long.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// So many lines may wait; whoever writes more waits.
const WAITING_MAX: usize = 64;

/// There is no next line, or it is none.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    #[error("a line on standard input is longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    #[error("a line on standard input is not UTF-8")]
    NotText,
    #[error("cannot read standard input: {0}")]
    Read(io::Error),
    #[error("standard input ended before a line that was due")]
    Ended,
}

impl Advice for LineError {
    fn hint(&self) -> String {
        match self {
            LineError::TooLong | LineError::NotText => "write one JSON object per line, and nothing else".into(),
            LineError::Read(_) | LineError::Ended => "keep standard input open until the summary has appeared".into(),
        }
    }

    fn exit_code(&self) -> u8 {
        if matches!(self, LineError::TooLong | LineError::NotText) { 2 } else { 1 }
    }
}

/// The lines of standard input, as they come.
pub struct Lines(Receiver<Result<String, LineError>>);

impl Lines {
    /// Begins to read; with `until_eof` the end of standard input is a wish to end.
    pub fn start(stop: &Stop, until_eof: bool) -> Result<Self, Failure> {
        let (sender, lines) = sync_channel(WAITING_MAX);
        let asker = until_eof.then(|| stop.asker());
        Thread::start("input", move || {
            read(BufReader::new(io::stdin()), &sender);
            if let Some(asker) = asker {
                asker.ask();
            }
        })?;
        Ok(Lines(lines))
    }

    /// The next line, if it comes within so long.
    pub fn next(&self, patience: Duration) -> Result<Option<String>, LineError> {
        match self.0.recv_timeout(patience) {
            Ok(line) => line.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(LineError::Ended),
        }
    }
}

/// Passes lines on until the input ends, or nobody listens; behind one that is wrong nothing is a line.
fn read(mut input: impl BufRead, lines: &SyncSender<Result<String, LineError>>) {
    loop {
        let mut line = Vec::new();
        let line = match input.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) if line.pop_if(|last| *last == b'\n').is_none() && line.len() > LINE_BYTES_MAX => {
                Err(LineError::TooLong)
            }
            Ok(_) => String::from_utf8(line).map_err(|_| LineError::NotText),
            Err(error) => Err(LineError::Read(error)),
        };
        let is_wrong = line.is_err();
        if lines.send(line).is_err() {
            return;
        }
        if is_wrong {
            let _ = io::copy(&mut input, &mut io::sink());
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &[u8]) -> Vec<Result<String, LineError>> {
        let (sender, lines) = sync_channel(WAITING_MAX);
        read(input, &sender);
        drop(sender);
        lines.into_iter().collect()
    }

    #[test]
    fn lines_are_passed_on_as_far_as_they_are_right() {
        let lines_of = |input: &[u8]| lines(input).into_iter().map(Result::unwrap).collect::<Vec<_>>();
        assert_eq!(lines_of(b"one\n\ntwo"), ["one", "", "two"]);
        assert_eq!(lines_of(b""), [""; 0]);
        let longest = [&[b'x'; LINE_BYTES_MAX][..], b"\nnext\n"].concat();
        assert_eq!(lines_of(&longest).iter().map(String::len).collect::<Vec<_>>(), [LINE_BYTES_MAX, 4]);
        for (wrong, told) in [(vec![b'x'; LINE_BYTES_MAX + 1], "longer"), (vec![0xff, b'\n', b'a'], "UTF-8")] {
            let [Err(error)] = &lines(&wrong)[..] else { panic!("one error") };
            assert!(error.to_string().contains(told) && error.exit_code() == 2);
        }
    }
}
