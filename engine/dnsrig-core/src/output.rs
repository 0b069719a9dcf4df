//! Files that are made: none replaces a file that is read, each has a folder to be in, and each appears whole.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs::{self, File},
    io::{self, BufWriter, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf, absolute},
};

use nix::unistd::{AccessFlags, access};

use super::failure::Failure;

/// Bytes are written in pieces of this length.
const WRITE_BYTES: usize = 1 << 20;

/// The hint if a file of --out cannot be written.
pub const WRITE_HINT: &str = "give --out an existing folder that you may write to, with free space (df)";

/// The hint if an output would replace another file.
const OWN_PATH: &str = "nothing was changed: give every output its own path";

/// The name of standard input, for commands that read it.
const STANDARD_INPUT: &str = "-";

/// Refuses outputs that [replace an input](refuse_inputs), and those that cannot be written at their paths: before the
/// work, not behind it.
pub fn check(outputs: &[Option<&Path>], inputs: &[Option<&Path>]) -> Result<(), Failure> {
    refuse_inputs(outputs, inputs)?;
    for output in outputs.iter().copied().flatten() {
        match output.parent() {
            _ if output.is_dir() => {
                return Err(Failure::bad_input(
                    format!("{} is a folder, but a file is needed", output.display()),
                    format!("give a file in it, such as {}", output.join("NAME").display()),
                ));
            }
            // What is there may be writable in a folder that is not.
            _ if is_device(output) || access(output, AccessFlags::W_OK).is_ok() => (),
            Some(folder) if folder != Path::new("") => check_place(folder)?,
            _ => check_place(Path::new("."))?,
        }
    }
    Ok(())
}

/// Refuses a folder that cannot be written to, or whose files with these names [replace an input](refuse_inputs).
pub fn check_folder(folder: &Path, names: &[&str], inputs: &[Option<&Path>]) -> Result<(), Failure> {
    let outputs: Vec<_> = names.iter().map(|name| folder.join(name)).collect();
    refuse_inputs(&outputs.iter().map(|output| Some(output.as_path())).collect::<Vec<_>>(), inputs)?;
    check_place(folder)
}

/// The failure to write a file of --out.
pub fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()), WRITE_HINT)
}

fn check_place(folder: &Path) -> Result<(), Failure> {
    // With a slash behind it, a file is no folder.
    let found = access(&folder.join(""), AccessFlags::W_OK | AccessFlags::X_OK);
    found.map_err(|error| {
        Failure::new(
            format!("cannot write to the folder {}: {}", folder.display(), io::Error::from(error)),
            "give an existing folder that you may write to, with free space (df)",
        )
    })
}

/// Refuses outputs that are the same file as an input, by whatever path or link, or that have the same path. An
/// output is written beside its path first, so that place is an output as well.
pub fn refuse_inputs(outputs: &[Option<&Path>], inputs: &[Option<&Path>]) -> Result<(), Failure> {
    let outputs: Vec<_> = outputs.iter().flatten().copied().collect();
    let mut places: Vec<_> = outputs.iter().filter_map(|output| absolute(output).ok()).collect();
    places.sort_unstable();
    if let Some(pair) = places.windows(2).find(|pair| pair[0] == pair[1] && !is_device(&pair[0])) {
        return Err(Failure::bad_input(format!("two outputs have the path {}", pair[0].display()), OWN_PATH));
    }
    for input in inputs.iter().flatten() {
        let Some(read) = identity(input) else { continue };
        for output in outputs.iter().flat_map(|output| [output.to_path_buf(), beside(output)]) {
            if identity(&output) == Some(read) {
                let sentence = format!("{} is the same file as {}, which is read", output.display(), input.display());
                return Err(Failure::bad_input(sentence, OWN_PATH));
            }
        }
    }
    Ok(())
}

/// Device and inode of a regular file; pipes and devices may well be read and written.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let path = if path == Path::new(STANDARD_INPUT) { Path::new("/dev/stdin") } else { path };
    fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|file| (file.dev(), file.ino()))
}

/// The first of the inputs that is the same file as one before it.
pub fn given_twice<'p>(inputs: &[&'p Path]) -> Option<&'p Path> {
    let mut seen = HashSet::new();
    inputs.iter().copied().find(|input| identity(input).is_some_and(|found| !seen.insert(found)))
}

fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file())
}

/// Where a file stands until it is whole.
fn beside(path: &Path) -> PathBuf {
    let mut part = path.as_os_str().to_owned();
    part.push(OsStr::new(".part"));
    part.into()
}

