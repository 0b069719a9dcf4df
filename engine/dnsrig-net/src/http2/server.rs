//! The server's side of a connection: requests become queries, and answers become responses.

use std::{collections::HashMap, str::FromStr};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};

use super::{
    fault::ErrorCode,
    frame::{self, Frames, Head, PREFACE},
    hpack::{Encoder, names},
    peer::{BODY_BYTES_MAX, Event, Peer, Unsent},
    request::{MEDIA_TYPE, content_length, is_message},
};

/// The number of bits of an ID that are the place of a stream. The others differ from one stream at a place to the
/// next, so that a late answer does not go to another request.
const PLACE_BITS: u32 = 10;

/// The number of streams that a client may have open at a time.
const STREAMS_MAX: u32 = 1 << PLACE_BITS;

/// The path that queries are asked at.
const PATH: &[u8] = b"/dns-query";

/// The length of a message ID.
const ID_BYTES: usize = 2;

/// What a server does wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerFault {
    /// GOAWAY after this number of requests: further ones are not answered.
    GoAway(u32),
    /// A client may have this number of streams open.
    Streams(u32),
    /// Every response has this status.
    Status(u16),
    /// Every response is `text/html`.
    ContentType,
    /// Every stream is reset.
    Reset,
    /// The connection ends in the middle of this response, counted from the first.
    Cut(u32),
}

impl FromStr for ServerFault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, number) = text.split_once('=').map_or((text, None), |(name, number)| (name, Some(number)));
        let number = |least: u32, most: u32| {
            let number = number.and_then(|number| number.parse().ok());
            number
                .filter(|number| (least..=most).contains(number))
                .ok_or_else(|| format!("expected {name}=N, with N from {least} to {most}"))
        };
        match name {
            "goaway" => number(1, u32::MAX).map(ServerFault::GoAway),
            "streams" => number(1, STREAMS_MAX).map(ServerFault::Streams),
            "status" => number(300, 599).map(|status| ServerFault::Status(status as u16)),
            "cut" => number(1, u32::MAX).map(ServerFault::Cut),
            "content-type" => Ok(ServerFault::ContentType),
            "reset" => Ok(ServerFault::Reset),
            _ => Err("expected goaway=N, streams=N, status=N, content-type, reset or cut=N".into()),
        }
    }
}

/// A request that is not answered completely.
struct Stream {
    number: u32,
    /// The ID of its query.
    id: [u8; ID_BYTES],
    /// The ID that its query has here.
    tag: u16,
    body: Vec<u8>,
    unsent: Option<Unsent>,
}

/// The fields of a request that matter.
#[derive(Debug, Default)]
struct Request {
    method: Vec<u8>,
    path: Vec<u8>,
    has_message: bool,
}

impl Request {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b":method" => self.method = value.to_vec(),
            b":path" => self.path = value.to_vec(),
            b"content-type" => self.has_message = is_message(value),
            _ => {}
        }
    }

    /// The query in the path (GET). None: it is in the body (POST). An error is the status of the response.
    fn query(&self) -> Result<Option<Vec<u8>>, u16> {
        let mut parts = self.path.splitn(2, |byte| *byte == b'?');
        if parts.next() != Some(PATH) {
            return Err(404);
        }
        match self.method.as_slice() {
            b"POST" => {
                if self.has_message {
                    Ok(None)
                } else {
                    Err(415)
                }
            }
            b"GET" => {
                let mut variables = parts.next().unwrap_or_default().split(|byte| *byte == b'&');
                let query = variables.find_map(|variable| variable.strip_prefix(b"dns=")).ok_or(400_u16)?;
                BASE64_URL_SAFE_NO_PAD.decode(query).map(Some).map_err(|_| 400)
            }
            _ => Err(405),
        }
    }
}

/// The server's side of one connection.
pub struct Server {
    frames: Frames,
    /// How much of the preface has come.
    preface: usize,
    peer: Peer,
    exchanges: Exchanges,
}

impl Server {
    /// A server on a connection that was accepted.
    pub fn new(fault: Option<ServerFault>) -> Self {
        let streams_max = if let Some(ServerFault::Streams(most)) = fault { most } else { STREAMS_MAX };
        let peer = Peer::new(Vec::new(), &Peer::server_settings(streams_max));
        let exchanges = Exchanges {
            fault,
            streams_max: streams_max as usize,
            streams: Vec::new(),
            free: Vec::new(),
            places: HashMap::new(),
            last: 0,
            requests: 0,
            responses: 0,
            is_cut: false,
        };
        Server { frames: Frames::default(), preface: 0, peer, exchanges }
    }

