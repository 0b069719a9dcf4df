//! The failures on the way to a command, each with its exit code.

use std::{io, path::PathBuf};

use dnsrig_core::failure::Failure;

/// The exit code when a step before the command failed, as chroot(1), env(1) and nice(1) have it.
const EXIT_STEP_FAILED: u8 = 125;
/// The exit code when the command was found but could not be started.
pub const EXIT_CANNOT_START: u8 = 126;
/// The exit code when the command was not found.
pub const EXIT_NOT_FOUND: u8 = 127;

/// Makes the failure "cannot STEP PATH: …" of a system error.
pub fn step<E: Into<io::Error>>(step: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(E) -> Failure {
    move |error| {
        let error = error.into();
        let hint = match error.kind() {
            io::ErrorKind::PermissionDenied => "run as root, with CAP_SYS_ADMIN",
            io::ErrorKind::NotFound => "check the path: the namespace, the cgroup and the root must already exist",
            _ => "see `dnsrig-engine enter --help` for what each step needs; dmesg may say more",
        };
        step_failed(format!("cannot {step} {}: {error}", path.into().display()), hint)
    }
}

/// A step before the start of the command failed.
pub fn step_failed(sentence: impl Into<String>, hint: &str) -> Failure {
    Failure { exit_code: EXIT_STEP_FAILED, ..Failure::new(sentence, hint) }
}
