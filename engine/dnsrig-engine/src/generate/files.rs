//! `generate files`: the zones of a user, from master files.

use std::{
    fs::{self, File},
    io::{BufReader, BufWriter, Write},
    path::{Path, PathBuf},
};

use dnsrig_core::failure::Failure;
use dnsrig_dns::{catalog::Schema, serial};
use domain::base::iana::Rtype;

use super::{
    dataset::{Common, Dataset, Described, Details, contradiction, writing},
    zone_file::{self, Facts, ZoneFileError},
};
use crate::dataset::{
    VERSION,
    text_file::{LineError, Lines},
};

/// The number of zone files in a directory of the dataset.
const ZONES_PER_DIRECTORY: usize = 1000;

/// At most this many zones, as the other instruments take.
const ZONES_MAX: usize = 10_000_000;

/// The catalog zone is below this name, where no zone of a user is (RFC 6761 §6.4).
const CATALOG_PARENT: &str = "dnsrig.invalid";

/// The longest list of queries of a dataset: what all zones have beyond it is not asked for.
const QUERIES_MAX: u64 = 1_000_000;

/// Types that no client asks for: they prove something about others, or carry it along.
const NOT_ASKED: [Rtype; 5] = [Rtype::RRSIG, Rtype::NSEC, Rtype::NSEC3, Rtype::NSEC3PARAM, Rtype::ZONEMD];

