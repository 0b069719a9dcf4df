//! `enter`: become a command that runs on a host.
//!
//! The rig starts every server through it. The process joins the host's cgroups and network namespace, gets its own
//! view of the file system, and then *becomes* the command: there is no fork, so the process id that the rig knows is
//! the server's, and the time of `execve` is known to the microsecond.
//!
//! One thing to know: PR_SET_PDEATHSIG (prctl(2)) is about the parent *thread*: whoever starts us must keep that thread
//! alive.

mod failure;
mod file_system;
mod privileges;
mod process;

use std::{convert::Infallible, ffi::OsString, fs::File, path::PathBuf};

use dnsrig_core::failure::Failure;
use nix::unistd::getppid;

use failure::step;
use file_system::Bind;

/// Start a command on a host (what the rig does for every server).
///
/// The steps, in this order: die with the parent, join the cgroups, join the network namespace, make a private view of
/// the file system, change the root, choose CPUs, raise the limit of open files, give up rights, write the stamp,
/// become the command. The process id stays the same. With --root, the root file system is read-only, and /run, /tmp,
/// /mnt, /var/tmp, /home, /root and /dev are fresh and empty: whatever the command must keep needs a --bind under /mnt
/// or /run. The same holds for --root /, which is the root file system of this machine, read-only.
///
/// With --user, the command has no capability except those that --capability names, can never get another
/// (no_new_privs, prctl(2)), and has its own IPC and UTS namespaces. The program that starts `enter` must enter the PID
/// namespace first; /proc of --root then shows it.
///
/// Exit codes: 125 a step failed (the message names it), 126 the command cannot be started, 127 the command does not
/// exist; otherwise the exit code of the command.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: run BIND from a root file system, on CPU 1 of host `secondary`:\n  \
    dnsrig-engine enter --netns /run/netns/secondary --cgroup /sys/fs/cgroup/secondary --cpus 1 \\\n    \
    --root /var/cache/forky --bind /srv/trial:/mnt/trial --workdir /mnt/trial --stamp exec.json \\\n    \
    --user 65534 --capability CAP_NET_BIND_SERVICE -- named -f -n 1 -c /mnt/trial/named.conf")]
pub struct Arguments {
    /// Network namespace to join, as a file such as /run/netns/NAME
    #[arg(long, value_name = "PATH")]
    netns: Option<PathBuf>,
    /// Give the command its own, empty network namespace
    #[arg(long, conflicts_with = "netns")]
    no_network: bool,
    /// Folder of a cgroup to join. Give it once for each hierarchy
    #[arg(long, value_name = "DIR")]
    cgroup: Vec<PathBuf>,
    /// CPUs to run on: 1, or 0,1, or 0-3
    #[arg(long, value_name = "LIST", value_parser = process::parse_cpus)]
    cpus: Option<process::Cpus>,
    /// Folder that becomes the root, and stays unchanged. / is the root of this machine
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Path SRC of this machine that the command sees at DST; `:ro` makes it read-only. With --root, DST is created in
    /// the fresh folders; elsewhere it must exist
    #[arg(long, value_name = "SRC:DST[:ro]", value_parser = file_system::parse_bind)]
    bind: Vec<Bind>,
    /// Folder to start in [default: / with --root, else the current one]
    #[arg(long, value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// Variable for the environment of the command
    #[arg(long, value_name = "NAME=VALUE", value_parser = process::parse_variable)]
    env: Vec<process::Variable>,
    /// Limit on open files, at most the hard limit [default: the hard limit]
    #[arg(long, value_name = "N")]
    nofile: Option<u64>,
    /// Number of the user and group to run as, without rights [default: the current user]
    #[arg(long, value_name = "UID")]
    user: Option<u32>,
    /// Capability that the user of --user keeps, such as CAP_NET_BIND_SERVICE
    #[arg(long, value_name = "NAME", requires = "user", value_parser = privileges::parse_capability)]
    capability: Vec<privileges::Capability>,
    /// File for the time of the start, as JSON: exec_monotonic_ns, exec_realtime_ns, anchor_error_ns
    #[arg(long, value_name = "FILE")]
    stamp: Option<PathBuf>,
    /// Command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Becomes the command. Comes back only if that fails.
pub fn run(arguments: &Arguments) -> Result<Infallible, Failure> {
    process::die_with_parent(getppid())?;
    for directory in &arguments.cgroup {
        process::join_cgroup(directory)?;
    }
    // Opened now: its path is one of this machine, not of the new root.
    let stamp = arguments.stamp.as_ref().map(|path| File::create(path).map_err(step("create", path))).transpose()?;
    if let Some(path) = &arguments.netns {
        process::join_network(path)?;
    }
    process::leave_namespaces(arguments.no_network, arguments.user.is_some())?;
    if arguments.root.is_some() || !arguments.bind.is_empty() {
        file_system::make_private()?;
    }
    match &arguments.root {
        Some(root) => file_system::change(root, &arguments.bind)?,
        // /sys stays the machine's: a fresh one would show this namespace's links, but hide the cgroups from `watch`.
        None => file_system::bind_all(None, &arguments.bind)?,
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
    if let Some(user) = arguments.user {
        privileges::drop_all_but(&arguments.capability, user)?;
    }
    process::become_command(&arguments.command, &arguments.env, stamp)
}
