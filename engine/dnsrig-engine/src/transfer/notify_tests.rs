use std::time::Duration;

use dnsrig_dns::{
    header::{AA, HEADER_BYTES, NOTIFY, QR},
    testing::messages,
};
use dnsrig_testing::fuzz::fuzz;
use domain::{
    base::{
        Message, MessageBuilder, ParsedName, ToName,
        iana::{Opcode, Rcode},
    },
    rdata,
};

use super::*;

/// A NOTIFY for z.Example, with an SOA of this serial or none.
fn notify(serial: Option<u32>) -> Vec<u8> {
    let mut message = vec![7, 9, NOTIFY | AA, 0, 0, 1, 0, u8::from(serial.is_some()), 0, 0, 0, 0];
    message.extend_from_slice(b"\x01z\x07Example\0\0\x06\0\x01");
    if let Some(serial) = serial {
        message.extend_from_slice(&[0xc0, 12, 0, 6, 0, 1, 0, 0, 0, 0, 0, 24]);
        message.extend_from_slice(&[0xc0, 12, 0xc0, 12]);
        message.extend_from_slice(&serial.to_be_bytes());
        message.extend_from_slice(&[0; 16]);
    }
    message
}

fn recipients() -> Recipients {
    Recipients {
        primary: "198.18.0.2".parse().unwrap(),
        secondaries: HashMap::from([("198.18.1.1".parse().unwrap(), 4)]),
        zones: HashMap::from([(b"\x01z\x07example\0".as_slice().into(), 8)]),
    }
}

#[test]
fn the_primarys_notify_names_secondary_zone_and_serial() {
    let (primary, local) = ("198.18.0.2".parse().unwrap(), "198.18.1.1".parse().unwrap());
    for serial in [None, Some(0), Some(u32::MAX)] {
        let message = notify(serial);
        let (reply, what) = recipients().judge(&message, primary, local).unwrap();
        assert_eq!(what, Some((4, 8, serial)));
        assert_eq!(reply[..4], [7, 9, QR | NOTIFY | AA, 0]);
        assert_eq!(reply[4..], notify(None)[4..], "the question, and nothing behind it");
    }
    assert_eq!(recipients().judge(&notify(None), local, local), None, "from somebody else");
    assert_eq!(recipients().judge(&notify(None), primary, primary), None, "to nobody");
}

#[test]
fn a_zone_that_nobody_transfers_is_refused() {
    let mut message = notify(None);
    message[13] = b'y';
    let (reply, what) =
        recipients().judge(&message, "198.18.0.2".parse().unwrap(), "198.18.1.1".parse().unwrap()).unwrap();
    assert_eq!((reply[3], what), (Rcode::NOTAUTH.to_int(), None));
}

#[test]
fn an_answer_is_no_notify() {
    let message = notify(None);
    let reply = answer(&message, true).unwrap();
    assert_eq!(read(&reply), None, "two of us would talk for ever");
}

#[test]
fn a_connection_on_which_no_notify_comes_is_closed() {
    let (local, zones) = (IpAddr::from([127, 0, 0, 1]), Zones::named(&["example".to_owned()]).unwrap());
    let poller = Poller::new().unwrap();
    let mut receiver = NotifyReceiver::open(local, &[], &zones, 0, &poller).unwrap();
    let port = receiver.tcp.local_addr().unwrap().port();
    let mut streams = [0, 1].map(|_| TcpStream::connect((local, port)).unwrap());
    streams.iter().for_each(|stream| stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap());
    receiver.event(TCP, 0, &poller, |_, _, _| ()).unwrap();
    // Before the time is over a NOTIFY comes on the first, and on the second another message and part of one.
    let mut framed = Vec::new();
    framing::append(&mut framed, &notify(None));
    streams[0].write_all(&framed).unwrap();
    streams[1].write_all(&[0, 1, 7, 0]).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    for key in receiver.open.keys().collect::<Vec<_>>() {
        let number = NOTIFY_NUMBERS + 2 + key.data().as_ffi();
        receiver.event(number, IDLE_NS / 2, &poller, |_, _, _| ()).unwrap();
    }
    receiver.sweep(IDLE_NS, &poller).unwrap();
    assert_eq!(streams[1].read(&mut [0; 1]).unwrap(), 0, "closed");
    assert_eq!((receiver.connection_counts.accepted, receiver.connection_counts.idle), (2, 1));
    receiver.sweep(2 * IDLE_NS, &poller).unwrap();
    let mut answer = Vec::new();
    streams[0].read_to_end(&mut answer).unwrap();
    assert_eq!((answer.len() > HEADER_BYTES, receiver.connection_counts.idle), (true, 2));
}

