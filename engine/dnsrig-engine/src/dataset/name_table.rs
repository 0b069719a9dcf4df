//! Names that clients ask for, each with the TTL of its records, and perhaps with the types that it has.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    path::Path,
    str::FromStr,
};

use dnsrig_core::{draw, failure::Failure, hash::fnv1a, output::OutputFile, random::Random};
use dnsrig_dns::zones::Zones;
use domain::base::{Name, iana::Rtype};

use super::{
    DESCRIPTION, Known,
    text_file::{LineError, Lines, refuse_other_lists, written},
    tld_names::Names,
};

/// The list of zones of a dataset; what stands behind its names are paths.
const ZONES_LIST: &str = "zones.list";

/// Names leave room for a label of 15 letters before them, in 255 bytes (RFC 1035 §3.1).
const NAME_BYTES_MAX: usize = 255 - 16;

/// The largest number of different sets of types: the set of each name is looked up in a list.
const TYPE_SETS_MAX: usize = 1024;

/// RFC 2181 §8.
const TTL_S_MAX: u32 = i32::MAX as u32;

/// The TTLs of the records that web pages lead to: median 255 s and mean 9,780 s (kau.se, the pages of Alexa's
/// list). A log-normal distribution that ends at a week, as caches do, has both with this deviation.
const TTL_MEDIAN_S: f64 = 255.0;
const TTL_DEVIATION: f64 = 2.935;
const TTL_CACHED_S_MAX: f64 = 604_800.0;

/// A failure because a table of names, or what is beside it, cannot be used.
fn unusable(sentence: String) -> Failure {
    Failure::bad_input(
        sentence,
        "a table of names has a name a line, perhaps a TAB and a TTL in seconds, and perhaps a TAB and types, such as \
         A,AAAA; or it is the zones.list of a dataset",
    )
}

/// Names in wire format and in lower case, numbered from 0.
#[derive(Default)]
pub struct NameTable {
    names: Zones,
    ttls_s: Vec<u32>,
    /// The number of each name's set of types.
    types: Vec<u16>,
    /// The first is of the names of which the types are not known.
    type_sets: Vec<Vec<Rtype>>,
}

