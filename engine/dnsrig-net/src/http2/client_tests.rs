use super::*;
use crate::http2::{
    Method, Path, Server, ServerFault,
    frame::PREFACE,
    hpack::{Encoder, names},
    peer::{IDLE_FRAMES_MAX, REQUEST_FRAMES, WINDOW},
};

fn requests(method: Method) -> Arc<Requests> {
    Arc::new(Requests::new(method, "dns.example".into(), &Path::parse("/dns-query{?dns}").unwrap()))
}

fn client() -> Client {
    Client::new(requests(Method::Post))
}

fn query(id: u16) -> Vec<u8> {
    [&id.to_be_bytes()[..], b"a question"].concat()
}

/// A server that is written by hand: frames that it sends.
#[derive(Default)]
struct Script(Vec<u8>, Encoder);

impl Script {
    /// Settings come first.
    fn new(settings: &[(u16, u32)]) -> Self {
        let bytes = settings
            .iter()
            .flat_map(|(name, value)| name.to_be_bytes().into_iter().chain(value.to_be_bytes()).collect::<Vec<_>>());
        Script::default().frame(frame::SETTINGS, 0, 0, &bytes.collect::<Vec<_>>())
    }

    fn frame(mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Self {
        frame::append(&mut self.0, kind, flags, stream, payload);
        self
    }

    fn block(&mut self, status: &[u8], content_type: &[u8]) -> Vec<u8> {
        let mut block = Vec::new();
        Encoder::plain(&mut block, names::STATUS_200, status);
        self.1.kept(&mut block, names::CONTENT_TYPE, content_type);
        block
    }

    fn headers(mut self, stream: u32, status: &str, content_type: &str, flags: u8) -> Self {
        let block = self.block(status.as_bytes(), content_type.as_bytes());
        self.frame(frame::HEADERS, frame::END_HEADERS | flags, stream, &block)
    }

    fn response(self, stream: u32, body: &[u8]) -> Self {
        self.headers(stream, "200", "application/dns-message", 0).frame(frame::DATA, frame::END_STREAM, stream, body)
    }

    fn reset(self, stream: u32, code: ErrorCode) -> Self {
        self.frame(frame::RST_STREAM, 0, stream, &code.0.to_be_bytes())
    }

    fn window(self, stream: u32, bytes: u32) -> Self {
        self.frame(frame::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
    }

    fn go_away(self, last: u32, code: ErrorCode) -> Self {
        self.frame(frame::GOAWAY, 0, 0, &[last.to_be_bytes(), code.0.to_be_bytes()].concat())
    }
}

/// What came of bytes.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    answers: Vec<Vec<u8>>,
    lost: Vec<(u16, Fault)>,
}

fn receive(client: &mut Client, bytes: &[u8]) -> Result<Outcome, Fault> {
    let mut outcome = Outcome::default();
    client.receive(bytes, |message| outcome.answers.push(message.to_vec()))?;
    outcome.lost.extend(client.take_lost());
    Ok(outcome)
}

/// The frames that a client has sent since the last call, without its preface.
fn sent(client: &mut Client) -> Vec<(Head, Vec<u8>)> {
    let output = std::mem::take(client.output());
    let output = output.strip_prefix(frame::PREFACE).unwrap_or(&output);
    let mut found = Vec::new();
    let each = |head: Head, payload: &[u8]| {
        found.push((head, payload.to_vec()));
        Ok(())
    };
    Frames::default().feed(output, each).unwrap();
    found
}

/// The kinds and streams of the frames that a client has sent since the last call.
fn kinds(client: &mut Client) -> Vec<(u8, u32)> {
    sent(client).into_iter().map(|(head, _)| (head.kind, head.stream)).collect()
}

/// A client with queries of the IDs from 100 on, and with nothing to send.
fn asked(count: u16) -> Client {
    let mut client = client();
    (100..100 + count).for_each(|id| client.request(&mut query(id)));
    sent(&mut client);
    client
}

#[test]
fn a_connection_begins_with_preface_settings_window_and_the_first_request() {
    let mut client = client();
    client.request(&mut query(7));
    assert!(client.output().starts_with(PREFACE));
    let frames = sent(&mut client);
    let found: Vec<_> = frames.iter().map(|(head, _)| (head.kind, head.stream)).collect();
    assert_eq!(found, [(frame::SETTINGS, 0), (frame::WINDOW_UPDATE, 0), (frame::HEADERS, 1), (frame::DATA, 1)]);
    assert_eq!(frames[3].1, query(0), "on the wire, the ID is 0");
    assert!(frames[3].0.has(frame::END_STREAM) && !frames[2].0.has(frame::END_STREAM));
    client.request(&mut query(8));
    let second = sent(&mut client);
    assert_eq!((second[0].0.stream, second[0].1.len()), (3, 11), "the second header block is indices, and a length");
}

#[test]
fn an_answer_has_the_id_of_the_query_of_its_stream() {
    let mut client = asked(3);
    let bytes = Script::new(&[]).response(5, b"\0\0third").response(1, b"\x12\x34first").0;
    let outcome = receive(&mut client, &bytes).unwrap();
    assert_eq!(outcome, Outcome { answers: vec![b"\0\x66third".to_vec(), b"\0\x64first".to_vec()], lost: vec![] });
    assert_eq!(kinds(&mut client), [(frame::SETTINGS, 0)], "settings are acknowledged");
    assert_eq!(client.exchanges.open, 1);
}

#[test]
fn a_response_may_come_in_any_pieces_with_padding_trailers_and_a_block_in_several_frames() {
    let mut script = Script::new(&[]);
    let block = script.block(b"200", b"application/dns-message; charset=utf-8");
    let (begin, end) = block.split_at(7);
    let padded = [&[3, 0, 0, 0, 0, 9][..], begin, b"pad"].concat();
    let bytes = script
        .headers(1, "103", "text/html", 0)
        .frame(frame::HEADERS, frame::PADDED | frame::WITH_PRIORITY, 1, &padded)
        .frame(frame::CONTINUATION, 0, 1, &end[..1])
        .frame(frame::CONTINUATION, frame::END_HEADERS, 1, &end[1..])
        .frame(frame::DATA, 0, 1, b"\0")
        .frame(0xbe, 0xff, 1, b"unknown")
        .frame(frame::DATA, frame::PADDED, 1, b"\x02\0ans..")
        .frame(frame::DATA, 0, 1, b"wer")
        .headers(1, "200", "trailers", frame::END_STREAM)
        .0;
    for cut in 0..bytes.len() {
        let mut client = asked(1);
        let (first, rest) = bytes.split_at(cut);
        let mut answers = receive(&mut client, first).unwrap().answers;
        answers.extend(receive(&mut client, rest).unwrap().answers);
        assert_eq!(answers, [b"\0\x64answer"], "cut at {cut}");
    }
}

#[test]
fn what_is_no_answer_is_lost_by_its_kind() {
    let mut client = asked(6);
    let bytes = Script::new(&[])
        .headers(1, "500", "application/dns-message", 0)
        .frame(frame::DATA, frame::END_STREAM, 1, b"not an answer")
        .headers(3, "200", "text/html", frame::END_STREAM)
        .reset(5, ErrorCode::REFUSED_STREAM)
        .response(7, b"")
        .response(9, b"\0")
        .headers(11, "2x0", "application/dns-message", frame::END_STREAM)
        .0;
    let lost = vec![
        (100, Fault::Status(500)),
        (101, Fault::ContentType),
        (102, Fault::Reset(ErrorCode::REFUSED_STREAM)),
        (103, Fault::Content),
        (104, Fault::Content),
        (105, Fault::Content),
    ];
    assert_eq!(receive(&mut client, &bytes).unwrap(), Outcome { answers: vec![], lost });
    assert_eq!((client.exchanges.open, client.exchanges.streams.len()), (0, 0));
    let late = Script::default().response(1, b"\0\0late").reset(1, ErrorCode::CANCEL).0;
    assert_eq!(receive(&mut client, &late).unwrap(), Outcome::default(), "the stream is closed");
}

#[test]
fn goodbye_loses_the_requests_that_the_server_did_not_look_at_and_no_others() {
    let mut client = asked(3);
    let bytes = Script::new(&[]).go_away(3, ErrorCode::NONE).0;
    let lost = vec![(102, Fault::GoAway(ErrorCode::NONE))];
    assert_eq!(receive(&mut client, &bytes).unwrap(), Outcome { answers: vec![], lost });
    assert!(client.is_over() && client.room() == 0);
    let answers = receive(&mut client, &Script::default().response(3, b"\0\0two").response(1, b"\0\0one").0).unwrap();
    assert_eq!(answers.answers.len(), 2);
}

#[test]
fn no_more_streams_are_open_than_the_server_permits() {
    let mut client = asked(3);
    assert_eq!(client.room(), 97, "before the settings come");
    receive(&mut client, &Script::new(&[(3, 4)]).0).unwrap();
    assert_eq!(client.room(), 1);
    receive(&mut client, &Script::new(&[(3, 1)]).0).unwrap();
    assert_eq!(client.room(), 0);
    receive(&mut client, &Script::default().response(1, b"\0\0a").response(3, b"\0\0b").response(5, b"\0\0c").0)
        .unwrap();
    assert_eq!(client.room(), 1);
    receive(&mut client, &Script::new(&[(3, u32::MAX)]).0).unwrap();
    assert_eq!(client.room(), STREAMS_MAX);
}

#[test]
fn a_stream_without_a_response_is_given_up_and_the_others_go_on() {
    let mut client = asked(1);
    client.sweep();
    client.request(&mut query(200));
    assert_eq!(kinds(&mut client), [(frame::HEADERS, 3), (frame::DATA, 3)]);
    client.sweep();
    assert_eq!(kinds(&mut client), [(frame::RST_STREAM, 1)]);
    let bytes = Script::new(&[]).response(1, b"\0\0late").response(3, b"\0\0in time").0;
    assert_eq!(receive(&mut client, &bytes).unwrap().answers, [b"\0\xc8in time"]);
}

#[test]
fn a_body_waits_for_windows_and_later_requests_wait_for_it() {
    let mut client = client();
    receive(&mut client, &Script::new(&[(4, 5)]).0).unwrap();
    client.request(&mut query(1));
    assert_eq!((client.room(), sent(&mut client).last().unwrap().1.len()), (0, 5), "as much as the window permits");
    receive(&mut client, &Script::default().window(1, 4).0).unwrap();
    assert_eq!((client.room(), sent(&mut client)[0].1.len()), (0, 4));
    receive(&mut client, &Script::new(&[(4, 8)]).0).unwrap();
    let frames = sent(&mut client);
    assert_eq!((frames[1].1.as_slice(), frames[1].0.flags), (&b"ion"[..], frame::END_STREAM), "{frames:?}");
    assert!(client.room() > 0);
    // A window may become negative (RFC 9113 §6.9.2).
    client.request(&mut query(2));
    receive(&mut client, &Script::new(&[(4, 0)]).window(3, 8).0).unwrap();
    assert_eq!((client.room(), client.exchanges.waiting.len()), (0, 1));
    receive(&mut client, &Script::default().window(3, 4).0).unwrap();
    assert_eq!(client.exchanges.waiting.len(), 0);
}

#[test]
fn a_response_to_half_a_request_ends_it() {
    let mut client = client();
    receive(&mut client, &Script::new(&[(4, 5)]).0).unwrap();
    client.request(&mut query(1));
    sent(&mut client);
    let outcome = receive(&mut client, &Script::default().headers(1, "413", "", frame::END_STREAM).0).unwrap();
    assert_eq!((outcome.lost, kinds(&mut client)), (vec![(1, Fault::Status(413))], vec![(frame::RST_STREAM, 1)]));
    assert!(client.exchanges.waiting.is_empty() && client.room() > 0);
}

#[test]
fn the_window_of_the_connection_is_replenished() {
    let mut client = client();
    receive(&mut client, &Script::new(&[]).0).unwrap();
    let (mut received, mut replenished) = (0, 0);
    for id in 0..1_000_u32 {
        client.request(&mut query(id as u16));
        let mut script = Script::default().headers(2 * id + 1, "200", "application/dns-message", 0);
        script.1 = Encoder::default();
        for _ in 0..3 {
            script = script.frame(frame::DATA, 0, 2 * id + 1, &[0; 16_384]);
        }
        script = script.frame(frame::DATA, frame::END_STREAM, 2 * id + 1, &[0; 8]);
        let outcome = receive(&mut client, &script.0).unwrap();
        received += outcome.answers[0].len();
        for (head, payload) in sent(&mut client) {
            if head.kind == frame::WINDOW_UPDATE && head.stream == 0 && id > 0 {
                replenished += u32::from_be_bytes(payload.try_into().unwrap()) as usize;
            }
        }
        assert!(received - replenished <= WINDOW / 2 + 3 * 16_384);
    }
    assert_eq!(received, 49_160_000);
}

#[test]
fn floods_end_the_connection() {
    let flood = |script: Script, kind: u8, payload: &[u8], count: u32| {
        let script = (0..count).fold(script, |script, _| script.frame(kind, 0, 0, payload));
        receive(&mut asked(1), &script.0)
    };
    let calm = Err(Fault::Protocol(ErrorCode::ENHANCE_YOUR_CALM));
    for (kind, payload) in
        [(frame::PING, &[0; 8][..]), (frame::SETTINGS, &[]), (frame::WINDOW_UPDATE, &[0, 0, 0, 1]), (0xbe, &[])]
    {
        let most = IDLE_FRAMES_MAX + REQUEST_FRAMES - 1;
        assert!(flood(Script::new(&[]), kind, payload, most).is_ok());
        assert_eq!(flood(Script::new(&[]), kind, payload, most + 1), calm);
    }
    let begun = Script::new(&[]).frame(frame::HEADERS, 0, 1, &[]);
    let continued = (0..9).fold(begun, |script, _| script.frame(frame::CONTINUATION, 0, 1, &[]));
    assert_eq!(receive(&mut asked(1), &continued.0), calm, "a flood of CONTINUATION");
    let long = Script::new(&[]).frame(frame::HEADERS, 0, 1, &[0; 9_000]).frame(frame::CONTINUATION, 0, 1, &[0; 9_000]);
    assert_eq!(receive(&mut asked(1), &long.0), calm);
}

#[test]
fn resets_and_updates_of_windows_for_each_request_are_no_flood() {
    let mut client = client();
    receive(&mut client, &Script::new(&[]).0).unwrap();
    for request in 0..2 * IDLE_FRAMES_MAX {
        client.request(&mut query(request as u16));
        receive(&mut client, &Script::default().reset(2 * request + 1, ErrorCode::REFUSED_STREAM).0).unwrap();
    }
    let first = client.exchanges.next();
    (0..IDLE_FRAMES_MAX).for_each(|id| client.request(&mut query(id as u16)));
    for request in 0..IDLE_FRAMES_MAX {
        let updates = Script::default().window(0, 1).window(first + 2 * request, 1);
        receive(&mut client, &updates.0).unwrap();
    }
}

#[test]
fn the_rest_of_a_body_is_cancelled_if_its_query_is_lost() {
    let mut client = asked(1);
    let bytes = Script::new(&[]).headers(1, "500", "text/html", 0).frame(frame::DATA, 0, 1, b"a long page").0;
    assert_eq!(receive(&mut client, &bytes).unwrap().lost, [(100, Fault::Status(500))]);
    assert_eq!((kinds(&mut client), client.exchanges.open), (vec![(frame::SETTINGS, 0), (frame::RST_STREAM, 1)], 0));
    let late = Script::default().frame(frame::DATA, frame::END_STREAM, 1, b"end").0;
    assert_eq!(receive(&mut client, &late).unwrap(), Outcome::default());
}

#[test]
fn a_body_of_another_length_than_announced_is_no_answer() {
    let outcome = |length: &[u8], parts: &[&[u8]]| {
        let mut script = Script::new(&[]);
        let mut block = script.block(b"200", b"application/dns-message");
        block.extend([&[0, 14][..], b"content-length", &[length.len() as u8], length].concat());
        script = script.frame(frame::HEADERS, frame::END_HEADERS, 1, &block);
        for (number, part) in parts.iter().enumerate() {
            let flags = if number + 1 == parts.len() { frame::END_STREAM } else { 0 };
            script = script.frame(frame::DATA, flags, 1, part);
        }
        receive(&mut asked(1), &script.0).unwrap()
    };
    for parts in [&[&b"\0\0answer"[..]][..], &[b"\0\0ans", b"wer"]] {
        assert_eq!(outcome(b"8", parts).answers, [b"\0\x64answer"]);
        for wrong in [&b"7"[..], b"9", b"x"] {
            assert_eq!(outcome(wrong, parts), Outcome { answers: vec![], lost: vec![(100, Fault::Content)] });
        }
    }
}

#[test]
fn what_breaks_the_protocol_ends_the_connection_with_its_code() {
    let message = "application/dns-message";
    let protocol = ErrorCode::PROTOCOL;
    let two = [0, 1, 0, 0, 0, 0];
    for (script, code) in [
        (Script::default().frame(frame::PING, 0, 0, &[0; 8]), protocol),
        (Script::new(&[]).response(3, b"\0\0never asked"), protocol),
        (Script::new(&[]).headers(2, "200", message, 0), protocol),
        (Script::new(&[]).reset(3, protocol), protocol),
        (Script::new(&[]).frame(frame::DATA, 0, 1, b"before headers"), protocol),
        (Script::new(&[]).headers(1, "200", message, 0).headers(1, "200", message, 0), protocol),
        (Script::new(&[]).frame(frame::PUSH_PROMISE, frame::END_HEADERS, 1, &[0, 0, 0, 2]), protocol),
        (Script::new(&[]).frame(frame::CONTINUATION, 0, 1, &[]), protocol),
        (Script::new(&[]).frame(frame::HEADERS, 0, 1, &[]).frame(frame::PING, 0, 0, &[0; 8]), protocol),
        (Script::new(&[]).window(0, 0), protocol),
        (Script::new(&[(2, 2)]), protocol),
        (Script::new(&[(5, 16_383)]), protocol),
        (Script::new(&[]).frame(frame::DATA, frame::PADDED, 1, &[1]), protocol),
        (Script::new(&[]).window(0, 0x7fff_ffff), ErrorCode::FLOW_CONTROL),
        (Script::new(&[(4, 0x8000_0000)]), ErrorCode::FLOW_CONTROL),
        (Script::default().frame(frame::SETTINGS, 0, 0, &two[..5]), ErrorCode::FRAME_SIZE),
        (Script::new(&[]).frame(frame::PING, 0, 0, &[0; 7]), ErrorCode::FRAME_SIZE),
        (Script::new(&[]).frame(frame::GOAWAY, 0, 0, &[0; 7]), ErrorCode::FRAME_SIZE),
        (Script::new(&[]).frame(frame::PRIORITY, 0, 1, &[0; 4]), ErrorCode::FRAME_SIZE),
        (Script::new(&[]).frame(frame::HEADERS, frame::END_HEADERS, 1, &[0x80]), ErrorCode::COMPRESSION),
    ] {
        let mut client = asked(1);
        assert_eq!(receive(&mut client, &script.0), Err(Fault::Protocol(code)), "{:02x?}", script.0);
        let (head, payload) = sent(&mut client).pop().unwrap();
        assert_eq!((head.kind, &payload[4..]), (frame::GOAWAY, &code.0.to_be_bytes()[..]));
    }
    let long = Script::new(&[]).headers(1, "200", message, 0);
    let long = (0..5).fold(long, |script, _| script.frame(frame::DATA, 0, 1, &[0; 16_000]));
    assert_eq!(receive(&mut asked(1), &long.0), Err(Fault::Protocol(ErrorCode::FLOW_CONTROL)), "a body is too long");
}

/// Carries bytes both ways until neither side has more. The server answers queries with themselves. Returns what came
/// of them.
fn carry(client: &mut Client, server: &mut Server) -> Outcome {
    let mut outcome = Outcome::default();
    loop {
        let up = std::mem::take(client.output());
        let mut queries = Vec::new();
        server.receive(&up, |query| queries.push(query.to_vec())).unwrap();
        queries.iter().for_each(|query| server.respond(query));
        let down = std::mem::take(server.output());
        if up.is_empty() && down.is_empty() {
            return outcome;
        }
        let Outcome { answers, lost } = receive(client, &down).unwrap();
        outcome.answers.extend(answers);
        outcome.lost.extend(lost);
    }
}

#[test]
fn a_client_and_a_server_understand_each_other_with_both_methods() {
    for method in [Method::Get, Method::Post] {
        let (mut client, mut server) = (Client::new(requests(method)), Server::new(None));
        for round in 0..3 {
            let ids = round * 50..(round + 1) * 50;
            ids.clone().for_each(|id| client.request(&mut query(id)));
            let expected: Vec<_> = ids.map(query).collect();
            assert_eq!(carry(&mut client, &mut server), Outcome { answers: expected, lost: vec![] }, "{method:?}");
        }
    }
}

#[test]
fn long_messages_pass_both_ways() {
    let (mut client, mut server) = (client(), Server::new(None));
    let long: Vec<_> = (0..40_u8).map(|id| [&[0, id][..], &[id; 65_533]].concat()).collect();
    carry(&mut client, &mut server);
    // The window of the connection at the server has room for all of them by now.
    long.iter().for_each(|message| client.request(&mut message.clone()));
    assert!(carry(&mut client, &mut server).answers == long);
    assert_eq!(client.exchanges.open, 0);
}

#[test]
fn what_a_server_does_wrong_on_purpose_is_seen() {
    let outcome = |fault: &str, count: u16| {
        let (mut client, mut server) = (client(), Server::new(Some(fault.parse().unwrap())));
        carry(&mut client, &mut server);
        (1..=count).for_each(|id| client.request(&mut query(id)));
        (carry(&mut client, &mut server), client, server)
    };
    let lost = |fault: &str| outcome(fault, 1).0.lost;
    assert_eq!(lost("status=503"), [(1, Fault::Status(503))]);
    assert_eq!(lost("content-type"), [(1, Fault::ContentType)]);
    assert_eq!(lost("reset"), [(1, Fault::Reset(ErrorCode::INTERNAL))]);
    let (gone, client, _) = outcome("goaway=2", 3);
    assert_eq!((gone.answers.len(), gone.lost), (2, vec![(3, Fault::GoAway(ErrorCode::NONE))]));
    assert!(client.is_over());
    assert_eq!(outcome("streams=1", 0).1.room(), 1);
    let (cut, client, server) = outcome("cut=2", 3);
    assert_eq!((cut.answers.len(), client.exchanges.open, server.is_over()), (1, 2, true));
    for wrong in ["", "goaway", "goaway=0", "status=299", "status=600", "streams=1025", "cut=x", "rst"] {
        assert!(wrong.parse::<ServerFault>().is_err(), "{wrong}");
    }
}

#[test]
fn a_server_refuses_what_is_no_query() {
    let ask = |method: Method, path: &str| {
        let requests = Requests::new(method, "dns.example".into(), &Path::parse(path).unwrap());
        let (mut client, mut server) = (Client::new(Arc::new(requests)), Server::new(None));
        client.request(&mut query(1));
        carry(&mut client, &mut server).lost
    };
    assert_eq!(ask(Method::Post, "/query"), [(1, Fault::Status(404))]);
    assert_eq!(ask(Method::Get, "/dns-query?dns=*&a=1"), [(1, Fault::Status(400))]);
}

#[test]
fn more_requests_than_a_server_permits_are_refused() {
    let (mut client, mut server) = (client(), Server::new(Some(ServerFault::Streams(1))));
    (1..=3).for_each(|id| client.request(&mut query(id)));
    let up = std::mem::take(client.output());
    server.receive(&up, |_| {}).unwrap();
    let outcome = receive(&mut client, &std::mem::take(server.output())).unwrap();
    assert_eq!(outcome.lost, [2, 3].map(|id| (id, Fault::Reset(ErrorCode::REFUSED_STREAM))));
    assert_eq!(client.room(), 0);
}

#[test]
fn a_late_answer_does_not_go_to_another_request() {
    let (mut client, mut server) = (client(), Server::new(None));
    let mut tagged = Vec::new();
    client.request(&mut query(1));
    server.receive(&std::mem::take(client.output()), |query| tagged.push(query.to_vec())).unwrap();
    client.sweep();
    client.sweep();
    client.request(&mut query(2));
    server.receive(&std::mem::take(client.output()), |query| tagged.push(query.to_vec())).unwrap();
    tagged.iter().for_each(|query| server.respond(query));
    let outcome = receive(&mut client, &std::mem::take(server.output())).unwrap();
    assert_eq!(outcome.answers, [query(2)]);
}
