//! The zones to look for, read from a list.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use super::{
    text_file::{LineError, Lines, refuse_other_lists, refuse_words},
    zone_name,
};
use crate::{base::failure::Advice, dns::zones::Zones};

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
