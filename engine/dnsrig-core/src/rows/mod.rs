//! Row files: Arrow IPC streams, readable up to the last batch whatever happens to the writer.
//!
//! A file is declared as [`Columns`]: names, and functions that take a value from a row. The type of the value is the
//! type of the column. [`RowReader`] reads such files again.

mod batch;
mod decode;
mod encode;

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

pub use batch::{Batch, Column, Field, Kind, Value};
pub use decode::{ReadError, RowReader};

use super::failure::Failure;
use encode::{END, Encoder};

/// The rows of a batch, in a file that is written from all its rows at once: with ten columns about 4 MB.
pub const BATCH_ROWS: usize = 65_536;

/// The columns of a file of `Row`s.
pub struct Columns<'a, Row> {
    fields: Vec<Field>,
    columns: Vec<ToColumn<'a, Row>>,
}

type ToColumn<'a, Row> = Box<dyn Fn(&[Row]) -> Column + Send + 'a>;

/// No columns.
impl<Row> Default for Columns<'_, Row> {
    fn default() -> Self {
        Columns { fields: Vec::new(), columns: Vec::new() }
    }
}

impl<'a, Row> Columns<'a, Row> {
    /// Adds a column with a value in every row.
    pub fn value<T: Value>(self, name: &str, value: impl Fn(&Row) -> T + Send + 'a) -> Self {
        self.add(name, T::KIND, false, move |rows| T::column(each(rows, &value)))
    }

    /// Adds a column that is null in some rows.
    pub fn optional<T: Value>(self, name: &str, value: impl Fn(&Row) -> Option<T> + Send + 'a) -> Self {
        self.add(name, T::KIND, true, move |rows| Column::optional(each(rows, &value)))
    }

    /// Adds a column of few distinct words, as keys (int32) into a dictionary: `place` gives the index into `known`.
    pub fn word<W: AsRef<str>>(
        self,
        name: &str,
        known: impl IntoIterator<Item = W>,
        place: impl Fn(&Row) -> usize + Send + 'a,
    ) -> Self {
        // One dictionary for all batches: it is written once.
        let known = Arc::new(known.into_iter().map(|word| word.as_ref().to_owned()).collect());
        let column = move |rows: &[Row]| Column::words(each(rows, |row| place(row) as u32), Arc::clone(&known));
        self.add(name, Kind::Word, false, column)
    }

    /// Adds a column like [`Columns::word`] does, for words that are not known before.
    pub fn free_word(self, name: &str, value: impl Fn(&Row) -> &str + Send + 'a) -> Self {
        let column = move |rows: &[Row]| Column::free_words(rows.iter().map(&value));
        self.add(name, Kind::Word, false, column)
    }

    fn add(mut self, name: &str, kind: Kind, is_nullable: bool, column: impl Fn(&[Row]) -> Column + Send + 'a) -> Self {
        self.fields.push(Field { name: name.to_owned(), kind, is_nullable });
        self.columns.push(Box::new(column));
        self
    }
}

/// The value of each row. A loop, because the compiler makes one of it for every column of every file, and takes much
/// longer for a chain of iterators.
fn each<Row, T>(rows: &[Row], value: impl Fn(&Row) -> T) -> Vec<T> {
    let mut values = Vec::with_capacity(rows.len());
    for row in rows {
        values.push(value(row));
    }
    values
}

/// An open file of batches. Each batch goes to the file at once.
pub struct BatchFile {
    path: PathBuf,
    file: File,
    encoder: Encoder,
}

impl BatchFile {
    /// Makes the file (over an old one) and writes the schema, so that even a file without rows can be read.
    pub fn create(path: &Path, fields: &[Field]) -> Result<Self, Failure> {
        let file = File::create(path).map_err(|error| unwritten(path, &error))?;
        let mut file = BatchFile { path: path.to_owned(), file, encoder: Encoder::new(fields) };
        file.append(&encode::schema(fields))?;
        Ok(file)
    }

    /// Appends a batch with these fields.
    pub fn write(&mut self, batch: &Batch) -> Result<(), Failure> {
        let (messages, body) = self.encoder.batch(batch);
        let written = self.file.write_all(&messages).and_then(|()| self.file.write_all(body));
        written.map_err(|error| unwritten(&self.path, &error))
    }

    /// Ends the stream. Without it a reader sees all rows, and that the writer did not end in order.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.append(&END)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file.write_all(bytes).map_err(|error| unwritten(&self.path, &error))
    }
}

/// A row file could not be made or written.
fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::new(
        format!("cannot write rows to {}: {error}", path.display()),
        "give --out a path in an existing folder that you may write to, with free space (df)",
    )
}

