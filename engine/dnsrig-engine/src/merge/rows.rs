//! Rows of all generators: of intervals, clients and bins of answers added where they are of the same, of queries
//! joined and sorted.

use std::{borrow::Borrow, collections::BTreeMap, path::Path, sync::Arc};

use dnsrig_core::{
    failure::Failure,
    output::WRITE_HINT,
    rows::{BATCH_ROWS, Batch, BatchFile, Column, Field, Kind, RowReader, Value},
};

use super::generator::{Generator, TIME_NS_MAX};

/// Files whose rows are added.
pub const ADDED: [&str; 3] = ["intervals.arrow", "clients.arrow", "answers.arrow"];

/// A row a query, where these were wanted.
pub const QUERIES: &str = "queries.arrow";

/// Columns of a query that are times of a clock; its latency is not.
const MOMENTS: [&str; 2] = [DUE, "sent_ns"];

/// What queries are sorted by.
const DUE: &str = "due_ns";

const NOT_WHOLE: &str = "a column contains something other than whole numbers";

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
pub fn merge(generators: &[Generator], out: &Path) -> Result<(), Failure> {
    for name in ADDED {
        add(generators, name, out)?;
    }
    if generators.iter().any(|generator| generator.dir.join(QUERIES).exists()) { join(generators, out) } else { Ok(()) }
}

/// Rows of one kind, by what tells which they are.
#[derive(Default)]
struct Sums {
    fields: Option<Arc<[Field]>>,
    rules: Vec<Rule>,
    rows: BTreeMap<Vec<i64>, Vec<i64>>,
}

fn add(generators: &[Generator], name: &str, out: &Path) -> Result<(), Failure> {
    let mut sums = Sums::default();
    for generator in generators {
        let added = sums.add(&generator.file(name)?, generator.shift_ns());
        added.map_err(|error| generator.damaged(name, error))?;
    }
    let batch = sums.batch();
    write(&out.join(name), batch.fields(), [&batch])
}

