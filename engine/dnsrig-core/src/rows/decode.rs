//! Row files read again. Nothing in a file is believed before it is checked: a damaged file is an error.

use std::{collections::HashMap, iter, sync::Arc};

use polars_arrow_format::ipc::{
    Endianness, FieldRef, IntRef, MessageHeaderRef, MessageRef, RecordBatchRef, SchemaRef, TypeRef,
    planus::{self, ReadAsRoot},
};

use super::{
    batch::{Batch, Column, Field, Kind, Values, places_of},
    encode::CONTINUATION,
};

/// The largest number of columns: row files have at most some dozens.
const COLUMNS_MAX: usize = 1_000;

/// A file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("it is empty")]
    Empty,
    #[error("its end is missing")]
    Cut,
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    #[error("it is damaged: {0}")]
    Metadata(#[from] planus::Error),
    #[error("it is not a row file: {0}")]
    Foreign(&'static str),
}

/// The batches of a row file, one after the other. After an error the reader ends.
///
/// Columns may have the types that [`super::Columns`] writes. A file may end without the end of the stream, behind any
/// batch: then its writer was killed.
#[derive(Debug)]
pub struct RowReader<'a> {
    left: &'a [u8],
    fields: Arc<[Field]>,
    /// The number of each column's dictionary, if it is a column of words.
    dictionaries: Vec<Option<i64>>,
    words: HashMap<i64, Arc<Vec<String>>>,
}

impl<'a> RowReader<'a> {
    /// Reads the schema.
    pub fn new(file: &'a [u8]) -> Result<Self, ReadError> {
        let mut left = file;
        match next_message(&mut left)? {
            None => Err(ReadError::Empty),
            Some((MessageHeaderRef::Schema(schema), _)) => {
                let (fields, dictionaries) = read_schema(schema)?;
                Ok(RowReader { left, fields, dictionaries, words: HashMap::new() })
            }
            Some(_) => Err(ReadError::Foreign("it does not begin with a schema")),
        }
    }

    /// The names and types of the columns.
    pub fn fields(&self) -> &Arc<[Field]> {
        &self.fields
    }

    fn next_batch(&mut self) -> Result<Option<Batch>, ReadError> {
        loop {
            match next_message(&mut self.left)? {
                None => return Ok(None),
                Some((MessageHeaderRef::RecordBatch(batch), body)) => return self.batch(batch, body).map(Some),
                Some((MessageHeaderRef::DictionaryBatch(batch), body)) => {
                    let data = batch.data()?.ok_or(ReadError::Damaged("a dictionary is missing"))?;
                    self.replace_words(batch.id()?, batch.is_delta()?, &read_words(data, body)?)?;
                }
                Some(_) => return Err(ReadError::Foreign("it has messages other than batches")),
            }
        }
    }

    fn replace_words(&mut self, id: i64, is_delta: bool, words: &[String]) -> Result<(), ReadError> {
        if !self.dictionaries.contains(&Some(id)) {
            return Err(ReadError::Damaged("a dictionary belongs to no column"));
        }
        let known = Arc::make_mut(self.words.entry(id).or_default());
        if !is_delta {
            known.clear();
        }
        known.extend_from_slice(words);
        Ok(())
    }

    fn batch(&self, batch: RecordBatchRef<'_>, body: &[u8]) -> Result<Batch, ReadError> {
        let mut body = Body::new(batch, body)?;
        let columns = iter::zip(&*self.fields, &self.dictionaries).map(|(field, dictionary)| {
            let words = dictionary.and_then(|id| self.words.get(&id)).cloned().unwrap_or_default();
            let column = body.column(field.kind, words)?;
            if column.present.is_some() && !field.is_nullable {
                return Err(ReadError::Damaged("a value is missing"));
            }
            Ok(column)
        });
        let columns = columns.collect::<Result<_, _>>()?;
        Ok(Batch::new(self.fields.clone(), columns, body.rows))
    }
}

impl Iterator for RowReader<'_> {
    type Item = Result<Batch, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.next_batch();
        if batch.is_err() {
            self.left = &[];
        }
        batch.transpose()
    }
}

