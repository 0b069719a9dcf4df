//! `probe identify`: whether a server is there, over which transports, and which version it reports.
//!
//! [`read`] decides what a message means; this file has the sockets, which wait for --timeout each at most.

use std::{
    io::{self, Write},
    net::{IpAddr, SocketAddr, TcpStream, UdpSocket},
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use dnsrig_core::{clock, events, failure::Failure, target, units::duration};
use dnsrig_dns::{
    framing,
    header::Header,
    query::Question,
    record::{Section, Walk},
};
use dnsrig_net::{udp_batch::is_unreachable, udp_client};
use domain::base::{
    Rtype,
    iana::{Class, Rcode},
};
use serde::Serialize;

use super::receive;

/// What many servers answer in the class CH: RFC 4892 for `id.server`; BIND's `version.bind` is the custom of most.
const VERSION: &[u8] = b"\x07version\x04bind\0";
const IDENTITY: &[u8] = b"\x02id\x06server\0";

/// The most characters of a text that are kept: it is untrusted.
const TEXT_CHARACTERS_MAX: usize = 100;

/// The longest answer that is read: both questions are answered with a short text.
const MESSAGE_BYTES_MAX: usize = 4096;

/// Each question over UDP is sent once more after this time.
const AGAIN: Duration = Duration::from_millis(300);

/// The pause between two looks at the UDP sockets.
const PAUSE: Duration = Duration::from_millis(2);

/// Ask a server who it is: version, identity, and the transports over which it answers.
///
/// `probe identify` sends at most six queries: `version.bind` and `id.server`, TXT in the class CH, over UDP and TCP.
/// With --dot-port or --doh-port it opens one connection to that port, and sends nothing there. A summary has for each
/// transport:
/// `answers`, `refused` (the port is closed), `silent`, or `elsewhere` (the answer came from another address, which
/// clients do not take). For TLS and HTTPS, `open` is the best that it says.
///
/// Exit codes: 0 the server was asked, even if it never answered, 2 bad input, 1 other errors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  dnsrig probe identify 127.0.0.1:5300 --dot-port 8853")]
pub struct Arguments {
    /// Server to ask: an IP address and optionally a port
    #[arg(value_name = "ADDRESS[:PORT]", value_parser = target::parse)]
    server: SocketAddr,
    /// Port for TCP [default: the port for UDP]
    #[arg(long, value_name = "PORT")]
    tcp_port: Option<u16>,
    /// Port for DNS over TLS [default: it is not looked for]
    #[arg(long, value_name = "PORT")]
    dot_port: Option<u16>,
    /// Port for DNS over HTTPS [default: it is not looked for]
    #[arg(long, value_name = "PORT")]
    doh_port: Option<u16>,
    /// Time to wait for answers, for each transport
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration(Duration::from_millis(1)..=Duration::from_secs(10)))]
    timeout: Duration,
    /// IP address that you are allowed to ask. Not needed for loopback, nor for 198.18.0.0/15 and 2001:2::/48 if
    /// packets stay on this machine
    #[arg(long, value_name = "ADDRESS")]
    i_am_authorized: Option<IpAddr>,
}

/// How a server behaves over a transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Answers,
    /// The answer came from another address.
    Elsewhere,
    /// A connection can be opened.
    Open,
    /// The port is closed.
    Refused,
    #[default]
    Silent,
}

#[derive(Debug, Default, Serialize)]
struct Summary {
    udp: State,
    /// The other address that answered over UDP.
    answered_from: Option<SocketAddr>,
    tcp: State,
    dot: Option<State>,
    doh: Option<State>,
    version: Option<String>,
    identity: Option<String>,
    /// The response code of the last answer.
    rcode: Option<String>,
}

impl Summary {
    fn take(&mut self, answer: Answer) {
        self.rcode = Some(Rcode::masked_from_int(answer.rcode).to_string());
        let place = if answer.is_version { &mut self.version } else { &mut self.identity };
        *place = answer.text.or(place.take());
    }
}

/// An answer to one of the questions.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    is_version: bool,
    rcode: u8,
    text: Option<String>,
}

