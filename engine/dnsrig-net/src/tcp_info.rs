//! What the kernel knows of a connection: TCP_INFO (tcp(7); include/uapi/linux/tcp.h).
//!
//! Most of it is about what this side sends. A client that receives a transfer sends little: its `cwnd`, `lost` and
//! `delivery_rate_bytes_per_s` describe its queries, and the path's speed is the growth of `received_bytes`.
//!
//! getsockopt(2) reads it for a socket of this process, sock_diag(7) for all sockets (`watch`).

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
};

use nix::sys::socket::{getsockopt, sockopt};

/// Bits of `tcpi_options` (include/uapi/linux/tcp.h): what both sides agreed on in the handshake.
const TIMESTAMPS: u8 = 1;
const SACK: u8 = 2;
const WINDOW_SCALING: u8 = 4;

/// More than the longest `struct tcp_info` so far, which grows at its end; the kernel fills in what it has.
const INFO_BYTES_MAX: usize = 512;

/// The kernel's counters of one connection.
///
/// The structure has grown: what a kernel does not have is 0, so is what it has not measured yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Whether selective acknowledgements were agreed on (RFC 2018).
    pub sacks: bool,
    /// Whether timestamps were (RFC 7323, section 3).
    pub timestamps: bool,
    /// Whether window scaling was (RFC 7323, section 2): without it no window is beyond 65,535 bytes.
    pub window_scaling: bool,
    /// Round-trip time of what this side sent, smoothed (RFC 6298).
    pub rtt_us: u32,
    /// Its variation.
    pub rttvar_us: u32,
    /// The least of some minutes (Linux 4.6).
    pub min_rtt_us: u32,
    /// Round-trip time as the receiving side estimates it.
    pub rcv_rtt_us: u32,
    /// Segments that may be under way from here.
    pub cwnd: u32,
    /// The window at which slow start ends, in segments; 2,147,483,647 before the first loss.
    pub ssthresh: u32,
    /// The longest segment that is sent, in bytes (RFC 9293, section 3.7.1: without headers and options).
    pub mss_bytes: u32,
    /// The longest segment that was received, in bytes, nearly.
    pub received_segment_bytes: u32,
    /// Segments sent again, since the beginning.
    pub retransmissions: u32,
    /// Segments of this side that count as lost now.
    pub lost: u32,
    /// Segments that are under way or lost: sent and not acknowledged in order.
    pub unacked: u32,
    /// At which this side's bytes arrived last (Linux 4.9).
    pub delivery_rate_bytes_per_s: u64,
    /// Bytes of this side that the other has acknowledged (Linux 4.1); a SYN or FIN counts for one.
    pub acked_bytes: u64,
    /// Bytes that came, in order and without repetition (Linux 4.1).
    pub received_bytes: u64,
    /// Bytes sent, repetitions among them (Linux 4.19).
    pub sent_bytes: u64,
    /// Segments that came, acknowledgements among them (Linux 4.2).
    pub received_segments: u32,
    /// Segments sent, acknowledgements among them (Linux 4.2).
    pub sent_segments: u32,
    /// Sent segments with data, sent again or not (Linux 4.6).
    pub sent_data_segments: u32,
    /// Time in which this side had data to send or to be acknowledged (Linux 4.10).
    pub busy_us: u64,
    /// The part of it in which nothing but the window of the receiver held it back.
    pub receive_window_limited_us: u64,
    /// The part of it in which nothing but the room in the send buffer did.
    pub send_buffer_limited_us: u64,
}

/// Asks the kernel about a connection.
pub fn read(socket: impl AsFd) -> io::Result<TcpInfo> {
    let mut space = [0_u8; INFO_BYTES_MAX];
    let mut bytes = space.len() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `bytes` bytes into `space`, and returns how many.
    let result =
        unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, space.as_mut_ptr().cast(), &raw mut bytes) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(parse(&space[..space.len().min(bytes as usize)]))
}

/// The congestion control that a connection uses, such as `cubic`.
pub fn congestion(socket: impl AsFd) -> io::Result<String> {
    let name = getsockopt(&socket, sockopt::TcpCongestion)?;
    Ok(name.to_string_lossy().trim_end_matches('\0').to_owned())
}

