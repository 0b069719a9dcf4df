//! `generate files`: the zones of a user, from master files.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{BufWriter, Seek as _, Write},
    path::{Path, PathBuf},
};

use dnsrig_core::{clock, failure::Failure, units::parse_share};
use dnsrig_dns::{catalog::Schema, serial};
use domain::base::{Name, iana::Rtype};

use super::dataset::{Common, Dataset, Described, Details, contradiction, writing};
use crate::dataset::{
    VERSION,
    file_list::{self, Listed},
    zone_file::{self, Facts, Wanted, ZoneFileError, change::Change},
};

/// The number of zone files in a directory of the dataset.
const ZONES_PER_DIRECTORY: usize = 1000;

/// The catalog zone is below this name, where no zone of a user is (RFC 6761 §6.4).
const CATALOG_PARENT: &str = "dnsrig.invalid";

/// The longest list of queries of a dataset: what all zones have beyond it is not asked for.
const QUERIES_MAX: u64 = 1_000_000;

/// Types that no client asks for: they prove something about others, or carry it along.
const NOT_ASKED: [Rtype; 5] = [Rtype::RRSIG, Rtype::NSEC, Rtype::NSEC3, Rtype::NSEC3PARAM, Rtype::ZONEMD];

/// Make a dataset of zones in master files: each is read once, checked, and copied.
///
/// A file holds one zone (RFC 1035 §5, with $TTL of RFC 2308 and types of RFC 3597): its SOA record comes first, an NS
/// record is at its apex, and every record is in class IN and below the apex. The zone's name is the owner of its SOA
/// record. If that depends on the origin, as @ does before any $ORIGIN, it is the name in the list, or else the file's
/// name without .zone, .db, .txt and .signed at its end. Names before any $ORIGIN are below the zone's name. A name
/// that can be understood in two ways, and a zone that is there twice, are errors. queries.txt of the dataset has up to
/// a million names and types that the zones contain, and serials.txt the serial of each zone.
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
    /// Folder of files that $INCLUDE may read, wherever symbolic links lead. By default $INCLUDE is refused
    #[arg(long, value_name = "DIR")]
    pub include_below: Option<PathBuf>,
    /// Dataset of an earlier version of the same zones: they get the same numbers, and none may have an older serial
    #[arg(long, value_name = "DIR")]
    pub after: Option<PathBuf>,
    /// Change each zone: add N to its serial, and to the TTL of a share of its RRsets. 0 changes nothing
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1000))]
    pub steps: u32,
    /// With --steps: share of the RRsets that change, chosen by their names and types
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = parse_share)]
    pub changed_share: f64,
    /// With --steps: change signed zones, too, although their signatures are then wrong
    #[arg(long)]
    pub unsigned_changes: bool,
}

/// Reads all files and copies them. The first fault ends it, and names its file and line.
pub fn generate(arguments: &Arguments) -> Result<Described, Failure> {
    let zones = file_list::read(&arguments.list).map_err(|reason| unusable(&arguments.list, reason))?;
    let Arguments { out, catalog_schema, steps, changed_share, unsigned_changes, .. } = arguments;
    let include_below = arguments.include_below.as_deref().map(fs::canonicalize).transpose().map_err(|error| {
        Failure::bad_input(format!("--include-below: {error}"), "name the folder of included files")
    })?;
    let change = (*steps > 0).then_some(Change { steps: *steps, share: *changed_share, signed: *unsigned_changes });
    let wanted = Wanted { change, include_below: include_below.as_deref() };
    let before = arguments.after.as_deref().map(Before::read).transpose()?;
    let common = Common { out: out.clone(), seed: 0, serial: 1, catalog_schema: *catalog_schema };
    let mut dataset = Dataset::create(&common, CATALOG_PARENT)?;
    let mut made = Made {
        zones: vec![None; zones.len()],
        numbers: HashMap::with_capacity(zones.len()),
        totals: Totals::default(),
        queries: Queries::create(&dataset.path("queries.txt"))?,
        progress: Progress::new(zones.len()),
    };
    for number in (0..zones.len()).step_by(ZONES_PER_DIRECTORY) {
        let path = dataset.path(&directory_of(number));
        fs::create_dir(&path).map_err(writing(&path))?;
    }
    for zone in &zones {
        made.copy(zone, &dataset, wanted, before.as_ref())?;
    }
    made.queries.finish()?;
    if let Some(lacking) = before.as_ref().and_then(|before| before.lacking(&made)) {
        return Err(unusable(
            &arguments.list,
            format!("the earlier version has the zone {lacking}, and this one has not"),
        ));
    }
    let path = dataset.path("serials.txt");
    let mut serials = BufWriter::new(File::create(&path).map_err(writing(&path))?);
    for (number, zone) in made.zones.iter().enumerate() {
        let (name, serial) = zone.as_ref().expect("each number has a zone");
        dataset.list_zone(name, &file_of(number))?;
        writeln!(serials, "{serial}").map_err(writing(&path))?;
    }
    serials.flush().map_err(writing(&path))?;
    let described = describe(&made, dataset.catalog())?;
    dataset.complete(&described)?;
    Ok(described)
}