/// Asks over all transports, and prints what was found.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    target::authorise(arguments.server.ip(), arguments.i_am_authorized)?;
    let mut found = Summary::default();
    let wait = arguments.timeout;
    ask_udp(arguments.server, wait, &mut found)?;
    let at = |port| SocketAddr::new(arguments.server.ip(), port);
    found.tcp = ask_tcp(at(arguments.tcp_port.unwrap_or(arguments.server.port())), wait, &mut found);
    let look = |port| match TcpStream::connect_timeout(&at(port), wait) {
        Ok(_) => State::Open,
        Err(error) => state_of(&error),
    };
    (found.dot, found.doh) = (arguments.dot_port.map(look), arguments.doh_port.map(look));
    events::summary(clock::monotonic_ns(), &found)?;
    Ok(ExitCode::SUCCESS)
}

/// Asks by two sockets: a connected one hears that the port is closed, the other one hears answers from elsewhere.
fn ask_udp(server: SocketAddr, wait: Duration, found: &mut Summary) -> Result<(), Failure> {
    let (connected, open) = (udp_client::connect(server, None)?, udp_client::bind(server, None)?);
    let (started, mut sent) = (Instant::now(), 0);
    let mut buffer = [0; MESSAGE_BYTES_MAX];
    while started.elapsed() < wait && (found.udp != State::Answers || found.identity.is_none()) {
        if started.elapsed() >= AGAIN * sent && sent < 2 {
            sent += 1;
            // What is not sent is not answered either; that the port is closed is heard below.
            let _ = connected.send(&query(VERSION));
            let _ = open.send_to(&query(IDENTITY), server);
        }
        match connected.recv(&mut buffer) {
            Ok(bytes) => {
                if let Some(answer) = read(&buffer[..bytes]) {
                    found.udp = State::Answers;
                    found.take(answer);
                }
            }
            Err(error) if is_unreachable(&error) => {
                found.udp = State::Refused;
                break;
            }
            Err(_) => (),
        }
        hear_from_anyone(&open, server, &mut buffer, found);
        thread::sleep(PAUSE);
    }
    Ok(())
}

fn hear_from_anyone(open: &UdpSocket, server: SocketAddr, buffer: &mut [u8], found: &mut Summary) {
    let Ok((bytes, from)) = open.recv_from(buffer) else { return };
    let Some(answer) = read(&buffer[..bytes]) else { return };
    if from == server {
        // A server may answer this question alone.
        found.udp = State::Answers;
    } else if found.udp == State::Silent {
        (found.udp, found.answered_from) = (State::Elsewhere, Some(from));
    }
    found.take(answer);
    // An error is as an answer.
    found.identity.get_or_insert_default();
}

fn ask_tcp(server: SocketAddr, wait: Duration, found: &mut Summary) -> State {
    let deadline = Instant::now() + wait;
    let mut connection = match TcpStream::connect_timeout(&server, wait) {
        Ok(connection) => connection,
        Err(error) => return state_of(&error),
    };
    let mut asked = Vec::new();
    framing::append(&mut asked, &query(VERSION));
    let answer = connection.write_all(&asked).and_then(|()| receive::message(&mut connection, deadline));
    match answer.ok().and_then(|answer| read(&answer)) {
        Some(answer) => {
            found.take(answer);
            State::Answers
        }
        None => State::Silent,
    }
}

fn state_of(error: &io::Error) -> State {
    if error.kind() == io::ErrorKind::ConnectionRefused { State::Refused } else { State::Silent }
}

/// A question for a text in the class CH. Its id tells the questions apart.
fn query(name: &[u8]) -> Vec<u8> {
    let mut message = Header { id: id_of(name), questions: 1, ..Header::default() }.to_bytes().to_vec();
    message.extend_from_slice(name);
    message.extend_from_slice(&Rtype::TXT.to_int().to_be_bytes());
    message.extend_from_slice(&Class::CH.to_int().to_be_bytes());
    message
}

fn id_of(name: &[u8]) -> u16 {
    u16::from_be_bytes([name[0], name[1]])
}

/// What `message` answers; None if it is no response to one of the questions. A server that refuses may leave the
/// question out.
fn read(message: &[u8]) -> Option<Answer> {
    let header = Header::read(message).ok().filter(Header::is_response)?;
    let name = [VERSION, IDENTITY].into_iter().find(|name| id_of(name) == header.id)?;
    let mut walk = Walk::new(message);
    if header.questions > 0 {
        let question = Question::read(message).ok()?;
        if header.questions > 1 || !question.name().eq_ignore_ascii_case(name) {
            return None;
        }
        walk = Walk::from(message, question.end());
    }
    let texts = walk.records(&header).map_while(Result::ok).filter_map(|(section, record)| {
        (section == Section::Answer && record.rtype == Rtype::TXT).then(|| text(record.data())).flatten()
    });
    let text = { texts }.next();
    Some(Answer { is_version: name == VERSION, rcode: header.rcode, text })
}