#[test]
fn a_name_that_is_cut_is_no_notify() {
    let message = notify(None);
    assert!((0..message.len()).all(|cut| read(&message[..cut]).is_none()));
    // A pointer whose second byte is missing, which the message ends with.
    assert_eq!(read(&[&message[..HEADER_BYTES], b"\x01z\xc0"].concat()), None);
}

/// The NOTIFY as another library reads it.
fn read_by_domain(message: &[u8]) -> Option<Notify> {
    let message = Message::from_octets(message).ok()?;
    let question = message.sole_question().ok()?;
    let is_notify = !message.header().qr() && message.header().opcode() == Opcode::NOTIFY;
    if !is_notify || (question.qtype(), question.qclass()) != (Rtype::SOA, Class::IN) {
        return None;
    }
    let zone = question.qname().to_vec().as_slice().to_ascii_lowercase();
    let hint = message.answer().ok()?.limit_to_in::<rdata::Soa<ParsedName<_>>>().next().and_then(Result::ok);
    Some(Notify { zone, serial: hint.map(|soa| soa.data().serial().into_int()) })
}

/// The answer as another library writes it.
fn answered_by_domain(message: &[u8], rcode: Rcode) -> Vec<u8> {
    let message = Message::from_octets(message).unwrap();
    let mut answer = MessageBuilder::new_vec().start_answer(&message, rcode).unwrap();
    answer.header_mut().set_aa(true);
    answer.header_mut().set_rd(false);
    answer.finish()
}

/// A NOTIFY is read as another library reads it, and acted on if its zone is known. The other library takes a name that
/// is compressed in the question, where there is nothing to point to, and follows pointers into the very name that they
/// end; here owners of records are not looked at.
#[test]
fn harmed_notifies_are_read_as_another_library_reads_them() {
    let mut corpus = vec![notify(None), notify(Some(7))];
    corpus.extend(messages());
    let (primary, local) = ("198.18.0.2".parse().unwrap(), "198.18.1.1".parse().unwrap());
    let recipients = recipients();
    let mut agreed = 0;
    fuzz(5_000, &corpus, |bytes, _| {
        let (judged, other) = (recipients.judge(bytes, primary, local), read_by_domain(bytes));
        agreed += u32::from(read(bytes) == other);
        let Some(found) = read(bytes) else {
            assert_eq!(judged, None);
            assert!(other.is_none_or(|other| !bytes[HEADER_BYTES..].to_ascii_lowercase().starts_with(&other.zone)));
            return;
        };
        let other = other.expect("what is read here is read by the other library");
        assert!(found == other || (found.zone == other.zone && (found.serial.is_none() || other.serial.is_none())));
        let (reply, what) = judged.unwrap();
        let is_known = found.zone == b"\x01z\x07example\0";
        assert_eq!(read(&reply), None, "two of us would talk for ever");
        assert_eq!(reply, answered_by_domain(bytes, if is_known { Rcode::NOERROR } else { Rcode::NOTAUTH }));
        assert_eq!(what, is_known.then_some((4, 8, found.serial)));
    });
    assert!(agreed > 4_800, "{agreed} of 5,000");
}