    /// What is to be sent. The caller takes it out.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.peer.out
    }

    /// Whether the connection is to be closed as soon as the output was sent.
    pub fn is_over(&self) -> bool {
        self.exchanges.is_cut
    }

    /// Takes in bytes from the client. `query` gets each query with an ID that [`Server::respond`] finds its stream by.
    /// After a failure the connection is to be closed as soon as the output was sent.
    pub fn receive(&mut self, bytes: &[u8], mut query: impl FnMut(&[u8])) -> Result<(), ErrorCode> {
        let (begun, rest) = bytes.split_at(bytes.len().min(PREFACE.len() - self.preface));
        if !PREFACE[self.preface..].starts_with(begun) {
            return Err(ErrorCode::PROTOCOL);
        }
        self.preface += begun.len();
        let Server { frames, peer, exchanges, .. } = self;
        let fed = frames.feed(rest, |head, payload| exchanges.frame(peer, head, payload, &mut query));
        fed.inspect_err(|code| self.peer.fail(self.exchanges.last, *code))
    }

    /// Sends an answer, which has the ID that its query was given. If the client has given its request up, nothing is
    /// sent.
    pub fn respond(&mut self, answer: &[u8]) {
        self.exchanges.respond(answer, &mut self.peer);
    }
}

/// The requests of a connection.
struct Exchanges {
    fault: Option<ServerFault>,
    streams_max: usize,
    /// Open streams.
    streams: Vec<Option<Stream>>,
    free: Vec<usize>,
    places: HashMap<u32, usize>,
    /// The highest number of a stream.
    last: u32,
    requests: u32,
    responses: u32,
    is_cut: bool,
}

impl Exchanges {
    fn frame(
        &mut self,
        peer: &mut Peer,
        head: Head,
        payload: &[u8],
        query: &mut impl FnMut(&[u8]),
    ) -> Result<(), ErrorCode> {
        let mut request = Request::default();
        match peer.take(head, payload, |name, value| request.field(name, value))? {
            Event::Nothing | Event::GoAway { .. } => {}
            Event::Headers { stream, ends } => self.headers(peer, stream, &request, ends, query)?,
            Event::Data { stream, bytes, ends } => self.data(peer, stream, bytes, ends, query)?,
            Event::Reset { stream, .. } => {
                if stream > self.last {
                    return Err(ErrorCode::PROTOCOL);
                }
                self.close(stream);
            }
            Event::Window { stream, bytes } => {
                let place = self.places.get(&stream);
                if let Some(stream) = place.and_then(|place| self.streams[*place].as_mut())
                    && let Some(unsent) = &mut stream.unsent
                {
                    unsent.widen(bytes);
                }
                self.go_on(peer);
            }
            Event::Windows { bytes } => {
                self.streams.iter_mut().flatten().filter_map(|stream| stream.unsent.as_mut()).for_each(|unsent| {
                    unsent.widen(bytes);
                });
                self.go_on(peer);
            }
        }
        Ok(())
    }

    fn headers(
        &mut self,
        peer: &mut Peer,
        number: u32,
        request: &Request,
        ends: bool,
        query: &mut impl FnMut(&[u8]),
    ) -> Result<(), ErrorCode> {
        if number <= self.last {
            // Trailers of a request that is open, or of a request that was refused.
            return if ends { self.data(peer, number, &[], true, query) } else { Err(ErrorCode::PROTOCOL) };
        }
        if number.is_multiple_of(2) {
            return Err(ErrorCode::PROTOCOL);
        }
        if let Some(ServerFault::GoAway(most)) = self.fault
            && self.requests >= most
        {
            return Ok(());
        }
        self.last = number;
        self.requests += 1;
        if self.places.len() >= self.streams_max {
            peer.reset(number, ErrorCode::REFUSED_STREAM);
            return Ok(());
        }
        match request.query() {
            Err(status) => self.refuse(peer, number, status),
            Ok(None) => self.open(number),
            Ok(Some(message)) => {
                self.open(number);
                self.data(peer, number, &message, true, query)?;
            }
        }
        if self.fault == Some(ServerFault::GoAway(self.requests)) {
            peer.fail(number, ErrorCode::NONE);
        }
        Ok(())
    }

