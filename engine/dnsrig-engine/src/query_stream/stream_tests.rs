//! What is written is read; what is damaged is refused, and never panics.

use std::{fs, net::Ipv6Addr, path::PathBuf};

use dnsrig_testing::{fuzz::fuzz, inputs};
use proptest::prelude::*;
use tempfile::TempDir;

use super::{
    layout::{HEADER_BYTES, MESSAGE_BYTES_MAX},
    *,
};

type Damage = Box<dyn Fn(&mut Vec<u8>)>;
type Query = (i64, u32, Transport, u8, Vec<u8>);

fn queries() -> Vec<Query> {
    vec![
        (0, 0, Transport::Udp, 0, vec![1; 12]),
        (7, 1, Transport::Tcp, NEW_CONNECTION, vec![2; 17]),
        (7, 0, Transport::Udp, RETRANSMISSION, vec![1; 12]),
        (1_000_000_000_000, 2, Transport::Doq, 3, vec![4; 64]),
    ]
}

fn file() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("stream");
    (directory, path)
}

fn write(path: &std::path::Path, queries: &[Query], addresses: Option<Vec<Ipv6Addr>>) -> Result<Header, Failure> {
    let mut writer = StreamWriter::create(path)?;
    for (due_ns, client, transport, flags, message) in queries {
        let (due_ns, client, transport, flags) = (*due_ns, *client, *transport, *flags);
        writer.push(Record { due_ns, client, transport, flags, message })?;
    }
    writer.finish(1_700_000_000_000_000_000, addresses)
}

fn read(path: &std::path::Path) -> Result<Vec<Query>, Failure> {
    let mut reader = StreamReader::open(path)?;
    let mut found = Vec::new();
    while let Some(record) = reader.next()? {
        found.push((record.due_ns, record.client, record.transport, record.flags, record.message.to_vec()));
    }
    Ok(found)
}

#[test]
fn what_is_written_is_read() {
    let (_directory, path) = file();
    let written = write(&path, &queries(), None).unwrap();
    let expected = Header {
        queries: 4,
        clients: 3,
        first_wall_ns: 1_700_000_000_000_000_000,
        duration_ns: 1_000_000_000_000,
        addresses_at: 0,
    };
    assert_eq!((written, *StreamReader::open(&path).unwrap().header()), (expected, expected));
    assert_eq!(read(&path).unwrap(), queries());
}

/// The golden bytes of version 1.
#[test]
fn the_layout_stays() {
    let (_directory, path) = file();
    write(&path, &[(0, 0, Transport::Dot, NEW_CONNECTION, b"0123456789abc".to_vec())], Some(vec![Ipv6Addr::LOCALHOST]))
        .unwrap();
    let mut expected = b"DNSRSTRM\x01\0\0\0\x40\0\0\0".to_vec();
    for number in [1u64, 1, 1_700_000_000_000_000_000, 0, 96, 0] {
        expected.extend(number.to_le_bytes());
    }
    expected.extend(b"\0\0\0\0\0\0\0\0\0\0\0\0\x0d\0\x02\x020123456789abc\0\0\0");
    expected.extend(Ipv6Addr::LOCALHOST.octets());
    assert_eq!(fs::read(&path).unwrap(), expected);
}

#[test]
fn addresses_are_kept_if_wanted() {
    let (_directory, path) = file();
    let addresses: Vec<_> = (0..3).map(|number| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number)).collect();
    write(&path, &queries(), Some(addresses.clone())).unwrap();
    let reader = StreamReader::open(&path).unwrap();
    assert_eq!(reader.address(2).unwrap(), Some(addresses[2]));
    assert_eq!(reader.address(3).unwrap(), None);
    assert_eq!(read(&path).unwrap(), queries());
    write(&path, &queries(), None).unwrap();
    assert_eq!(StreamReader::open(&path).unwrap().address(0).unwrap(), None);
    assert!(write(&path, &queries(), Some(addresses[1..].to_vec())).is_err());
}