impl Sums {
    fn add(&mut self, file: &[u8], shift_ns: i64) -> Result<(), String> {
        let batches = RowReader::new(file).map_err(text)?;
        same_columns(&mut self.fields, batches.fields())?;
        self.rules = batches.fields().iter().map(|field| rule(&field.name)).collect();
        for batch in batches {
            let batch = batch.map_err(text)?;
            let columns = batch.columns().iter().map(numbers).collect::<Option<Vec<_>>>().ok_or(NOT_WHOLE)?;
            for row in 0..batch.rows() {
                let values = self.rules.iter().zip(&columns).map(|(rule, column)| rule.moved(column[row], shift_ns));
                let values: Option<Vec<_>> = values.collect();
                self.count(values.ok_or("it contains an impossible time")?);
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

    fn batch(&self) -> Batch {
        let fields = self.fields.clone().expect("there is a generator");
        let column = |(at, field): (usize, &Field)| {
            let values = self.rows.values().map(|row| row[at]);
            match field.kind {
                Kind::U32 => u32::column(values.map(|value| value as u32).collect()),
                Kind::U64 => u64::column(values.map(i64::cast_unsigned).collect()),
                _ => i64::column(values.collect()),
            }
        };
        let columns = fields.iter().enumerate().map(column).collect();
        Batch::new(fields, columns, self.rows.len())
    }
}

/// The values of a column of whole numbers, if all fit into an i64: everything that is counted does.
fn numbers(column: &Column) -> Option<Vec<i64>> {
    let from_u32 = || Some(column.values::<u32>()?.into_iter().map(i64::from).collect());
    let from_u64 = || column.values::<u64>()?.into_iter().map(|value| i64::try_from(value).ok()).collect();
    column.values().or_else(from_u32).or_else(from_u64)
}

/// Joins the rows of queries in the order in which they were due.
fn join(generators: &[Generator], out: &Path) -> Result<(), Failure> {
    let (mut fields, mut all) = (None, None);
    for generator in generators {
        let joined = append(&mut fields, &mut all, &generator.file(QUERIES)?, generator.shift_ns());
        joined.map_err(|error| generator.damaged(QUERIES, error))?;
    }
    let (path, fields) = (out.join(QUERIES), fields.expect("there is a generator"));
    match &all {
        Some(all) => write(&path, &fields, order(all).chunks(BATCH_ROWS).map(|rows| all.take(rows)))?,
        None => write(&path, &fields, [] as [Batch; 0])?,
    }
    Ok(())
}

/// Appends the rows of a file, with their moments moved.
fn append(
    fields: &mut Option<Arc<[Field]>>,
    all: &mut Option<Batch>,
    file: &[u8],
    shift_ns: i64,
) -> Result<(), String> {
    let batches = RowReader::new(file).map_err(text)?;
    same_columns(fields, batches.fields())?;
    let is_due = |field: &Field| field.name == DUE && field.kind == Kind::I64 && !field.is_nullable;
    if !batches.fields().iter().any(is_due) {
        return Err("queries have no due_ns".into());
    }
    for batch in batches {
        let batch = move_moments(batch.map_err(text)?, shift_ns)?;
        match all {
            Some(all) => all.append(batch),
            None => *all = Some(batch),
        }
    }
    Ok(())
}

fn move_moments(batch: Batch, shift_ns: i64) -> Result<Batch, String> {
    let (fields, rows) = (batch.fields().clone(), batch.rows());
    let columns = fields.iter().zip(batch.into_columns()).map(|(field, column)| -> Result<_, String> {
        if !MOMENTS.contains(&field.name.as_str()) {
            return Ok(column);
        }
        let wrong = || format!("it contains an impossible {}", field.name);
        let times = column.optional_values::<i64>().ok_or_else(wrong)?.into_iter();
        let times = times.map(|time| time.map(|time_ns| moved(time_ns, shift_ns).ok_or_else(wrong)).transpose());
        Ok(Column::optional(times.collect::<Result<_, _>>()?))
    });
    let columns = columns.collect::<Result<_, _>>()?;
    Ok(Batch::new(fields, columns, rows))
}

/// The rows by their due time.
fn order(rows: &Batch) -> Vec<usize> {
    let due = rows.values::<i64>(DUE).expect("it was looked for in the schema");
    let mut order: Vec<usize> = (0..rows.rows()).collect();
    order.sort_by_key(|row| due[*row]);
    order
}

fn same_columns(known: &mut Option<Arc<[Field]>>, fields: &Arc<[Field]>) -> Result<(), String> {
    if known.get_or_insert_with(|| fields.clone()) == fields {
        Ok(())
    } else {
        Err("its columns differ from those in the first folder".into())
    }
}

fn write(path: &Path, fields: &[Field], batches: impl IntoIterator<Item = impl Borrow<Batch>>) -> Result<(), Failure> {
    let write = || {
        let mut file = BatchFile::create(path, fields)?;
        for batch in batches {
            file.write(batch.borrow())?;
        }
        file.finish()
    };
    write().map_err(|failure: Failure| Failure { hint: WRITE_HINT.into(), ..failure })
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use dnsrig_core::rows::{self, Columns};
    use dnsrig_testing::{harm, harms, inputs};
    use proptest::prelude::*;

    use super::{super::testing, *};

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

    fn added(files: impl IntoIterator<Item = (Vec<u8>, i64)>) -> Result<Vec<Vec<i64>>, String> {
        let mut sums = Sums::default();
        for (file, shift_ns) in files {
            sums.add(&file, shift_ns)?;
        }
        let batch = sums.batch();
        let columns: Vec<_> = batch.columns().iter().map(|column| numbers(column).unwrap()).collect();
        Ok((0..batch.rows()).map(|row| columns.iter().map(|column| column[row]).collect()).collect())
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
        let file = std::fs::read(folder.path().join(QUERIES)).unwrap();
        let batches: Vec<_> = RowReader::new(&file).unwrap().map(Result::unwrap).collect();
        let [due, sent, latency] = ["due_ns", "sent_ns", "latency_ns"]
            .map(|name| column::<Option<i64>>(&batches, |batch| batch.optional_values(name)));
        let words = column(&batches, |batch| batch.values::<String>("outcome"));
        assert!(due.iter().copied().eq((0..200_000).map(Some)));
        for row in 0..200_000 {
            let expected = (row % 3 > 0).then_some(row as i64);
            assert_eq!(latency[row], expected);
            assert_eq!(sent[row].map(|sent_ns| sent_ns - 1), expected);
            assert_eq!(words[row], ["even", "odd"][row % 2]);
        }
    }

    fn column<T>(batches: &[Batch], of: impl Fn(&Batch) -> Option<Vec<T>>) -> Vec<T> {
        batches.iter().flat_map(|batch| of(batch).unwrap()).collect()
    }

    #[test]
    fn a_file_of_other_columns_or_without_its_end_is_an_error() {
        let whole = file(&[(1, 1, 1, 1, 1, 1)]);
        let other = generator_file_of_one_column();
        assert!(added([(whole.clone(), 0), (other, 0)]).unwrap_err().to_string().contains("its columns differ"));
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
