//! A file of queries in dnsperf's format: a name and a type a line.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use domain::base::iana::Rtype;

use super::{Builder, Queries, QueryError, text};
use crate::{
    dataset::text_file::{after_mark, refuse_other_lists},
    dns::query::Options,
};

/// A line is at most so long, its end included: dnsperf's own limit is the same.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// The file is read in pieces of so many bytes.
const READ_BYTES: usize = 1 << 20;

/// So many types are remembered as they were written, to be recognised at once.
const TYPES_REMEMBERED_MAX: usize = 16;

/// The commands in dnsperf's blocks of dynamic updates.
const UPDATE_COMMANDS: [&[u8]; 7] = [b"add", b"delete", b"prohibit", b"quit", b"require", b"send", b"show"];

/// Reads the queries of a file, or of standard input if `path` is `-`.
pub fn read(path: &Path, options: Options) -> Result<Queries, QueryError> {
    if path == Path::new("-") {
        return parse(BufReader::with_capacity(READ_BYTES, io::stdin()), Path::new("standard input"), options);
    }
    let file = File::open(path).map_err(|error| QueryError::Read(path.into(), error))?;
    parse(BufReader::with_capacity(READ_BYTES, file), path, options)
}

/// Reads queries; `path` stands in errors. Lines that are empty or begin with ; or # are no queries.
pub fn parse(mut input: impl BufRead, path: &Path, options: Options) -> Result<Queries, QueryError> {
    let mut builder = Builder::new(options);
    let mut types = Types::default();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        // A byte more than is allowed tells a line that is too long from one that just fits.
        let limited = input.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line);
        if limited.map_err(|error| QueryError::Read(path.into(), error))? == 0 {
            break;
        }
        after_mark(&line)
            .and_then(|text| parse_line(&mut builder, &mut types, text))
            .map_err(|reason| QueryError::Line { path: PathBuf::from(path), line: number, reason })?;
    }
    builder.finish_in_order().ok_or_else(|| QueryError::Empty(path.into()))
}

fn parse_line(builder: &mut Builder, types: &mut Types, line: &[u8]) -> Result<(), String> {
    if line.len() > LINE_BYTES_MAX {
        return Err(format!("a line of more than {LINE_BYTES_MAX} bytes"));
    }
    let line = line.trim_ascii();
    if matches!(line, [] | [b';' | b'#', ..]) {
        return Ok(());
    }
    if line.contains(&0) {
        return Err("it is not text: dnsperf's binary format (-B) is not read".into());
    }
    let (name, rest) = text::split_word(line);
    let (qtype, behind) = text::split_word(rest);
    if (qtype.is_empty() || !behind.is_empty()) && UPDATE_COMMANDS.contains(&name.to_ascii_lowercase().as_slice()) {
        let command = text::show(name);
        return Err(format!("`{command}` belongs to a dynamic update (dnsperf -u): only queries are read"));
    }
    refuse_other_lists(&text::show(name))?;
    if qtype.is_empty() {
        return Err(format!(
            "no type after the name `{}`: a line needs a name and a type. For a list of names alone, use --zone-list",
            text::show(name)
        ));
    }
    let qtype = types.parse(qtype)?;
    if !behind.is_empty() {
        return Err(format!("`{}` after the type: a line is a name and a type{}", text::show(behind), flag(behind)));
    }
    let pushed = builder.push(qtype, |bytes| text::push_name(bytes, name));
    pushed.map(|_| ()).map_err(|reason| format!("`{}`: {reason}", text::show(name)))
}

/// The options that replace the flags that kxdpgun reads after the type (kxdpgun(8)).
fn flag(behind: &[u8]) -> &'static str {
    match behind {
        b"D" | b"d" => ". To ask for DNSSEC records use --dnssec-ok, which is for all queries",
        b"E" | b"e" => ". All queries have EDNS, unless --edns is 0",
        _ => "",
    }
}

/// The types that were read: there are a hundred mnemonics to compare with, and a file has a few.
#[derive(Default)]
struct Types(Vec<(Vec<u8>, Rtype)>);

impl Types {
    fn parse(&mut self, text: &[u8]) -> Result<Rtype, String> {
        if let Some((_, known)) = self.0.iter().find(|(written, _)| written == text) {
            return Ok(*known);
        }
        let rtype = text::parse_type(text)?;
        if self.0.len() < TYPES_REMEMBERED_MAX {
            self.0.push((text.to_vec(), rtype));
        }
        Ok(rtype)
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