/// The first string of the data of a TXT record (RFC 1035 §3.3.14), without control characters; None if it is empty.
fn text(data: &[u8]) -> Option<String> {
    let (length, rest) = data.split_first()?;
    let string = String::from_utf8_lossy(rest.get(..usize::from(*length))?).into_owned();
    let shown: String = string.chars().filter(|each| !each.is_control()).take(TEXT_CHARACTERS_MAX).collect();
    let shown = shown.trim();
    (!shown.is_empty()).then(|| shown.to_owned())
}

#[cfg(test)]
mod tests {
    use std::{io::Read as _, net::TcpListener};

    use dnsrig_dns::testing::messages;
    use dnsrig_testing::fuzz::fuzz;

    use super::*;

    /// An answer to `name` with the data of one TXT record.
    fn answer(name: &[u8], rcode: u8, data: &[u8]) -> Vec<u8> {
        let mut message = query(name);
        (message[2], message[3], message[7]) = (0x80, rcode, u8::from(!data.is_empty()));
        if !data.is_empty() {
            message.extend_from_slice(&[0xc0, 12, 0, 16, 0, 3, 0, 0, 0, 0, 0, data.len() as u8]);
            message.extend_from_slice(data);
        }
        message
    }

    #[test]
    fn a_text_is_read_and_cleaned() {
        let found = |data: &[u8]| read(&answer(VERSION, 0, data)).unwrap().text;
        assert_eq!(found(b"\x0eunbound 1.22.0"), Some("unbound 1.22.0".into()));
        assert_eq!(found(b"\x05a\x1b[1mbeyond"), Some("a[1m".into()));
        assert_eq!(found(b"\x00"), None);
        assert_eq!(found(b"\x09short"), None);
        assert_eq!(found(&[&[250], &[b'x'; 250][..]].concat()).unwrap().len(), TEXT_CHARACTERS_MAX);
    }

    #[test]
    fn a_refusal_is_an_answer_and_other_messages_are_none() {
        let refused = Some(Answer { is_version: false, rcode: 5, text: None });
        assert_eq!(read(&answer(IDENTITY, 5, b"")), refused);
        let mut bare = answer(IDENTITY, 5, b"");
        bare.truncate(12);
        bare[5] = 0;
        assert_eq!(read(&bare), refused);
        assert_eq!(read(&query(VERSION)), None, "a query");
        let mut other = answer(VERSION, 0, b"\x01a");
        other[0] ^= 1;
        assert_eq!(read(&other), None, "an id of nobody");
        other[..2].copy_from_slice(&id_of(IDENTITY).to_be_bytes());
        assert_eq!(read(&other), None, "another question");
    }

    #[test]
    fn an_answer_that_comes_byte_by_byte_has_no_more_time_than_another() {
        let ask = |wait_ms: u64, pause: Duration| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let server = listener.local_addr().unwrap();
            let mut bytes = Vec::new();
            framing::append(&mut bytes, &answer(VERSION, 0, b"\x0eunbound 1.22.0"));
            let sends = move || {
                let (mut connection, _) = listener.accept().unwrap();
                // What was not read would be answered by a reset.
                connection.read_exact(&mut [0; 32]).unwrap();
                for byte in bytes {
                    thread::sleep(pause);
                    if connection.write_all(&[byte]).is_err() {
                        break;
                    }
                }
            };
            let sending = thread::spawn(sends);
            let state = ask_tcp(server, Duration::from_millis(wait_ms), &mut Summary::default());
            sending.join().unwrap();
            state
        };
        assert_eq!(ask(10_000, Duration::ZERO), State::Answers);
        assert_eq!(ask(100, Duration::from_millis(40)), State::Silent);
    }

    #[test]
    fn harmed_answers_do_no_harm() {
        let mut corpus = vec![answer(VERSION, 0, b"\x0eunbound 1.22.0"), answer(IDENTITY, 5, b"")];
        corpus.extend(messages());
        let mut texts = 0;
        fuzz(20_000, &corpus, |bytes, _| {
            let text = read(bytes).and_then(|answer| answer.text);
            assert!(text.as_ref().is_none_or(|text| text.chars().count() <= TEXT_CHARACTERS_MAX));
            texts += usize::from(text.is_some());
        });
        assert!(texts > 10, "{texts} of 20,000");
    }
}