    fn open(&mut self, number: u32) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.streams.push(None);
            self.streams.len() - 1
        });
        let tag = (place as u32 | self.requests << PLACE_BITS) as u16;
        self.streams[place] = Some(Stream { number, id: [0; ID_BYTES], tag, body: Vec::new(), unsent: None });
        self.places.insert(number, place);
    }

    fn data(
        &mut self,
        peer: &mut Peer,
        number: u32,
        bytes: &[u8],
        ends: bool,
        query: &mut impl FnMut(&[u8]),
    ) -> Result<(), ErrorCode> {
        if number > self.last && !matches!(self.fault, Some(ServerFault::GoAway(_))) {
            return Err(ErrorCode::PROTOCOL);
        }
        let Some(place) = self.places.get(&number).copied() else { return Ok(()) };
        let Some(stream) = &mut self.streams[place] else { return Ok(()) };
        if stream.body.len() + bytes.len() > BODY_BYTES_MAX {
            return Err(ErrorCode::FLOW_CONTROL);
        }
        stream.body.extend_from_slice(bytes);
        if !ends {
            return Ok(());
        }
        peer.progressed();
        let mut message = std::mem::take(&mut stream.body);
        let Some(id) = message.first_chunk_mut::<ID_BYTES>() else {
            self.close(number);
            self.refuse(peer, number, 400);
            return Ok(());
        };
        stream.id = std::mem::replace(id, stream.tag.to_be_bytes());
        query(&message);
        Ok(())
    }

    /// Answers a request with a status alone.
    fn refuse(&mut self, peer: &mut Peer, number: u32, status: u16) {
        let digits = [status / 100, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8);
        let start = frame::begin(&mut peer.out, frame::HEADERS, frame::END_STREAM, number);
        peer.encoder.begin(&mut peer.out);
        Encoder::plain(&mut peer.out, names::STATUS_200, &digits);
        frame::end_headers(&mut peer.out, start, number);
        peer.progressed();
    }

    fn respond(&mut self, answer: &[u8], peer: &mut Peer) {
        let Some((id, rest)) = answer.split_first_chunk::<ID_BYTES>() else { return };
        let tag = u16::from_be_bytes(*id);
        let place = usize::from(tag) & ((1 << PLACE_BITS) - 1);
        let Some(Some(stream)) = self.streams.get(place) else { return };
        if stream.tag != tag {
            return;
        }
        let (number, id) = (stream.number, stream.id);
        if self.is_cut {
            return;
        }
        self.responses += 1;
        match self.fault {
            Some(ServerFault::Status(status)) => {
                self.close(number);
                return self.refuse(peer, number, status);
            }
            Some(ServerFault::Reset) => {
                self.close(number);
                return peer.reset(number, ErrorCode::INTERNAL);
            }
            Some(ServerFault::Cut(count)) => self.is_cut = self.responses == count,
            _ => {}
        }
        let is_html = self.fault == Some(ServerFault::ContentType);
        let start = frame::begin(&mut peer.out, frame::HEADERS, 0, number);
        peer.encoder.begin(&mut peer.out);
        Encoder::indexed(&mut peer.out, names::STATUS_200);
        peer.encoder.kept(&mut peer.out, names::CONTENT_TYPE, if is_html { b"text/html" } else { MEDIA_TYPE });
        content_length(&mut peer.out, answer.len());
        frame::end_headers(&mut peer.out, start, number);
        if self.is_cut {
            return frame::append(&mut peer.out, frame::DATA, 0, number, &id);
        }
        let unsent = peer.send_body(number, &[&id, rest].concat());
        match &mut self.streams[place] {
            Some(stream) if unsent.is_some() => stream.unsent = unsent,
            _ => self.close(number),
        }
    }

    fn close(&mut self, number: u32) {
        if let Some(place) = self.places.remove(&number) {
            self.streams[place] = None;
            self.free.push(place);
        }
    }

    fn go_on(&mut self, peer: &mut Peer) {
        let mut sent = Vec::new();
        for stream in self.streams.iter_mut().flatten() {
            if let Some(unsent) = &mut stream.unsent
                && peer.go_on(stream.number, unsent)
            {
                sent.push(stream.number);
            }
        }
        sent.into_iter().for_each(|number| self.close(number));
    }
}