/// Make a dataset of zones in master files: each is read once, checked, and copied.
///
/// A file holds one zone (RFC 1035 §5, with $TTL of RFC 2308 and types of RFC 3597): its SOA record comes first, an NS
/// record is at its apex, and every record is in class IN and below the apex. $INCLUDE is refused. The zone's name is
/// the owner of its SOA record. Names without a final dot before any $ORIGIN are below the name that the list gives,
/// or else below the file's name without .zone, .db or .txt. If the list gives another name than the SOA record,
/// that is an error. queries.txt of the dataset has up to a million names and types that the zones contain.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: all zones of a folder:\n  \
    ls zones/*.zone > mine.list; dnsrig generate files --list mine.list --out /tmp/mine")]
pub struct Arguments {
    /// File with a zone a line: the path of its file, or the zone's name, TAB, and the path
    #[arg(long, value_name = "FILE")]
    pub list: PathBuf,
    /// The directory to make; it must not exist, or be empty
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// The version of the catalog zone's schema: 2 is RFC 9432, 1 what BIND before 9.18.3 follows
    #[arg(long, value_enum, default_value_t)]
    pub catalog_schema: Schema,
}

/// Reads all files and copies them. The first fault ends it, and names its file and line.
pub fn generate(arguments: &Arguments) -> Result<Described, Failure> {
    let zones = read_list(&arguments.list)?;
    let Arguments { out, catalog_schema, .. } = arguments;
    let common = Common { out: out.clone(), seed: 0, serial: 1, catalog_schema: *catalog_schema };
    let mut dataset = Dataset::create(&common, CATALOG_PARENT)?;
    let mut made = Made { facts: Vec::new(), queries: Queries::create(&dataset.path("queries.txt"))? };
    for (number, zone) in zones.iter().enumerate() {
        let directory = format!("zones/{:03}", number / ZONES_PER_DIRECTORY);
        let path = dataset.path(&directory);
        if number % ZONES_PER_DIRECTORY == 0 {
            fs::create_dir(&path).map_err(writing(&path))?;
        }
        let file = format!("{directory}/{number:07}.zone");
        made.copy(zone, &dataset.path(&file))?;
        dataset.list_zone(&made.facts[number].name, &file)?;
    }
    made.queries.finish()?;
    let described = describe(&made.facts, dataset.catalog())?;
    dataset.complete(&described)?;
    Ok(described)
}

/// A failure because a zone file, or the list of them, cannot be used.
fn unusable(path: &Path, reason: impl std::fmt::Display) -> Failure {
    let hint = "correct the file; `named-checkzone ZONE FILE` and `kzonecheck FILE` show more";
    Failure::bad_input(format!("{}: {reason}", path.display()), hint)
}

/// A line of the list.
struct Listed {
    name: Option<String>,
    file: PathBuf,
}

fn read_list(path: &Path) -> Result<Vec<Listed>, Failure> {
    let file = File::open(path).map_err(|error| unusable(path, error))?;
    let (mut lines, mut zones) = (Lines::new(BufReader::new(file)), Vec::new());
    loop {
        match lines.next_line() {
            Ok(Some(_)) if zones.len() == ZONES_MAX => {
                return Err(unusable(path, format!("it lists more than {ZONES_MAX} zones")));
            }
            Ok(Some((_, line))) => zones.push(match line.split_once('\t') {
                Some((name, file)) => Listed { name: Some(name.trim().into()), file: file.trim().into() },
                None => Listed { name: None, file: line.into() },
            }),
            Ok(None) if zones.is_empty() => return Err(unusable(path, "it lists no zone")),
            Ok(None) => return Ok(zones),
            Err(LineError::Read(error)) => return Err(unusable(path, error)),
            Err(LineError::Line { line, reason }) => {
                return Err(unusable(path, format!("line {line}: {reason}")));
            }
        }
    }
}

/// The zones that were read so far.
struct Made {
    facts: Vec<Facts>,
    queries: Queries,
}

impl Made {
    fn copy(&mut self, zone: &Listed, to: &Path) -> Result<(), Failure> {
        let wrong = |reason: String| unusable(&zone.file, reason);
        let meta = fs::metadata(&zone.file).map_err(|error| wrong(error.to_string()))?;
        if !meta.is_file() {
            return Err(wrong("it is not a regular file".into()));
        }
        let input = File::open(&zone.file).map_err(|error| wrong(error.to_string()))?;
        let mut output = BufWriter::new(File::create(to).map_err(writing(to))?);
        let origin = zone.name.clone().unwrap_or_else(|| origin_of(&zone.file));
        let facts = zone_file::read(
            input,
            &origin,
            |owner, rtype| self.queries.add(owner, rtype),
            |bytes| output.write_all(bytes),
        )
        .map_err(|error| match error {
            ZoneFileError::Copy(error) => writing(to)(error),
            other => wrong(other.to_string()),
        })?;
        output.flush().map_err(writing(to))?;
        if let Some(name) = zone.name.as_deref().filter(|name| !same_name(name, &facts.name)) {
            return Err(wrong(format!("it has the zone {}, and the list says {name}", facts.name)));
        }
        self.facts.push(facts);
        Ok(())
    }
}

/// The name of a zone by the name of its file.
fn origin_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let stem = [".zone", ".db", ".txt"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    stem.to_owned()
}

fn same_name(one: &str, other: &str) -> bool {
    one.trim_end_matches('.').eq_ignore_ascii_case(other.trim_end_matches('.'))
}

/// The names and types to ask for, in the order of the zones, each RRset once.
struct Queries {
    path: PathBuf,
    output: BufWriter<File>,
    count: u64,
    last: Option<(domain::base::Name<bytes::Bytes>, Rtype)>,
}

impl Queries {
    fn create(path: &Path) -> Result<Self, Failure> {
        let output = BufWriter::new(File::create(path).map_err(writing(path))?);
        Ok(Queries { path: path.into(), output, count: 0, last: None })
    }

    /// An error of writing shows when the list is finished.
    fn add(&mut self, owner: &domain::base::Name<bytes::Bytes>, rtype: Rtype) {
        let again = self.last.as_ref().is_some_and(|(name, before)| *before == rtype && name == owner);
        if again || self.count == QUERIES_MAX || NOT_ASKED.contains(&rtype) {
            return;
        }
        self.count += 1;
        _ = writeln!(self.output, "{} {rtype}", owner.fmt_with_dot());
        self.last = Some((owner.clone(), rtype));
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.output.flush().map_err(writing(&self.path))
    }
}

/// The dataset's serial is the least of its zones': a zone with that one or a newer one (RFC 1982) is there.
fn describe(zones: &[Facts], catalog: &str) -> Result<Described, Failure> {
    let least = zones
        .iter()
        .map(|zone| zone.serial)
        .reduce(|one, other| if serial::is_newer(one, other) { other } else { one });
    let least = least.expect("a list without a zone was refused");
    if let Some(zone) = zones.iter().find(|zone| zone.serial != least && !serial::is_newer(zone.serial, least)) {
        let reason = format!("the serials {least} and {} of {} cannot be compared (RFC 1982)", zone.serial, zone.name);
        return Err(contradiction(reason));
    }
    Ok(Described {
        generator: "files",
        version: VERSION,
        count: zones.len() as u64,
        records_total: zones.iter().map(|zone| zone.records).sum(),
        bytes_total: zones.iter().map(|zone| zone.bytes).sum(),
        seed: 0,
        serial: least,
        catalog: catalog.to_owned(),
        details: Details::Files {},
    })
}
