//! Lists of zone files: on each line the path of a file, or the name of a zone, a TAB, and the path.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
};

use super::text_file::{LineError, Lines};

/// The most zones of a list, as other instruments take.
const ZONES_MAX: usize = 10_000_000;

/// A line of a list.
#[derive(Debug, PartialEq, Eq)]
pub struct Listed {
    pub name: Option<String>,
    pub file: PathBuf,
}

/// Opens a zone file, and gives its length. An error is a sentence.
pub fn open(file: &Path) -> Result<(File, u64), String> {
    // A pipe without a writer would block.
    let meta = fs::metadata(file).map_err(|error| error.to_string())?;
    if !meta.is_file() {
        return Err("it is not a regular file".into());
    }
    let file = File::open(file).map_err(|error| error.to_string())?;
    Ok((file, meta.len()))
}

/// Reads the list at `path`, which has at least one zone. An error is a sentence.
pub fn read(path: &Path) -> Result<Vec<Listed>, String> {
    parse(BufReader::new(File::open(path).map_err(|error| error.to_string())?), ZONES_MAX)
}

fn parse(input: impl BufRead, zones_max: usize) -> Result<Vec<Listed>, String> {
    let (mut lines, mut zones) = (Lines::new(input), Vec::new());
    let wrong = |error| match error {
        LineError::Read(error) => error.to_string(),
        LineError::Line { line, reason } => format!("line {line}: {reason}"),
    };
    while let Some((_, line)) = lines.next_line().map_err(wrong)? {
        if zones.len() == zones_max {
            return Err(format!("it lists more than {zones_max} zones"));
        }
        zones.push(match line.split_once('\t') {
            Some((name, file)) => Listed { name: Some(name.trim().into()), file: file.trim().into() },
            None => Listed { name: None, file: line.into() },
        });
    }
    if zones.is_empty() { Err("it lists no zone".into()) } else { Ok(zones) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_file_with_or_without_a_name() {
        let listed = |name: Option<&str>, file: &str| Listed { name: name.map(Into::into), file: file.into() };
        let found = parse(&b"# ours\na.zone\n\nb.example \t zones/b c.zone\r\n"[..], 2);
        assert_eq!(found, Ok(vec![listed(None, "a.zone"), listed(Some("b.example"), "zones/b c.zone")]));
        assert_eq!(parse(&b"# nothing\n"[..], 2), Err("it lists no zone".into()));
        assert_eq!(parse(&b"a\nb\nc\n"[..], 2), Err("it lists more than 2 zones".into()));
        assert_eq!(parse(&b"a\n\xff\n"[..], 2), Err("line 2: it is not text in UTF-8".into()));
    }
}
