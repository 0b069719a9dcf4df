//! `transfers.arrow`, `connections.arrow` and `tcp-info.arrow`: batches of rows, written as columns.

use std::{
    net::{IpAddr, SocketAddr},
    path::Path,
    sync::Arc,
};

use arrow_array::{
    ArrayRef, DictionaryArray, Int64Array, RecordBatch, StringArray, UInt16Array, UInt32Array, UInt64Array,
    builder::StringBuilder, types::Int32Type,
};
use arrow_schema::{DataType, Field, Schema};

use super::{
    row_buffer::{Asked, Batch, ConnectionRow, InfoRow, TransferRow},
    schedule::slots::{Ended, Handshake},
};
use crate::{
    base::rows::{RowFile, RowsError, dictionary_field},
    dns::{
        xfr::{Answered, Outcome},
        zone_list::Zones,
    },
};

/// The three open files.
pub struct Files {
    transfers: RowFile,
    connections: RowFile,
    info: RowFile,
    zones: Arc<Zones>,
    /// By secondary; None: any address of this host, `unspecified`.
    sources: Vec<Option<IpAddr>>,
    unspecified: IpAddr,
}

impl Files {
    /// Makes them in `folder`, over old ones.
    pub fn create(
        folder: &Path,
        zones: Arc<Zones>,
        sources: Vec<Option<IpAddr>>,
        unspecified: IpAddr,
    ) -> Result<Self, RowsError> {
        Ok(Files {
            transfers: RowFile::create(&folder.join("transfers.arrow"), &schema(&transfer_fields()))?,
            connections: RowFile::create(&folder.join("connections.arrow"), &schema(&connection_fields()))?,
            info: RowFile::create(&folder.join("tcp-info.arrow"), &schema(&info_fields()))?,
            zones,
            sources,
            unspecified,
        })
    }

    /// Appends a batch to its file.
    pub fn write(&mut self, batch: &Batch) -> Result<(), RowsError> {
        if batch.is_empty() {
            return Ok(());
        }
        match batch {
            Batch::Transfers(rows) => self.transfers.write(&transfers(rows, &self.zones)),
            Batch::Connections(rows) => {
                let source = |row: &ConnectionRow| {
                    let known = self.sources.get(row.secondary as usize).copied().flatten();
                    SocketAddr::new(known.unwrap_or(self.unspecified), row.port).to_string()
                };
                self.connections.write(&connections(rows, source))
            }
            Batch::Info(rows) => self.info.write(&info(rows)),
        }
    }

    /// Ends the files in order.
    pub fn finish(self) -> Result<(), RowsError> {
        self.transfers.finish()?;
        self.connections.finish()?;
        self.info.finish()
    }
}

fn schema(fields: &[Field]) -> Arc<Schema> {
    Arc::new(Schema::new(fields.to_vec()))
}

fn field(name: &str, kind: DataType) -> Field {
    Field::new(name, kind, false)
}

fn transfer_fields() -> Vec<Field> {
    use DataType::{Int64, UInt16, UInt32, UInt64, Utf8};
    vec![
        field("zone", Utf8),
        field("secondary", UInt32),
        field("connection", UInt32),
        field("attempt", UInt16),
        dictionary_field("asked"),
        dictionary_field("answered"),
        field("asked_ns", Int64),
        field("first_ns", Int64),
        field("last_ns", Int64),
        field("octets", UInt64),
        field("messages", UInt32),
        field("records", UInt32),
        field("serial", UInt32),
        field("pause_max_ns", Int64),
        field("foreign_messages", UInt32),
        dictionary_field("outcome"),
    ]
}

fn connection_fields() -> Vec<Field> {
    use DataType::{Int64, UInt32, UInt64, Utf8};
    vec![
        field("connection", UInt32),
        field("secondary", UInt32),
        field("source", Utf8),
        field("begun_ns", Int64),
        field("established_ns", Int64),
        field("closed_ns", Int64),
        dictionary_field("handshake"),
        dictionary_field("ended"),
        field("asked", UInt32),
        field("done", UInt32),
        field("octets", UInt64),
        field("messages", UInt32),
    ]
}

