//! Threads that are looked after: each has a name, leaves the signals to [`stop`](crate::stop), and however it
//! ends, also by a panic, whoever started it hears of it.

use std::{
    any::Any,
    fs, io,
    os::fd::{AsFd, BorrowedFd},
    sync::Arc,
    thread::{self, JoinHandle},
};

use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    sys::{
        eventfd::{EfdFlags, EventFd},
        signal::{SigSet, SigmaskHow},
    },
    unistd::Pid,
};

use super::failure::Failure;

/// The exit code of a panic, as the Rust runtime has it for the main thread.
const PANICKED: u8 = 101;

/// A running thread, whose work ends with a `T`.
pub struct Thread<T> {
    name: String,
    handle: JoinHandle<T>,
}

impl<T: Send + 'static> Thread<T> {
    /// Starts `work` on a thread with this name. The kernel keeps 15 characters of it.
    pub fn start(name: &str, work: impl FnOnce() -> T + Send + 'static) -> Result<Self, Failure> {
        let name = name.to_owned();
        let named = name.clone();
        let handle = without_signals(|| {
            thread::Builder::new().name(name.clone()).spawn(move || {
                provoke_panic(&named);
                work()
            })
        });
        match handle {
            Ok(handle) => Ok(Thread { name, handle }),
            Err(error) => Err(Failure::new(
                format!("cannot start the thread {name}: {error}"),
                "check memory, and the limit on processes (ulimit -u)",
            )),
        }
    }

    /// Whether the work has ended.
    pub fn is_over(&self) -> bool {
        self.handle.is_finished()
    }

    /// Waits for the end, and returns the result of the work. It fails if the thread panicked.
    pub fn join(self) -> Result<T, Failure> {
        let Thread { name, handle } = self;
        handle.join().map_err(|panic| {
            let sentence = format!("the thread {name} panicked: {}", message(panic.as_ref()));
            let hint = "this is a bug in dnsrig: please report it with the lines above";
            Failure { exit_code: PANICKED, ..Failure::new(sentence, hint) }
        })
    }
}

/// Threads that work side by side until they are asked to end, or have done their work.
pub struct Threads<T> {
    /// Written once and never read, so that every thread sees it.
    stop: Arc<EventFd>,
    ended: Arc<EventFd>,
    running: Vec<Option<Thread<Result<T, Failure>>>>,
    results: Vec<Option<T>>,
}

impl<T: Send + 'static> Threads<T> {
    /// No threads yet.
    pub fn new() -> Result<Self, Failure> {
        let event = || {
            let event = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK);
            event.map(Arc::new).map_err(|error| {
                Failure::new(
                    format!("cannot make an event for threads: {}", io::Error::from(error)),
                    "check that open files are not at their limit (ulimit -n)",
                )
            })
        };
        Ok(Threads { stop: event()?, ended: event()?, running: Vec::new(), results: Vec::new() })
    }

    /// Starts a thread whose name is `name` and its number. `work` gets an event that is readable when it should end.
    pub fn spawn(
        &mut self,
        name: &str,
        work: impl FnOnce(Arc<EventFd>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<(), Failure> {
        let (stop, ended) = (Arc::clone(&self.stop), EndSignal(Arc::clone(&self.ended)));
        let thread = Thread::start(&format!("{name}-{}", self.running.len()), move || {
            let _ended = ended;
            work(stop)
        })?;
        self.running.push(Some(thread));
        self.results.push(None);
        Ok(())
    }

    /// Readable when a thread has ended.
    pub fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// The number of threads that still run. The first failure or panic is returned at once, whatever the others do.
    pub fn look(&mut self) -> Result<usize, Failure> {
        for (thread, result) in self.running.iter_mut().zip(&mut self.results) {
            if let Some(thread) = thread.take_if(|thread| thread.is_over()) {
                *result = Some(thread.join()??);
            }
        }
        Ok(self.running.iter().flatten().count())
    }

    /// Asks all threads to end, waits for them, and returns their results in the order in which they were started.
    pub fn end(mut self) -> Result<Vec<T>, Failure> {
        // It cannot fail: the counter is far from its end, and the descriptor ours.
        let _ = self.stop.write(1);
        for (thread, result) in self.running.iter_mut().zip(&mut self.results) {
            if let Some(thread) = thread.take() {
                *result = Some(thread.join()??);
            }
        }
        Ok(self.results.into_iter().flatten().collect())
    }
}

/// Makes the event readable when its thread ends, even by a panic.
struct EndSignal(Arc<EventFd>);

impl Drop for EndSignal {
    fn drop(&mut self) {
        let _ = self.0.write(1);
    }
}

/// Starts a thread to which no signal comes: others hear them.
///
/// It inherits the blocked signals. Did it block them itself, a signal that others wait for could come to it before it
/// runs, and end the process.
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    // Both fail for wrong arguments only (pthread_sigmask(3)).
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let started = start();
    let _ = before.map(|before| before.thread_set_mask());
    started
}

