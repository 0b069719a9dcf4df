//! The zones that a command line names: by name, in a file, by number, or as the members of a catalog.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
};

use dnsrig_core::failure::Failure;
use dnsrig_dns::{
    catalog::{CatalogError, Members},
    zones::Zones,
};

use super::{
    text_file::{LineError, Lines, refuse_other_lists, refuse_words},
    zone_name,
};

/// Which zones a command line names.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct ZoneArguments {
    /// Zone to transfer. May be repeated
    #[arg(long = "zone", value_name = "NAME", help_heading = "What")]
    pub names: Vec<String>,
    /// File with the zones, one per line, such as the zones.list of `dnsrig generate`. Text after a TAB is ignored
    #[arg(long = "zone-list", alias = "zones", value_name = "FILE", conflicts_with = "names", help_heading = "What")]
    pub zones: Option<PathBuf>,
    /// Catalog zone (RFC 9432), which is transferred first, and whose members are the zones
    #[arg(long, value_name = "NAME", conflicts_with_all = ["names", "zones"], help_heading = "What")]
    pub catalog: Option<String>,
    /// Number of zones, named z000000.SUFFIX and so on, as `generate zones` and `serve zones` name them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000), conflicts_with_all = ["names", "zones", "catalog"], help_heading = "What")]
    pub count: Option<u32>,
    /// With --count: domain name that all zones are below
    #[arg(long, value_name = "NAME", default_value = "example", conflicts_with_all = ["names", "zones", "catalog"], help_heading = "What")]
    pub suffix: String,
}

impl ZoneArguments {
    /// The zones, in lower case. `transfer` transfers a catalog, the one zone of the list that it is given, to those
    /// members; its inner error is a sentence.
    pub fn zones(
        &self,
        transfer: impl FnOnce(Zones, Members) -> Result<Result<(), String>, Failure>,
    ) -> Result<Zones, Failure> {
        let wrong = |argument: &str, error: String| not_a_name(format!("{argument}: {error}"));
        let zones = if let Some(path) = &self.zones {
            read(path)?
        } else if let Some(count) = self.count {
            numbered(count, &self.suffix).map_err(|error| wrong("--suffix", error))?
        } else if let Some(name) = &self.catalog {
            let named = Zones::named(std::slice::from_ref(name)).map_err(|error| wrong("--catalog", error))?;
            let catalog = named.lower_case();
            let members = Members::new(catalog.wire(0));
            transfer(catalog, members.clone())?.map_err(|why| {
                let hint = "transfer it with `dnsrig transfer PRIMARY --zone CATALOG`, which reports more";
                Failure::new(format!("the catalog zone {name} could not be transferred: {why}"), hint)
            })?;
            members.take().members().map_err(|error| {
                let hint = "write its records to a file with `dnsrig transfer PRIMARY --zone CATALOG --write DIR`";
                let why = match error {
                    CatalogError::Broken(why) => {
                        format!("is broken and must not be processed (RFC 9432 §5.1): {why}")
                    }
                    CatalogError::Empty => "has no members".into(),
                };
                Failure::new(format!("the catalog zone {name} {why}"), hint)
            })?
        } else if self.names.is_empty() {
            return Err(not_a_name("no zone is given: use --zone, --zone-list, --catalog or --count"));
        } else {
            Zones::named(&self.names).map_err(|error| wrong("--zone", error))?
        };
        Ok(zones.lower_case())
    }
}

/// A failure because the command line has no valid name.
pub fn not_a_name(sentence: impl Into<String>) -> Failure {
    Failure::bad_input(sentence, "give domain names such as z000000.example")
}

/// A failure because a list of zones cannot be used.
fn unusable(sentence: String) -> Failure {
    let hint = "give --zone-list a file with one zone per line, such as the zones.list that `dnsrig generate` makes";
    Failure::bad_input(sentence, hint)
}

/// Reads the list at `path`.
pub fn read(path: &Path) -> Result<Zones, Failure> {
    let file = File::open(path).map_err(|error| unusable(format!("cannot read {}: {error}", path.display())))?;
    parse(BufReader::new(file), path)
}

