//! What a process carries over execve(2): parent, cgroups, namespace, CPUs, limits, signals, descriptors.

use std::{
    convert::Infallible,
    env,
    ffi::{CString, OsStr, OsString},
    fs::{self, File},
    io::Write,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use dnsrig_core::{
    clock::{self, Anchor},
    failure::Failure,
};
use nix::{
    errno::Errno,
    libc,
    sched::{CloneFlags, CpuSet, sched_setaffinity, setns, unshare},
    sys::{
        prctl,
        resource::{Resource, getrlimit, setrlimit},
        signal::{SigHandler, SigSet, Signal, signal},
    },
    unistd::{AccessFlags, Pid, access, execve, getpid, getppid},
};
use serde::Serialize;

use super::failure::{EXIT_CANNOT_START, EXIT_NOT_FOUND, step, step_failed};

/// Where to look for a command if the environment has no PATH: the standard places of the servers' packages.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The CPUs to run on.
pub type Cpus = Vec<usize>;
/// A variable of the environment: name and value.
pub type Variable = (String, String);

/// Reads a list of CPUs such as `1`, `0,1` or `0-3`, as the kernel writes it (cpuset(7), list format).
pub fn parse_cpus(text: &str) -> Result<Cpus, String> {
    let expected = || format!("expected CPUs such as 1, 0,1 or 0-3, each below {}", CpuSet::count());
    let number = |text: &str| text.parse::<usize>().ok().filter(|cpu| *cpu < CpuSet::count()).ok_or_else(expected);
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = number(first)?..=number(last)?;
        if range.is_empty() {
            return Err(expected());
        }
        cpus.extend(range);
    }
    Ok(cpus)
}

/// Reads `NAME=VALUE`.
pub fn parse_variable(text: &str) -> Result<Variable, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// Lets the kernel kill us, and the command that we become, when `parent` ends.
pub fn die_with_parent(parent: Pid) -> Result<(), Failure> {
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(step("ask to be killed with", "the parent"))?;
    // It may have ended before we asked.
    if getppid() == parent {
        Ok(())
    } else {
        {
            let hint = "start it again from a process that keeps running";
            Err(step_failed("the process that started this one has ended", hint))
        }
    }
}

/// Moves this process into a cgroup (cgroups(7)).
pub fn join_cgroup(directory: &Path) -> Result<(), Failure> {
    let file = directory.join("cgroup.procs");
    // Opened and not created: on another file system a stray file would look like success.
    let opened = File::options().write(true).open(&file);
    opened.and_then(|mut open| open.write_all(getpid().to_string().as_bytes())).map_err(step("join cgroup", &file))
}

/// Moves this process into a network namespace.
pub fn join_network(path: &Path) -> Result<(), Failure> {
    let namespace = File::open(path).map_err(step("open network namespace", path))?;
    setns(namespace, CloneFlags::CLONE_NEWNET).map_err(step("join network namespace", path))
}

/// Leaves the network for an empty one, and what processes share beside files (ipc_namespaces(7), uts_namespaces(7)).
pub fn leave_namespaces(network: bool, shared: bool) -> Result<(), Failure> {
    let mut left = CloneFlags::empty();
    left.set(CloneFlags::CLONE_NEWNET, network);
    left.set(CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS, shared);
    unshare(left).map_err(step("leave", "namespaces"))
}

/// Binds this process to `cpus`.
pub fn choose_cpus(cpus: &[usize]) -> Result<(), Failure> {
    let mut set = CpuSet::new();
    let chosen = cpus.iter().try_for_each(|cpu| set.set(*cpu));
    let chosen = chosen.and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
    chosen.map_err(step("run on CPUs", format!("{cpus:?}")))
}

/// Raises the limit of open files to `wanted`, at most the hard limit.
pub fn raise_open_files(wanted: Option<u64>) -> Result<(), Failure> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(step("read the limit of", "open files"))?;
    let soft = wanted.map_or(hard, |wanted| wanted.min(hard));
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).map_err(step("set the limit of", "open files"))
}

/// Gives the command no blocked signals, and SIGPIPE, which the Rust runtime ignores, its default again.
pub fn reset_signals() -> Result<(), Failure> {
    SigSet::empty().thread_set_mask().map_err(step("unblock", "signals"))?;
    // SAFETY: SIG_DFL is no handler of ours: nothing of this program can run in a signal.
    unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) }.map_err(step("reset", "SIGPIPE"))?;
    Ok(())
}

/// Has every descriptor above standard error closed by execve (close_range(2)).
pub fn close_on_exec() -> Result<(), Failure> {
    let flags = libc::CLOSE_RANGE_CLOEXEC.cast_signed();
    // SAFETY: marks descriptors only; none is closed while this program runs.
    let result = unsafe { libc::close_range(3, u32::MAX, flags) };
    Errno::result(result).map(drop).map_err(step("close at start", "inherited descriptors"))
}

