//! `samples.arrow`: a row is a value of a series.

use std::{path::Path, sync::Arc};

use arrow_array::{DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray, types::Int32Type};
use arrow_schema::{ArrowError, DataType, Field, Schema};

use super::buffers::Rows;
use crate::base::{
    rows::{RowsError, dictionary_field},
    threads::ThreadError,
};

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

/// Makes the file and starts its writer. `rows_per_buffer` is what a second brings.
pub fn create(path: &Path, series: &[Series], rows_per_buffer: usize) -> Result<Rows<Row>, ThreadError<RowsError>> {
    let table = Table::new(series);
    let schema = table.schema.clone();
    Rows::create(path, &schema, rows_per_buffer, move |rows| table.batch(rows))
}

/// The words of the rows, as dictionaries that every batch shares.
struct Table {
    schema: Arc<Schema>,
    dictionaries: [Arc<StringArray>; 3],
    /// By series: the keys of host, source and metric.
    keys: Vec<[i32; 3]>,
}

impl Table {
    fn new(series: &[Series]) -> Self {
        let mut words: [Vec<String>; 3] = Default::default();
        let keys = series
            .iter()
            .map(|one| {
                let mut parts = [one.host.as_str(), one.source.as_str(), one.metric].into_iter();
                words.each_mut().map(|words| key_of(words, parts.next().unwrap_or_default()))
            })
            .collect();
        let mut fields: Vec<Field> = ["host", "source", "metric"].map(dictionary_field).into();
        fields.extend(["time_ns", "value"].map(|name| Field::new(name, DataType::Int64, false)));
        Table { schema: Arc::new(Schema::new(fields)), dictionaries: words.map(|words| Arc::new(words.into())), keys }
    }

    fn batch(&self, rows: &[Row]) -> Result<RecordBatch, ArrowError> {
        let column = |part: usize| {
            let keys: Int32Array = rows.iter().map(|row| Some(self.keys[row.series as usize][part])).collect();
            DictionaryArray::<Int32Type>::try_new(keys, self.dictionaries[part].clone()).map(Arc::new)
        };
        let times = Int64Array::from_iter_values(rows.iter().map(|row| row.time_ns));
        let values = Int64Array::from_iter_values(rows.iter().map(|row| row.value));
        let columns =
            vec![column(0)? as _, column(1)? as _, column(2)? as _, Arc::new(times) as _, Arc::new(values) as _];
        RecordBatch::try_new(self.schema.clone(), columns)
    }
}

fn key_of(words: &mut Vec<String>, word: &str) -> i32 {
    let known = words.iter().position(|known| known == word).unwrap_or_else(|| {
        words.push(word.to_owned());
        words.len() - 1
    });
    known as i32
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use arrow_array::{cast::AsArray, types::Int64Type};
    use arrow_ipc::reader::StreamReader;

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
        let batches: Vec<_> =
            StreamReader::try_new(File::open(&path).unwrap(), None).unwrap().collect::<Result<_, _>>().unwrap();
        let [batch] = &batches[..] else { panic!("one flush makes one batch") };
        let hosts = batch.column(0).as_dictionary::<Int32Type>().downcast_dict::<StringArray>().unwrap();
        assert_eq!(hosts.into_iter().map(Option::unwrap).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(batch.column(3).as_primitive::<Int64Type>().values(), &[110, 111]);
        assert_eq!(batch.column(4).as_primitive::<Int64Type>().values(), &[10, 11]);
    }
}
