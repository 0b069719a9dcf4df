//! The private view of the file system: a shared root that cannot be altered, fresh places to write on top, and binds.
//! No other process sees these mounts, and they are gone when the command ends.

use std::{
    ffi::CString,
    fs, io, mem,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::{Component, Path, PathBuf},
};

use dnsrig_core::failure::Failure;
use nix::{
    errno::Errno,
    libc,
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
    unistd,
};

use super::failure::{step, step_failed};

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
        bind_tree(root, Path::new(STAGE))?;
        Path::new(STAGE)
    } else {
        bind(root, root, true)?;
        root
    };
    for (directory, options) in FRESH {
        let place = root.join(&directory[1..]);
        if place.is_symlink() || !place.is_dir() {
            continue; // a link may lead out of the root
        }
        fresh("tmpfs", &place, MsFlags::MS_NODEV, Some(options))?;
    }
    let flags = MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    fresh("proc", &inside(root, Path::new("/proc"))?, flags, None)?;
    fresh("sysfs", &inside(root, Path::new("/sys"))?, flags | MsFlags::MS_RDONLY, None)?;
    make_devices(&inside(root, Path::new("/dev"))?)?;
    bind_all(Some(root), binds)?;
    unistd::chroot(root).map_err(step("change the root to", root))?;
    unistd::chdir("/").map_err(step("change to directory", "/"))
}

/// A minimal /dev in memory. The real one is never bound as a whole: a careless removal of the root would empty it.
fn make_devices(place: &Path) -> Result<(), Failure> {
    fresh("tmpfs", place, MsFlags::MS_NOEXEC, Some("mode=755"))?;
    for name in DEVICES {
        let device = place.join(name);
        fs::write(&device, "").map_err(step("create", &device))?;
        bind(&Path::new("/dev").join(name), &device, false)?;
    }
    for (name, target) in DEVICE_LINKS {
        let link = place.join(name);
        symlink(target, &link).map_err(step("create", &link))?;
    }
    let shared_memory = place.join("shm");
    fs::create_dir(&shared_memory).map_err(step("create", &shared_memory))?;
    fresh("tmpfs", &shared_memory, MsFlags::MS_NODEV, Some("mode=1777"))
}

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
fn bind_tree(source: &Path, place: &Path) -> Result<(), Failure> {
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

/// The directories of a new root that are ours, fresh memory, where a destination may be created; and their modes.
///
/// A root may lack those that it need not have: all but the first two. People's files are below /home and /root, and
/// whatever others left or share below the rest.
const FRESH: [(&str, &str); 6] = [
    ("/run", "mode=755"),
    ("/mnt", "mode=755"),
    ("/tmp", "mode=1777"),
    ("/var/tmp", "mode=1777"),
    ("/home", "mode=755"),
    ("/root", "mode=755"),
];

/// A `--bind`: show a place of this machine to the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    /// The path on this machine.
    pub source: PathBuf,
    /// The absolute path as the command sees it.
    pub destination: PathBuf,
    /// Whether the command must not write there.
    pub read_only: bool,
}

/// Reads `SRC:DST[:ro]`.
pub fn parse_bind(text: &str) -> Result<Bind, String> {
    let (paths, read_only) = text.strip_suffix(":ro").map_or((text, false), |paths| (paths, true));
    let expected = || "expected SRC:DST or SRC:DST:ro, DST being absolute and free of `..`".to_owned();
    let (source, destination) = paths.split_once(':').ok_or_else(expected)?;
    let destination = PathBuf::from(destination);
    let plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    if source.is_empty() || !destination.is_absolute() || !destination.components().all(plain) {
        return Err(expected());
    }
    Ok(Bind { source: source.into(), destination, read_only })
}

/// Where `path` of the command lies on this machine, if no symbolic link is on the way.
///
/// A link in a root file system may be absolute, and would then lead to this machine's files.
pub fn inside(root: &Path, path: &Path) -> Result<PathBuf, Failure> {
    let mut place = root.to_owned();
    for part in path.components().filter(|part| matches!(part, Component::Normal(_))) {
        place.push(part);
        if place.is_symlink() {
            return Err(step_failed(
                format!("{} passes through a symbolic link, which may lead out of the root", path.display()),
                "give the path that the link points to",
            ));
        }
    }
    Ok(place)
}

/// Makes the destination of a bind, a file or a directory like its source, where that is ours to make.
pub fn prepare(root: Option<&Path>, bind: &Bind) -> Result<PathBuf, Failure> {
    let place = inside(root.unwrap_or(Path::new("/")), &bind.destination)?;
    if place.exists() {
        return Ok(place);
    }
    if root.is_none() || !FRESH.iter().any(|(directory, _)| bind.destination.starts_with(directory)) {
        return Err(step_failed(
            format!("{} does not exist for the command, and `enter` may not create it", bind.destination.display()),
            "bind to a path under /mnt or /run (with --root), or one that exists",
        ));
    }
    let made = match (bind.source.is_dir(), place.parent()) {
        (true, _) => fs::create_dir_all(&place),
        (false, Some(parent)) => fs::create_dir_all(parent).and_then(|()| fs::write(&place, "")),
        (false, None) => Err(io::ErrorKind::InvalidInput.into()),
    };
    made.map_err(step("create", &place))?;
    Ok(place)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_bind_has_two_paths_and_perhaps_ro() {
        let bind = parse_bind("/a/b:/mnt/c:ro").unwrap();
        assert_eq!((bind.source, bind.destination, bind.read_only), ("/a/b".into(), "/mnt/c".into(), true));
        assert!(!parse_bind("relative:/mnt/c").unwrap().read_only);
        for wrong in ["/a", "/a:relative", ":/mnt", "/a:/mnt/../etc", "/a:", "/a:ro"] {
            assert!(parse_bind(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_link_in_the_root_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        symlink("/etc", root.path().join("mnt")).unwrap();
        let refused = inside(root.path(), Path::new("/mnt/x")).unwrap_err();
        assert_eq!(refused.hint, "give the path that the link points to");
        assert_eq!(inside(root.path(), Path::new("/run/x")).unwrap(), root.path().join("run/x"));
    }

    #[test]
    fn only_our_directories_are_created_in() {
        let root = tempfile::tempdir().unwrap();
        let bind = |destination: &str| parse_bind(&format!("/:{destination}")).unwrap();
        assert!(prepare(Some(root.path()), &bind("/mnt/a/b")).unwrap().is_dir());
        for (root, destination) in [(Some(root.path()), "/etc/a"), (None, "/mnt/no/such/place")] {
            assert!(prepare(root, &bind(destination)).unwrap_err().sentence.ends_with("`enter` may not create it"));
        }
    }
}
