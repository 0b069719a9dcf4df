//! `sockets.arrow`: a row is a TCP socket at a time.

use std::path::Path;

use super::message::{Socket, State};
use crate::base::{failure::Failure, row_writer::RowWriter, rows::Columns};

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

/// Makes the file and starts its writer. `hosts`: their names; `buffer_rows`: what a second brings at most.
pub fn create(path: &Path, hosts: &[String], buffer_rows: usize) -> Result<RowWriter<SocketRow>, Failure> {
    RowWriter::create(path, columns(hosts), buffer_rows)
}

fn columns(hosts: &[String]) -> Columns<'static, SocketRow> {
    let state = |row: &SocketRow| State::ALL.iter().position(|state| *state == row.socket.state).unwrap_or_default();
    Columns::<SocketRow>::default()
        .value("time_ns", |row| row.time_ns)
        .word("host", hosts, |row| row.host)
        .value("local", |row| row.socket.local.to_string())
        .value("remote", |row| row.socket.remote.to_string())
        .word("state", State::ALL.map(State::name), state)
        .free_word("congestion", |row| row.socket.congestion.name())
        .value("cwnd", |row| row.socket.info.cwnd)
        .value("ssthresh", |row| row.socket.info.ssthresh)
        .value("rtt_us", |row| row.socket.info.rtt_us)
        .value("rttvar_us", |row| row.socket.info.rttvar_us)
        .value("min_rtt_us", |row| row.socket.info.min_rtt_us)
        .value("retransmissions", |row| row.socket.info.retransmissions)
        .value("lost", |row| row.socket.info.lost)
        .value("unacked", |row| row.socket.info.unacked)
        .value("sent_data_segments", |row| row.socket.info.sent_data_segments)
        .value("send_queue_bytes", |row| row.socket.send_queue_bytes)
        .value("receive_queue_bytes", |row| row.socket.receive_queue_bytes)
        .value("send_buffer_bytes", |row| row.socket.send_buffer_bytes)
        .value("receive_buffer_bytes", |row| row.socket.receive_buffer_bytes)
        .value("mss_bytes", |row| row.socket.info.mss_bytes)
        .value("delivery_rate_bytes_per_s", |row| row.socket.info.delivery_rate_bytes_per_s)
        .value("acked_bytes", |row| row.socket.info.acked_bytes)
        .value("received_bytes", |row| row.socket.info.received_bytes)
        .value("busy_us", |row| row.socket.info.busy_us)
        .value("receive_window_limited_us", |row| row.socket.info.receive_window_limited_us)
        .value("send_buffer_limited_us", |row| row.socket.info.send_buffer_limited_us)
        .value("sacks", |row| row.socket.info.sacks)
        .value("timestamps", |row| row.socket.info.timestamps)
        .value("window_scaling", |row| row.socket.info.window_scaling)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{base::testing::batches, net::tcp_info::TcpInfo, watch::sockets::message::Congestion};

    #[test]
    fn a_row_comes_back_as_it_was() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let mut rows = create(&path, &["a".into(), "b".into()], 2).unwrap();
        let socket = Socket {
            local: "192.0.2.1:53".parse().unwrap(),
            remote: "[2001:db8::1]:40000".parse().unwrap(),
            state: State::CloseWait,
            congestion: Congestion::default(),
            send_queue_bytes: 5,
            receive_queue_bytes: 6,
            send_buffer_bytes: 7,
            receive_buffer_bytes: 8,
            info: TcpInfo { cwnd: 10, acked_bytes: 99, sacks: true, ..TcpInfo::default() },
        };
        rows.push(SocketRow { time_ns: 7, host: 1, socket });
        assert_eq!(rows.finish().unwrap(), (1, 0));
        let [batch] = &batches(&path)[..] else { panic!("one flush makes one batch") };
        let word = |name: &str| batch.values::<String>(name).unwrap().remove(0);
        assert_eq!(["host", "state", "congestion"].map(word), ["b", "close-wait", ""]);
        assert_eq!(word("remote"), "[2001:db8::1]:40000");
        let number = |name: &str| batch.values::<u32>(name).unwrap()[0];
        let queues = ["send_queue_bytes", "receive_queue_bytes", "send_buffer_bytes", "receive_buffer_bytes"];
        assert_eq!((number("cwnd"), queues.map(number)), (10, [5, 6, 7, 8]));
        let flag = |name: &str| batch.values::<bool>(name).unwrap()[0];
        assert_eq!(["sacks", "timestamps"].map(flag), [true, false]);
    }
}
