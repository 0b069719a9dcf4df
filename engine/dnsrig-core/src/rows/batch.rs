//! Batches: some rows, as columns in memory.

use std::{collections::HashMap, iter, sync::Arc};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I64,
    Text,
    /// One of few distinct words, stored once each.
    Word,
}

impl Kind {
    /// The bytes of a value in memory: a word has its place in the list of words. Texts have no fixed width.
    pub(super) fn width(self) -> usize {
        match self {
            Kind::Bool | Kind::U8 => 1,
            Kind::U16 => 2,
            Kind::U32 | Kind::Word => 4,
            Kind::U64 | Kind::I64 => 8,
            Kind::Text => 0,
        }
    }
}

/// The name and the type of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub kind: Kind,
    pub is_nullable: bool,
}

/// The values of a column, one for each row. A row that is null has some value, too.
#[derive(Clone, Debug)]
pub(super) enum Values {
    /// The little-endian bytes of each value. A flag is a byte, 0 or 1.
    Fixed(Vec<u8>),
    Text(Vec<String>),
    /// The little-endian bytes of each place (i32) in the list of words.
    Word(Vec<u8>, Arc<Vec<String>>),
}

/// A column of a batch.
#[derive(Clone, Debug)]
pub struct Column {
    pub(super) kind: Kind,
    pub(super) values: Values,
    /// Whether each row has a value. None: all have.
    pub(super) present: Option<Vec<bool>>,
}

/// A Rust type that a column can have.
pub trait Value: Default {
    const KIND: Kind;

    /// A column of these values.
    fn column(values: Vec<Self>) -> Column;

    #[doc(hidden)]
    fn read(column: &Column) -> Option<Vec<Self>>;
}

macro_rules! numbers {
    ($($rust:ty: $kind:ident),*) => {$(
        impl Value for $rust {
            const KIND: Kind = Kind::$kind;

            fn column(values: Vec<Self>) -> Column {
                Column::new(Kind::$kind, Values::Fixed(values.into_iter().flat_map(<$rust>::to_le_bytes).collect()))
            }

            fn read(column: &Column) -> Option<Vec<Self>> {
                match &column.values {
                    Values::Fixed(bytes) if column.kind == Kind::$kind => {
                        Some(bytes.as_chunks().0.iter().map(|bytes| <$rust>::from_le_bytes(*bytes)).collect())
                    }
                    _ => None,
                }
            }
        }
    )*};
}

numbers! { u8: U8, u16: U16, u32: U32, u64: U64, i64: I64 }

impl Value for bool {
    const KIND: Kind = Kind::Bool;

    fn column(values: Vec<Self>) -> Column {
        Column::new(Kind::Bool, Values::Fixed(values.into_iter().map(u8::from).collect()))
    }

    fn read(column: &Column) -> Option<Vec<Self>> {
        match &column.values {
            Values::Fixed(bytes) if column.kind == Kind::Bool => Some(bytes.iter().map(|byte| *byte != 0).collect()),
            _ => None,
        }
    }
}

/// Texts make a column of texts. Columns of words can be read as texts, too.
impl Value for String {
    const KIND: Kind = Kind::Text;

    fn column(values: Vec<Self>) -> Column {
        Column::new(Kind::Text, Values::Text(values))
    }

    fn read(column: &Column) -> Option<Vec<Self>> {
        match &column.values {
            Values::Text(texts) => Some(texts.clone()),
            // A row that is null may have a place in an empty list.
            Values::Word(places, words) => {
                Some(places_of(places).map(|place| words.get(place).cloned().unwrap_or_default()).collect())
            }
            Values::Fixed(_) => None,
        }
    }
}

/// The places in a column of words.
pub(super) fn places_of(bytes: &[u8]) -> impl Iterator<Item = usize> {
    bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes) as usize)
}

impl Column {
    fn new(kind: Kind, values: Values) -> Self {
        Column { kind, values, present: None }
    }

    /// A column in which some rows are null.
    pub fn optional<T: Value>(values: Vec<Option<T>>) -> Self {
        let present: Vec<bool> = values.iter().map(Option::is_some).collect();
        let column = T::column(values.into_iter().map(Option::unwrap_or_default).collect());
        Column { present: present.contains(&false).then_some(present), ..column }
    }

    /// A column of words, by the place of each in `words`.
    pub(super) fn words(places: Vec<u32>, words: Arc<Vec<String>>) -> Self {
        let bytes = places.into_iter().flat_map(u32::to_le_bytes).collect();
        Column::new(Kind::Word, Values::Word(bytes, words))
    }

