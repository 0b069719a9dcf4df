//! Row files: Arrow IPC streams, readable up to the last batch whatever happens to the writer.
//!
//! A file is declared as [`Columns`]: names, and functions that take a value from a row. The type of the value is the
//! type of the column.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt8Array,
    UInt16Array, UInt32Array, UInt64Array, types::Int32Type,
};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};

use super::failure::Advice;

/// A file that is written from all its rows at once gets batches of so many: with ten columns about 4 MB.
const BATCH_ROWS: usize = 65_536;

/// A row file could not be made or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write rows to {}: {source}", path.display())]
pub struct RowsError {
    path: PathBuf,
    source: ArrowError,
}

impl Advice for RowsError {
    fn hint(&self) -> String {
        "give --out a path in a directory that exists, with room left (df), and writable for you".into()
    }
}

/// The columns of a file of `Row`s.
pub struct Columns<'a, Row> {
    fields: Vec<Field>,
    arrays: Vec<ToArray<'a, Row>>,
}

type ToArray<'a, Row> = Box<dyn Fn(&[Row]) -> ArrayRef + Send + 'a>;

/// What a column can hold.
pub trait Value {
    type Array: Array + FromIterator<Option<Self>> + 'static
    where
        Self: Sized;
    const TYPE: DataType;
}

macro_rules! values {
    ($($rust:ty: $array:ty, $kind:ident;)*) => {$(
        impl Value for $rust {
            type Array = $array;
            const TYPE: DataType = DataType::$kind;
        }
    )*};
}

values! {
    bool: BooleanArray, Boolean;
    u8: UInt8Array, UInt8;
    u16: UInt16Array, UInt16;
    u32: UInt32Array, UInt32;
    u64: UInt64Array, UInt64;
    i64: Int64Array, Int64;
    String: StringArray, Utf8;
}

/// None yet.
impl<Row> Default for Columns<'_, Row> {
    fn default() -> Self {
        Columns { fields: Vec::new(), arrays: Vec::new() }
    }
}

impl<'a, Row> Columns<'a, Row> {
    /// Adds a column with a value in every row.
    pub fn value<T: Value>(self, name: &str, value: impl Fn(&Row) -> T + Send + 'a) -> Self {
        let array = move |rows: &[Row]| Arc::new(rows.iter().map(|row| Some(value(row))).collect::<T::Array>()) as _;
        self.add(Field::new(name, T::TYPE, false), array)
    }

    /// Adds a column that is null in some rows.
    pub fn optional<T: Value>(self, name: &str, value: impl Fn(&Row) -> Option<T> + Send + 'a) -> Self {
        let array = move |rows: &[Row]| Arc::new(rows.iter().map(&value).collect::<T::Array>()) as _;
        self.add(Field::new(name, T::TYPE, true), array)
    }

    /// Adds a column of few distinct words, as keys (int32) into a dictionary: `place` says which of `known` it is.
    pub fn word<W: AsRef<str>>(
        self,
        name: &str,
        known: impl IntoIterator<Item = W>,
        place: impl Fn(&Row) -> usize + Send + 'a,
    ) -> Self {
        // One dictionary for all batches: it is written once.
        let known = Arc::new(StringArray::from_iter_values(known));
        let array = move |rows: &[Row]| {
            let keys = Int32Array::from_iter_values(rows.iter().map(|row| place(row) as i32));
            Arc::new(DictionaryArray::<Int32Type>::new(keys, known.clone())) as _
        };
        self.add(dictionary_field(name), array)
    }

    /// As [`Columns::word`], for words that are not known before.
    pub fn free_word(self, name: &str, value: impl Fn(&Row) -> &str + Send + 'a) -> Self {
        let array = move |rows: &[Row]| {
            Arc::new(rows.iter().map(|row| Some(value(row))).collect::<DictionaryArray<Int32Type>>()) as _
        };
        self.add(dictionary_field(name), array)
    }

    fn add(mut self, field: Field, array: impl Fn(&[Row]) -> ArrayRef + Send + 'a) -> Self {
        self.fields.push(field);
        self.arrays.push(Box::new(array));
        self
    }
}

