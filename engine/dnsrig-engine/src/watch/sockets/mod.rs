//! The TCP sockets of hosts, one by one: what the kernel knows of each connection, whoever's it is.
//!
//! For each host a netlink socket (NETLINK_SOCK_DIAG) is opened inside its network namespace, and keeps asking that
//! one. [`message`] is the question and the answer without I/O. A dump locks nothing for long, but walks through all
//! sockets there are: it is meant for hosts with tens of connections, not with ten thousand.

pub mod message;
mod rows;

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
};

use nix::sys::{
    socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, setsockopt, socket, sockopt},
    time::{TimeVal, TimeValLike},
};
use serde::Serialize;

use super::{
    host::{HostArgument, cannot_watch},
    sockets::{
        message::{Family, Socket},
        rows::SocketRow,
    },
};
use crate::{
    base::{clock, failure::Failure, row_writer::RowWriter},
    net::namespace::inside,
};

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
    /// Of all hosts together.
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
        let rows = rows::create(out, &names, asked.len() * listings_per_flush * SOCKETS_MAX)?;
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
    /// Of the last question.
    sequence: u32,
}

impl Asked {
    /// Calls `found` with the time of the answer and each socket, those of IPv4 first.
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

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream},
    };

    use super::*;

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
}
