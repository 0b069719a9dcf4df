//! `enter`: become a command that runs on a host.
//!
//! The rig starts every server through it. The process joins the host's cgroups and network namespace, gets its own
//! view of the file system, and then *becomes* the command: there is no fork, so the process id that the rig knows is
//! the server's, and the time of `execve` is known to the microsecond.
//!
//! Two things to know. PR_SET_PDEATHSIG (prctl(2)) is about the parent *thread*: whoever starts us must keep that
//! thread alive. And the kernel forgets it when the command changes its user (as `named -u` does): such a server is
//! left to the rig's cleaning.

mod mounts;
mod path;
mod process;
mod root;

use std::{convert::Infallible, ffi::OsString, fs::File, io, path::PathBuf};

use nix::unistd::getppid;

use crate::base::failure::{Advice, Failure};
use path::Bind;

/// The exit code when a step before the command failed, as chroot(1), env(1) and nice(1) have it.
const EXIT_STEP_FAILED: u8 = 125;
/// The exit code when the command was found but could not be started.
const EXIT_CANNOT_START: u8 = 126;
/// The exit code when the command was not found.
const EXIT_NOT_FOUND: u8 = 127;

/// Start a command on a host (what the rig does for every server).
///
/// In this order: die with the parent, join the cgroups, join the network namespace, make a private view of the file
/// system, change the root, choose CPUs, raise the limit of open files, write the stamp, become the command. The
/// process id stays the same. With --root, the root file system is read-only and /run, /tmp, /mnt, /var/tmp and /dev
/// are fresh and empty: whatever the command is to keep must be a --bind under /mnt or /run.
///
/// Exit codes: 125 a step failed (it is named), 126 the command cannot be started, 127 it is not there; otherwise the
/// command's own.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: BIND from a root file system, on CPU 1 of host `secondary`:\n  \
    dnsrig-engine enter --netns /run/netns/secondary --cgroup /sys/fs/cgroup/secondary --cpus 1 \\\n    \
    --root /var/cache/forky --bind /srv/trial:/mnt/trial --workdir /mnt/trial --stamp exec.json \\\n    \
    -- named -f -n 1 -c /mnt/trial/named.conf")]
pub struct Arguments {
    /// Join the network namespace of this file, such as /run/netns/NAME
    #[arg(long, value_name = "PATH")]
    netns: Option<PathBuf>,
    /// Join the cgroup of this directory; give it once for each hierarchy
    #[arg(long, value_name = "DIR")]
    cgroup: Vec<PathBuf>,
    /// Run on these CPUs only: 1, or 0,1, or 0-3
    #[arg(long, value_name = "LIST", value_parser = process::parse_cpus)]
    cpus: Option<process::Cpus>,
    /// Change the root to this directory, which stays unaltered
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Show SRC of this machine at DST to the command; `:ro` makes it read-only. With --root, DST is created under
    /// /mnt and /run, elsewhere it must exist
    #[arg(long, value_name = "SRC:DST[:ro]", value_parser = path::parse_bind)]
    bind: Vec<Bind>,
    /// Start in this directory (default: / with --root, else the current one)
    #[arg(long, value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// Set a variable of the command's environment
    #[arg(long, value_name = "NAME=VALUE", value_parser = process::parse_variable)]
    env: Vec<process::Variable>,
    /// Allow this many open files, at most the hard limit (default: the hard limit)
    #[arg(long, value_name = "N")]
    nofile: Option<u64>,
    /// Write the time of the start, as JSON: exec_monotonic_ns, exec_realtime_ns, anchor_error_ns
    #[arg(long, value_name = "FILE")]
    stamp: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// A step on the way to the command failed.
#[derive(Debug, thiserror::Error)]
pub enum EnterError {
    /// The parent was gone before we had asked to die with it.
    #[error("the process that started us has ended")]
    Orphan,
    /// A system call failed.
    #[error("cannot {step} {}: {source}", path.display())]
    Step { step: &'static str, path: PathBuf, source: io::Error },
    /// A path leads out of the new root.
    #[error("{} passes through a symbolic link, which may lead out of the root", path.display())]
    Link { path: PathBuf },
    /// A path that we must not create does not exist.
    #[error("{} does not exist for the command, and is not ours to create", path.display())]
    NoDestination { path: PathBuf },
    /// The command is nowhere in the search path.
    #[error("there is no command {}", command.display())]
    NotFound { command: OsString },
}

impl Advice for EnterError {
    fn hint(&self) -> String {
        match self {
            EnterError::Orphan => "start it again from a process that stays".into(),
            EnterError::Step { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => "run as root, with CAP_SYS_ADMIN".into(),
                io::ErrorKind::NotFound => "check the path: namespace, cgroup and root are made before".into(),
                _ => "see `dnsrig-engine enter --help` for what each step needs; dmesg may say more".into(),
            },
            EnterError::Link { .. } => "name the place that the link leads to".into(),
            EnterError::NoDestination { .. } => {
                "bind to a path under /mnt or /run (with --root), or one that exists".into()
            }
            EnterError::NotFound { .. } => {
                "check that the package is installed in the root, or give the full path".into()
            }
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            EnterError::NotFound { .. } => EXIT_NOT_FOUND,
            EnterError::Step { step: process::START, .. } => EXIT_CANNOT_START,
            _ => EXIT_STEP_FAILED,
        }
    }
}

/// Makes a system error into "cannot STEP PATH: …".
fn step<E: Into<io::Error>>(step: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(E) -> EnterError {
    move |source| EnterError::Step { step, path: path.into(), source: source.into() }
}

/// Becomes the command. Comes back only if that fails.
pub fn run(arguments: &Arguments) -> Result<Infallible, Failure> {
    Ok(enter(arguments)?)
}

fn enter(arguments: &Arguments) -> Result<Infallible, EnterError> {
    process::die_with_parent(getppid())?;
    for directory in &arguments.cgroup {
        process::join_cgroup(directory)?;
    }
    // Opened now: its path is one of this machine, not of the new root.
    let stamp = arguments.stamp.as_ref().map(|path| File::create(path).map_err(step("create", path))).transpose()?;
    if let Some(path) = &arguments.netns {
        process::join_network(path)?;
    }
    if arguments.root.is_some() || !arguments.bind.is_empty() {
        mounts::make_private()?;
    }
    match &arguments.root {
        Some(root) => root::change(root, &arguments.bind)?,
        // /sys stays the machine's: a fresh one would show this namespace's links, but hide the cgroups from `watch`.
        None => mounts::bind_all(None, &arguments.bind)?,
    }
    if let Some(directory) = &arguments.workdir {
        nix::unistd::chdir(directory).map_err(step("change to directory", directory))?;
    }
    if let Some(cpus) = &arguments.cpus {
        process::choose_cpus(cpus)?;
    }
    process::raise_open_files(arguments.nofile)?;
    process::reset_signals()?;
    process::close_on_exec()?;
    process::become_command(&arguments.command, &arguments.env, stamp)
}