impl NameTable {
    /// Reads the table at `path`: a name a line, perhaps a TAB and its TTL in seconds, and perhaps a TAB and its types.
    /// For the `zones.list` of a dataset, the names are the delegations of `generate tld`, or else the zones.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let unread = |path: &Path, error| unusable(format!("cannot read {}: {error}", path.display()));
        let other = |path: &Path, reason: String| unusable(format!("{}: {reason}", path.display()));
        let is_list = path.file_name().is_some_and(|name| name == ZONES_LIST);
        let description = path.with_file_name(DESCRIPTION);
        if is_list && description.exists() {
            let text = fs::read(&description).map_err(|error| unread(&description, error))?;
            let known = Known::parse(&text).map_err(|reason| other(&description, reason))?;
            if let Known::Tld { origin, delegations, seed } = known {
                let made = Self::delegations(u64::from(delegations) - 1, seed, &origin);
                return made.map_err(|reason| other(path, reason));
            }
        }
        let table = Self::parse(BufReader::new(File::open(path).map_err(|error| unread(path, error))?), path, is_list)?;
        if table.count() == 0 { Err(other(path, "it names nothing".into())) } else { Ok(table) }
    }

    /// The names of the delegations that `generate tld` makes; errors are sentences.
    pub fn delegations(count: u64, seed: u64, origin: &str) -> Result<Self, String> {
        let mut table = NameTable::default();
        for label in Names::new(count, seed) {
            table.push(&format!("{label}.{origin}"), None, "")?;
        }
        Ok(table)
    }

    /// Reads a table that was opened.
    pub fn parse(input: impl BufRead, path: &Path, is_list: bool) -> Result<Self, Failure> {
        let (mut table, mut lines) = (NameTable::default(), Lines::new(input));
        let wrong_line = |line: usize, reason| unusable(format!("{}, line {line}: {reason}", path.display()));
        let reading = |error| match error {
            LineError::Read(error) => unusable(format!("cannot read {}: {error}", path.display())),
            LineError::Line { line, reason } => wrong_line(line, reason),
        };
        while let Some((line, text)) = lines.next_line().map_err(reading)? {
            let mut columns = text.split('\t').map(str::trim);
            let name = columns.next().unwrap_or_default();
            let mut next = || if is_list { "" } else { columns.next().unwrap_or_default() };
            let (ttl, types) = (next(), next());
            // A name with a TTL may look so: this table was written from what clients asked for.
            let named = if ttl.is_empty() { refuse_other_lists(name) } else { Ok(()) };
            let added = named.and_then(|()| parse_ttl(ttl)).and_then(|ttl_s| table.push(name, ttl_s, types));
            added.map_err(|reason| wrong_line(line, reason))?;
        }
        Ok(table)
    }

    fn push(&mut self, text: &str, ttl_s: Option<u32>, types: &str) -> Result<(), String> {
        let name = Name::<Vec<u8>>::from_str(text).map_err(|error| format!("`{text}` is no domain name: {error}"))?;
        let mut wire = name.as_slice().to_vec();
        if wire.len() > NAME_BYTES_MAX {
            return Err(format!("`{text}` is longer than {NAME_BYTES_MAX} bytes: no label fits before it"));
        }
        // Lengths of labels are no letters.
        wire.make_ascii_lowercase();
        let types = self.type_set(types)?;
        self.names.add(&wire)?;
        self.types.push(types);
        self.ttls_s.push(ttl_s.unwrap_or_else(|| ttl_of_s(&wire)));
        Ok(())
    }

    /// The number of a set of types, such as `A,AAAA`; 0 if it is empty.
    fn type_set(&mut self, text: &str) -> Result<u16, String> {
        let parse = |name: &str| Rtype::from_bytes(name.as_bytes()).ok_or_else(|| format!("`{name}` is no type"));
        let names = text.split(',').filter(|name| !name.is_empty());
        let types = names.map(parse).collect::<Result<Vec<_>, _>>()?;
        if self.type_sets.is_empty() {
            self.type_sets.push(Vec::new());
        }
        let known = self.type_sets.iter().position(|known| *known == types);
        if known.is_none() && self.type_sets.len() == TYPE_SETS_MAX {
            return Err(format!("more than {TYPE_SETS_MAX} different sets of types"));
        }
        let number = known.unwrap_or(self.type_sets.len());
        if known.is_none() {
            self.type_sets.push(types);
        }
        Ok(number as u16)
    }

    /// Writes the table as [`NameTable::read`] reads it.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let writing = |error| {
            let hint = "give a path in an existing folder that you may write to, with free space (df)";
            Failure::new(format!("cannot write {}: {error}", path.display()), hint)
        };
        let mut output = OutputFile::create(path).map_err(writing)?;
        for number in 0..self.count() {
            writeln!(output, "{}", self.line(number)).map_err(writing)?;
        }
        output.finish().map_err(writing)
    }

    /// The line of a name.
    fn line(&self, number: u32) -> String {
        let name = written(self.names.name(number));
        let types: Vec<_> = self.types(number).iter().map(Rtype::to_string).collect();
        let types = if types.is_empty() { String::new() } else { format!("\t{}", types.join(",")) };
        format!("{name}\t{}{types}", self.ttl_s(number))
    }

    pub fn count(&self) -> u32 {
        self.names.count()
    }

    /// A name in wire format; `number` is below [`NameTable::count`].
    pub fn wire(&self, number: u32) -> &[u8] {
        self.names.wire(number)
    }

    pub fn ttl_s(&self, number: u32) -> u32 {
        self.ttls_s[number as usize]
    }

    /// The types that a name has; none if they are not known.
    pub fn types(&self, number: u32) -> &[Rtype] {
        &self.type_sets[usize::from(self.types[number as usize])]
    }

    /// Whether a name has records of a type, as far as is known.
    pub fn has(&self, number: u32, rtype: Rtype) -> bool {
        let types = self.types(number);
        types.is_empty() || rtype == Rtype::ANY || types.contains(&rtype)
    }
}

/// The TTL of a name for which no table says one: always the same, and over all names as published.
pub fn ttl_of_s(name: &[u8]) -> u32 {
    let ttl_s = TTL_MEDIAN_S * (TTL_DEVIATION * draw::normal(&mut Random::new(fnv1a(name), 0))).exp();
    ttl_s.clamp(1.0, TTL_CACHED_S_MAX) as u32
}

fn parse_ttl(text: &str) -> Result<Option<u32>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let ttl_s = text.parse().ok().filter(|ttl_s| *ttl_s <= TTL_S_MAX);
    ttl_s.map(Some).ok_or_else(|| format!("`{text}` is no TTL in seconds"))
}

#[cfg(test)]
mod tests {
    use dnsrig_dns::testing::name;
    use dnsrig_testing::fuzz::fuzz;

