//! The rows of a world: queries by second and kind, and the names that it does not have.

use std::{
    path::Path,
    sync::mpsc::{SyncSender, sync_channel},
};

use super::counts::{Counts, Kind, Second, Volume};
use crate::{
    base::{
        failure::Failure,
        rows::{self, Columns, RowFile},
        threads::Thread,
    },
    dns::name::whole,
    world::fault::Fault,
};

pub const SECONDS: &str = "queries.arrow";
pub const UNKNOWN: &str = "not-in-world.arrow";

/// So many seconds' counts may wait for the disk.
const WAITING_MAX: usize = 256;

const LEVELS: [&str; 4] = ["root", "tld", "second", "none"];

/// The thread that writes rows while the world answers.
pub struct Writer {
    thread: Thread<Result<(), Failure>>,
}

type Row = (i64, Kind, Volume);

impl Writer {
    /// Makes the file; the counts of seconds go where the sender leads. All senders gone, it ends.
    pub fn start(path: &Path) -> Result<(Self, SyncSender<Second>), Failure> {
        let mut file = RowFile::create(path, columns())?;
        let (sender, seconds) = sync_channel::<Second>(WAITING_MAX);
        let thread = Thread::start("rows", move || {
            for (second, kinds) in seconds {
                let mut rows: Vec<Row> = kinds.into_iter().map(|(kind, volume)| (second, kind, volume)).collect();
                rows.sort_by_key(|(_, kind, _)| *kind);
                file.write(&rows)?;
            }
            file.finish()
        })?;
        Ok((Writer { thread }, sender))
    }

    pub fn finish(self) -> Result<(), Failure> {
        self.thread.join()?
    }
}

fn columns() -> Columns<'static, Row> {
    Columns::default()
        .value("time_ns", |(second, ..): &Row| second * 1_000_000_000)
        .word("level", LEVELS, |(_, kind, _)| kind.level.map_or(3, usize::from))
        .value("rtype", |(_, kind, _)| kind.rtype)
        .value("rcode", |(_, kind, _)| kind.rcode)
        .word("fault", std::iter::once("none").chain(Fault::ALL.map(Fault::name)), |(_, kind, _)| {
            kind.fault.map_or(0, |fault| 1 + fault as usize)
        })
        .value("dnssec_ok", |(_, kind, _)| kind.dnssec_ok)
        .word("transport", ["udp", "tcp"], |(_, kind, _)| usize::from(kind.is_stream))
        .word("family", ["ipv4", "ipv6"], |(_, kind, _)| usize::from(kind.is_ipv6))
        .value("queries", |(.., volume)| volume.queries)
        .value("bytes", |(.., volume)| volume.bytes)
}

/// Writes the names that the world does not have, the most frequent first.
pub fn write_unknown(path: &Path, counts: &Counts) -> Result<(), Failure> {
    let mut unknown: Vec<(&[u8], u64)> = counts.unknown.iter().map(|(name, queries)| (&**name, *queries)).collect();
    unknown.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
    let columns = Columns::default()
        .value("name", |(name, _): &(&[u8], u64)| whole(name).to_string())
        .value("queries", |(_, queries)| *queries);
    rows::write(path, columns, unknown)
}
