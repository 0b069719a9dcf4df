//! How becoming a command fails.

use std::{ffi::OsString, io, path::PathBuf};

use crate::base::failure::Advice;

/// The step whose failure means that the command was found but could not be started.
pub const START: &str = "start";

/// The exit code when a step before the command failed, as chroot(1), env(1) and nice(1) have it.
const EXIT_STEP_FAILED: u8 = 125;
/// The exit code when the command was found but could not be started.
const EXIT_CANNOT_START: u8 = 126;
/// The exit code when the command was not found.
const EXIT_NOT_FOUND: u8 = 127;

/// A step on the way to the command failed.
#[derive(Debug, thiserror::Error)]
pub enum EnterError {
    /// The parent was gone before we had asked to die with it.
    #[error("the process that started this one has ended")]
    Orphan,
    /// A system call failed.
    #[error("cannot {step} {}: {source}", path.display())]
    Step { step: &'static str, path: PathBuf, source: io::Error },
    /// A path leads out of the new root.
    #[error("{} passes through a symbolic link, which may lead out of the root", path.display())]
    Link { path: PathBuf },
    /// A path that we must not create does not exist.
    #[error("{} does not exist for the command, and `enter` may not create it", path.display())]
    NoDestination { path: PathBuf },
    /// The command is nowhere in the search path.
    #[error("the command {} does not exist", command.display())]
    NotFound { command: OsString },
}

impl Advice for EnterError {
    fn hint(&self) -> String {
        match self {
            EnterError::Orphan => "start it again from a process that keeps running".into(),
            EnterError::Step { step: START, source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "allow the user that it runs as to execute it, and to enter the folders above it".into()
            }
            EnterError::Step { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => "run as root, with CAP_SYS_ADMIN".into(),
                io::ErrorKind::NotFound => {
                    "check the path: the namespace, the cgroup and the root must already exist".into()
                }
                _ => "see `dnsrig-engine enter --help` for what each step needs; dmesg may say more".into(),
            },
            EnterError::Link { .. } => "give the path that the link points to".into(),
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
            EnterError::Step { step: START, .. } => EXIT_CANNOT_START,
            _ => EXIT_STEP_FAILED,
        }
    }
}

/// Makes a system error into "cannot STEP PATH: …".
pub fn step<E: Into<io::Error>>(step: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(E) -> EnterError {
    move |source| EnterError::Step { step, path: path.into(), source: source.into() }
}
