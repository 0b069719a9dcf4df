//! A new root: a shared root file system that cannot be altered, with fresh places to write on top.

use std::{fs, os::unix::fs::symlink, path::Path};

use nix::{mount::MsFlags, unistd};

use super::{
    mounts,
    path::{Bind, FRESH, inside},
    step,
};
use crate::base::failure::Failure;

/// The harmless devices: all that a DNS server needs.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// What a process expects in /dev beside devices (proc(5)).
const DEVICE_LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// Where the machine's own root file system is shown again, because nothing can be mounted over / itself. No file that
/// a bind names is there.
const STAGE: &str = "/proc";

/// Makes `root` the root directory, with `binds` mounted below it, and goes to its /.
///
/// The root file system is a cache shared with other trials, hence read-only; everything that can be written is in
/// memory (tmpfs, at most half of the machine's, the kernel's default) or bound.
pub fn change(root: &Path, binds: &[Bind]) -> Result<(), Failure> {
    let root = &root.canonicalize().map_err(step("find the root", root))?;
    let root = if root == Path::new("/") {
        mounts::bind_tree(root, Path::new(STAGE))?;
        Path::new(STAGE)
    } else {
        mounts::bind(root, root, true)?;
        root
    };
    for (directory, options) in FRESH {
        let place = root.join(&directory[1..]);
        if place.is_symlink() || !place.is_dir() {
            continue; // a link may lead out of the root
        }
        mounts::fresh("tmpfs", &place, MsFlags::MS_NODEV, Some(options))?;
    }
    let flags = MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mounts::fresh("proc", &inside(root, Path::new("/proc"))?, flags, None)?;
    mounts::fresh("sysfs", &inside(root, Path::new("/sys"))?, flags | MsFlags::MS_RDONLY, None)?;
    make_devices(&inside(root, Path::new("/dev"))?)?;
    mounts::bind_all(Some(root), binds)?;
    unistd::chroot(root).map_err(step("change the root to", root))?;
    unistd::chdir("/").map_err(step("change to directory", "/"))
}

/// A minimal /dev in memory. The real one is never bound as a whole: a careless removal of the root would empty it.
fn make_devices(place: &Path) -> Result<(), Failure> {
    mounts::fresh("tmpfs", place, MsFlags::MS_NOEXEC, Some("mode=755"))?;
    for name in DEVICES {
        let device = place.join(name);
        fs::write(&device, "").map_err(step("create", &device))?;
        mounts::bind(&Path::new("/dev").join(name), &device, false)?;
    }
    for (name, target) in DEVICE_LINKS {
        let link = place.join(name);
        symlink(target, &link).map_err(step("create", &link))?;
    }
    let shared_memory = place.join("shm");
    fs::create_dir(&shared_memory).map_err(step("create", &shared_memory))?;
    mounts::fresh("tmpfs", &shared_memory, MsFlags::MS_NODEV, Some("mode=1777"))
}
