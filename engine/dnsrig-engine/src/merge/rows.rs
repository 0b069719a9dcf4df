//! Rows of all generators: of intervals, clients and bins of answers added where they are of the same, of queries
//! joined and sorted.

use std::{collections::BTreeMap, fs::File, panic::catch_unwind, path::Path, sync::Arc};

use arrow_array::{
    Array, ArrayRef, Int64Array, RecordBatch, UInt32Array, UInt64Array,
    cast::AsArray,
    types::{Int64Type, UInt32Type, UInt64Type},
};
use arrow_buffer::Buffer;
use arrow_ipc::{reader::StreamDecoder, writer::StreamWriter};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use arrow_select::{concat::concat_batches, take::take_record_batch};

use super::{
    error::MergeError,
    generator::{Generator, TIME_NS_MAX},
};

/// Files whose rows are added.
const ADDED: [&str; 3] = ["intervals.arrow", "clients.arrow", "answers.arrow"];

/// A row a query, where these were wanted.
const QUERIES: &str = "queries.arrow";

/// Moments of a query; its latency is none.
const MOMENTS: [&str; 2] = ["due_ns", "sent_ns"];

/// So many rows are written at once.
const BATCH_ROWS: usize = 65_536;

/// What becomes of a column where several generators have a row of the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// It tells which row it is, and is a moment.
    Moment,
    /// It tells which row it is.
    Key,
    Add,
    Largest,
    /// The moment of what came first; 0: nothing came.
    First,
    /// The moment of what came last; 0: nothing came.
    Last,
}

fn rule(column: &str) -> Rule {
    match column {
        "start_ns" | "time_ns" => Rule::Moment,
        "client" => Rule::Key,
        "duration_ns" | "busy_ns" | "max_ns" | "p50_ns" | "p99_ns" | "class" => Rule::Largest,
        "first_ns" => Rule::First,
        "last_ns" => Rule::Last,
        _ => Rule::Add,
    }
}

impl Rule {
    /// A value as the clock of the first generator has it.
    fn moved(self, value: i64, shift_ns: i64) -> Option<i64> {
        match self {
            Rule::Moment => moved(value, shift_ns),
            Rule::First | Rule::Last if value != 0 => moved(value, shift_ns),
            _ => Some(value),
        }
    }

    fn together(self, one: i64, other: i64) -> i64 {
        match self {
            Rule::Moment | Rule::Key => one,
            Rule::Add => one.saturating_add(other),
            Rule::First if one == 0 || other == 0 => one.max(other),
            Rule::First => one.min(other),
            Rule::Largest | Rule::Last => one.max(other),
        }
    }
}

fn moved(time_ns: i64, shift_ns: i64) -> Option<i64> {
    (0..TIME_NS_MAX).contains(&time_ns).then(|| time_ns + shift_ns)
}

/// Writes the rows of all.
pub fn merge(generators: &[Generator], out: &Path) -> Result<(), MergeError> {
    for name in ADDED {
        add(generators, name, out)?;
    }
    if generators.iter().any(|generator| generator.dir.join(QUERIES).exists()) { join(generators, out) } else { Ok(()) }
}

/// Rows of one kind, by what tells which they are.
#[derive(Default)]
struct Sums {
    schema: Option<SchemaRef>,
    rules: Vec<Rule>,
    rows: BTreeMap<Vec<i64>, Vec<i64>>,
}

fn add(generators: &[Generator], name: &str, out: &Path) -> Result<(), MergeError> {
    let mut sums = Sums::default();
    for generator in generators {
        let shift_ns = generator.shift_ns();
        let added = read(generator.file(name)?).and_then(|(schema, batches)| sums.add(schema, &batches, shift_ns));
        added.map_err(|error| generator.damaged(name, error))?;
    }
    let path = out.join(name);
    let written = sums.batch().and_then(|batch| write(&path, &batch.schema(), [Ok(batch)]));
    written.map_err(|error| MergeError::Write(path, error.to_string()))
}

