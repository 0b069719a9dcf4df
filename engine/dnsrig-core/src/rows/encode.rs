//! Arrow IPC streams: the messages that batches are written as.
//!
//! See <https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc>.

use std::{iter, mem, sync::Arc};

use polars_arrow_format::ipc::{
    Bool, Buffer, DictionaryBatch, DictionaryEncoding, Field as FieldEntry, FieldNode, Int, Message, MessageHeader,
    MetadataVersion, RecordBatch, Schema, Type, Utf8, planus::Builder,
};

use super::batch::{Batch, Column, Field, Kind, Values};

/// Every message and every buffer begins at a multiple of this.
const ALIGNMENT: usize = 8;

/// Begins every message.
pub(super) const CONTINUATION: [u8; 4] = [0xff; 4];

/// The end of a stream: a message without metadata.
pub(super) const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// The message that a stream begins with.
pub(super) fn schema(fields: &[Field]) -> Vec<u8> {
    let fields = iter::zip(fields, 0..).map(|(field, id)| entry(field, id)).collect();
    let schema = Schema { fields: Some(fields), ..Schema::default() };
    let mut stream = Vec::new();
    write_head(&mut stream, MessageHeader::Schema(schema.into()), 0);
    stream
}

/// A field of the schema. The dictionary of a column of words has the number of the column.
fn entry(field: &Field, id: i64) -> FieldEntry {
    let int = |bit_width, is_signed| Int { bit_width, is_signed };
    let unsigned = |bit_width| Type::Int(int(bit_width, false).into());
    let kind = match field.kind {
        Kind::Bool => Type::Bool(Bool {}.into()),
        Kind::U8 => unsigned(8),
        Kind::U16 => unsigned(16),
        Kind::U32 => unsigned(32),
        Kind::U64 => unsigned(64),
        Kind::I64 => Type::Int(int(64, true).into()),
        Kind::Text | Kind::Word => Type::Utf8(Utf8 {}.into()),
    };
    let keys = || DictionaryEncoding { id, index_type: Some(int(32, true).into()), ..DictionaryEncoding::default() };
    FieldEntry {
        name: Some(field.name.clone()),
        nullable: field.is_nullable,
        type_: Some(kind),
        dictionary: (field.kind == Kind::Word).then(|| keys().into()),
        // Some readers insist on the list.
        children: Some(Vec::new()),
        ..FieldEntry::default()
    }
}

/// Writes batches, and the words of each column again only when they have changed.
pub(super) struct Encoder {
    /// What was last written for each column.
    words: Vec<Option<Arc<Vec<String>>>>,
    /// The body of the last batch, kept for its memory.
    body: Vec<u8>,
}

impl Encoder {
    pub(super) fn new(fields: &[Field]) -> Self {
        Encoder { words: vec![None; fields.len()], body: Vec::new() }
    }

    /// The messages of a batch, in two parts: the second one is the body of the last message.
    pub(super) fn batch(&mut self, batch: &Batch) -> (Vec<u8>, &[u8]) {
        let mut stream = Vec::new();
        let mut body = Body { bytes: mem::take(&mut self.body), ..Body::default() };
        body.bytes.clear();
        for ((column, written), id) in iter::zip(batch.columns(), &mut self.words).zip(0..) {
            if let Values::Word(_, words) = &column.values
                && written.as_ref() != Some(words)
            {
                write_words(&mut stream, id, words);
                *written = Some(words.clone());
            }
            body.column(column, batch.rows());
        }
        let (record, bytes) = body.end(batch.rows());
        self.body = bytes;
        write_head(&mut stream, MessageHeader::RecordBatch(record.into()), self.body.len());
        (stream, &self.body)
    }
}

/// Replaces the dictionary of a column.
fn write_words(stream: &mut Vec<u8>, id: i64, words: &[String]) {
    let mut body = Body::default();
    body.node(words.len(), None);
    body.texts(words);
    let (record, bytes) = body.end(words.len());
    let header = DictionaryBatch { id, data: Some(record.into()), is_delta: false };
    write_head(stream, MessageHeader::DictionaryBatch(header.into()), bytes.len());
    stream.extend(bytes);
}

/// Writes a message up to its body.
fn write_head(stream: &mut Vec<u8>, header: MessageHeader, body_bytes: usize) {
    let version = MetadataVersion::V5;
    let message = Message { version, header: Some(header), body_length: body_bytes as i64, custom_metadata: None };
    let mut builder = Builder::new();
    let metadata = builder.finish(&message, None);
    let padded = metadata.len().next_multiple_of(ALIGNMENT);
    stream.extend(CONTINUATION);
    stream.extend((padded as u32).to_le_bytes());
    stream.extend(metadata);
    stream.extend(iter::repeat_n(0, padded - metadata.len()));
}

/// The buffers of columns, and what the metadata has to state about them.
#[derive(Default)]
struct Body {
    bytes: Vec<u8>,
    buffers: Vec<Buffer>,
    nodes: Vec<FieldNode>,
}

impl Body {
    fn column(&mut self, column: &Column, rows: usize) {
        self.node(rows, column.present.as_deref());
        match &column.values {
            Values::Fixed(bytes) if column.kind == Kind::Bool => self.buffer(&bits(bytes.iter().map(|bit| *bit != 0))),
            Values::Fixed(bytes) | Values::Word(bytes, _) => self.buffer(bytes),
            Values::Text(texts) => self.texts(texts),
        }
    }

    /// Begins a column, with the buffer that states which rows are present. It is empty if all are.
    fn node(&mut self, rows: usize, present: Option<&[bool]>) {
        let nulls = present.map_or(0, |present| present.iter().filter(|is_present| !**is_present).count());
        self.nodes.push(FieldNode { length: rows as i64, null_count: nulls as i64 });
        self.buffer(&present.map_or_else(Vec::new, |present| bits(present.iter().copied())));
    }

    /// The buffers of texts: where each ends, and their bytes.
    fn texts(&mut self, texts: &[String]) {
        let ends = texts.iter().scan(0_u32, |end, text| {
            *end += text.len() as u32;
            Some(*end)
        });
        let offsets: Vec<u8> = iter::once(0).chain(ends).flat_map(u32::to_le_bytes).collect();
        self.buffer(&offsets);
        self.buffer(texts.concat().as_bytes());
    }

    fn buffer(&mut self, bytes: &[u8]) {
        self.buffers.push(Buffer { offset: self.bytes.len() as i64, length: bytes.len() as i64 });
        self.bytes.extend(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
    }

    fn end(self, rows: usize) -> (RecordBatch, Vec<u8>) {
        let (nodes, buffers) = (Some(self.nodes), Some(self.buffers));
        (RecordBatch { length: rows as i64, nodes, buffers, ..RecordBatch::default() }, self.bytes)
    }
}

/// Eight flags a byte, the first in the lowest bit.
fn bits(flags: impl ExactSizeIterator<Item = bool>) -> Vec<u8> {
    let mut bits = vec![0; flags.len().div_ceil(8)];
    flags.enumerate().for_each(|(at, flag)| bits[at / 8] |= u8::from(flag) << (at % 8));
    bits
}
