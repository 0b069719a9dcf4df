//! A file of queries: text with a name and a type on each line, or complete queries in one of the other
//! [formats](mod@super::format). The order of the file is kept unless another one is wanted.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Cursor, Read},
    path::Path,
};

use dnsrig_core::{
    failure::Failure,
    popularity::{Popularity, Sampler},
    random::Random,
};
use domain::base::iana::Rtype;

use super::{
    Builder, LineFlag, Made, NotAdded, Queries, Skipped, cannot_read,
    format::{BEGINNING_BYTES, Format, Unreadable, check, detect},
    text,
};
use crate::{
    dataset::text_file::{after_mark, refuse_other_lists},
    query_stream::StreamReader,
};

/// The length of the longest line, with its end. dnsperf's own limit is the same.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// The number of bytes of the pieces in which the file is read.
const READ_BYTES: usize = 1 << 20;

/// The number of types that are remembered as they were written, to be recognised at once.
const TYPES_REMEMBERED_MAX: usize = 16;

/// Makes the random numbers of orders differ from others with the same seed.
const PURPOSE_SHUFFLE: u64 = 22;
const PURPOSE_DRAW: u64 = 23;
const PURPOSE_RANKS: u64 = 24;

/// What to do if a file has another format.
const FORMAT_HINT: &str = "--queries takes a query a line, a name and a type, such as `www.example A`; lines that begin \
                           with ; or # are comments. --skip-bad-lines leaves out lines that cannot be read";

/// What to do if a file is in no format that can be recognised.
const UNKNOWN_HINT: &str = "give lines with a name and a type, queries each after its length in two bytes (-B of dnsperf \
                            and kxdpgun), or a stream of `dnsrig replay prepare`; --query-format names the format of a \
                            file that is not recognised";

/// The commands in dnsperf's blocks of dynamic updates.
const UPDATE_COMMANDS: [&[u8]; 7] = [b"add", b"delete", b"prohibit", b"quit", b"require", b"send", b"show"];

/// The order in which the queries of a file are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Arrangement {
    #[default]
    AsInFile,
    Shuffled,
    /// This number of positions is drawn.
    Drawn {
        popularity: Popularity,
        positions: u32,
    },
}

/// How a file is read.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The format; by default it is recognised.
    pub format: Option<Format>,
    /// The types that each name is asked for, if the lines of the file are names alone. Empty: lines have types.
    pub types: Vec<Rtype>,
    /// Whether what cannot be read is left out.
    pub skips_bad_lines: bool,
    pub arrangement: Arrangement,
}

/// Reads the queries of a file, or of standard input if `path` is `-`.
pub fn read(path: &Path, plan: &Plan, made: Made) -> Result<Queries, Failure> {
    if path == Path::new("-") {
        return parse(BufReader::with_capacity(READ_BYTES, io::stdin()), Path::new("standard input"), plan, made);
    }
    let file = File::open(path).map_err(|error| cannot_read(path, &error))?;
    parse(BufReader::with_capacity(READ_BYTES, file), path, plan, made)
}

/// What the file at `path` is, if it is a capture or compressed.
pub fn capture(path: &Path) -> Result<Option<&'static str>, Failure> {
    let unread = |error: &io::Error| cannot_read(path, error);
    let file = File::open(path).map_err(|error| unread(&error))?;
    match detect(&beginning(file).map_err(|error| unread(&error))?) {
        Err(Unreadable::Capture(name)) => Ok(Some(name)),
        _ => Ok(None),
    }
}