fn info_fields() -> Vec<Field> {
    use DataType::{Int64, UInt32, UInt64};
    vec![
        field("time_ns", Int64),
        field("connection", UInt32),
        field("rtt_us", UInt32),
        field("rttvar_us", UInt32),
        field("cwnd", UInt32),
        field("retransmissions", UInt32),
        field("lost", UInt32),
        field("delivery_rate_octets_per_s", UInt64),
        field("received_octets", UInt64),
        field("sent_octets", UInt64),
        field("unread_octets", UInt32),
    ]
}

fn transfers(rows: &[TransferRow], zones: &Zones) -> RecordBatch {
    let mut names = StringBuilder::new();
    rows.iter().for_each(|row| names.append_value(zones.name(row.zone).to_string()));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(names.finish()),
        u32s(rows, |row| row.secondary),
        u32s(rows, |row| row.connection),
        Arc::new(rows.iter().map(|row| Some(row.attempt)).collect::<UInt16Array>()),
        words(rows, &Asked::WORDS, |row| row.asked as usize),
        words(rows, &Answered::ALL.map(Answered::word), |row| row.answered as usize),
        times(rows, |row| row.asked_ns),
        times(rows, |row| row.first_ns),
        times(rows, |row| row.last_ns),
        u64s(rows, |row| row.octets),
        u32s(rows, |row| row.messages),
        u32s(rows, |row| row.records),
        u32s(rows, |row| row.serial),
        times(rows, |row| row.pause_max_ns),
        u32s(rows, |row| row.foreign_messages),
        words(rows, &Outcome::ALL.map(Outcome::word), |row| row.outcome as usize),
    ];
    batch(&transfer_fields(), columns)
}

fn connections(rows: &[ConnectionRow], source: impl Fn(&ConnectionRow) -> String) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        u32s(rows, |row| row.connection),
        u32s(rows, |row| row.secondary),
        Arc::new(StringArray::from_iter_values(rows.iter().map(source))),
        times(rows, |row| row.begun_ns),
        times(rows, |row| row.established_ns),
        times(rows, |row| row.closed_ns),
        words(rows, &Handshake::WORDS, |row| row.handshake as usize),
        words(rows, &Ended::WORDS, |row| row.ended as usize),
        u32s(rows, |row| row.asked),
        u32s(rows, |row| row.done),
        u64s(rows, |row| row.octets),
        u32s(rows, |row| row.messages),
    ];
    batch(&connection_fields(), columns)
}

fn info(rows: &[InfoRow]) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        times(rows, |row| row.time_ns),
        u32s(rows, |row| row.connection),
        u32s(rows, |row| row.rtt_us),
        u32s(rows, |row| row.rttvar_us),
        u32s(rows, |row| row.cwnd),
        u32s(rows, |row| row.retransmissions),
        u32s(rows, |row| row.lost),
        u64s(rows, |row| row.delivery_rate_octets_per_s),
        u64s(rows, |row| row.received_octets),
        u64s(rows, |row| row.sent_octets),
        u32s(rows, |row| row.unread_octets),
    ];
    batch(&info_fields(), columns)
}

fn batch(fields: &[Field], columns: Vec<ArrayRef>) -> RecordBatch {
    RecordBatch::try_new(schema(fields), columns).expect("the columns are made after the schema")
}

fn times<T>(rows: &[T], value: fn(&T) -> i64) -> ArrayRef {
    Arc::new(rows.iter().map(|row| Some(value(row))).collect::<Int64Array>())
}

fn u32s<T>(rows: &[T], value: fn(&T) -> u32) -> ArrayRef {
    Arc::new(rows.iter().map(|row| Some(value(row))).collect::<UInt32Array>())
}

fn u64s<T>(rows: &[T], value: fn(&T) -> u64) -> ArrayRef {
    Arc::new(rows.iter().map(|row| Some(value(row))).collect::<UInt64Array>())
}

fn words<T>(rows: &[T], words: &[&'static str], value: fn(&T) -> usize) -> ArrayRef {
    let keys = rows.iter().map(|row| Some(value(row) as i32)).collect();
    let values = Arc::new(StringArray::from(words.to_vec()));
    Arc::new(DictionaryArray::<Int32Type>::try_new(keys, values).expect("every kind has its word"))
}