fn directory_of(number: usize) -> String {
    format!("zones/{:03}", number / ZONES_PER_DIRECTORY)
}

fn file_of(number: usize) -> String {
    format!("{}/{number:07}.zone", directory_of(number))
}

/// The zones of an earlier version.
struct Before {
    /// By name: the number, and the serial.
    zones: HashMap<String, (usize, u32)>,
}

impl Before {
    fn read(directory: &Path) -> Result<Self, Failure> {
        let [list, serials] = ["zones.list", "serials.txt"].map(|name| directory.join(name));
        let text = |path: &Path| fs::read_to_string(path).map_err(|error| unusable(path, error));
        let (list_text, serials_text) = (text(&list)?, text(&serials)?);
        let mut zones = HashMap::new();
        for (number, (line, serial)) in list_text.lines().zip(serials_text.lines()).enumerate() {
            let name = line.split('\t').next().unwrap_or_default().to_ascii_lowercase();
            let serial = serial.parse().map_err(|_| unusable(&serials, format!("line {}: no serial", number + 1)))?;
            zones.insert(name, (number, serial));
        }
        Ok(Before { zones })
    }

    /// A zone that is not there any more.
    fn lacking(&self, made: &Made) -> Option<&str> {
        self.zones.keys().find(|name| !made.numbers.contains_key(*name)).map(String::as_str)
    }
}

/// A failure because a zone file, or the list of them, cannot be used.
fn unusable(path: &Path, reason: impl std::fmt::Display) -> Failure {
    let hint = "correct the file; `named-checkzone ZONE FILE` and `kzonecheck FILE` show more";
    Failure::bad_input(format!("{}: {reason}", path.display()), hint)
}

/// The zones that were read so far.
struct Made {
    /// By number: the name and the serial.
    zones: Vec<Option<(String, u32)>>,
    /// By name in lower case: the place in the list of files.
    numbers: HashMap<String, usize>,
    totals: Totals,
    queries: Queries,
    progress: Progress,
}

#[derive(Default)]
struct Totals {
    records: u64,
    bytes: u64,
    changed: u64,
    /// The number of signed zones, and of zones with NSEC3.
    signed: u64,
    hashed: u64,
}

impl Made {
    fn copy(
        &mut self,
        zone: &Listed,
        dataset: &Dataset,
        wanted: Wanted<'_>,
        before: Option<&Before>,
    ) -> Result<(), Failure> {
        let wrong = |reason: String| unusable(&zone.file, reason);
        let (mut input, _) = file_list::open(&zone.file).map_err(wrong)?;
        let name =
            zone_file::name(&input, zone.name.as_deref(), &zone.file).map_err(|error| wrong(error.to_string()))?;
        input.rewind().map_err(|error| wrong(error.to_string()))?;
        let (number, earlier) = self.number(&name, before).map_err(wrong)?;
        let to = dataset.path(&file_of(number));
        let mut output = BufWriter::new(File::create(&to).map_err(writing(&to))?);
        let each = |owner: &_, record: &zone_file::ScannedRecord| {
            self.queries.add(owner, record.rtype());
            self.progress.record();
            Ok(())
        };
        let copied = |bytes: &[u8]| output.write_all(bytes);
        let facts = zone_file::read(input, &zone.file, &name, wanted, each, copied).map_err(|error| match error {
            ZoneFileError::Copy(error) => writing(&to)(error),
            other => wrong(other.to_string()),
        })?;
        output.flush().map_err(writing(&to))?;
        let serial = facts.serial;
        if let Some(old) = earlier.filter(|old| serial != *old && !serial::is_newer(serial, *old)) {
            return Err(wrong(format!("the serial {serial} of {name} is older than {old} in the earlier version")));
        }
        self.count(number, facts);
        Ok(())
    }