fn beginning(input: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(BEGINNING_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads queries. Errors name `path`.
pub fn parse(mut input: impl BufRead, path: &Path, plan: &Plan, made: Made) -> Result<Queries, Failure> {
    let seed = made.seed;
    let begins = beginning(&mut input).map_err(|error| cannot_read(path, &error))?;
    let format = match (plan.format, detect(&begins)) {
        (Some(format), _) | (None, Ok(format)) => format,
        (None, Err(unreadable)) => return Err(refused(path, unreadable)),
    };
    if format != Format::Text && !plan.types.is_empty() {
        return Err(Failure::bad_input(
            format!("{} has complete queries, and --types is for a file of names alone", path.display()),
            "leave --types out",
        ));
    }
    let builder = Builder::new(made);
    let mut reading = Reading { builder, path, plan, types: Types::default(), skipped: Skipped::default() };
    match format {
        Format::Text => reading.lines(Cursor::new(begins).chain(input))?,
        Format::Binary => reading.messages(Cursor::new(begins).chain(input))?,
        Format::Stream => reading.stream()?,
    }
    let Reading { builder, skipped, .. } = reading;
    let left_out = if skipped.count > 0 { format!(", and {} bad lines", skipped.count) } else { String::new() };
    let empty = || Failure::bad_input(format!("{} contains no query{left_out}", path.display()), FORMAT_HINT);
    let queries = arranged(builder, plan.arrangement, seed).ok_or_else(empty)?;
    Ok(Queries { format: Some(format), skipped, ..queries })
}

/// The failure that a file is in no format that can be read here.
fn refused(path: &Path, unreadable: Unreadable) -> Failure {
    let path = path.display();
    match unreadable {
        Unreadable::Capture(name) => Failure::bad_input(
            format!("{path} is no file of queries: it is a capture, or compressed ({name})"),
            format!(
                "`dnsrig replay prepare {path} --out clients.stream` takes the queries out of a capture; then give --queries \
                 clients.stream. Decompress other files first"
            ),
        ),
        Unreadable::Unknown => {
            Failure::bad_input(format!("{path} is neither text nor a sequence of queries in wire format"), UNKNOWN_HINT)
        }
    }
}

/// The queries in the wanted order. `None` if there are no queries.
fn arranged(builder: Builder, arrangement: Arrangement, seed: u64) -> Option<Queries> {
    let count = Some(builder.count()).filter(|count| *count > 0)?;
    match arrangement {
        Arrangement::AsInFile => builder.finish_in_order(),
        Arrangement::Shuffled => {
            let mut order: Vec<u32> = (0..count).collect();
            let mut random = Random::new(seed, PURPOSE_SHUFFLE);
            // Fisher and Yates: each order is equally likely.
            (1..order.len()).rev().for_each(|last| order.swap(last, random.below(last as u64 + 1) as usize));
            Some(builder.finish(order))
        }
        Arrangement::Drawn { popularity, positions } => {
            let sampler = Sampler::new(popularity, count, Random::new(seed, PURPOSE_RANKS));
            let mut random = Random::new(seed, PURPOSE_DRAW);
            Some(builder.finish((0..positions).map(|_| sampler.sample(&mut random)).collect()))
        }
    }
}

/// A file that is being read.
struct Reading<'a> {
    builder: Builder,
    path: &'a Path,
    plan: &'a Plan,
    types: Types,
    skipped: Skipped,
}

impl Reading<'_> {
    /// Reads lines. Lines that are empty or begin with ; or # are ignored.
    fn lines(&mut self, mut input: impl BufRead) -> Result<(), Failure> {
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            // With a byte more than is allowed, a line that is too long differs from one that just fits.
            let limited = input.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line);
            if limited.map_err(|error| cannot_read(self.path, &error))? == 0 {
                break;
            }
            if let Err(reason) = after_mark(&line).map_err(NotAdded::Bad).and_then(|text| self.line(text)) {
                self.bad("line", number, reason)?;
                if line.last() != Some(&b'\n') {
                    pass_line(&mut input).map_err(|error| cannot_read(self.path, &error))?;
                }
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<(), NotAdded> {
        if line.len() > LINE_BYTES_MAX {
            return Err(format!("a line of more than {LINE_BYTES_MAX} bytes").into());
        }
        let line = line.trim_ascii();
        if matches!(line, [] | [b';' | b'#', ..]) {
            return Ok(());
        }
        if line.contains(&0) {
            return Err(NotAdded::Bad("it is not text".into()));
        }
        let (name, rest) = text::split_word(line);
        let (qtype, behind) = text::split_word(rest);
        if (qtype.is_empty() || !behind.is_empty()) && UPDATE_COMMANDS.contains(&name.to_ascii_lowercase().as_slice()) {
            let command = text::show(name);
            return Err(format!("`{command}` belongs to a dynamic update (dnsperf -u): only queries are read").into());
        }
        refuse_other_lists(&text::show(name))?;
        if !self.plan.types.is_empty() {
            return self.name_alone(name, rest);
        }
        if qtype.is_empty() {
            return Err(format!(
                "no type after the name `{}`: a line needs a name and a type. For a file of names alone, give --types, such \
                 as --types A,AAAA",
                text::show(name)
            )
            .into());
        }
        let qtype = self.types.parse(qtype)?;
        self.push(name, qtype, flag(behind)?)
    }

    /// Asks for each of the types of a name.
    fn name_alone(&mut self, name: &[u8], rest: &[u8]) -> Result<(), NotAdded> {
        if !rest.is_empty() {
            let rest = text::show(rest);
            return Err(format!("`{rest}` after the name, but --types says that lines are names alone").into());
        }
        let plan = self.plan;
        plan.types.iter().try_for_each(|qtype| self.push(name, *qtype, LineFlag::Absent))
    }

    fn push(&mut self, name: &[u8], qtype: Rtype, flag: LineFlag) -> Result<(), NotAdded> {
        let edns = self.builder.choose(flag);
        let pushed = self.builder.push(qtype, edns, |bytes| text::push_name(bytes, name));
        pushed.map(drop).map_err(|reason| match reason {
            NotAdded::Bad(reason) => NotAdded::Bad(format!("`{}`: {reason}", text::show(name))),
            NotAdded::TooMany => reason,
        })
    }

    /// Reads complete queries, each after its length in two bytes.
    fn messages(&mut self, mut input: impl BufRead) -> Result<(), Failure> {
        let mut message = Vec::new();
        for number in 1.. {
            message.clear();
            let mut whole = |bytes: u64, message: &mut Vec<u8>| {
                let read = input.by_ref().take(bytes).read_to_end(message);
                read.map(|read| read as u64 == bytes).map_err(|error| cannot_read(self.path, &error))
            };
            let has_length = whole(2, &mut message)?;
            if message.is_empty() {
                break;
            }
            let length = message.first_chunk().map_or(0, |length| u16::from_be_bytes(*length));
            message.clear();
            if !has_length || !whole(length.into(), &mut message)? {
                self.bad("query", number, NotAdded::Bad("the file ends in the middle of it".into()))?;
                break;
            }
            self.message(number, &message)?;
        }
        Ok(())
    }

    /// Reads the queries of a capture. Their times and clients are for `replay play`.
    fn stream(&mut self) -> Result<(), Failure> {
        let mut reader = StreamReader::open(self.path)?;
        for number in 1.. {
            let Some(record) = reader.next()? else { break };
            self.message(number, record.message)?;
        }
        Ok(())
    }

    /// Takes a complete query.
    fn message(&mut self, number: u64, message: &[u8]) -> Result<(), Failure> {
        let added = check(message).map_err(NotAdded::Bad).and_then(|()| self.builder.push_message(message));
        added.map_or_else(|reason| self.bad("query", number, reason), |_| Ok(()))
    }

    /// Leaves out what is at this place, or fails because of it.
    fn bad(&mut self, what: &str, number: u64, reason: NotAdded) -> Result<(), Failure> {
        if self.plan.skips_bad_lines && matches!(reason, NotAdded::Bad(_)) {
            self.skipped.add(|| format!("{what} {number}: {reason}"));
            return Ok(());
        }
        Err(Failure::bad_input(format!("{}, {what} {number}: {reason}", self.path.display()), FORMAT_HINT))
    }
}

/// Passes over the rest of a line, of any length.
fn pass_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let bytes = input.fill_buf()?;
        let (length, is_end) = match bytes.iter().position(|byte| *byte == b'\n') {
            Some(place) => (place + 1, true),
            None => (bytes.len(), bytes.is_empty()),
        };
        input.consume(length);
        if is_end {
            return Ok(());
        }
    }
}

/// What the word behind the type of a query says (kxdpgun(8)).
fn flag(behind: &[u8]) -> Result<LineFlag, String> {
    match behind {
        b"" => Ok(LineFlag::Absent),
        b"E" | b"e" => Ok(LineFlag::Edns),
        b"D" | b"d" => Ok(LineFlag::DnssecOk),
        _ => Err(format!(
            "`{}` after the type: a line is a name and a type, and perhaps a flag of kxdpgun, E (EDNS) or D (EDNS with DO)",
            text::show(behind)
        )),
    }
}

/// The types that were read. There are a hundred mnemonics to compare with, and a file has a few of them.
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