impl Sums {
    fn add(&mut self, schema: SchemaRef, batches: &[RecordBatch], shift_ns: i64) -> Result<(), ArrowError> {
        same_columns(&mut self.schema, &schema)?;
        self.rules = schema.fields().iter().map(|field| rule(field.name())).collect();
        for batch in batches {
            let columns = batch.columns().iter().map(numbers).collect::<Result<Vec<_>, _>>()?;
            for row in 0..batch.num_rows() {
                let values = self.rules.iter().zip(&columns).map(|(rule, column)| rule.moved(column[row], shift_ns));
                let values: Option<Vec<_>> = values.collect();
                self.count(values.ok_or_else(|| ArrowError::ParseError("a time in it cannot be".into()))?);
            }
        }
        Ok(())
    }

    fn count(&mut self, values: Vec<i64>) {
        let is_key = |rule: &Rule| matches!(rule, Rule::Moment | Rule::Key);
        let key = self.rules.iter().zip(&values).filter(|(rule, _)| is_key(rule)).map(|(_, value)| *value).collect();
        match self.rows.get_mut(&key) {
            Some(row) => {
                for ((mine, other), rule) in row.iter_mut().zip(values).zip(&self.rules) {
                    *mine = rule.together(*mine, other);
                }
            }
            None => {
                self.rows.insert(key, values);
            }
        }
    }

    fn batch(&self) -> Result<RecordBatch, ArrowError> {
        let schema = self.schema.clone().expect("there is a generator");
        let column = |(at, field): (usize, &Arc<arrow_schema::Field>)| -> ArrayRef {
            let values = self.rows.values().map(|row| row[at]);
            match field.data_type() {
                DataType::UInt32 => Arc::new(UInt32Array::from_iter_values(values.map(|value| value as u32))),
                DataType::UInt64 => Arc::new(UInt64Array::from_iter_values(values.map(i64::cast_unsigned))),
                _ => Arc::new(Int64Array::from_iter_values(values)),
            }
        };
        RecordBatch::try_new(schema.clone(), schema.fields().iter().enumerate().map(column).collect())
    }
}

/// The values of a column of whole numbers, of which all that is counted fits.
fn numbers(column: &ArrayRef) -> Result<Vec<i64>, ArrowError> {
    if column.null_count() == 0 {
        match column.data_type() {
            DataType::Int64 => return Ok(column.as_primitive::<Int64Type>().values().to_vec()),
            DataType::UInt32 => {
                return Ok(column.as_primitive::<UInt32Type>().values().iter().copied().map(i64::from).collect());
            }
            DataType::UInt64 => {
                let values = column.as_primitive::<UInt64Type>().values().iter();
                let values: Option<Vec<_>> = values.map(|value| i64::try_from(*value).ok()).collect();
                if let Some(values) = values {
                    return Ok(values);
                }
            }
            _ => {}
        }
    }
    Err(ArrowError::SchemaError("a column has something else than whole numbers".into()))
}

/// Joins the rows of queries in the order in which they were due.
fn join(generators: &[Generator], out: &Path) -> Result<(), MergeError> {
    let (mut known, mut all) = (None, Vec::new());
    for generator in generators {
        let shift_ns = generator.shift_ns();
        let moved = read(generator.file(QUERIES)?).and_then(|(schema, batches)| {
            same_columns(&mut known, &schema)?;
            batches.iter().map(|batch| move_moments(batch, shift_ns)).collect::<Result<Vec<_>, _>>()
        });
        all.extend(moved.map_err(|error| generator.damaged(QUERIES, error))?);
    }
    let path = out.join(QUERIES);
    let schema = known.expect("there is a generator");
    let written = concat_batches(&schema, &all).and_then(|rows| {
        drop(all);
        write(&path, &schema, sorted(&rows)?)
    });
    written.map_err(|error| MergeError::Write(path.clone(), error.to_string()))
}