/// Gives the thread that calls, the `number`th of `count`, a CPU of its own, if there is one for each.
///
/// It is for evenness only: where it is refused the kernel places the threads.
pub fn take_cpu(number: usize, count: usize) {
    let this = Pid::from_raw(0);
    let Ok(allowed) = sched_getaffinity(this) else { return };
    let cpus: Vec<usize> = (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu).unwrap_or(false)).collect();
    if count > 1 && count <= cpus.len() {
        let mut mine = CpuSet::new();
        if mine.set(cpus[number]).is_ok() {
            let _ = sched_setaffinity(this, &mine);
        }
    }
}

/// The time in which the thread that calls was to run and had no CPU, in nanoseconds: 0 where the kernel keeps no such
/// account (sched-stats.rst of the kernel's documentation; proc_pid_schedstat(5)).
pub fn cpu_wait_ns() -> i64 {
    let account = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    account.split_whitespace().nth(1).and_then(|waited| waited.parse().ok()).unwrap_or(0)
}

/// What a panic said.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it said nothing").to_owned()
}

/// Panics in the thread that DNSRIG_TEST_PANIC names: how a fault is provoked in tests of whole programs.
fn provoke_panic(name: &str) {
    if std::env::var_os("DNSRIG_TEST_PANIC").is_some_and(|wanted| wanted == name) {
        panic!("as DNSRIG_TEST_PANIC says");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nix::poll::{PollFd, PollFlags, poll};
    use nix::sys::signal::Signal;

    use super::*;

    /// Waits until `descriptor` can be read, and returns whether that took less than 10 s.
    fn can_be_read(descriptor: impl AsFd) -> bool {
        poll(&mut [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)], 10_000_u16).unwrap() > 0
    }

    #[test]
    fn the_time_without_a_cpu_only_grows() {
        let before_ns = cpu_wait_ns();
        assert!(before_ns >= 0 && cpu_wait_ns() >= before_ns);
    }

    fn until_stopped(stop: Arc<EventFd>) -> Result<(), Failure> {
        while !can_be_read(&*stop) {}
        Ok(())
    }

    #[test]
    fn results_come_in_the_order_of_the_threads() {
        let mut threads: Threads<usize> = Threads::new().unwrap();
        for number in 0..3 {
            let work = move |stop| {
                if number == 1 {
                    until_stopped(stop)?;
                }
                Ok::<_, Failure>(number)
            };
            threads.spawn("test", work).unwrap();
        }
        while threads.look().unwrap() > 1 {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(threads.end().unwrap(), [0, 1, 2]);
    }

    #[test]
    fn a_panic_is_reported_at_once_while_the_others_work() {
        let mut threads: Threads<()> = Threads::new().unwrap();
        threads.spawn("test", until_stopped).unwrap();
        threads.spawn("test", |_| -> Result<(), Failure> { panic!("{} {}", "so", 1) }).unwrap();
        assert!(can_be_read(threads.ended()));
        let error = loop {
            if let Err(error) = threads.look() {
                break error;
            }
        };
        assert_eq!(error.sentence, "the thread test-1 panicked: so 1");
        assert_eq!((error.exit_code, error.hint.contains("report it")), (101, true));
    }

    #[test]
    fn no_signal_comes_to_a_thread_and_the_mask_of_who_starts_it_stays() {
        let mask = || SigSet::thread_get_mask().unwrap();
        let before = mask();
        let thread = Thread::start("test", mask).unwrap();
        assert_eq!(mask(), before);
        let blocked = thread.join().unwrap();
        let deaf = |signal: &Signal| blocked.contains(*signal) || matches!(signal, Signal::SIGKILL | Signal::SIGSTOP);
        assert!(Signal::iterator().all(|signal| deaf(&signal)), "{blocked:?}");
    }

    #[test]
    fn a_failure_is_returned_as_it_is() {
        let mut threads: Threads<()> = Threads::new().unwrap();
        let failure = Failure::bad_input("it went wrong", "fix it");
        let failing = failure.clone();
        threads.spawn("test", |_| Err(failing)).unwrap();
        assert_eq!(threads.end().unwrap_err(), failure);
    }

    #[test]
    fn each_has_a_cpu_of_its_own_if_there_are_as_many() {
        let cpus = |number, count| {
            let taken = move || {
                take_cpu(number, count);
                let mine = sched_getaffinity(Pid::from_raw(0)).unwrap();
                (0..CpuSet::count()).filter(|cpu| mine.is_set(*cpu).unwrap()).collect::<Vec<_>>()
            };
            Thread::start("test", taken).unwrap().join().unwrap()
        };
        let all = cpus(0, 1);
        for (number, cpu) in all.iter().enumerate().filter(|_| all.len() > 1) {
            assert_eq!(cpus(number, all.len()), [*cpu]);
        }
        assert_eq!(cpus(0, all.len() + 1), all, "too few");
    }
}