/// The next message and its body, or None at the end of the stream or of the file.
fn next_message<'a>(left: &mut &'a [u8]) -> Result<Option<(MessageHeaderRef<'a>, &'a [u8])>, ReadError> {
    if left.is_empty() {
        return Ok(None);
    }
    if cut(left, CONTINUATION.len())? != CONTINUATION {
        return Err(ReadError::Damaged("a message does not begin where it has to"));
    }
    let length = left.split_first_chunk().map(|(length, _)| u32::from_le_bytes(*length)).ok_or(ReadError::Cut)?;
    cut(left, 4)?;
    if length == 0 {
        *left = &[];
        return Ok(None);
    }
    let message = MessageRef::read_as_root(cut(left, length as usize)?)?;
    let body = cut(left, size(message.body_length()?)?)?;
    let header = message.header()?.ok_or(ReadError::Damaged("a message is empty"))?;
    Ok(Some((header, body)))
}

/// Takes `length` bytes off the front.
fn cut<'a>(left: &mut &'a [u8], length: usize) -> Result<&'a [u8], ReadError> {
    let (front, behind) = left.split_at_checked(length).ok_or(ReadError::Cut)?;
    *left = behind;
    Ok(front)
}

fn size(number: i64) -> Result<usize, ReadError> {
    number.try_into().map_err(|_| ReadError::Damaged("a length is negative"))
}

type Fields = (Arc<[Field]>, Vec<Option<i64>>);

fn read_schema(schema: SchemaRef<'_>) -> Result<Fields, ReadError> {
    if schema.endianness()? != Endianness::Little {
        return Err(ReadError::Foreign("it is big-endian"));
    }
    let fields = schema.fields()?.ok_or(ReadError::Damaged("it has no columns"))?;
    if !(1..=COLUMNS_MAX).contains(&fields.len()) {
        return Err(ReadError::Foreign("it has no columns, or too many"));
    }
    let (fields, dictionaries): (Vec<_>, _) =
        fields.iter().map(|field| read_field(field?)).collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    Ok((fields.into(), dictionaries))
}

fn read_field(field: FieldRef<'_>) -> Result<(Field, Option<i64>), ReadError> {
    let another_type = || ReadError::Foreign("a column has a type that no row file has");
    let dictionary = field.dictionary()?;
    let kind = match (field.type_()?.ok_or_else(another_type)?, dictionary) {
        (TypeRef::Bool(_), None) => Kind::Bool,
        (TypeRef::Int(int), None) => int_kind(int)?.ok_or_else(another_type)?,
        (TypeRef::Utf8(_), None) => Kind::Text,
        (TypeRef::Utf8(_), Some(words)) => match words.index_type()? {
            Some(keys) if keys.bit_width()? != 32 || !keys.is_signed()? => return Err(another_type()),
            _ => Kind::Word,
        },
        _ => return Err(another_type()),
    };
    let name = field.name()?.unwrap_or_default().to_owned();
    let id = dictionary.map(|words| words.id()).transpose()?;
    Ok((Field { name, kind, is_nullable: field.nullable()? }, id))
}

fn int_kind(int: IntRef<'_>) -> Result<Option<Kind>, ReadError> {
    Ok(match (int.bit_width()?, int.is_signed()?) {
        (8, false) => Some(Kind::U8),
        (16, false) => Some(Kind::U16),
        (32, false) => Some(Kind::U32),
        (64, false) => Some(Kind::U64),
        (64, true) => Some(Kind::I64),
        _ => None,
    })
}

fn read_words(batch: RecordBatchRef<'_>, body: &[u8]) -> Result<Vec<String>, ReadError> {
    match Body::new(batch, body)?.column(Kind::Text, Arc::default())? {
        Column { values: Values::Text(words), present: None, .. } => Ok(words),
        _ => Err(ReadError::Damaged("a word is missing")),
    }
}

/// The body of a batch: the buffers of its columns, one behind the other.
struct Body<'a> {
    rows: usize,
    /// How many rows and how many nulls each column has.
    nodes: std::vec::IntoIter<(i64, i64)>,
    /// Where each buffer begins, and how long it is.
    buffers: std::vec::IntoIter<(i64, i64)>,
    bytes: &'a [u8],
    /// Where the last buffer ended. Buffers do not overlap, so a batch takes no more memory than its file.
    end: usize,
}