/// An open file of `Row`s.
pub struct RowFile<'a, Row> {
    fields: Arc<[Field]>,
    columns: Vec<ToColumn<'a, Row>>,
    file: BatchFile,
}

impl<'a, Row> RowFile<'a, Row> {
    /// Makes the file: see [`BatchFile::create`].
    pub fn create(path: &Path, columns: Columns<'a, Row>) -> Result<Self, Failure> {
        let file = BatchFile::create(path, &columns.fields)?;
        Ok(RowFile { fields: columns.fields.into(), columns: columns.columns, file })
    }

    /// Appends the rows as a batch.
    pub fn write(&mut self, rows: &[Row]) -> Result<(), Failure> {
        let columns = self.columns.iter().map(|column| column(rows)).collect();
        self.file.write(&Batch::new(self.fields.clone(), columns, rows.len()))
    }

    /// Ends the stream: see [`BatchFile::finish`].
    pub fn finish(self) -> Result<(), Failure> {
        self.file.finish()
    }
}

/// Writes a whole file.
pub fn write<'a, Row>(
    path: &Path,
    columns: Columns<'a, Row>,
    rows: impl IntoIterator<Item = Row>,
) -> Result<(), Failure> {
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
    use super::*;

    fn read(path: &Path) -> Vec<Batch> {
        RowReader::new(&std::fs::read(path).unwrap()).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn what_is_written_is_read_in_batches_with_types_nulls_and_words() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let columns = Columns::<u32>::default()
            .value("time_ns", |row| i64::from(*row) * 10)
            .optional("even", |row| row.is_multiple_of(2).then_some(*row))
            .word("third", ["zero", "one", "two"], |row| (*row % 3) as usize)
            .free_word("size", |row| if *row < 10 { "small" } else { "large" });
        write(&path, columns, 0..BATCH_ROWS as u32 + 5).unwrap();
        let batches = read(&path);
        assert_eq!(
            batches[0].fields().iter().map(|field| field.is_nullable).collect::<Vec<_>>(),
            [false, true, false, false]
        );
        assert_eq!(batches.iter().map(Batch::rows).collect::<Vec<_>>(), [BATCH_ROWS, 5]);
        let row = BATCH_ROWS as u32 + 4;
        assert_eq!(batches[1].values::<i64>("time_ns").unwrap()[4], i64::from(row) * 10);
        assert_eq!(batches[1].optional_values::<u32>("even").unwrap()[4], Some(row));
        assert_eq!(batches[0].optional_values::<u32>("even").unwrap()[7], None);
        let word = |batch: usize, name: &str, row: usize| batches[batch].values::<String>(name).unwrap()[row].clone();
        assert_eq!([word(0, "third", 5), word(1, "third", 4)], ["two", ["zero", "one", "two"][row as usize % 3]]);
        assert_eq!([word(0, "size", 5), word(1, "size", 4)], ["small", "large"]);
    }

    #[test]
    fn every_type_is_read_as_it_was_written_and_as_no_other() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let columns = Columns::<u8>::default()
            .value("flag", |row| *row == 7)
            .optional("maybe", |row| (*row > 3).then_some(*row == 7))
            .value("u8", |row| u8::MAX - row)
            .value("u16", |row| u16::MAX - u16::from(*row))
            .value("u32", |row| u32::MAX - u32::from(*row))
            .value("u64", |row| u64::MAX - u64::from(*row))
            .value("i64", |row| i64::MIN + i64::from(*row))
            .value("text", |row| "ä".repeat(usize::from(*row)))
            .optional("note", |row| (*row != 8).then(|| row.to_string()));
        let rows: Vec<u8> = (0..11).collect();
        write(&path, columns, rows.clone()).unwrap();
        let [batch] = &read(&path)[..] else { panic!("few rows are one batch") };
        assert_eq!(batch.values::<bool>("flag").unwrap(), rows.iter().map(|row| *row == 7).collect::<Vec<_>>());
        let maybe = batch.optional_values::<bool>("maybe").unwrap();
        assert_eq!(maybe, rows.iter().map(|row| (*row > 3).then_some(*row == 7)).collect::<Vec<_>>());
        assert!(batch.values::<u8>("u8").unwrap().into_iter().eq(rows.iter().map(|row| u8::MAX - row)));
        assert_eq!(batch.values::<u16>("u16").unwrap()[10], u16::MAX - 10);
        assert_eq!(batch.values::<u32>("u32").unwrap()[10], u32::MAX - 10);
        assert_eq!(batch.values::<u64>("u64").unwrap()[10], u64::MAX - 10);
        assert_eq!(batch.values::<i64>("i64").unwrap()[10], i64::MIN + 10);
        assert_eq!(batch.values::<String>("text").unwrap()[3], "äää");
        assert_eq!(batch.optional_values::<String>("note").unwrap()[8..], [None, Some("9".into()), Some("10".into())]);
        assert!(batch.values::<u64>("i64").is_none() && batch.values::<String>("note").is_none());
    }

    const WORDS: [&str; 3] = ["a", "b", "c"];

    /// A batch with a column of every type, for rows of these numbers. Row 3 is null in one of them.
    fn of_every_type(rows: &[u8]) -> Batch {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let columns = Columns::<u8>::default()
            .value("flag", |row| row % 2 == 1)
            .value("u8", |row| *row)
            .value("u16", |row| u16::from(*row) << 8)
            .value("u32", |row| u32::from(*row) << 24)
            .value("u64", |row| u64::from(*row) << 56)
            .value("i64", |row| -i64::from(*row))
            .value("text", |row| row.to_string())
            .optional("maybe", |row| (*row != 3).then_some(*row))
            .free_word("word", |row| WORDS[usize::from(*row % 3)]);
        write(&path, columns, rows.iter().copied()).unwrap();
        read(&path).remove(0)
    }

    fn assert_rows(batch: &Batch, rows: &[u8]) {
        assert_eq!(batch.rows(), rows.len());
        assert_eq!(batch.values::<bool>("flag").unwrap(), each(rows, |row| row % 2 == 1));
        assert_eq!(batch.values::<u8>("u8").unwrap(), rows);
        assert_eq!(batch.values::<u16>("u16").unwrap(), each(rows, |row| u16::from(*row) << 8));
        assert_eq!(batch.values::<u32>("u32").unwrap(), each(rows, |row| u32::from(*row) << 24));
        assert_eq!(batch.values::<u64>("u64").unwrap(), each(rows, |row| u64::from(*row) << 56));
        assert_eq!(batch.values::<i64>("i64").unwrap(), each(rows, |row| -i64::from(*row)));
        assert_eq!(batch.values::<String>("text").unwrap(), each(rows, u8::to_string));
        assert_eq!(batch.optional_values::<u8>("maybe").unwrap(), each(rows, |row| (*row != 3).then_some(*row)));
        assert_eq!(batch.values::<String>("word").unwrap(), each(rows, |row| WORDS[usize::from(*row % 3)]));
    }

    #[test]
    fn rows_are_taken_out_in_the_order_asked_for() {
        let whole = of_every_type(&[0, 1, 2, 3, 4, 5, 6]);
        for places in [&[][..], &[6], &[5, 0, 3, 3, 1]] {
            let rows: Vec<u8> = places.iter().map(|place| *place as u8).collect();
            assert_rows(&whole.take(places), &rows);
        }
    }

    #[test]
    fn rows_are_appended_with_their_nulls_and_new_words() {
        // No row is null; a row of the first batch; of the second; of both. The words are the same, others, or more.
        for (one, other) in
            [(&[0, 1][..], &[0, 4][..]), (&[3, 0], &[1]), (&[1], &[2, 3]), (&[3, 1], &[5, 3, 4]), (&[0], &[8, 7, 6, 7])]
        {
            let mut batch = of_every_type(one);
            batch.append(of_every_type(other));
            assert_rows(&batch, &[one, other].concat());
        }
    }

    #[test]
    fn words_are_written_again_only_when_they_change() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let columns = || Columns::<&str>::default().free_word("word", |row| row);
        let mut file = RowFile::create(&path, columns()).unwrap();
        let mut length = |rows: &[&'static str]| {
            let before = std::fs::metadata(&path).unwrap().len();
            file.write(rows).unwrap();
            std::fs::metadata(&path).unwrap().len() - before
        };
        let [first, same, other] = [["a", "b", "a"], ["a", "a", "b"], ["b", "b", "b"]].map(|rows| length(&rows));
        assert!(same < first && other > same);
        let words: Vec<_> = read(&path).iter().map(|batch| batch.values::<String>("word").unwrap().concat()).collect();
        assert_eq!(words, ["aba", "aab", "bbb"], "also without the end of the stream");
    }

    #[test]
    fn a_batch_that_was_not_written_to_its_end_is_an_error_behind_those_before_it() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let mut file = RowFile::create(&path, Columns::<i64>::default().value("time_ns", |row| *row)).unwrap();
        file.write(&[1, 2]).unwrap();
        let whole = std::fs::metadata(&path).unwrap().len() as usize;
        file.write(&[3]).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for end in whole + 1..bytes.len() {
            let mut batches = RowReader::new(&bytes[..end]).unwrap();
            assert_eq!(batches.next().unwrap().unwrap().values::<i64>("time_ns").unwrap(), [1, 2]);
            assert!(batches.next().unwrap().is_err());
        }
    }
}
