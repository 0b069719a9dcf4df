//! Where the records of a transfer go, if they are not only counted: a zone file, a digest, the members of a catalog.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
};

use dnsrig_dns::{
    catalog::Members,
    name::whole,
    record::Record,
    xfr::{Answered, Change, Outcome, Sink},
    zonemd,
};

use super::zonefile;

/// Up to this number of bytes are gathered before they are written, so that a small zone costs one system call, and
/// many zones at a time need few files.
const GATHERED_BYTES: usize = 256 << 10;

/// Records of one zone whose digest is checked take no more memory than this; a larger zone ends as `limit-exceeded`.
const DIGEST_BYTES_MAX: usize = 4 << 30;

/// The sinks of one transfer.
pub struct Sinks {
    digest: Option<zonemd::Digest>,
    members: Option<Members>,
    file: Option<zonefile::Writer<AtomicFile>>,
}

impl Sink for Sinks {
    fn record(&mut self, record: &Record<'_>, change: Change) -> Result<(), Outcome> {
        self.digest.record(record, change)?;
        self.members.record(record, change)?;
        self.file.record(record, change)
    }

    fn end(&mut self, answered: Answered) -> Result<(), Outcome> {
        self.digest.end(answered)?;
        self.members.end(answered)?;
        self.file.end(answered)?;
        match self.file.take() {
            Some(writer) => writer.into_inner().complete().map_err(|_| Outcome::NotWritten),
            None => Ok(()),
        }
    }
}

/// What the name of each zone's file ends with.
pub const ZONE_SUFFIX: &str = "zone";

/// Gives each transfer its sinks.
#[derive(Clone, Default)]
pub struct SinkFactory {
    /// Zone files are written to this folder.
    pub folder: Option<Arc<PathBuf>>,
    pub digests: bool,
    /// The zone is a catalog, whose members are wanted.
    pub members: Option<Members>,
}

impl SinkFactory {
    /// The sinks for a zone's transfer; None: records are only counted.
    pub fn sinks(&self, zone: &[u8]) -> Option<Box<Sinks>> {
        let SinkFactory { folder, digests, members } = self;
        if folder.is_none() && !digests && members.is_none() {
            return None;
        }
        let file = folder.as_ref().map(|folder| zonefile::Writer::new(AtomicFile::new(folder.join(file_name(zone)))));
        let digest = digests.then(|| zonemd::Digest::new(DIGEST_BYTES_MAX));
        Some(Box::new(Sinks { digest, members: members.as_ref().map(Members::again), file }))
    }
}

/// The name of a zone's file. Each byte of a label that is not a letter, a digit, `-` or `_` is written as `%` and two
/// digits.
fn file_name(zone: &[u8]) -> String {
    let labels = whole(zone).iter().filter(|label| !label.is_root()).map(|label| {
        let byte = |byte: &u8| match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => char::from(*byte).to_string(),
            _ => format!("%{byte:02x}"),
        };
        label.as_slice().iter().map(byte).collect::<String>()
    });
    let labels: Vec<_> = labels.collect();
    format!("{}.{ZONE_SUFFIX}", if labels.is_empty() { "%".to_owned() } else { labels.join(".") })
}

/// A file that has its name only when it is complete.
struct AtomicFile {
    path: PathBuf,
    file: Option<File>,
    waiting: Vec<u8>,
}

impl AtomicFile {
    fn new(path: PathBuf) -> Self {
        AtomicFile { path, file: None, waiting: Vec::new() }
    }

    fn partial(&self) -> PathBuf {
        self.path.with_added_extension("partial")
    }

    fn spill(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(File::create(self.path.with_added_extension("partial"))?),
        };
        file.write_all(&self.waiting)?;
        self.waiting.clear();
        Ok(())
    }

    fn complete(mut self) -> io::Result<()> {
        self.spill()?;
        fs::rename(self.partial(), &self.path)?;
        self.file = None;
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= GATHERED_BYTES {
            self.spill()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // The transfer did not end well. If the file cannot be removed, its name shows that it is incomplete.
            let _ = fs::remove_file(self.partial());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_name_only_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("example.zone");
        let list = || fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
        let mut cut = AtomicFile::new(path.clone());
        cut.write_all(&[b'a'; GATHERED_BYTES]).unwrap();
        assert_eq!(list(), ["example.zone.partial"]);
        drop(cut);
        assert!(list().is_empty());
        let mut whole = AtomicFile::new(path.clone());
        whole.write_all(&[b'a'; GATHERED_BYTES + 7]).unwrap();
        whole.complete().unwrap();
        assert_eq!(fs::metadata(path).unwrap().len() as usize, GATHERED_BYTES + 7);
        assert_eq!(list(), ["example.zone"]);
    }

    #[test]
    fn no_zone_leaves_its_folder() {
        let names: [(&[u8], &str); 4] = [
            (b"\x07example\0", "example.zone"),
            (b"\x02..\x01/\0", "%2e%2e.%2f.zone"),
            (b"\0", "%.zone"),
            (b"\x02a%\x03b_c\0", "a%25.b_c.zone"),
        ];
        for (zone, file) in names {
            assert_eq!(file_name(zone), file);
        }
    }
}
