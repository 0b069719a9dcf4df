//! `sockets.arrow`: a row is a TCP socket at a time.

use std::{path::Path, sync::Arc};

use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt32Array,
    UInt64Array, types::Int32Type,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};

use super::message::{Socket, State};
use crate::{
    base::{
        rows::{RowsError, dictionary_field},
        threads::ThreadError,
    },
    watch::buffers::Rows,
};

/// What the kernel said of a socket, when, and on which host.
#[derive(Clone, Copy, Debug)]
pub struct SocketRow {
    /// When the answer was read, in monotonic nanoseconds.
    pub time_ns: i64,
    /// The host's place in the list of hosts.
    pub host: usize,
    /// The socket.
    pub socket: Socket,
}

type Number32 = (&'static str, fn(&Socket) -> u32);
type Number64 = (&'static str, fn(&Socket) -> u64);
type Flag = (&'static str, fn(&Socket) -> bool);

const NUMBERS_32: &[Number32] = &[
    ("cwnd", |socket| socket.info.cwnd),
    ("ssthresh", |socket| socket.info.ssthresh),
    ("rtt_us", |socket| socket.info.rtt_us),
    ("rttvar_us", |socket| socket.info.rttvar_us),
    ("min_rtt_us", |socket| socket.info.min_rtt_us),
    ("retransmissions", |socket| socket.info.retransmissions),
    ("lost", |socket| socket.info.lost),
    ("unacked", |socket| socket.info.unacked),
    ("sent_data_segments", |socket| socket.info.sent_data_segments),
    ("send_queue_octets", |socket| socket.send_queue_octets),
    ("receive_queue_octets", |socket| socket.receive_queue_octets),
    ("send_buffer_octets", |socket| socket.send_buffer_octets),
    ("receive_buffer_octets", |socket| socket.receive_buffer_octets),
    ("mss_octets", |socket| socket.info.mss_octets),
];

const NUMBERS_64: &[Number64] = &[
    ("delivery_rate_octets_per_s", |socket| socket.info.delivery_rate_octets_per_s),
    ("acked_octets", |socket| socket.info.acked_octets),
    ("received_octets", |socket| socket.info.received_octets),
    ("busy_us", |socket| socket.info.busy_us),
    ("receive_window_limited_us", |socket| socket.info.receive_window_limited_us),
    ("send_buffer_limited_us", |socket| socket.info.send_buffer_limited_us),
];

const FLAGS: &[Flag] = &[
    ("sacks", |socket| socket.info.sacks),
    ("timestamps", |socket| socket.info.timestamps),
    ("window_scaling", |socket| socket.info.window_scaling),
];

/// Makes the file and starts its writer. `hosts`: their names; `rows_per_buffer`: what a second brings at most.
pub fn create(
    path: &Path,
    hosts: &[String],
    rows_per_buffer: usize,
) -> Result<Rows<SocketRow>, ThreadError<RowsError>> {
    let (schema, hosts) = (Arc::new(schema()), Arc::new(StringArray::from_iter_values(hosts)));
    let columns = schema.clone();
    Rows::create(path, &schema, rows_per_buffer, move |rows| batch(&columns, &hosts, rows))
}

fn schema() -> Schema {
    let plain = |kind: DataType| move |name| Field::new(name, kind.clone(), false);
    let mut fields = vec![plain(DataType::Int64)("time_ns"), dictionary_field("host")];
    fields.extend(["local", "remote"].map(plain(DataType::Utf8)));
    fields.extend(["state", "congestion"].map(dictionary_field));
    fields.extend(NUMBERS_32.iter().map(|(name, _)| *name).map(plain(DataType::UInt32)));
    fields.extend(NUMBERS_64.iter().map(|(name, _)| *name).map(plain(DataType::UInt64)));
    fields.extend(FLAGS.iter().map(|(name, _)| *name).map(plain(DataType::Boolean)));
    Schema::new(fields)
}

fn batch(schema: &Arc<Schema>, hosts: &Arc<StringArray>, rows: &[SocketRow]) -> Result<RecordBatch, ArrowError> {
    let sockets = || rows.iter().map(|row| &row.socket);
    let text = |of: fn(&Socket) -> String| Arc::new(StringArray::from_iter_values(sockets().map(of))) as ArrayRef;
    let states = Arc::new(StringArray::from_iter_values(State::ALL.map(State::name)));
    let state = |socket: &Socket| State::ALL.iter().position(|state| *state == socket.state).unwrap_or_default();
    let congestion: DictionaryArray<Int32Type> = sockets().map(|socket| Some(socket.congestion.name())).collect();
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.time_ns))),
        words(rows.iter().map(|row| row.host), hosts)?,
        text(|socket| socket.local.to_string()),
        text(|socket| socket.remote.to_string()),
        words(sockets().map(state), &states)?,
        Arc::new(congestion),
    ];
    columns.extend(NUMBERS_32.iter().map(|(_, of)| Arc::new(UInt32Array::from_iter_values(sockets().map(of))) as _));
    columns.extend(NUMBERS_64.iter().map(|(_, of)| Arc::new(UInt64Array::from_iter_values(sockets().map(of))) as _));
    columns.extend(FLAGS.iter().map(|(_, of)| Arc::new(BooleanArray::from_iter(sockets().map(|s| Some(of(s))))) as _));
    RecordBatch::try_new(schema.clone(), columns)
}