fn move_moments(batch: &RecordBatch, shift_ns: i64) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns()).map(|(field, column)| -> Result<ArrayRef, ArrowError> {
        if !MOMENTS.contains(&field.name().as_str()) {
            return Ok(column.clone());
        }
        let wrong = || ArrowError::ParseError(format!("a {} in it cannot be", field.name()));
        let times = column.as_primitive_opt::<Int64Type>().ok_or_else(wrong)?;
        Ok(Arc::new(times.try_unary::<_, Int64Type, _>(|time_ns| moved(time_ns, shift_ns).ok_or_else(wrong))?))
    });
    RecordBatch::try_new(schema.clone(), columns.collect::<Result<_, _>>()?)
}

/// The same rows by their due time, a batch at a time.
fn sorted(rows: &RecordBatch) -> Result<impl Iterator<Item = Result<RecordBatch, ArrowError>> + use<'_>, ArrowError> {
    let due = rows.column_by_name(MOMENTS[0]).and_then(|column| column.as_primitive_opt::<Int64Type>());
    let due = due.ok_or_else(|| ArrowError::SchemaError("queries have no due_ns".into()))?;
    let mut order: Vec<u64> = (0..rows.num_rows() as u64).collect();
    order.sort_by_key(|row| due.value(*row as usize));
    let order = UInt64Array::from(order);
    let starts = (0..rows.num_rows()).step_by(BATCH_ROWS);
    Ok(starts.map(move |start| {
        let some = order.slice(start, BATCH_ROWS.min(order.len() - start));
        take_record_batch(rows, &some)
    }))
}

/// All batches of a file. A damaged one may make the decoder panic, which is an error here.
fn read(file: Vec<u8>) -> Result<(SchemaRef, Vec<RecordBatch>), ArrowError> {
    let damaged = |_| Err(ArrowError::IpcError("it is damaged".into()));
    catch_unwind(|| decode(file)).unwrap_or_else(damaged)
}

/// No length that it tells is believed: only what is there is read.
fn decode(file: Vec<u8>) -> Result<(SchemaRef, Vec<RecordBatch>), ArrowError> {
    let (mut left, mut decoder, mut batches) = (Buffer::from_vec(file), StreamDecoder::new(), Vec::new());
    while let Some(batch) = decoder.decode(&mut left)? {
        batches.push(batch);
    }
    decoder.finish()?;
    let schema = decoder.schema().ok_or_else(|| ArrowError::IpcError("it is empty".into()))?;
    Ok((schema, batches))
}

fn same_columns(known: &mut Option<SchemaRef>, schema: &SchemaRef) -> Result<(), ArrowError> {
    if known.get_or_insert_with(|| schema.clone()) == schema {
        return Ok(());
    }
    Err(ArrowError::SchemaError("it has other columns than that of the first directory".into()))
}

