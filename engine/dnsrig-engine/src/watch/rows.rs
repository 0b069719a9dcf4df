//! `samples.arrow`: a row is a value of a series.

use std::path::Path;

use dnsrig_core::{failure::Failure, row_writer::RowWriter, rows::Columns};

/// What a row is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The host, or `machine`.
    pub host: String,
    /// The part of it: `cgroup`, `tcp`, `link:eth0` …
    pub source: String,
    /// The metric.
    pub metric: &'static str,
}

/// A value of a series at a time.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The number of the series.
    pub series: u32,
    /// When it was read, in monotonic nanoseconds.
    pub time_ns: i64,
    /// The value.
    pub value: i64,
}

/// Makes the file and starts its writer. `buffer_rows` is what a second brings.
pub fn create(path: &Path, series: &[Series], buffer_rows: usize) -> Result<RowWriter<Row>, Failure> {
    let words = |part: fn(&Series) -> &str| {
        let mut words = Vec::new();
        let places: Vec<usize> = series.iter().map(|one| place_of(&mut words, part(one))).collect();
        (words, move |row: &Row| places[row.series as usize])
    };
    let [host, source, metric] = [words(|one| &one.host), words(|one| &one.source), words(|one| one.metric)];
    let columns = Columns::default()
        .word("host", host.0, host.1)
        .word("source", source.0, source.1)
        .word("metric", metric.0, metric.1)
        .value("time_ns", |row| row.time_ns)
        .value("value", |row| row.value);
    RowWriter::create(path, columns, buffer_rows)
}

fn place_of(words: &mut Vec<String>, word: &str) -> usize {
    words.iter().position(|known| known == word).unwrap_or_else(|| {
        words.push(word.to_owned());
        words.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use dnsrig_testing::batches;

    use super::*;

    fn series() -> Vec<Series> {
        [("a", "tcp", "x"), ("b", "tcp", "y")]
            .map(|(host, source, metric)| Series { host: host.into(), source: source.into(), metric })
            .into()
    }

    #[test]
    fn rows_come_back_as_they_were_and_what_has_no_room_is_counted() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let mut rows = create(&path, &series(), 2).unwrap();
        for value in [10, 11, 12] {
            rows.push(Row { series: (value % 2) as u32, time_ns: value + 100, value });
        }
        assert_eq!(rows.finish().unwrap(), (2, 1));
        let [batch] = &batches(&path)[..] else { panic!("one flush makes one batch") };
        assert_eq!(batch.values::<String>("host").unwrap(), ["a", "b"]);
        assert_eq!(batch.values::<i64>("time_ns").unwrap(), [110, 111]);
        assert_eq!(batch.values::<i64>("value").unwrap(), [10, 11]);
    }
}