/// A column of words, given as places in a list of them.
fn words(places: impl Iterator<Item = usize>, known: &Arc<StringArray>) -> Result<ArrayRef, ArrowError> {
    let keys = Int32Array::from_iter_values(places.map(|place| place as i32));
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, known.clone())?))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use arrow_array::{cast::AsArray, types::UInt32Type};
    use arrow_ipc::reader::StreamReader;

    use super::*;
    use crate::{net::tcp_info::TcpInfo, watch::sockets::message::Congestion};

    #[test]
    fn a_row_comes_back_as_it_was() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let mut rows = create(&path, &["a".into(), "b".into()], 2).unwrap();
        let socket = Socket {
            local: "192.0.2.1:53".parse().unwrap(),
            remote: "[2001:db8::1]:40000".parse().unwrap(),
            state: State::CloseWait,
            congestion: Congestion::default(),
            send_queue_octets: 5,
            receive_queue_octets: 6,
            send_buffer_octets: 7,
            receive_buffer_octets: 8,
            info: TcpInfo { cwnd: 10, acked_octets: 99, sacks: true, ..TcpInfo::default() },
        };
        rows.push(SocketRow { time_ns: 7, host: 1, socket });
        assert_eq!(rows.finish().unwrap(), (1, 0));
        let batches: Vec<_> =
            StreamReader::try_new(File::open(&path).unwrap(), None).unwrap().collect::<Result<_, _>>().unwrap();
        let [batch] = &batches[..] else { panic!("one flush makes one batch") };
        let word = |name: &str| {
            let column = batch.column_by_name(name).unwrap().as_dictionary::<Int32Type>();
            column.values().as_string::<i32>().value(column.key(0).unwrap()).to_owned()
        };
        assert_eq!(["host", "state", "congestion"].map(word), ["b", "close-wait", ""]);
        assert_eq!(batch.column_by_name("remote").unwrap().as_string::<i32>().value(0), "[2001:db8::1]:40000");
        let number = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<UInt32Type>().value(0);
        let queues = ["send_queue_octets", "receive_queue_octets", "send_buffer_octets", "receive_buffer_octets"];
        assert_eq!((number("cwnd"), queues.map(number)), (10, [5, 6, 7, 8]));
        let flag = |name: &str| batch.column_by_name(name).unwrap().as_boolean().value(0);
        assert_eq!(["sacks", "timestamps"].map(flag), [true, false]);
    }
}