#[test]
fn a_stream_appears_whole_or_not_at_all() {
    let (directory, path) = file();
    let mut writer = StreamWriter::create(&path).unwrap();
    let record = Record { due_ns: 5, client: 0, transport: Transport::Udp, flags: 0, message: &[0; 12] };
    writer.push(record).unwrap();
    assert!(!path.exists());
    assert!(writer.push(Record { due_ns: 4, ..record }).is_err());
    assert!(writer.push(Record { message: &[0; 11], ..record }).is_err());
    assert!(writer.push(Record { message: &[0; MESSAGE_BYTES_MAX + 1], ..record }).is_err());
    assert!(writer.push(Record { flags: 4, ..record }).is_err());
    drop(writer);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn nothing_is_a_stream_too() {
    let (_directory, path) = file();
    assert_eq!(write(&path, &[], None).unwrap().queries, 0);
    assert_eq!(read(&path).unwrap(), []);
}

/// Much more than a buffer, with messages of all lengths.
#[test]
fn a_long_stream_is_read_piece_by_piece_and_again() {
    let (_directory, path) = file();
    let mut writer = StreamWriter::create(&path).unwrap();
    let message = vec![9; MESSAGE_BYTES_MAX];
    let length = |number: usize| 12 + number * 7919 % (MESSAGE_BYTES_MAX - 11);
    for number in 0..300 {
        let message = &message[..length(number)];
        writer.push(Record { due_ns: number as i64, client: 0, transport: Transport::Udp, flags: 0, message }).unwrap();
    }
    writer.finish(0, None::<Vec<Ipv6Addr>>).unwrap();
    let mut reader = StreamReader::open(&path).unwrap();
    for _ in 0..2 {
        for number in 0..300 {
            let record = reader.next().unwrap().unwrap();
            assert_eq!((record.due_ns, record.message.len()), (number as i64, length(number)));
        }
        assert_eq!(reader.next().unwrap(), None);
        assert_eq!(reader.next().unwrap(), None);
        reader.rewind();
    }
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let (_directory, path) = file();
    write(&path, &queries(), None).unwrap();
    let good = fs::read(&path).unwrap();
    let first = HEADER_BYTES;
    let second = first + 32;
    let cases: [(&str, Damage); 15] = [
        ("is not a stream: it does not begin", Box::new(|bytes| bytes[0] = b'X')),
        ("is not a stream: it is shorter", Box::new(|bytes| bytes.truncate(63))),
        ("has version 2", Box::new(|bytes| bytes[8] = 2)),
        ("byte 12: the header", Box::new(|bytes| bytes[12] = 72)),
        ("byte 16: the file has no room for 260", Box::new(|bytes| bytes[17] = 1)),
        ("byte 24: more clients", Box::new(|bytes| bytes[24] = 5)),
        ("byte 40: a negative", Box::new(|bytes| bytes[47] = 0x80)),
        ("byte 48: a table", Box::new(|bytes| bytes[48] = 64)),
        ("byte 56: the reserved", Box::new(|bytes| bytes[56] = 1)),
        ("byte 96: client 9", Box::new(move |bytes| bytes[second + 8] = 9)),
        ("byte 64: a message of 11", Box::new(move |bytes| bytes[first + 12] = 11)),
        ("byte 64: transport 5", Box::new(move |bytes| bytes[first + 14] = 5)),
        ("byte 64: flags 0x08", Box::new(move |bytes| bytes[first + 15] = 8)),
        ("byte 64: the bytes behind", Box::new(move |bytes| bytes[first + 31] = 1)),
        ("byte 136: a query is due at 6", Box::new(move |bytes| bytes[second + 40] = 6)),
    ];
    for (expected, damage) in cases {
        let mut bytes = good.clone();
        damage(&mut bytes);
        fs::write(&path, &bytes).unwrap();
        let error = read(&path).unwrap_err();
        assert!(error.to_string().contains(expected), "{error} instead of {expected}");
        assert!(!error.hint.is_empty() && error.exit_code == 2);
    }
    for (expected, bytes) in [
        ("of its 4 queries still to come", &good[..good.len() - 8]),
        ("there is more behind the last", &[&good[..], &[0; 8]].concat()),
    ] {
        fs::write(&path, bytes).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains(expected));
    }
    assert!(
        matches!(StreamReader::open(path.parent().unwrap()), Err(failure) if failure.sentence.contains("is not a stream"))
    );
}

proptest! {
    #![proptest_config(inputs(500))]

    #[test]
    fn any_queries_come_back(
        queries in prop::collection::vec((0i64..1 << 40, 0u32..50, 0usize..5, 0u8..4, 12usize..600), 0..50),
    ) {
        let (_directory, path) = file();
        let mut queries: Vec<Query> = queries
            .into_iter()
            .map(|(due, client, transport, flags, length)| (due, client, Transport::ALL[transport], flags, vec![5; length]))
            .collect();
        queries.sort_by_key(|query| query.0);
        // Numbers of clients are dense in what `prepare` writes, and the reader holds us to no more than this.
        let clients = queries.len() as u32;
        queries.iter_mut().for_each(|query| query.1 %= clients.max(1));
        write(&path, &queries, None).unwrap();
        prop_assert_eq!(read(&path).unwrap(), queries);
    }
}

/// What is read is what would be written: whatever else is in a file is damage.
#[test]
fn harmed_streams_are_read_as_they_are_written_or_not_at_all() {
    let (_directory, path) = file();
    let bytes_of = |addresses| {
        write(&path, &queries(), addresses).unwrap();
        fs::read(&path).unwrap()
    };
    let corpus = [bytes_of(None), bytes_of(Some(vec![Ipv6Addr::LOCALHOST; 3])), bytes_of(None)[..64].to_vec()];
    fuzz(300, &corpus, |bytes, _| {
        fs::write(&path, bytes).unwrap();
        let Ok(found) = read(&path) else { return };
        assert!(found.len() <= bytes.len() / 32);
        let reader = StreamReader::open(&path).unwrap();
        let header = *reader.header();
        // A header may speak of more clients than there are.
        if found.iter().map(|query| u64::from(query.1) + 1).max() != Some(header.clients) {
            return;
        }
        let addresses = (header.addresses_at > 0)
            .then(|| (0..header.clients as u32).map(|client| reader.address(client).unwrap().unwrap()).collect());
        let written = write(&path, &found, addresses).unwrap();
        assert_eq!(written, Header { first_wall_ns: written.first_wall_ns, ..header });
        assert_eq!(fs::read(&path).unwrap()[64..], bytes[64..]);
    });
}