fn write(
    path: &Path,
    schema: &SchemaRef,
    batches: impl IntoIterator<Item = Result<RecordBatch, ArrowError>>,
) -> Result<(), ArrowError> {
    let file = File::create(path).map_err(|error| ArrowError::IoError(error.to_string(), error))?;
    let mut writer = StreamWriter::try_new(file, schema)?;
    for batch in batches {
        writer.write(&batch?)?;
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayAccessor, StringArray, types::Int32Type};
    use proptest::prelude::*;

    use super::{super::testing, *};
    use crate::base::{
        rows::{self, Columns},
        testing::{harm, harms, inputs},
    };

    /// Time, client, answered, largest, first, last.
    type Row = (i64, u32, u64, i64, i64, i64);

    fn file(given: &[Row]) -> Vec<u8> {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let columns = Columns::<Row>::default()
            .value("time_ns", |row| row.0)
            .value("client", |row| row.1)
            .value("answered", |row| row.2)
            .value("max_ns", |row| row.3)
            .value("first_ns", |row| row.4)
            .value("last_ns", |row| row.5);
        rows::write(&path, columns, given.iter().copied()).unwrap();
        std::fs::read(&path).unwrap()
    }

    fn added(files: impl IntoIterator<Item = (Vec<u8>, i64)>) -> Result<Vec<Vec<i64>>, ArrowError> {
        let mut sums = Sums::default();
        for (file, shift_ns) in files {
            let (schema, batches) = read(file)?;
            sums.add(schema, &batches, shift_ns)?;
        }
        let batch = sums.batch()?;
        let columns: Vec<_> = batch.columns().iter().map(|column| numbers(column).unwrap()).collect();
        Ok((0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row]).collect()).collect())
    }

    #[test]
    fn rows_of_the_same_time_and_client_are_added_by_the_clock_of_the_first_and_others_joined() {
        let first = file(&[(1_000, 1, 5, 70, 1_001, 1_009), (1_010, 1, 1, 10, 0, 0)]);
        let second =
            file(&[(51_000, 1, 2, 90, 51_000, 51_004), (51_010, 1, 1, 5, 51_012, 51_013), (51_000, 2, 9, 1, 0, 0)]);
        let rows = added([(first, 0), (second, -50_000)]).unwrap();
        assert_eq!(
            rows,
            [vec![1_000, 1, 7, 90, 1_000, 1_009], vec![1_000, 2, 9, 1, 0, 0], vec![1_010, 1, 2, 10, 1_012, 1_013],]
        );
    }

    #[test]
    fn queries_are_sorted_by_when_they_were_due_with_nulls_and_words() {
        let folder = tempfile::tempdir().unwrap();
        let generators = [0, 1].map(|number| {
            let mut generator = testing::generator(number);
            generator.dir = folder.path().join(number.to_string());
            std::fs::create_dir(&generator.dir).unwrap();
            let start_ns = generator.facts.start_ns;
            let columns = Columns::<i64>::default()
                .value("due_ns", move |row| start_ns + row)
                .optional("sent_ns", move |row| (*row % 3 > 0).then_some(start_ns + row + 1))
                .optional("latency_ns", |row| (*row % 3 > 0).then_some(*row))
                .word("outcome", ["even", "odd"], |row| (*row % 2) as usize);
            // Two threads, one behind the other.
            let number = number as i64;
            let rows = (0..50_000).map(|row| row * 4 + number).chain((0..50_000).map(|row| row * 4 + 2 + number));
            rows::write(&generator.dir.join(QUERIES), columns, rows).unwrap();
            generator
        });
        join(&generators, folder.path()).unwrap();
        let (schema, batches) = read(std::fs::read(folder.path().join(QUERIES)).unwrap()).unwrap();
        let all = concat_batches(&schema, &batches).unwrap();
        let [due, sent, latency] = [0, 1, 2].map(|at| all.column(at).as_primitive::<Int64Type>().clone());
        assert!(due.values().iter().copied().eq(0..200_000));
        let words = all.column(3).as_dictionary::<Int32Type>();
        let words = words.downcast_dict::<StringArray>().unwrap();
        for row in 0..200_000 {
            let expected = (row % 3 > 0).then_some(row as i64);
            assert_eq!(latency.is_valid(row).then(|| latency.value(row)), expected);
            assert_eq!(sent.is_valid(row).then(|| sent.value(row) - 1), expected);
            assert_eq!(words.value(row), ["even", "odd"][row % 2]);
        }
    }

    #[test]
    fn a_file_of_other_columns_or_without_its_end_is_an_error() {
        let whole = file(&[(1, 1, 1, 1, 1, 1)]);
        let other = generator_file_of_one_column();
        assert!(added([(whole.clone(), 0), (other, 0)]).unwrap_err().to_string().contains("other columns"));
        assert!(added([(whole[..whole.len() - 20].to_vec(), 0)]).is_err());
        assert!(added([(Vec::new(), 0)]).is_err());
    }

    fn generator_file_of_one_column() -> Vec<u8> {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        rows::write(&path, Columns::<i64>::default().value("time_ns", |row| *row), [1]).unwrap();
        std::fs::read(&path).unwrap()
    }

    proptest! {
        #![proptest_config(inputs(256))]

        #[test]
        fn a_damaged_file_is_an_error_or_other_rows(
            rows in prop::collection::vec((0..9_i64, 0..3_u32, 0..9_u64, 0..9_i64, 0..9_i64, 0..9_i64), 0..5),
            harms in prop::collection::vec(harms(), 1..4),
        ) {
            let mut file = file(&rows);
            harms.into_iter().for_each(|one| harm(&mut file, one));
            let _ = added([(file, 1)]);
        }
    }
}