/// A file that is being written. It appears at its path once it is [finished](OutputFile::finish), and until then it is
/// beside it, with `.part` behind its name; dropped unfinished, it is removed. A pipe or a device is written directly.
pub struct OutputFile {
    path: PathBuf,
    part: Option<PathBuf>,
    file: BufWriter<File>,
}

impl OutputFile {
    /// Begins a file that is to appear at `path`.
    pub fn create(path: &Path) -> io::Result<Self> {
        let part = (!is_device(path)).then(|| beside(path));
        let file = File::create(part.as_deref().unwrap_or(path))?;
        Ok(OutputFile { path: path.into(), part, file: BufWriter::with_capacity(WRITE_BYTES, file) })
    }

    /// Where it is until it is finished.
    pub fn part(&self) -> &Path {
        self.part.as_deref().unwrap_or(&self.path)
    }

    /// The file, with all that was written before.
    pub fn flushed(&mut self) -> io::Result<&File> {
        self.file.flush()?;
        Ok(self.file.get_ref())
    }

    /// Has it appear at its path, in the place of what is there.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        match self.part.take() {
            Some(part) => fs::rename(part, &self.path),
            None => Ok(()),
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // Nothing more can be done about a file that cannot be removed.
            let _ = fs::remove_file(part);
        }
    }
}

/// Writes a whole file.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let mut file = OutputFile::create(path)?;
    file.write_all(content.as_ref())?;
    file.finish()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const SAME: &str = "is the same file as";
    const NO_PLACE: &str = "cannot write to the folder";

    fn refusal(checked: Result<(), Failure>) -> String {
        checked.unwrap_err().sentence
    }

    #[test]
    fn an_output_is_no_input_by_whatever_path() {
        let folder = tempfile::tempdir().unwrap();
        let [input, other, link, hard] = ["in", "out", "link", "hard"].map(|name| folder.path().join(name));
        fs::write(&input, "read").unwrap();
        symlink(&input, &link).unwrap();
        fs::hard_link(&input, &hard).unwrap();
        let roundabout = folder.path().join("./in");
        for output in [&input, &link, &hard, &roundabout] {
            assert!(refusal(check(&[Some(output)], &[None, Some(&input)])).contains(SAME), "{output:?}");
        }
        assert!(check(&[Some(&other), None], &[Some(&input)]).is_ok());
        // An output is written beside its path first.
        fs::hard_link(&input, folder.path().join("out.part")).unwrap();
        assert!(refusal(check(&[Some(&other)], &[Some(&input)])).contains(SAME));
        assert!(refusal(check(&[Some(&other), Some(&other)], &[])).starts_with("two outputs have the path"));
        assert_eq!(given_twice(&[&input, &other, &link]), Some(link.as_path()));
        assert_eq!(given_twice(&[&input, &other]), None);
        let null = Path::new("/dev/null");
        assert!(check(&[Some(null), Some(null)], &[Some(null)]).is_ok());
    }

    #[test]
    fn a_place_that_cannot_be_written_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [file, missing] = ["file", "missing"].map(|name| folder.path().join(name));
        fs::write(&file, "read").unwrap();
        assert!(check(&[Some(&file), Some(&missing), Some(Path::new("relative"))], &[]).is_ok());
        assert!(refusal(check(&[Some(folder.path())], &[])).ends_with("is a folder, but a file is needed"));
        for wrong in [&missing, &file] {
            assert!(refusal(check(&[Some(&wrong.join("out"))], &[])).starts_with(NO_PLACE), "{wrong:?}");
            assert!(refusal(check_folder(wrong, &["out"], &[])).starts_with(NO_PLACE), "{wrong:?}");
        }
        assert!(check_folder(folder.path(), &["out"], &[Some(&file)]).is_ok());
        assert!(refusal(check_folder(folder.path(), &["out", "file"], &[Some(&file)])).contains(SAME));
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, "before").unwrap();
        let mut unfinished = OutputFile::create(&path).unwrap();
        unfinished.write_all(b"half").unwrap();
        unfinished.flushed().unwrap();
        assert_eq!(fs::read(unfinished.part()).unwrap(), b"half");
        drop(unfinished);
        assert_eq!(fs::read(&path).unwrap(), b"before");
        write(&path, "after").unwrap();
        assert_eq!(
            (fs::read(&path).unwrap().as_slice(), fs::read_dir(folder.path()).unwrap().count()),
            (&b"after"[..], 1)
        );
        write(Path::new("/dev/null"), "gone").unwrap();
    }
}
