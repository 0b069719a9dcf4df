//! The summary of a generator of a load, and whether several generators belong together.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use dnsrig_core::failure::Failure;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The largest file in bytes: rows of 50 million queries are smaller.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// Times beyond this are invalid: 146 years. Below it, none overflows when it is moved to another clock.
pub const TIME_NS_MAX: i64 = i64::MAX / 2;

/// What must be the same for all.
const SAME: [&str; 5] = ["/transport", "/model", "/timeout_ns", "/interval_s", "/replayed/transport"];

/// A directory that a generator wrote.
pub struct Generator {
    pub dir: PathBuf,
    pub summary: Map<String, Value>,
    pub facts: Facts,
    /// When all began, by the clock that moments are put on.
    pub begin_ns: i64,
}

/// What of its summary is needed in any case.
#[derive(Debug, Deserialize)]
pub struct Facts {
    pub start_ns: i64,
    pub end_ns: i64,
    pub interval_s: f64,
    pub interrupted: bool,
}

impl Generator {
    /// Reads its summary. Its moments stay on its own clock.
    pub fn open(dir: &Path) -> Result<Self, Failure> {
        let path = dir.join("summary.json");
        let read = || -> Result<_, String> {
            let whole: Value = serde_json::from_slice(&bytes(&path)?).map_err(|error| error.to_string())?;
            let facts = Facts::deserialize(&whole).map_err(|error| error.to_string())?;
            let is_period =
                (0..TIME_NS_MAX).contains(&facts.start_ns) && (facts.start_ns..TIME_NS_MAX).contains(&facts.end_ns);
            if !is_period || facts.interval_s <= 0.0 {
                return Err("its start_ns, end_ns or interval_s cannot be".into());
            }
            let Value::Object(summary) = whole else { return Err("it is no object".into()) };
            Ok(Generator { dir: dir.to_owned(), summary, begin_ns: facts.start_ns, facts })
        };
        read().map_err(|error| unread(&path, &error))
    }

    /// The bytes of one of its files.
    pub fn file(&self, name: &str) -> Result<Vec<u8>, Failure> {
        let path = self.dir.join(name);
        bytes(&path).map_err(|error| unread(&path, &error))
    }

    /// What is to be added to its moments.
    pub fn shift_ns(&self) -> i64 {
        self.begin_ns - self.facts.start_ns
    }

    /// A damaged file of it.
    pub fn damaged(&self, name: &str, error: impl ToString) -> Failure {
        unread(&self.dir.join(name), &error.to_string())
    }

    fn intervals(&self) -> u64 {
        let duration_s = (self.facts.end_ns - self.facts.start_ns) as f64 / 1e9;
        // What is not exact in seconds is by far less than an interval.
        (duration_s / self.facts.interval_s - 1e-6).ceil() as u64
    }
}

/// A file of a generator cannot be read, or is damaged.
fn unread(path: &Path, error: &str) -> Failure {
    let hint = "give folders that `load --out` or `replay play --out` of this version wrote";
    Failure::bad_input(format!("cannot read {}: {error}", path.display()), hint)
}

fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    match read.map_err(|error| error.to_string())? {
        count if count as u64 > FILE_BYTES_MAX => Err("it has more than 4 GB".into()),
        _ => Ok(bytes),
    }
}

/// Whether all are of one load. One that was interrupted has fewer intervals, and may.
pub fn check(generators: &[Generator]) -> Result<(), Failure> {
    let differ = |one: &Generator, other: &Generator, what: &str, values: [String; 2]| {
        let ([one, other], [first, second]) = ([one, other].map(|generator| generator.dir.display()), values);
        Err(Failure::bad_input(
            format!("{one} and {other} do not belong together: {what} is {first} there and {second} here"),
            "give folders of generators that shared one load and were started with equal options",
        ))
    };
    let Some((first, others)) = generators.split_first() else { return Ok(()) };
    for other in others {
        for pointer in SAME {
            let [one, another] =
                [first, other].map(|generator| value(&generator.summary, pointer).unwrap_or(&Value::Null));
            if one != another {
                return differ(first, other, &pointer[1..].replace('/', "."), [one, another].map(Value::to_string));
            }
        }
    }
    let mut whole = generators.iter().filter(|generator| !generator.facts.interrupted);
    let Some(one) = whole.next() else { return Ok(()) };
    match whole.find(|other| other.intervals() != one.intervals()) {
        Some(other) => {
            let counts = [one, other].map(|generator| generator.intervals().to_string());
            differ(one, other, "the number of intervals", counts)
        }
        None => Ok(()),
    }
}

fn value<'a>(summary: &'a Map<String, Value>, pointer: &str) -> Option<&'a Value> {
    pointer[1..]
        .split_once('/')
        .map_or_else(|| summary.get(&pointer[1..]), |(outer, inner)| summary.get(outer)?.get(inner))
}