/// Reads a list with one zone per line. Text after a TAB, empty lines and comments are ignored.
fn parse(input: impl BufRead, path: &Path) -> Result<Zones, Failure> {
    let (mut zones, mut lines) = (Zones::default(), Lines::new(input));
    let path = path.display();
    let wrong_line = |line: usize, reason| unusable(format!("{path}, line {line}: {reason}"));
    let reading = |error| match error {
        LineError::Read(error) => unusable(format!("cannot read {path}: {error}")),
        LineError::Line { line, reason } => wrong_line(line, reason),
    };
    while let Some((line, text)) = lines.next_line().map_err(reading)? {
        let name = text.split('\t').next().unwrap_or_default().trim();
        let added = refuse_other_lists(name).and_then(|()| refuse_words(name)).and_then(|()| zones.add_text(name));
        added.map_err(|reason| wrong_line(line, reason))?;
    }
    if zones.count() == 0 { Err(unusable(format!("{path} lists no zone"))) } else { Ok(zones) }
}

/// Numbered zones, `z000000.SUFFIX` and so on, as `generate zones` names them; errors are sentences.
pub fn numbered(count: u32, suffix: &str) -> Result<Zones, String> {
    let mut zones = Zones::default();
    (0..count).try_for_each(|number| zones.add_text(&zone_name(number.into(), suffix)))?;
    Ok(zones)
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use dnsrig_testing::fuzz::fuzz;
    use domain::base::Name;

    use super::*;

    fn parse(text: &str) -> Result<Vec<String>, String> {
        let zones = super::parse(text.as_bytes(), Path::new("list")).map_err(|error| error.to_string())?;
        Ok((0..zones.count()).map(|zone| zones.name(zone).to_string()).collect())
    }

    #[test]
    fn the_name_is_what_stands_before_a_tab() {
        let names = parse("a.example\tzones/a.example.zone\n\n# no zone\nb.example.\n.\nlast").unwrap();
        assert_eq!(names, ["a.example", "b.example", ".", "last"]);
    }

    #[test]
    fn a_bad_name_is_reported_with_its_line() {
        assert!(parse("a\nb..c\n").unwrap_err().starts_with("list, line 2: `b..c` is no domain name"));
        assert!(parse(&"a".repeat(64)).unwrap_err().starts_with("list, line 1:"));
        assert!(parse(&"a.".repeat(10_000)).is_err());
    }

    #[test]
    fn a_list_may_begin_with_a_mark_and_has_no_ranks() {
        assert_eq!(parse("\u{feff}a.example\nb.example\n").unwrap(), ["a.example", "b.example"]);
        assert!(parse("1,a.example\n").unwrap_err().contains("line 1: `1,a.example` is a rank and a name"));
        assert!(parse("a.example A\n").unwrap_err().contains("Names with types are for `load --queries`"));
    }

    #[test]
    fn an_empty_list_is_an_error() {
        assert_eq!(parse("# nothing\n").unwrap_err(), "list lists no zone");
    }

    /// Held against lines as the standard library cuts them.
    #[test]
    fn harmed_lists_have_the_names_of_their_lines() {
        let corpus = [
            "a.example\tzones/a.example.zone\n\n# no zone\nb.example.\n.\nlast",
            "\u{feff}a\\ b.example\r\n1,b.example\nc.example A\n",
            "\\097.example\n \txn--a.example \n",
        ];
        let long = format!("a.example\t{}b.example\n", " ".repeat(8180));
        let corpus = corpus.iter().map(|text| text.as_bytes().to_vec()).chain([long.into_bytes()]).collect::<Vec<_>>();
        fuzz(2_000, &corpus, |bytes, _| {
            let found = super::parse(bytes, Path::new("list"));
            // The name of a line, or none; an error where the line cannot be read.
            let name = |line: &[u8]| {
                let text = std::str::from_utf8(line).ok().filter(|text| line.len() <= 8192 && !text.contains('\0'))?;
                let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim();
                if text.starts_with(['#', ';']) {
                    return Some(None);
                }
                let text = text.split('\t').next()?.trim();
                if !text.is_empty() { Name::<Vec<u8>>::from_str(text).ok().map(Some) } else { Some(None) }
            };
            let lines = bytes.split_inclusive(|byte| *byte == b'\n');
            let names = lines.map(name).collect::<Option<Vec<_>>>();
            let names: Option<Vec<_>> = names.map(|names| names.iter().flatten().map(ToString::to_string).collect());
            match found {
                Ok(zones) => {
                    let found: Vec<_> = (0..zones.count()).map(|zone| zones.name(zone).to_string()).collect();
                    assert_eq!(Some(found), names);
                }
                // Ranks and words would be taken for names.
                Err(failure) if failure.sentence.starts_with("list, line") && names.is_some() => {
                    assert!(failure.sentence.contains("name"), "{failure}");
                }
                Err(_) => assert!(names.is_none_or(|names| names.is_empty())),
            }
        });
    }
}