/// How many bytes wait in the socket to be read (SIOCINQ, tcp(7)).
pub fn unread_bytes(socket: impl AsFd) -> io::Result<u32> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes one int.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::FIONREAD, &raw mut bytes) };
    if result == 0 { Ok(bytes.unsigned_abs()) } else { Err(io::Error::last_os_error()) }
}

/// Reads the structure as far as it goes; numbers are their places in it.
pub fn parse(info: &[u8]) -> TcpInfo {
    let options = info.get(5).copied().unwrap_or(0);
    TcpInfo {
        sacks: options & SACK != 0,
        timestamps: options & TIMESTAMPS != 0,
        window_scaling: options & WINDOW_SCALING != 0,
        mss_bytes: u32_at(info, 16),
        received_segment_bytes: u32_at(info, 20),
        unacked: u32_at(info, 24),
        lost: u32_at(info, 32),
        rtt_us: u32_at(info, 68),
        rttvar_us: u32_at(info, 72),
        ssthresh: u32_at(info, 76),
        cwnd: u32_at(info, 80),
        rcv_rtt_us: u32_at(info, 92),
        retransmissions: u32_at(info, 100),
        acked_bytes: u64_at(info, 120),
        received_bytes: u64_at(info, 128),
        sent_segments: u32_at(info, 136),
        received_segments: u32_at(info, 140),
        // All bits set: nothing was measured yet.
        min_rtt_us: Some(u32_at(info, 148)).filter(|us| *us != u32::MAX).unwrap_or(0),
        sent_data_segments: u32_at(info, 156),
        delivery_rate_bytes_per_s: u64_at(info, 160),
        busy_us: u64_at(info, 168),
        receive_window_limited_us: u64_at(info, 176),
        send_buffer_limited_us: u64_at(info, 184),
        sent_bytes: u64_at(info, 200),
    }
}

