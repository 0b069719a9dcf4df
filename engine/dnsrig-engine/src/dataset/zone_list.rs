//! The zones that a command line names: by name, in a file, by number, or as the members of a catalog.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use super::{
    text_file::{LineError, Lines, refuse_other_lists, refuse_words},
    zone_name,
};
use crate::{
    base::failure::{Advice, Failure},
    dns::{
        catalog::{CatalogError, Members},
        zones::Zones,
    },
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
        let wrong = |argument: &str, error: String| ZonesError::Name(format!("{argument}: {error}"));
        let zones = if let Some(path) = &self.zones {
            Zones::read(path)?
        } else if let Some(count) = self.count {
            Zones::numbered(count, &self.suffix).map_err(|error| wrong("--suffix", error))?
        } else if let Some(name) = &self.catalog {
            let named = Zones::named(std::slice::from_ref(name)).map_err(|error| wrong("--catalog", error))?;
            let catalog = named.lower_case();
            let members = Members::new(catalog.wire(0));
            transfer(catalog, members.clone())?.map_err(|why| ZonesError::Catalog(name.clone(), why))?;
            members.take().members().map_err(|error| match error {
                CatalogError::Broken(why) => ZonesError::BrokenCatalog(name.clone(), why),
                CatalogError::Empty => ZonesError::EmptyCatalog(name.clone()),
            })?
        } else if self.names.is_empty() {
            return Err(ZonesError::Unnamed.into());
        } else {
            Zones::named(&self.names).map_err(|error| wrong("--zone", error))?
        };
        Ok(zones.lower_case())
    }
}

/// A list of zones could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ZonesError {
    /// The file could not be read.
    #[error("cannot read {}: {}", .0.display(), .1)]
    Read(PathBuf, io::Error),
    /// A line does not begin with a domain name.
    #[error("{}, line {line}: {reason}", path.display())]
    Line { path: PathBuf, line: usize, reason: String },
    /// A name on the command line is none.
    #[error("{0}")]
    Name(String),
    /// The command line names none.
    #[error("no zone is given: use --zone, --zone-list, --catalog or --count")]
    Unnamed,
    /// The members of a catalog are not known.
    #[error("the catalog zone {0} could not be transferred: {1}")]
    Catalog(String, String),
    /// A catalog breaks this rule, so its members are nobody's.
    #[error("the catalog zone {0} is broken and must not be processed (RFC 9432 §5.1): {1}")]
    BrokenCatalog(String, String),
    #[error("the catalog zone {0} has no members")]
    EmptyCatalog(String),
    /// There is nothing to look for.
    #[error("{} lists no zone", .0.display())]
    Empty(PathBuf),
}

impl Advice for ZonesError {
    fn hint(&self) -> String {
        match self {
            ZonesError::Name(_) | ZonesError::Unnamed => "give domain names such as z000000.example".into(),
            ZonesError::Catalog(..) => {
                "transfer it with `dnsrig transfer PRIMARY --zone CATALOG`, which reports more".into()
            }
            ZonesError::BrokenCatalog(..) | ZonesError::EmptyCatalog(_) => {
                "write its records to a file with `dnsrig transfer PRIMARY --zone CATALOG --write DIR`".into()
            }
            _ => "give --zone-list a file with one zone per line, such as the zones.list that `dnsrig generate` makes"
                .into(),
        }
    }

    fn exit_code(&self) -> u8 {
        use ZonesError::{BrokenCatalog, Catalog, EmptyCatalog};
        if matches!(self, Catalog(..) | BrokenCatalog(..) | EmptyCatalog(_)) { 1 } else { 2 }
    }
}

impl Zones {
    /// Reads the list at `path`.
    pub fn read(path: &Path) -> Result<Self, ZonesError> {
        let file = File::open(path).map_err(|error| ZonesError::Read(path.into(), error))?;
        Self::parse(BufReader::new(file), path)
    }

    /// Reads a list with one zone per line. Text after a TAB, empty lines and comments are ignored.
    fn parse(input: impl BufRead, path: &Path) -> Result<Self, ZonesError> {
        let (mut zones, mut lines) = (Zones::default(), Lines::new(input));
        let reading = |error| match error {
            LineError::Read(error) => ZonesError::Read(path.into(), error),
            LineError::Line { line, reason } => ZonesError::Line { path: path.into(), line, reason },
        };
        while let Some((line, text)) = lines.next_line().map_err(reading)? {
            let name = text.split('\t').next().unwrap_or_default().trim();
            let added = refuse_other_lists(name).and_then(|()| refuse_words(name)).and_then(|()| zones.add_text(name));
            added.map_err(|reason| ZonesError::Line { path: path.into(), line, reason })?;
        }
        if zones.count() == 0 { Err(ZonesError::Empty(path.into())) } else { Ok(zones) }
    }

    /// Numbered zones, `z000000.SUFFIX` and so on, as `generate zones` names them; errors are sentences.
    pub fn numbered(count: u32, suffix: &str) -> Result<Self, String> {
        let mut zones = Zones::default();
        (0..count).try_for_each(|number| zones.add_text(&zone_name(number.into(), suffix)))?;
        Ok(zones)
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use domain::base::Name;

    use super::*;
    use crate::base::fuzz::fuzz;

    fn parse(text: &str) -> Result<Vec<String>, String> {
        let zones = Zones::parse(text.as_bytes(), Path::new("list")).map_err(|error| error.to_string())?;
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
            let found = Zones::parse(bytes, Path::new("list"));
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
                Err(ZonesError::Line { reason, .. }) if names.is_some() => assert!(reason.contains("name"), "{reason}"),
                Err(_) => assert!(names.is_none_or(|names| names.is_empty())),
            }
        });
    }
}