    /// The number of the zone `name`, and its serial in the earlier version. An error is a sentence.
    fn number(&mut self, name: &Name<bytes::Bytes>, before: Option<&Before>) -> Result<(usize, Option<u32>), String> {
        let (known, read) = (name.to_string().to_ascii_lowercase(), self.numbers.len());
        let earlier = match before.map(|before| before.zones.get(&known)) {
            Some(None) => return Err(format!("the zone {name} is not in the earlier version")),
            found => found.flatten().copied(),
        };
        if self.numbers.insert(known, read).is_some() {
            return Err(format!("the zone {name} is in another file, too"));
        }
        let (number, serial) = earlier.map_or((read, None), |(number, serial)| (number, Some(serial)));
        if number >= self.zones.len() {
            return Err("the earlier version has more zones".into());
        }
        Ok((number, serial))
    }

    /// Counts a zone that was copied.
    fn count(&mut self, number: usize, facts: Facts) {
        self.totals.records += facts.records;
        self.totals.bytes += facts.bytes;
        self.totals.changed += facts.changed;
        self.totals.signed += u64::from(facts.signed);
        self.totals.hashed += u64::from(facts.hashed);
        self.progress.zones += 1;
        self.zones[number] = Some((facts.name, facts.serial));
    }
}

/// The time between two lines of progress.
const PROGRESS_NS: i64 = 5_000_000_000;

/// Records between two looks at the clock.
const RECORDS_PER_LOOK: u64 = 1 << 15;

/// Lines on standard error while the files are read: `progress: ZONES of ALL zones, RECORDS records`.
struct Progress {
    of: usize,
    zones: usize,
    records: u64,
    due_ns: i64,
}

impl Progress {
    fn new(of: usize) -> Self {
        Progress { of, zones: 0, records: 0, due_ns: clock::monotonic_ns() + PROGRESS_NS }
    }

    fn record(&mut self) {
        self.records += 1;
        if self.records.is_multiple_of(RECORDS_PER_LOOK) && clock::monotonic_ns() >= self.due_ns {
            self.due_ns += PROGRESS_NS;
            eprintln!("progress: {} of {} zones, {} records", self.zones, self.of, self.records);
        }
    }
}

/// The names and types to ask for, in the order of the zones, each RRset once.
struct Queries {
    path: PathBuf,
    output: BufWriter<File>,
    count: u64,
    last: Option<(Name<bytes::Bytes>, Rtype)>,
}

impl Queries {
    fn create(path: &Path) -> Result<Self, Failure> {
        let output = BufWriter::new(File::create(path).map_err(writing(path))?);
        Ok(Queries { path: path.into(), output, count: 0, last: None })
    }