fn u32_at(info: &[u8], place: usize) -> u32 {
    info.get(place..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

fn u64_at(info: &[u8], place: usize) -> u64 {
    info.get(place..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        mem::offset_of,
        net::{TcpListener, TcpStream},
    };

    use libc::tcp_info;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn a_connection_is_known_by_its_bytes() {
        let (mut client, mut server) = pair();
        server.write_all(&[7; 5_000]).unwrap();
        client.read_exact(&mut [0; 1]).unwrap();
        // All of it is in the socket before more than its beginning is needed: loopback delivers as it sends.
        client.write_all(&[1; 30]).unwrap();
        server.read_exact(&mut [0; 30]).unwrap();
        let (at_client, at_server) = (read(&client).unwrap(), read(&server).unwrap());
        assert_eq!((at_client.received_bytes, at_server.received_bytes), (5_000, 30));
        assert_eq!((at_client.sent_bytes, at_server.sent_bytes), (30, 5_000));
        assert_eq!(unread_bytes(&client).unwrap(), 4_999);
        // SYN and its acknowledgement, one of 30 bytes and one of 5,000 at least.
        assert!(at_client.sent_segments >= 3 && at_client.received_segments >= 2, "{at_client:?}");
        assert!(at_client.rtt_us > 0 && at_client.cwnd > 0 && at_client.received_segment_bytes > 0, "{at_client:?}");
        assert_eq!(at_client.retransmissions + at_client.lost, 0);
        // Acknowledgements may be on their way, but what is not acknowledged is never counted as such.
        assert!(at_server.acked_bytes <= 5_001 && at_client.acked_bytes <= 31, "a SYN may count for one");
        assert!(at_server.sent_data_segments >= 1 && at_server.mss_bytes > 500, "{at_server:?}");
        let agreed = |info: TcpInfo| [info.sacks, info.timestamps, info.window_scaling];
        assert_eq!(agreed(at_client), agreed(at_server), "both sides know what they agreed on");
    }

    #[test]
    fn the_congestion_control_in_use_is_the_one_that_was_set() {
        let (client, _server) = pair();
        nix::sys::socket::setsockopt(&client, sockopt::TcpCongestion, &"reno".into()).unwrap();
        assert_eq!(congestion(&client).unwrap(), "reno");
    }

    /// A structure in which each byte is its own place.
    fn places() -> [u8; 232] {
        std::array::from_fn(|place| place as u8)
    }

    /// By the structure as libc has it.
    #[test]
    fn every_number_is_read_from_its_place() {
        let info = parse(&places());
        for (number, place) in [
            (info.mss_bytes, offset_of!(tcp_info, tcpi_snd_mss)),
            (info.received_segment_bytes, offset_of!(tcp_info, tcpi_rcv_mss)),
            (info.unacked, offset_of!(tcp_info, tcpi_unacked)),
            (info.lost, offset_of!(tcp_info, tcpi_lost)),
            (info.rtt_us, offset_of!(tcp_info, tcpi_rtt)),
            (info.rttvar_us, offset_of!(tcp_info, tcpi_rttvar)),
            (info.ssthresh, offset_of!(tcp_info, tcpi_snd_ssthresh)),
            (info.cwnd, offset_of!(tcp_info, tcpi_snd_cwnd)),
            (info.rcv_rtt_us, offset_of!(tcp_info, tcpi_rcv_rtt)),
            (info.retransmissions, offset_of!(tcp_info, tcpi_total_retrans)),
            (info.sent_segments, offset_of!(tcp_info, tcpi_segs_out)),
            (info.received_segments, offset_of!(tcp_info, tcpi_segs_in)),
            (info.min_rtt_us, offset_of!(tcp_info, tcpi_min_rtt)),
            (info.sent_data_segments, offset_of!(tcp_info, tcpi_data_segs_out)),
        ] {
            assert_eq!(number.to_ne_bytes(), [0, 1, 2, 3].map(|byte| place as u8 + byte));
        }
        for (number, place) in [
            (info.acked_bytes, offset_of!(tcp_info, tcpi_bytes_acked)),
            (info.received_bytes, offset_of!(tcp_info, tcpi_bytes_received)),
            (info.delivery_rate_bytes_per_s, offset_of!(tcp_info, tcpi_delivery_rate)),
            (info.busy_us, offset_of!(tcp_info, tcpi_busy_time)),
            (info.receive_window_limited_us, offset_of!(tcp_info, tcpi_rwnd_limited)),
            (info.send_buffer_limited_us, offset_of!(tcp_info, tcpi_sndbuf_limited)),
            (info.sent_bytes, offset_of!(tcp_info, tcpi_bytes_sent)),
        ] {
            assert_eq!(number.to_ne_bytes(), [0, 1, 2, 3, 4, 5, 6, 7].map(|byte| place as u8 + byte));
        }
        for (options, expected) in [(1, [true, false, false]), (2, [false, true, false]), (4, [false, false, true])] {
            let mut bytes = [0; 232];
            bytes[offset_of!(tcp_info, tcpi_options)] = options;
            let info = parse(&bytes);
            assert_eq!([info.timestamps, info.sacks, info.window_scaling], expected);
        }
    }

    #[test]
    fn what_an_older_kernel_does_not_have_is_none() {
        let mut info = places();
        let whole = parse(&info);
        // The length in Linux 2.6, then one byte short of the delivery rate, then nothing.
        let old = parse(&info[..104]);
        assert_eq!((old.retransmissions, old.received_bytes, old.min_rtt_us), (whole.retransmissions, 0, 0));
        let older = TcpInfo {
            delivery_rate_bytes_per_s: 0,
            sent_bytes: 0,
            busy_us: 0,
            receive_window_limited_us: 0,
            send_buffer_limited_us: 0,
            ..whole
        };
        assert_eq!(parse(&info[..167]), older);
        assert_eq!(parse(&[]), TcpInfo::default());
        info[148..152].fill(0xff);
        assert_eq!(parse(&info).min_rtt_us, 0, "not measured yet");
    }

    #[test]
    fn what_is_no_connection_is_an_error() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(read(&socket).is_err() && congestion(&socket).is_err());
    }
}
