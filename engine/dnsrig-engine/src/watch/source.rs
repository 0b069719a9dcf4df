//! A file of the kernel, opened once and read again and again.

use std::{fs::File, io};

use dnsrig_core::kernel_text::{self, Column, Place};

use super::metrics::Unit;

/// A value that is wanted from a file.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The number of its series (host, source, metric).
    pub series: u32,
    /// The first word of its line; empty for the first line.
    pub line: Vec<u8>,
    /// Which word of that line.
    pub column: Column,
    /// The unit that the kernel counts in.
    pub unit: Unit,
}

/// An open file, and what is wanted from it.
pub struct Source {
    file: File,
    wanted: Vec<Wanted>,
    /// Where each of `wanted` stands; both are sorted by it.
    places: Vec<Place>,
    /// What was read from each place last.
    values: Vec<Option<i64>>,
    user_hz: i64,
}

impl Source {
    /// A source of nothing, so far.
    pub fn new(file: File, user_hz: i64) -> Self {
        Source { file, wanted: Vec::new(), places: Vec::new(), values: Vec::new(), user_hz }
    }

    /// The series that come from here.
    pub fn series(&self) -> impl Iterator<Item = u32> {
        self.wanted.iter().map(|wanted| wanted.series)
    }

    /// Whether nothing comes from here.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Adds a value, if `text`, the file's content, has it.
    pub fn add_if_there(&mut self, text: &[u8], wanted: impl FnOnce() -> Wanted, line: &str, column: Column) -> bool {
        let there = kernel_text::locate(text, line.as_bytes(), column).is_some();
        if there {
            self.wanted.push(wanted());
            self.locate(text);
        }
        there
    }

    /// What the file has now, as [`kernel_text::content`] reads it.
    pub fn content<'a>(&self, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
        kernel_text::content(&self.file, buffer)
    }

    /// Reads the file and calls `found` with the series and the value of all that is there.
    pub fn sample(&mut self, buffer: &mut [u8], mut found: impl FnMut(u32, i64)) -> io::Result<()> {
        let text = self.content(buffer)?;
        if !self.read_places(text) {
            self.locate(text);
            self.read_places(text);
        }
        for (wanted, value) in self.wanted.iter().zip(&self.values) {
            if let Some(value) = value {
                found(wanted.series, convert(*value, wanted.unit, self.user_hz));
            }
        }
        Ok(())
    }

    /// Reads all values from their places. False if one was not there.
    fn read_places(&mut self, text: &[u8]) -> bool {
        let Source { wanted, places, values, .. } = self;
        values.fill(None);
        let wanted = places.iter().copied().zip(wanted.iter().map(|wanted| wanted.line.as_slice()));
        kernel_text::read(text, wanted, |index, value| values[index] = Some(value))
    }

    /// Finds all places anew; what is gone gets a place that no file has.
    fn locate(&mut self, text: &[u8]) {
        const NOWHERE: Place = Place { line: usize::MAX, word: 0 };
        let place = |wanted: &Wanted| kernel_text::locate(text, &wanted.line, wanted.column).unwrap_or(NOWHERE);
        self.wanted.sort_by_cached_key(|wanted| {
            let place = place(wanted);
            (place.line, place.word)
        });
        self.places = self.wanted.iter().map(place).collect();
        self.values.resize(self.wanted.len(), None);
    }
}

/// A value in the metric's unit.
fn convert(value: i64, unit: Unit, user_hz: i64) -> i64 {
    match unit {
        Unit::Same => value,
        Unit::Nanoseconds => value / 1000,
        Unit::Ticks => value.saturating_mul(1_000_000 / user_hz),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn wanted(series: u32, line: &str) -> Wanted {
        Wanted { series, line: line.into(), column: Column::At(1), unit: Unit::Same }
    }

    fn sample(source: &mut Source) -> Vec<(u32, i64)> {
        let mut found = Vec::new();
        source.sample(&mut [0; 4096], |series, value| found.push((series, value))).unwrap();
        found
    }

    #[test]
    fn it_follows_a_file_whose_lines_move_come_and_go() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        fs::write(&path, "a 1\nb 2\n").unwrap();
        let mut source = Source::new(File::open(&path).unwrap(), 100);
        for (series, line) in [(7, "b"), (5, "a")] {
            assert!(source.add_if_there(b"a 1\nb 2\n", || wanted(series, line), line, Column::At(1)));
        }
        assert!(!source.add_if_there(b"a 1\nb 2\n", || wanted(9, "c"), "c", Column::At(1)));
        assert_eq!(sample(&mut source), [(5, 1), (7, 2)]);
        fs::write(&path, "new 9\nb 4\na 3\n").unwrap();
        assert_eq!(sample(&mut source), [(7, 4), (5, 3)]);
        fs::write(&path, "b 5\n").unwrap();
        assert_eq!(sample(&mut source), [(7, 5)]);
        fs::write(&path, "b 6\na 7\n").unwrap();
        assert_eq!(sample(&mut source), [(7, 6), (5, 7)]);
    }

    #[test]
    fn units_become_microseconds() {
        assert_eq!(convert(1999, Unit::Nanoseconds, 100), 1);
        assert_eq!(convert(3, Unit::Ticks, 100), 30_000);
        assert_eq!(convert(i64::MAX, Unit::Ticks, 100), i64::MAX);
    }
}
