use proptest::prelude::*;

use dnsrig_core::netlink::aligned;

use super::*;

const SEQUENCE: u32 = 7;

/// A message: header and payload, padded to four bytes.
fn message_of(kind: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = ((HEADER_BYTES + payload.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend([0; 2]);
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes.resize(aligned(bytes.len()), 0);
    bytes
}

/// A `struct inet_diag_msg` and attributes behind it.
fn diag(family: Family, state: u8, addresses: [&[u8]; 2], queues: [u32; 2], attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![family.number(), state, 0, 0];
    bytes.extend(53_u16.to_be_bytes());
    bytes.extend(40_000_u16.to_be_bytes());
    for address in addresses {
        bytes.extend(address);
        bytes.resize(bytes.len() + 16 - address.len(), 0);
    }
    bytes.resize(56, 0);
    bytes.extend(queues.iter().flat_map(|queue| queue.to_ne_bytes()));
    bytes.resize(DIAG_BYTES, 0);
    for (kind, value) in attributes {
        bytes.extend((4 + value.len() as u16).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(*value);
        bytes.resize(aligned(bytes.len()), 0);
    }
    bytes
}

fn v4(state: u8, queues: [u32; 2], attributes: &[(u16, &[u8])]) -> Vec<u8> {
    diag(Family::V4, state, [&[192, 0, 2, 1], &[198, 51, 100, 9]], queues, attributes)
}

fn sockets(datagram: &[u8]) -> Vec<Socket> {
    let mut found = Vec::new();
    read(datagram, SEQUENCE, |socket| found.push(socket)).unwrap();
    found
}

#[test]
fn the_question_is_as_the_kernel_wants_it() {
    let question = request(Family::V6, SEQUENCE);
    let (kind, sequence, payload, behind) = message(&question).unwrap();
    assert_eq!((kind, sequence, payload.len(), behind.len()), (SOCK_DIAG_BY_FAMILY, SEQUENCE, 56, 0));
    // AF_INET6, IPPROTO_TCP, TCP_INFO, the congestion control and the buffers.
    assert_eq!(payload[..4], [10, 6, 0b100_1010, 0]);
    let states = u32::from_ne_bytes(array(payload, 4).unwrap());
    assert_eq!(states, 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11, "neither TIME_WAIT (6) nor LISTEN (10)");
}

#[test]
fn a_socket_is_read_with_its_attributes() {
    let mut info = [0_u8; 232];
    info[5] = 7;
    info[80..84].copy_from_slice(&10_u32.to_ne_bytes());
    info[120..128].copy_from_slice(&123_456_u64.to_ne_bytes());
    let unknown = (99, &b"abc"[..]);
    let memory: Vec<u8> = (100_u32..109).flat_map(u32::to_ne_bytes).collect();
    let attributes = [unknown, (INET_DIAG_SKMEMINFO, &memory), (INET_DIAG_CONG, b"cubic\0"), (INET_DIAG_INFO, &info)];
    let message = v4(1, [11, 22], &attributes);
    let [socket] = sockets(&message_of(SOCK_DIAG_BY_FAMILY, SEQUENCE, &message))[..] else { panic!("one socket") };
    assert_eq!(socket.local, "192.0.2.1:53".parse().unwrap());
    assert_eq!(socket.remote, "198.51.100.9:40000".parse().unwrap());
    assert_eq!((socket.state, socket.congestion.name()), (State::Established, "cubic"));
    assert_eq!((socket.receive_queue_bytes, socket.send_queue_bytes), (11, 22));
    assert_eq!((socket.receive_buffer_bytes, socket.send_buffer_bytes), (101, 103));
    assert_eq!((socket.info.cwnd, socket.info.acked_bytes), (10, 123_456));
    assert!(socket.info.sacks && socket.info.timestamps && socket.info.window_scaling);
}

#[test]
fn the_size_of_a_buffer_that_the_kernel_does_not_report_is_0() {
    let memory: Vec<u8> = (100_u32..104).flat_map(u32::to_ne_bytes).collect();
    for (bytes, expected) in [(0, (0, 0)), (7, (0, 0)), (8, (101, 0)), (15, (101, 0)), (16, (101, 103))] {
        let message = v4(1, [0, 0], &[(INET_DIAG_SKMEMINFO, &memory[..bytes])]);
        let [socket] = sockets(&message_of(SOCK_DIAG_BY_FAMILY, SEQUENCE, &message))[..] else { panic!("one socket") };
        assert_eq!((socket.receive_buffer_bytes, socket.send_buffer_bytes), expected, "{bytes} bytes");
    }
}

#[test]
fn ipv4_within_ipv6_is_shown_as_ipv4() {
    let [mapped, plain]: [Ipv6Addr; 2] = ["::ffff:192.0.2.5", "2001:db8::5"].map(|text| text.parse().unwrap());
    let message = diag(Family::V6, 1, [&mapped.octets(), &plain.octets()], [0, 0], &[]);
    let [socket] = sockets(&message_of(SOCK_DIAG_BY_FAMILY, SEQUENCE, &message))[..] else { panic!("one socket") };
    assert_eq!(
        (socket.local.to_string(), socket.remote.to_string()),
        ("192.0.2.5:53".into(), "[2001:db8::5]:40000".into())
    );
    assert_eq!(socket.congestion.name(), "", "the kernel said none");
}

#[test]
fn of_those_that_close_only_the_ones_with_data_count() {
    let rows = |state, queues| sockets(&message_of(SOCK_DIAG_BY_FAMILY, SEQUENCE, &v4(state, queues, &[]))).len();
    assert_eq!(rows(State::Established as u8, [0, 0]), 1);
    for state in State::ALL.into_iter().filter(|state| *state != State::Established) {
        assert_eq!([[0, 0], [1, 0], [0, 1]].map(|queues| rows(state as u8, queues)), [0, 1, 1], "{state:?}");
    }
    assert_eq!(rows(10, [9, 9]), 0, "the queues of a listening socket are of connections");
}

#[test]
fn an_answer_ends_with_done_and_belongs_to_its_question() {
    let one = message_of(SOCK_DIAG_BY_FAMILY, SEQUENCE, &v4(1, [0, 0], &[]));
    let stale = message_of(SOCK_DIAG_BY_FAMILY, SEQUENCE - 1, &v4(1, [0, 0], &[]));
    let [stale_done, done] = [SEQUENCE - 1, SEQUENCE].map(|sequence| message_of(NLMSG_DONE, sequence, &[0; 4]));
    let mut count = 0;
    let mut read = |parts: &[&[u8]]| read(&parts.concat(), SEQUENCE, |_| count += 1);
    assert_eq!(read(&[&one, &stale, &stale_done, &one]), Ok(false));
    assert_eq!(read(&[&one, &done, &one]), Ok(true), "nothing comes behind it");
    assert_eq!(count, 3);
}

#[test]
fn a_refusal_is_told() {
    let refused = message_of(NLMSG_ERROR, SEQUENCE, &(-libc::ENOENT).to_ne_bytes());
    assert_eq!(read(&refused, SEQUENCE, |_| {}), Err(Refused(libc::ENOENT)));
    assert!(Refused(libc::ENOENT).to_string().contains("No such file"));
    let ended = message_of(NLMSG_DONE, SEQUENCE, &(-libc::ENOENT).to_ne_bytes());
    assert_eq!(read(&ended, SEQUENCE, |_| {}), Err(Refused(libc::ENOENT)), "an end may be a refusal");
    assert_eq!(read(&message_of(NLMSG_DONE, SEQUENCE, &[]), SEQUENCE, |_| {}), Ok(true));
    assert_eq!(read(&message_of(NLMSG_ERROR, SEQUENCE, &[]), SEQUENCE, |_| {}), Err(Refused(0)), "a cut one too");
}

proptest! {
    /// Any bytes; and a good answer of which some bytes are others.
    #[test]
    fn nothing_makes_it_panic(
        any_bytes in proptest::collection::vec(any::<u8>(), 0..400),
        damage in proptest::collection::vec((0_usize..400, any::<u8>()), 0..8),
        cut in 0_usize..400,
    ) {
        let _ = read(&any_bytes, SEQUENCE, |_| {});
        let attributes: [(u16, &[u8]); 3] =
            [(INET_DIAG_CONG, b"bbr\0"), (INET_DIAG_SKMEMINFO, &[5; 36]), (INET_DIAG_INFO, &[3; 232])];
        let message = v4(1, [1, 2], &attributes);
        let mut bytes = message_of(SOCK_DIAG_BY_FAMILY, SEQUENCE, &message).repeat(2);
        for (place, byte) in damage {
            let length = bytes.len();
            bytes[place % length] = byte;
        }
        bytes.truncate(cut);
        let _ = read(&bytes, SEQUENCE, |socket| { let _ = socket.congestion.name().len(); });
    }

    /// Whatever a socket says is read as it was written, each of several.
    #[test]
    fn what_was_written_is_read(queues in proptest::collection::vec(any::<[u32; 2]>(), 1..20), name in "[a-z]{0,15}") {
        let bytes: Vec<u8> = queues
            .iter()
            .flat_map(|queues| message_of(SOCK_DIAG_BY_FAMILY, SEQUENCE, &v4(1, *queues, &[(INET_DIAG_CONG, name.as_bytes())])))
            .collect();
        let found = sockets(&bytes);
        prop_assert_eq!(found.iter().map(|one| [one.receive_queue_bytes, one.send_queue_bytes]).collect::<Vec<_>>(), queues);
        prop_assert!(found.iter().all(|one| one.congestion.name() == name));
    }
}