    /// An error of writing shows when the list is finished.
    fn add(&mut self, owner: &Name<bytes::Bytes>, rtype: Rtype) {
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
fn describe(made: &Made, catalog: &str) -> Result<Described, Failure> {
    let mut zones = made.zones.iter().flatten();
    let mut least = zones.clone().next().expect("a list without a zone was refused").1;
    for (_, serial) in zones.clone() {
        least = if serial::is_newer(least, *serial) { *serial } else { least };
    }
    if let Some((name, other)) = zones.find(|(_, other)| *other != least && !serial::is_newer(*other, least)) {
        let reason = format!("the serials {least} and {other} of {name} cannot be compared (RFC 1982)");
        return Err(contradiction(reason));
    }
    let Totals { records, bytes, changed, signed, hashed } = made.totals;
    let serials_differ = made.zones.iter().flatten().any(|(_, serial)| *serial != least);
    Ok(Described {
        generator: "files",
        version: VERSION,
        count: made.zones.len() as u64,
        records_total: records,
        bytes_total: bytes,
        seed: 0,
        serial: least,
        catalog: catalog.to_owned(),
        details: Details::Files {
            signed_zones: signed,
            hashed_zones: hashed,
            records_changed: changed,
            serials_differ,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "one.example. 60 IN SOA ns.one.example. mail.one.example. 7 1 1 1 1\n\
                       one.example. 60 IN NS ns.one.example.\nns.one.example. 60 IN A 192.0.2.1\n\
                       ns.one.example. 60 IN A 192.0.2.2\n";
    const TWO: &str = "two.example. 60 IN SOA ns.one.example. mail.one.example. 9 1 1 1 1\n\
                       two.example. 60 IN NS ns.one.example.\n";

    /// A folder with these zone files and the list of them.
    struct Given(tempfile::TempDir);

    impl Given {
        fn new(zones: &[&str]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let mut list = String::new();
            for (number, text) in zones.iter().enumerate() {
                let path = folder.path().join(format!("{number}.zone"));
                fs::write(&path, text).unwrap();
                list += &format!("{}\n", path.display());
            }
            fs::write(folder.path().join("mine.list"), list).unwrap();
            Given(folder)
        }

        fn arguments(&self) -> Arguments {
            Arguments {
                list: self.0.path().join("mine.list"),
                out: self.0.path().join("out"),
                catalog_schema: Schema::default(),
                include_below: None,
                after: None,
                steps: 0,
                changed_share: 1.0,
                unsigned_changes: false,
            }
        }

        fn made(&self, name: &str) -> String {
            fs::read_to_string(self.0.path().join("out").join(name)).unwrap()
        }

        /// What is wrong with it as the version after another one.
        fn wrong_after(&self, before: &Given) -> Option<String> {
            let arguments = Arguments { after: Some(before.0.path().join("out")), ..self.arguments() };
            generate(&arguments).err().map(|failure| failure.sentence)
        }
    }

    #[test]
    fn a_dataset_lists_zones_serials_and_questions() {
        let given = Given::new(&[TWO, ONE]);
        let described = generate(&given.arguments()).unwrap();
        assert_eq!(
            given.made("zones.list"),
            "two.example\tzones/000/0000000.zone\none.example\tzones/000/0000001.zone\n"
        );
        assert_eq!((given.made("serials.txt").as_str(), described.serial), ("9\n7\n", 7));
        let questions = "two.example. SOA\ntwo.example. NS\none.example. SOA\none.example. NS\nns.one.example. A\n";
        assert_eq!(given.made("queries.txt"), questions);
        assert_eq!(
            (given.made("zones/000/0000001.zone"), described.count),
            (format!("$ORIGIN one.example.\n{ONE}"), 2)
        );
        let bytes = ONE.len() + TWO.len() + 2 * "$ORIGIN one.example.\n".len();
        assert_eq!((described.records_total, described.bytes_total), (6, bytes as u64));
        let Details::Files { signed_zones, hashed_zones, records_changed, serials_differ } = described.details else {
            panic!("it is made of files")
        };
        assert_eq!((signed_zones, hashed_zones, records_changed, serials_differ), (0, 0, 0, true));
    }

    #[test]
    fn a_version_is_as_many_steps_later_as_asked_for() {
        for (steps, serial, ttl, changed) in [(0, 7, 60, 0), (1, 8, 61, 3), (2, 9, 62, 3)] {
            let given = Given::new(&[ONE]);
            let described = generate(&Arguments { steps, ..given.arguments() }).unwrap();
            assert_eq!((given.made("serials.txt"), described.serial), (format!("{serial}\n"), serial));
            let text = given.made("zones/000/0000000.zone");
            assert_eq!(text.matches(&format!(" {ttl} IN ")).count(), if steps == 0 { 4 } else { 3 }, "{text}");
            let Details::Files { records_changed, .. } = described.details else { panic!("it is made of files") };
            assert_eq!(records_changed, changed);
        }
    }

    #[test]
    fn a_later_version_has_the_same_zones_and_no_older_serial() {
        let before = Given::new(&[ONE, TWO]);
        generate(&before.arguments()).unwrap();
        let with_serial = |serial: &str| ONE.replace(" 7 1 ", &format!(" {serial} 1 "));
        for (zones, expected) in [
            (&[TWO, ONE][..], None),
            (&[TWO, &with_serial("8")], None),
            (&[TWO, &with_serial("6")], Some("the serial 6 of one.example is older than 7")),
            (&[ONE], Some("the earlier version has the zone two.example")),
            (&[ONE, TWO, &ONE.replace("one", "six")], Some("the zone six.example is not in the earlier version")),
            (&[ONE, ONE], Some("the zone one.example is in another file, too")),
        ] {
            let given = Given::new(zones);
            let found = given.wrong_after(&before);
            assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
            assert!(found.is_none_or(|sentence| sentence.contains(expected.unwrap())), "{expected:?}");
            if expected.is_none() {
                let list = "one.example\tzones/000/0000000.zone\ntwo.example\tzones/000/0000001.zone\n";
                assert_eq!(given.made("zones.list"), list, "the numbers of the earlier version");
            }
        }
    }
}
