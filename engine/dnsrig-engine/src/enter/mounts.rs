//! A private view of the file system: mounts that no other process sees, gone when the command ends.

use std::{ffi::CString, mem, os::unix::ffi::OsStrExt, path::Path};

use nix::{
    errno::Errno,
    libc,
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
};

use super::{
    path::{Bind, prepare},
    step,
};
use crate::base::failure::Failure;

const NONE: Option<&str> = None;

/// Leaves the machine's mount namespace; what is mounted from now on stays here.
pub fn make_private() -> Result<(), Failure> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(step("make a mount namespace for", "/"))?;
    let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(NONE, "/", NONE, flags, NONE).map_err(step("keep mounts private below", "/"))
}

/// Mounts a file system without a device, such as tmpfs or proc.
pub fn fresh(kind: &str, place: &Path, flags: MsFlags, options: Option<&str>) -> Result<(), Failure> {
    let flags = flags | MsFlags::MS_NOSUID;
    mount(Some(kind), place, Some(kind), flags, options).map_err(step("mount a fresh file system on", place))
}

/// Shows `source` at `place` as well, without what is mounted below it.
pub fn bind(source: &Path, place: &Path, read_only: bool) -> Result<(), Failure> {
    mount(Some(source), place, NONE, MsFlags::MS_BIND, NONE).map_err(step("bind", source))?;
    if !read_only {
        return Ok(());
    }
    // A bind takes no flags of its own: read-only needs the second call (mount(2), MS_REMOUNT with MS_BIND).
    let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    mount(NONE, place, NONE, flags, NONE).map_err(step("make read-only", place))
}

/// Shows `source` and all that is mounted below it at `place` as well, all of it read-only.
pub fn bind_tree(source: &Path, place: &Path) -> Result<(), Failure> {
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some(source), place, NONE, flags, NONE).map_err(step("bind", source))?;
    let path = CString::new(place.as_os_str().as_bytes()).map_err(step("make read-only", place))?;
    // SAFETY: the structure is plain numbers, for which zero is a value, and means "unchanged" (mount_setattr(2)).
    let mut changes: libc::mount_attr = unsafe { mem::zeroed() };
    changes.attr_set = libc::MOUNT_ATTR_RDONLY;
    let (size, flags) = (size_of::<libc::mount_attr>(), libc::AT_RECURSIVE);
    // SAFETY: the kernel reads the path and `size` bytes of the structure; both live until it returns.
    let result =
        unsafe { libc::syscall(libc::SYS_mount_setattr, libc::AT_FDCWD, path.as_ptr(), flags, &raw mut changes, size) };
    Errno::result(result).map(drop).map_err(step("make read-only", place))
}

/// All of `--bind`, in the order in which they were given.
pub fn bind_all(root: Option<&Path>, binds: &[Bind]) -> Result<(), Failure> {
    for one in binds {
        bind(&one.source, &prepare(root, one)?, one.read_only)?;
    }
    Ok(())
}
