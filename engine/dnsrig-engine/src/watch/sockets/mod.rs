//! The TCP sockets of hosts, one by one: what the kernel knows of each connection, whoever's it is.
//!
//! For each host a netlink socket (NETLINK_SOCK_DIAG) is opened inside its network namespace, and keeps asking that
//! one. [`message`] is the question and the answer without I/O. A dump locks nothing for long, but walks through all
//! sockets there are: it is meant for hosts with tens of connections, not with ten thousand.

pub mod message;

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
};

use dnsrig_core::{clock, failure::Failure, row_writer::RowWriter, rows::Columns};
use dnsrig_net::namespace::inside;
use nix::sys::{
    socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, setsockopt, socket, sockopt},
    time::{TimeVal, TimeValLike},
};
use serde::Serialize;

use self::message::{Family, Socket, State};
use super::host::{HostArgument, cannot_watch};

/// The kernel writes no longer datagrams of a dump than this (netlink_recvmsg() of net/netlink/af_netlink.c).
const DATAGRAM_BYTES_MAX: usize = 32 * 1024;

/// At most this many sockets of a host get a row; those beyond are counted.
const SOCKETS_MAX: usize = 256;

/// At most this many datagrams of an answer are read: more would be a hundred thousand sockets.
const DATAGRAMS_MAX: usize = 4096;

/// The kernel answers within the call; this only bounds what should not be.
const ANSWER_LIMIT_S: i64 = 1;

/// What became of the listing, for the summary.
#[derive(Debug, Default, Serialize)]
pub struct SocketSummary {
    /// The sum over all hosts.
    pub listings: u64,
    /// Sockets that were beyond [`SOCKETS_MAX`] of a host, summed over all listings.
    pub beyond: u64,
    /// Rows written.
    pub rows: u64,
    /// Rows for which there was no room.
    pub rows_dropped: u64,
}

/// The hosts whose sockets are listed, and the file that they go to.
pub struct Sockets {
    hosts: Vec<Asked>,
    rows: RowWriter<SocketRow>,
    buffer: Vec<u8>,
    summary: SocketSummary,
}

impl Sockets {
    /// Opens a netlink socket on each host that wants it, and the file `out`. None if no host wants it.
    ///
    /// What this machine lacks is added to `missing`: a kernel without `tcp_diag` lists no sockets.
    pub fn open(
        hosts: &[HostArgument],
        out: &Path,
        listings_per_flush: usize,
        missing: &mut Vec<String>,
    ) -> Result<Option<Self>, Failure> {
        let wanted = hosts.iter().filter(|host| host.sockets).filter_map(|host| Some((host, host.netns.as_deref()?)));
        let mut asked: Vec<Asked> = Vec::new();
        for (number, (host, path)) in wanted.enumerate() {
            let failed = |error| cannot_watch(&host.name, path, &error);
            let netlink = inside(path, netlink).map_err(failed)?;
            asked.push(Asked { number, name: host.name.clone(), netlink, sequence: 0 });
        }
        if asked.is_empty() {
            return Ok(None);
        }
        let names: Vec<String> = asked.iter().map(|host| host.name.clone()).collect();
        let rows = create_rows(out, &names, asked.len() * listings_per_flush * SOCKETS_MAX)?;
        let buffer = vec![0; DATAGRAM_BYTES_MAX];
        let mut sockets = Sockets { hosts: asked, rows, buffer, summary: SocketSummary::default() };
        sockets.sample(missing);
        Ok(Some(sockets))
    }

    /// Lists the sockets of all hosts. A host that no longer answers is missing from now on.
    pub fn sample(&mut self, missing: &mut Vec<String>) {
        let Sockets { hosts, rows, buffer, summary } = self;
        hosts.retain_mut(|host| {
            let (number, mut listed) = (host.number, 0);
            let result = host.list(buffer, |time_ns, socket| {
                listed += 1;
                if listed <= SOCKETS_MAX {
                    rows.push(SocketRow { time_ns, host: number, socket });
                } else {
                    summary.beyond += 1;
                }
            });
            summary.listings += 1;
            if let Err(error) = &result {
                missing.push(format!("{}/sockets: {error}", host.name));
            }
            result.is_ok()
        });
    }