    /// A column of words, listed in the order in which they first appear.
    pub(super) fn free_words<'a>(values: impl Iterator<Item = &'a str>) -> Self {
        let mut known = HashMap::new();
        let mut words = Vec::new();
        let mut place = |word: &'a str| {
            *known.entry(word).or_insert_with(|| {
                words.push(word.to_owned());
                words.len() as u32 - 1
            })
        };
        let places = values.map(&mut place).collect();
        Column::words(places, Arc::new(words))
    }

    /// All values. None if the column has another type, or if a row is null.
    pub fn values<T: Value>(&self) -> Option<Vec<T>> {
        if self.present.is_some() { None } else { T::read(self) }
    }

    /// The value of each row, where it has one. None if the column has another type.
    pub fn optional_values<T: Value>(&self) -> Option<Vec<Option<T>>> {
        let values = T::read(self)?.into_iter();
        Some(match &self.present {
            None => values.map(Some).collect(),
            Some(present) => values.zip(present).map(|(value, is_present)| is_present.then_some(value)).collect(),
        })
    }

    /// Appends a column of the same type. `rows`: of this one, and of the other one.
    fn append(&mut self, other: Column, rows: [usize; 2]) {
        if self.present.is_some() || other.present.is_some() {
            let present = self.present.get_or_insert_with(|| vec![true; rows[0]]);
            present.extend(other.present.unwrap_or_else(|| vec![true; rows[1]]));
        }
        match (&mut self.values, other.values) {
            (Values::Fixed(mine), Values::Fixed(others)) => mine.extend(others),
            (Values::Text(mine), Values::Text(others)) => mine.extend(others),
            (Values::Word(mine, words), Values::Word(others, other_words)) if *words == other_words => {
                mine.extend(others);
            }
            (Values::Word(mine, words), Values::Word(others, other_words)) => {
                let new_places = join(Arc::make_mut(words), &other_words);
                let place = |old: usize| new_places.get(old).copied().unwrap_or_default();
                mine.extend(places_of(&others).flat_map(|old| place(old).to_le_bytes()));
            }
            _ => unreachable!("the batches have the same fields"),
        }
    }

    /// The values of some rows, in this order.
    fn take(&self, rows: &[usize]) -> Self {
        let fixed = |bytes: &[u8]| match self.kind.width() {
            1 => gather::<1>(bytes, rows),
            2 => gather::<2>(bytes, rows),
            4 => gather::<4>(bytes, rows),
            _ => gather::<8>(bytes, rows),
        };
        let values = match &self.values {
            Values::Fixed(bytes) => Values::Fixed(fixed(bytes)),
            Values::Text(texts) => Values::Text(rows.iter().map(|row| texts[*row].clone()).collect()),
            Values::Word(bytes, words) => Values::Word(fixed(bytes), words.clone()),
        };
        let present = self.present.as_ref().map(|present| rows.iter().map(|row| present[*row]).collect());
        Column { kind: self.kind, values, present }
    }
}

/// The values of some rows, each of `WIDTH` bytes.
fn gather<const WIDTH: usize>(bytes: &[u8], rows: &[usize]) -> Vec<u8> {
    let (values, _) = bytes.as_chunks::<WIDTH>();
    rows.iter().flat_map(|row| values[*row]).collect()
}

/// Adds the words of `others` that `words` lacks. Gives the place of each word of `others`.
fn join(words: &mut Vec<String>, others: &[String]) -> Vec<u32> {
    let mut known: HashMap<String, u32> = words.iter().cloned().zip(0..).collect();
    let mut place = |word: &String| {
        *known.entry(word.clone()).or_insert_with(|| {
            words.push(word.clone());
            words.len() as u32 - 1
        })
    };
    others.iter().map(&mut place).collect()
}

/// Rows that were written together, as columns.
#[derive(Clone, Debug)]
pub struct Batch {
    fields: Arc<[Field]>,
    columns: Vec<Column>,
    rows: usize,
}

impl Batch {
    /// A batch of columns that have the types of the fields, and a value for each row.
    pub fn new(fields: Arc<[Field]>, columns: Vec<Column>, rows: usize) -> Self {
        Batch { fields, columns, rows }
    }

    /// The names and types of the columns.
    pub fn fields(&self) -> &Arc<[Field]> {
        &self.fields
    }

    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    pub fn into_columns(self) -> Vec<Column> {
        self.columns
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The column with this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        iter::zip(&*self.fields, &self.columns).find_map(|(field, column)| (field.name == name).then_some(column))
    }

    /// The values of the column with this name. None if it is missing, has another type, or is null in a row.
    pub fn values<T: Value>(&self, name: &str) -> Option<Vec<T>> {
        self.column(name)?.values()
    }

    /// The values of the column with this name, where rows have one. None if it is missing or has another type.
    pub fn optional_values<T: Value>(&self, name: &str) -> Option<Vec<Option<T>>> {
        self.column(name)?.optional_values()
    }

    /// Appends the rows of a batch with the same fields.
    pub fn append(&mut self, other: Batch) {
        for (column, others) in iter::zip(&mut self.columns, other.columns) {
            column.append(others, [self.rows, other.rows]);
        }
        self.rows += other.rows;
    }

    /// Some of the rows, in this order.
    pub fn take(&self, rows: &[usize]) -> Batch {
        let columns = self.columns.iter().map(|column| column.take(rows)).collect();
        Batch { fields: self.fields.clone(), columns, rows: rows.len() }
    }
}
