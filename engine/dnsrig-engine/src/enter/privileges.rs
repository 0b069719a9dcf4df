//! Giving every right away for good: another user, no capabilities but some, and no way to more.

use std::ptr;

use dnsrig_core::failure::Failure;
use nix::{
    errno::Errno,
    libc,
    sys::{prctl, signal::Signal},
};

use super::failure::step;

/// The capabilities by their numbers (linux/capability.h, capabilities(7)).
const CAPABILITIES: [&str; 41] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_DAC_READ_SEARCH",
    "CAP_FOWNER",
    "CAP_FSETID",
    "CAP_KILL",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETPCAP",
    "CAP_LINUX_IMMUTABLE",
    "CAP_NET_BIND_SERVICE",
    "CAP_NET_BROADCAST",
    "CAP_NET_ADMIN",
    "CAP_NET_RAW",
    "CAP_IPC_LOCK",
    "CAP_IPC_OWNER",
    "CAP_SYS_MODULE",
    "CAP_SYS_RAWIO",
    "CAP_SYS_CHROOT",
    "CAP_SYS_PTRACE",
    "CAP_SYS_PACCT",
    "CAP_SYS_ADMIN",
    "CAP_SYS_BOOT",
    "CAP_SYS_NICE",
    "CAP_SYS_RESOURCE",
    "CAP_SYS_TIME",
    "CAP_SYS_TTY_CONFIG",
    "CAP_MKNOD",
    "CAP_LEASE",
    "CAP_AUDIT_WRITE",
    "CAP_AUDIT_CONTROL",
    "CAP_SETFCAP",
    "CAP_MAC_OVERRIDE",
    "CAP_MAC_ADMIN",
    "CAP_SYSLOG",
    "CAP_WAKE_ALARM",
    "CAP_BLOCK_SUSPEND",
    "CAP_AUDIT_READ",
    "CAP_PERFMON",
    "CAP_BPF",
    "CAP_CHECKPOINT_RESTORE",
];

/// A newer kernel may have more capabilities than we know; it has at most as many as a set has bits.
const MOST_CAPABILITIES: u8 = 64;

/// The version of capset(2) whose sets have 64 bits.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// A capability, by its number.
pub type Capability = u8;

/// Reads a name such as `CAP_NET_BIND_SERVICE`.
pub fn parse_capability(text: &str) -> Result<Capability, String> {
    let found = (0..).zip(CAPABILITIES).find(|(_, name)| *name == text);
    found.map(|(number, _)| number).ok_or_else(|| "expected a name such as CAP_NET_BIND_SERVICE".to_owned())
}

/// Becomes `user`, and the group of the same number, with no capabilities but `kept`, and nothing that would give more.
pub fn drop_all_but(kept: &[Capability], user: u32) -> Result<(), Failure> {
    drop_bounding_set(kept)?;
    // By default all capabilities are lost with the user.
    prctl::set_keepcaps(true).map_err(step("keep", "capabilities"))?;
    // SAFETY: all take numbers only, but for the list of groups, of which none is read.
    let results = unsafe {
        [libc::setgroups(0, ptr::null()), libc::setresgid(user, user, user), libc::setresuid(user, user, user)]
    };
    for result in results {
        Errno::result(result).map_err(step("become user", user.to_string()))?;
    }
    set_capabilities(kept)?;
    for one in kept {
        ambient(*one)?; // else execve would take it away
    }
    prctl::set_no_new_privs().map_err(step("refuse", "new privileges"))?;
    // The kernel clears the death signal when a process changes its user (PR_SET_PDEATHSIG, prctl(2)).
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(step("ask to be killed with", "the parent"))
}

/// No program that is started later can have what is not in `kept`.
fn drop_bounding_set(kept: &[Capability]) -> Result<(), Failure> {
    for number in (0..MOST_CAPABILITIES).filter(|number| !kept.contains(number)) {
        // SAFETY: takes numbers only.
        match Errno::result(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(number), 0, 0, 0) }) {
            Ok(_) | Err(Errno::EINVAL) => {} // this kernel has no capability of that number
            Err(errno) => return Err(step("drop capability", number.to_string())(errno)),
        }
    }
    Ok(())
}

/// Makes `kept` the permitted, the effective and the inheritable set.
fn set_capabilities(kept: &[Capability]) -> Result<(), Failure> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[derive(Clone, Copy, Default)]
    #[repr(C)]
    struct Sets {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    let mut sets = [Sets::default(); 2];
    for number in kept {
        let (half, bit) = (usize::from(number / 32), 1 << (number % 32));
        sets[half].effective |= bit;
        sets[half].permitted |= bit;
        sets[half].inheritable |= bit;
    }
    let mut header = Header { version: CAPABILITY_VERSION, pid: 0 };
    // SAFETY: capset(2) reads one header and, with this version, two sets; both live until it returns.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()) };
    Errno::result(result).map(drop).map_err(step("keep", "capabilities"))
}

/// Has execve hand `number` on to a program that knows nothing of capabilities.
fn ambient(number: Capability) -> Result<(), Failure> {
    let (raise, number) = (libc::PR_CAP_AMBIENT_RAISE as libc::c_ulong, libc::c_ulong::from(number));
    // SAFETY: takes numbers only.
    let result = unsafe { libc::prctl(libc::PR_CAP_AMBIENT, raise, number, 0, 0) };
    Errno::result(result).map(drop).map_err(step("hand on capability", number.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_have_the_numbers_of_the_kernel() {
        // linux/capability.h: the first, the two that servers keep, and the last.
        for (name, number) in
            [("CAP_CHOWN", 0), ("CAP_NET_BIND_SERVICE", 10), ("CAP_NET_ADMIN", 12), ("CAP_CHECKPOINT_RESTORE", 40)]
        {
            assert_eq!(parse_capability(name), Ok(number));
        }
        assert!(parse_capability("NET_ADMIN").is_err());
    }
}