    /// Hands what has been collected to the writer. False if the writer has failed.
    pub fn flush(&mut self) -> bool {
        self.rows.flush()
    }

    /// Writes what is left and ends the file.
    pub fn finish(self) -> Result<SocketSummary, Failure> {
        let (rows, rows_dropped) = self.rows.finish()?;
        Ok(SocketSummary { rows, rows_dropped, ..self.summary })
    }
}

/// A host whose sockets are listed.
struct Asked {
    /// Its place among those asked.
    number: usize,
    name: String,
    netlink: OwnedFd,
    /// The sequence number of the last question.
    sequence: u32,
}

impl Asked {
    /// Calls `found` with the time of the answer and each socket, first the sockets of IPv4.
    fn list(&mut self, buffer: &mut [u8], mut found: impl FnMut(i64, Socket)) -> io::Result<()> {
        for family in [Family::V4, Family::V6] {
            self.sequence = self.sequence.wrapping_add(1);
            let fd = self.netlink.as_raw_fd();
            send(fd, &message::request(family, self.sequence), MsgFlags::empty())?;
            let mut whole = false;
            for _ in 0..DATAGRAMS_MAX {
                let time_ns = clock::monotonic_ns();
                let bytes = recv(fd, buffer, MsgFlags::empty())?;
                let heard = message::read(&buffer[..bytes], self.sequence, |socket| found(time_ns, socket));
                whole = heard.map_err(|refused| io::Error::other(refused.to_string()))?;
                if whole {
                    break;
                }
            }
            if !whole {
                return Err(io::Error::other("the answer does not end"));
            }
        }
        Ok(())
    }
}

fn netlink() -> io::Result<OwnedFd> {
    let kind = (AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkSockDiag);
    let fd = socket(kind.0, kind.1, kind.2, kind.3)?;
    setsockopt(&fd, sockopt::ReceiveTimeout, &TimeVal::seconds(ANSWER_LIMIT_S))?;
    Ok(fd)
}

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
pub fn create_rows(path: &Path, hosts: &[String], buffer_rows: usize) -> Result<RowWriter<SocketRow>, Failure> {
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
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream},
    };

    use dnsrig_net::tcp_info::TcpInfo;
    use dnsrig_testing::batches;

    use super::*;
    use crate::watch::sockets::message::Congestion;

    /// In the namespace of the test itself, where other connections may come and go.
    #[test]
    fn the_kernel_lists_both_ends_of_a_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        // The kernel takes twice what is asked for (socket(7), SO_SNDBUF).
        setsockopt(&server, sockopt::SndBuf, &50_000).unwrap();
        server.write_all(&[7; 3_000]).unwrap();
        client.read_exact(&mut [0; 1_000]).unwrap();
        let mut host = Asked { number: 0, name: "here".into(), netlink: netlink().unwrap(), sequence: 0 };
        let ends = [server.local_addr().unwrap(), client.local_addr().unwrap()];
        let mut found = [None; 2];
        let before_ns = clock::monotonic_ns();
        host.list(&mut vec![0; DATAGRAM_BYTES_MAX], |time_ns, socket| {
            assert!((before_ns..=clock::monotonic_ns()).contains(&time_ns));
            if let Some(end) = ends.iter().position(|end| *end == socket.local && ends.contains(&socket.remote)) {
                found[end] = Some(socket);
            }
        })
        .unwrap();
        let [Some(server), Some(client)] = found else { panic!("{found:?}") };
        assert_eq!((client.info.received_bytes, client.receive_queue_bytes), (3_000, 2_000));
        assert_eq!(server.info.acked_bytes + u64::from(server.send_queue_bytes), 3_000, "{server:?}");
        assert_eq!(server.send_buffer_bytes, 100_000);
        assert!(client.receive_buffer_bytes > 3_000);
        assert!(!server.congestion.name().is_empty() && server.info.cwnd > 0 && server.info.mss_bytes > 500);
    }

    #[test]
    fn a_row_comes_back_as_it_was() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let mut rows = create_rows(&path, &["a".into(), "b".into()], 2).unwrap();
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
