//! How a link fails.

use std::{io, path::PathBuf};

use crate::base::failure::Advice;

/// The step that fails when there is no such namespace, or it may not be entered.
pub const OPEN_NETNS: &str = "open the network namespace for";

/// A link could not be made, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// An argument does not go with another.
    #[error("{0}")]
    Arguments(&'static str),
    /// An interface could not be made.
    #[error("cannot {step} {interface} in {}: {reason}", netns.display())]
    Interface {
        /// What could not be done.
        step: &'static str,
        /// The interface's name.
        interface: String,
        /// Its network namespace.
        netns: PathBuf,
        /// Why not.
        reason: io::Error,
    },
    /// An interface went away while it was in use.
    #[error("the interface {0} no longer exists")]
    Gone(String),
    /// Something that the kernel should always do.
    #[error("cannot {0}: {1}")]
    System(&'static str, io::Error),
}

impl Advice for LinkError {
    fn hint(&self) -> String {
        match self {
            LinkError::Arguments(_) => "see `dnsrig-engine link --help`".into(),
            LinkError::Interface { step, netns, reason, .. } => match reason.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => "run this as root, with CAP_NET_ADMIN and CAP_SYS_ADMIN".into(),
                Some(libc::EBUSY) => {
                    "the interface already exists: delete it (ip link delete), or give another name".into()
                }
                Some(libc::ENOENT) if *step == OPEN_NETNS => {
                    format!("make the namespace first (ip netns add); `ip` keeps it at {}", netns.display())
                }
                Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
                    "this kernel has no TUN: run `modprobe tun`, or build the kernel with CONFIG_TUN".into()
                }
                _ => "dmesg may say more".into(),
            },
            LinkError::Gone(_) => "stop `link` before you delete its namespaces and interfaces".into(),
            LinkError::System(..) => "check memory, and that open files are not at their limit (ulimit -n)".into(),
        }
    }

    fn exit_code(&self) -> u8 {
        if matches!(self, LinkError::Arguments(_)) { 2 } else { 1 }
    }
}
