//! Paths as the command will see them.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use super::{step, step_failed};
use crate::base::failure::Failure;

/// The directories of a new root that are ours, fresh memory, where a destination may be created; and their modes.
///
/// A root may lack those that it need not have: all but the first two. People's files are below /home and /root, and
/// whatever others left or share below the rest.
pub const FRESH: [(&str, &str); 6] = [
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