/// Becomes the command; the stamp is taken as the last thing before.
pub fn become_command(
    command: &[OsString],
    variables: &[Variable],
    stamp: Option<File>,
) -> Result<Infallible, Failure> {
    let environment = environment(variables);
    let search = environment.iter().find_map(|(name, value)| (name == "PATH").then_some(value.as_os_str()));
    let program = find(&command[0], search.unwrap_or(OsStr::new(DEFAULT_PATH)))?;
    let failed = |errno: Errno| cannot_start(&program, errno);
    let c_string = |bytes: Vec<u8>| CString::new(bytes).map_err(|_| failed(Errno::EINVAL));
    let path = c_string(program.as_os_str().as_bytes().to_vec())?;
    let arguments = command.iter().map(|word| c_string(word.as_bytes().to_vec())).collect::<Result<Vec<_>, _>>()?;
    let variables = environment
        .into_iter()
        .map(|(name, value)| c_string([name.as_bytes(), b"=", value.as_bytes()].concat()))
        .collect::<Result<Vec<_>, _>>()?;
    if let Some(file) = stamp {
        write_stamp(file)?;
    }
    execve(&path, &arguments, &variables).map_err(|errno| match errno {
        Errno::ENOENT => not_found(&command[0]),
        errno => failed(errno),
    })
}

/// The command was found, but is not started.
fn cannot_start(program: &Path, errno: Errno) -> Failure {
    let mut failure = step("start", program)(errno);
    if matches!(errno, Errno::EACCES | Errno::EPERM) {
        failure.hint = "allow the user that it runs as to execute it, and to enter the folders above it".into();
    }
    Failure { exit_code: EXIT_CANNOT_START, ..failure }
}

fn not_found(command: &OsStr) -> Failure {
    let sentence = format!("the command {} does not exist", command.display());
    let hint = "check that the package is installed in the root, or give the full path";
    Failure { exit_code: EXIT_NOT_FOUND, ..Failure::new(sentence, hint) }
}

/// Our environment, changed by `--env`.
fn environment(variables: &[Variable]) -> Vec<(OsString, OsString)> {
    let replaced = |name: &OsStr| variables.iter().any(|(other, _)| name == OsStr::new(other));
    let kept = env::vars_os().filter(|(name, _)| !replaced(name));
    kept.chain(variables.iter().map(|(name, value)| (name.into(), value.into()))).collect()
}

/// Looks for a command as execvp(3) does, in the root that we are in by now.
fn find(command: &OsStr, search: &OsStr) -> Result<PathBuf, Failure> {
    if command.as_bytes().contains(&b'/') {
        return Ok(command.into());
    }
    env::split_paths(search)
        .map(|directory| directory.join(command))
        .find(|program| {
            fs::metadata(program).is_ok_and(|it| it.is_file()) && access(program, AccessFlags::X_OK).is_ok()
        })
        .ok_or_else(|| not_found(command))
}

#[derive(Serialize)]
struct Stamp {
    exec_monotonic_ns: i64,
    exec_realtime_ns: i64,
    anchor_error_ns: i64,
}

fn write_stamp(mut file: File) -> Result<(), Failure> {
    let Anchor { monotonic_ns, realtime_ns, anchor_error_ns } = clock::anchor();
    let stamp = Stamp { exec_monotonic_ns: monotonic_ns, exec_realtime_ns: realtime_ns, anchor_error_ns };
    serde_json::to_writer(&file, &stamp).map_err(step("write", "the stamp"))?;
    file.write_all(b"\n").map_err(step("write", "the stamp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(parse_cpus("1"), Ok(vec![1]));
        assert_eq!(parse_cpus("0,1"), Ok(vec![0, 1]));
        assert_eq!(parse_cpus("0-2,5"), Ok(vec![0, 1, 2, 5]));
        for wrong in ["", "a", "1-", "2-1", "-1", "1,,2", "99999999"] {
            assert!(parse_cpus(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_variable_has_a_name() {
        assert_eq!(parse_variable("A=b=c"), Ok(("A".into(), "b=c".into())));
        assert!(parse_variable("=b").is_err());
        assert!(parse_variable("A").is_err());
    }

    #[test]
    fn a_command_is_searched_for_in_order() {
        assert_eq!(find(OsStr::new("sh"), OsStr::new("/nowhere:/bin")).unwrap(), Path::new("/bin/sh"));
        assert_eq!(find(OsStr::new("./x"), OsStr::new("/bin")).unwrap(), Path::new("./x"));
        assert_eq!(find(OsStr::new("sh"), OsStr::new("/nowhere")).unwrap_err().exit_code, EXIT_NOT_FOUND);
    }
}