    use super::*;

    fn parse(text: &[u8], is_list: bool) -> Result<NameTable, String> {
        NameTable::parse(text, Path::new("table"), is_list).map_err(|error| error.to_string())
    }

    #[test]
    fn a_line_has_a_name_and_perhaps_a_ttl() {
        let table = parse(b"# names\nA.example.\t60\n\nb.example\nc.example\t5\tA,AAAA\n", false).unwrap();
        assert_eq!((table.count(), table.wire(0), table.ttl_s(0)), (3, &name("a.example")[..], 60));
        assert_eq!((table.ttl_s(1), table.ttl_s(2)), (ttl_of_s(&name("B.example")), 5));
        assert_eq!((table.types(0), table.types(2)), (&[][..], &[Rtype::A, Rtype::AAAA][..]));
        assert!(table.has(0, Rtype::MX) && table.has(2, Rtype::ANY) && !table.has(2, Rtype::MX));
        assert_eq!(parse(b"z.example\tzones/z.example.zone\n", true).unwrap().count(), 1);
        assert_eq!(parse("\u{feff}a.example\n".as_bytes(), false).unwrap().wire(0), &name("a.example")[..]);
        assert!(parse(b"1,a.example\n", false).is_err_and(|error| error.contains("a rank and a name")));
        assert!(parse(b"1,a.example\t60\n", false).is_ok());
        for wrong in ["a..b\n", "a\tTTL\n", "a\t-1\n", "a\t2147483648\n", "a\t1\tNONE\n", &"abc.".repeat(60)] {
            assert!(parse(wrong.as_bytes(), false).err().unwrap().starts_with("table, line 1: "), "{wrong}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("names");
        let mut table = NameTable::delegations(50, 3, "example").unwrap();
        table.push("x.example", Some(5), "MX,TYPE65280").unwrap();
        table.write(&path).unwrap();
        let again = NameTable::read(&path).unwrap();
        assert_eq!(again.count(), 52);
        let is_same = |number| again.wire(number) == table.wire(number) && again.types(number) == table.types(number);
        assert!((0..52).all(is_same));
        assert_eq!(again.ttls_s, table.ttls_s);
    }

    #[test]
    fn ttls_are_as_published() {
        let mut ttls_s: Vec<_> = (0..200_000_u32).map(|number| f64::from(ttl_of_s(&number.to_be_bytes()))).collect();
        ttls_s.sort_by(f64::total_cmp);
        let (median_s, mean_s) = (ttls_s[100_000], ttls_s.iter().sum::<f64>() / 200_000.0);
        // The median deviates by 2.935 * 1.25 / sqrt(200,000) of itself, 2 s; the mean deviates by about 120 s.
        assert!((245.0..265.0).contains(&median_s), "{median_s}");
        assert!((9_200.0..10_400.0).contains(&mean_s), "{mean_s}");
    }

    /// The TTL of a name is the same in every run: a stream is described today as it was yesterday.
    #[test]
    fn the_ttl_of_a_name_stays_what_it_was() {
        let found = ["a.example", "www.example.org", "b.example", "."].map(|text| ttl_of_s(&name(text)));
        assert_eq!(found, [515, 5_732, 1, 117]);
    }

    /// A table that is read has what it writes.
    #[test]
    fn harmed_tables_are_read_as_they_are_written_again() {
        let corpus = [
            &b"# names\nA.example.\t60\n\nb.example\nc.example\t5\tA,AAAA\n"[..],
            b".\n\\035x.example\n\\ a\\009.example\t7\n1\\,b.example\t0\tTYPE9\n",
            b"z.example\tzones/z.zone\n",
        ];
        let text = |table: &NameTable| (0..table.count()).map(|number| table.line(number) + "\n").collect::<String>();
        fuzz(2_000, &corpus.map(<[u8]>::to_vec), |bytes, random| {
            let is_list = random.chance(20);
            let lines = bytes.split(|byte| *byte == b'\n').count();
            match parse(bytes, is_list) {
                Ok(table) => {
                    assert!(table.count() as usize <= lines);
                    let again = parse(text(&table).as_bytes(), false).unwrap();
                    assert_eq!(text(&again), text(&table));
                }
                Err(error) => {
                    let line = error.strip_prefix("table, line ").and_then(|rest| rest.split(':').next()?.parse().ok());
                    assert!(line.is_none_or(|line: usize| (1..=lines).contains(&line)), "{error}");
                }
            }
        });
    }
}