impl<'a> Body<'a> {
    fn new(batch: RecordBatchRef<'_>, bytes: &'a [u8]) -> Result<Self, ReadError> {
        if batch.compression()?.is_some() {
            return Err(ReadError::Foreign("it is compressed"));
        }
        let none = || ReadError::Damaged("a batch has no columns");
        let nodes = batch.nodes()?.ok_or_else(none)?.iter().map(|node| (node.length(), node.null_count()));
        let buffers = batch.buffers()?.ok_or_else(none)?.iter().map(|buffer| (buffer.offset(), buffer.length()));
        let (nodes, buffers): (Vec<_>, Vec<_>) = (nodes.collect(), buffers.collect());
        let rows = size(batch.length()?)?;
        Ok(Body { rows, nodes: nodes.into_iter(), buffers: buffers.into_iter(), bytes, end: 0 })
    }

    fn column(&mut self, kind: Kind, words: Arc<Vec<String>>) -> Result<Column, ReadError> {
        let present = self.present()?;
        let values = match kind {
            Kind::Bool => Values::Fixed(self.bits()?.into_iter().map(u8::from).collect()),
            Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 | Kind::I64 => {
                Values::Fixed(self.fixed(kind.width())?.to_owned())
            }
            Kind::Text => Values::Text(self.texts()?),
            Kind::Word => Values::Word(self.places(present.as_deref(), words.len())?, words),
        };
        Ok(Column { kind, values, present })
    }

    /// Begins a column: which rows are present, if not all are.
    fn present(&mut self) -> Result<Option<Vec<bool>>, ReadError> {
        let (rows, nulls) = self.nodes.next().ok_or(ReadError::Damaged("a column is missing"))?;
        if size(rows)? != self.rows {
            return Err(ReadError::Damaged("columns have different lengths"));
        }
        if nulls == 0 {
            self.buffer()?;
            return Ok(None);
        }
        Ok(Some(self.bits()?).filter(|present| present.contains(&false)))
    }

    fn buffer(&mut self) -> Result<&'a [u8], ReadError> {
        let (begin, length) = self.buffers.next().ok_or(ReadError::Damaged("a buffer is missing"))?;
        let (begin, length) = (size(begin)?, size(length)?);
        let bytes = self.bytes.get(begin..).and_then(|bytes| bytes.get(..length));
        let bytes = bytes.filter(|_| begin >= self.end).ok_or(ReadError::Damaged("a buffer is not in its batch"))?;
        self.end = begin + length;
        Ok(bytes)
    }

    /// Reads a buffer with a fixed number of bytes for each row.
    fn fixed(&mut self, width: usize) -> Result<&'a [u8], ReadError> {
        let bytes = self.buffer()?;
        self.rows.checked_mul(width).and_then(|length| bytes.get(..length)).ok_or(SHORT)
    }

    fn bits(&mut self) -> Result<Vec<bool>, ReadError> {
        let bytes = self.buffer()?.get(..self.rows.div_ceil(8)).ok_or(SHORT)?;
        Ok((0..self.rows).map(|at| bytes[at / 8] >> (at % 8) & 1 == 1).collect())
    }

    fn texts(&mut self) -> Result<Vec<String>, ReadError> {
        let (ends, text) = (self.buffer()?, self.buffer()?);
        if self.rows == 0 {
            return Ok(Vec::new());
        }
        let length = self.rows.checked_add(1).and_then(|ends| ends.checked_mul(4)).ok_or(SHORT)?;
        let ends: Vec<_> = places_of(ends.get(..length).ok_or(SHORT)?).collect();
        let wrong = || ReadError::Damaged("a text is not in its buffer, or is not UTF-8");
        let texts = ends.windows(2).map(|ends| {
            let bytes = text.get(ends[0]..ends[1]).ok_or_else(wrong)?;
            Ok(str::from_utf8(bytes).map_err(|_| wrong())?.to_owned())
        });
        texts.collect()
    }

    /// The place of each row's word, where the row is present.
    fn places(&mut self, present: Option<&[bool]>, words: usize) -> Result<Vec<u8>, ReadError> {
        let bytes = self.fixed(Kind::Word.width())?;
        let is_present = |row: usize| present.is_none_or(|present| present[row]);
        if places_of(bytes).enumerate().all(|(row, place)| place < words || !is_present(row)) {
            Ok(bytes.to_owned())
        } else {
            Err(ReadError::Damaged("a word is not in its dictionary"))
        }
    }
}

const SHORT: ReadError = ReadError::Damaged("a buffer is too short");
