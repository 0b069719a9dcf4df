//! How many files this process may have open: RLIMIT_NOFILE (getrlimit(2)).

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::failure::Failure;

/// Open files beside connections: standard streams, files of --out, libraries, events, the pollers of clients.
const OTHER_FILES: u64 = 256;

/// Each thread of a server has a poller and up to three sockets.
const FILES_A_THREAD: u64 = 4;

/// The open files that the threads of a server need beside their connections.
pub fn of_threads(threads: usize) -> u64 {
    threads as u64 * FILES_A_THREAD
}

/// Sees to it that `connections` may be open at a time, beside everything else: raises the soft limit to the hard one,
/// and as root that one as well. `by` names the arguments that ask for so many.
pub fn allow(connections: u64, by: &'static str) -> Result<(), Failure> {
    let needed = connections.saturating_add(OTHER_FILES);
    let failed = |limit| {
        Failure::new(
            format!("{needed} open files are needed, but the hard limit is {limit}"),
            format!("lower {by}, or raise the limit as root: `ulimit -Hn {needed}`, LimitNOFILE= of a systemd unit"),
        )
    };
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(|_| failed(0))?;
    if hard < needed {
        setrlimit(Resource::RLIMIT_NOFILE, needed, needed).map_err(|_| failed(hard))
    } else if soft < needed {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map_err(|_| failed(hard))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_nobody_can_raise_is_told_with_what_to_do() {
        let error = allow(1 << 60, "--clients").unwrap_err();
        assert!(error.sentence.starts_with("1152921504606847232 open files are needed"), "{error}");
        assert!(error.hint.contains("lower --clients, or raise"), "{}", error.hint);
    }

    #[test]
    fn what_is_needed_can_then_be_opened() {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        allow(hard.min(4096) - OTHER_FILES, "--clients").unwrap();
        assert!(getrlimit(Resource::RLIMIT_NOFILE).unwrap().0 >= hard.min(4096));
    }
}