fn dictionary_field(name: &str) -> Field {
    Field::new(name, DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into()), false)
}

/// An open row file. Each batch goes to the file at once and as a whole.
pub struct RowFile<'a, Row> {
    path: PathBuf,
    schema: Arc<Schema>,
    columns: Columns<'a, Row>,
    writer: StreamWriter<File>,
}

impl<'a, Row> RowFile<'a, Row> {
    /// Makes the file (over an old one) and writes the schema, so that even a file without rows can be read.
    pub fn create(path: &Path, columns: Columns<'a, Row>) -> Result<Self, RowsError> {
        let failed = |source| RowsError { path: path.to_owned(), source };
        let schema = Arc::new(Schema::new(columns.fields.clone()));
        let file = File::create(path).map_err(|error| failed(error.into()))?;
        let writer = StreamWriter::try_new(file, &schema).map_err(failed)?;
        Ok(RowFile { path: path.to_owned(), schema, columns, writer })
    }

    /// Appends the rows as a batch.
    pub fn write(&mut self, rows: &[Row]) -> Result<(), RowsError> {
        let arrays = self.columns.arrays.iter().map(|array| array(rows)).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), arrays).expect("the arrays have the types of the fields");
        let written = self.writer.write(&batch).and_then(|()| self.writer.flush());
        written.map_err(|source| RowsError { path: self.path.clone(), source })
    }

    /// Ends the stream. Without it a reader sees all rows, and that the writer did not end in order.
    pub fn finish(mut self) -> Result<(), RowsError> {
        self.writer.finish().map_err(|source| RowsError { path: self.path.clone(), source })
    }
}

/// Writes a whole file.
pub fn write<'a, Row>(
    path: &Path,
    columns: Columns<'a, Row>,
    rows: impl IntoIterator<Item = Row>,
) -> Result<(), RowsError> {
    let mut file = RowFile::create(path, columns)?;
    let mut rows = rows.into_iter();
    loop {
        let some: Vec<Row> = rows.by_ref().take(BATCH_ROWS).collect();
        if some.is_empty() {
            return file.finish();
        }
        file.write(&some)?;
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{
        cast::AsArray,
        types::{Int64Type, UInt32Type},
    };
    use arrow_ipc::reader::StreamReader;

    use super::*;

    #[test]
    fn what_is_written_is_read_in_batches_with_types_nulls_and_words() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let columns = Columns::<u32>::default()
            .value("time_ns", |row| i64::from(*row) * 10)
            .optional("even", |row| row.is_multiple_of(2).then_some(*row))
            .word("third", ["zero", "one", "two"], |row| (*row % 3) as usize)
            .free_word("size", |row| if *row < 10 { "small" } else { "large" });
        write(&path, columns, 0..BATCH_ROWS as u32 + 5).unwrap();
        let file = StreamReader::try_new(File::open(&path).unwrap(), None).unwrap();
        assert_eq!(
            file.schema().fields().iter().map(|field| field.is_nullable()).collect::<Vec<_>>(),
            [false, true, false, false]
        );
        let batches: Vec<_> = file.collect::<Result<_, _>>().unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [BATCH_ROWS, 5]);
        let last = batches[1].slice(4, 1);
        let row = BATCH_ROWS as u32 + 4;
        assert_eq!(last.column(0).as_primitive::<Int64Type>().value(0), i64::from(row) * 10);
        assert_eq!(last.column(1).as_primitive::<UInt32Type>().value(0), row);
        assert!(batches[0].column(1).is_null(7));
        let word = |batch: &RecordBatch, column: usize, row: usize| {
            let words = batch.column(column).as_dictionary::<Int32Type>();
            words.values().as_string::<i32>().value(words.key(row).unwrap()).to_owned()
        };
        assert_eq!([word(&batches[0], 2, 5), word(&last, 2, 0)], ["two", ["zero", "one", "two"][row as usize % 3]]);
        assert_eq!([word(&batches[0], 3, 5), word(&last, 3, 0)], ["small", "large"]);
    }
}
