//! The client's side of a connection: queries become requests, and responses become answers.

use std::{collections::VecDeque, sync::Arc};

use super::{
    fault::{ErrorCode, Fault},
    frame::{self, Frames, Head, STREAM_MAX},
    peer::{BODY_BYTES_MAX, Event, Peer, Unsent},
    request::{Requests, is_message},
};

/// The most streams that are open at a time, whatever the server permits: each has a message ID.
const STREAMS_MAX: usize = 1 << 15;

/// The length of a message ID.
const ID_BYTES: usize = 2;

/// A request whose stream is not closed.
#[derive(Debug)]
struct Stream {
    /// The ID that the query had.
    id: [u8; ID_BYTES],
    state: State,
    /// The number of [`Client::sweep`] before the request.
    round: u32,
    /// The length of the body, if the response has a `content-length`.
    length: Option<usize>,
    body: Vec<u8>,
    unsent: Option<Box<Unsent>>,
}

impl Stream {
    /// Whether a body of this length is as long as the response announced (RFC 9113 §8.1.1).
    fn has_length(&self, bytes: usize) -> bool {
        self.length.is_none_or(|length| length == bytes)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No response has come.
    Asked,
    /// The response is an answer, whose body is not complete.
    Answering,
    /// The query was answered or is lost, and what still comes is dropped.
    Over,
    Closed,
}

/// The fields of a response that matter.
#[derive(Clone, Copy, Debug, Default)]
struct Response {
    status: Option<u16>,
    is_message: bool,
    /// A length that cannot be read is longer than any body.
    length: Option<usize>,
}

impl Response {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b":status" => {
                let digits = <&[u8; 3]>::try_from(value).ok().filter(|digits| digits.iter().all(u8::is_ascii_digit));
                self.status =
                    digits.map(|digits| digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0')));
            }
            b"content-length" => {
                let length = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
                self.length = length.or(Some(usize::MAX));
            }
            b"content-type" => self.is_message = is_message(value),
            _ => {}
        }
    }

    /// Why this is no answer, if it is none.
    fn fault(self) -> Option<Fault> {
        match self.status {
            None => Some(Fault::Content),
            Some(status) if !(200..300).contains(&status) => Some(Fault::Status(status)),
            Some(_) => (!self.is_message).then_some(Fault::ContentType),
        }
    }

    fn is_informational(self) -> bool {
        self.status.is_some_and(|status| (100..200).contains(&status))
    }
}

/// The client's side of one connection.
pub struct Client {
    frames: Frames,
    peer: Peer,
    exchanges: Exchanges,
}

impl Client {
    /// A client on a connection where nothing was sent yet.
    pub fn new(requests: Arc<Requests>) -> Self {
        let peer = Peer::new(frame::PREFACE.to_vec(), &Peer::client_settings());
        Client { frames: Frames::default(), peer, exchanges: Exchanges::new(requests) }
    }

    /// What is to be sent. The caller takes it out.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.peer.out
    }

    /// How many requests can be made now.
    pub fn room(&self) -> usize {
        if self.is_over() || !self.exchanges.waiting.is_empty() {
            return 0;
        }
        (self.peer.streams_max() as usize).min(STREAMS_MAX).saturating_sub(self.exchanges.open)
    }

    /// Whether the connection takes no further requests, ever: the server has said goodbye (GOAWAY), or all numbers of
    /// streams are used.
    pub fn is_over(&self) -> bool {
        self.exchanges.is_over || self.exchanges.next() >= STREAM_MAX
    }

    /// Makes a request of a query. Call it only if there is [`Client::room`].
    pub fn request(&mut self, query: &mut [u8]) {
        self.exchanges.request(query, &mut self.peer);
    }

    /// Loses a query that no request was made of, because the connection [`Client::is_over`].
    pub fn refuse(&mut self, query: &[u8]) {
        if let Some(id) = query.first_chunk() {
            self.exchanges.lost.push((u16::from_be_bytes(*id), Fault::GoAway(ErrorCode::NONE)));
        }
    }

    /// Takes in bytes from the server. `answer` gets the answers, with the IDs of their queries. After a failure the
    /// connection is to be closed as soon as the output was sent.
    pub fn receive(&mut self, bytes: &[u8], mut answer: impl FnMut(&[u8])) -> Result<(), Fault> {
        let Client { frames, peer, exchanges } = self;
        let fed = frames.feed(bytes, |head, payload| exchanges.frame(peer, head, payload, &mut answer));
        fed.map_err(|code| {
            self.peer.fail(0, code);
            Fault::Protocol(code)
        })
    }

    /// Takes out the IDs of queries that were lost alone, while the connection goes on.
    pub fn take_lost(&mut self) -> impl Iterator<Item = (u16, Fault)> + '_ {
        self.exchanges.lost.drain(..)
    }

    /// Closes the streams that were open at the last sweep already, so that requests without a response do not use up
    /// the streams that the server permits. Call it once in the time after which a query is given up.
    pub fn sweep(&mut self) {
        let Exchanges { streams, first, round, .. } = &mut self.exchanges;
        *round = round.wrapping_add(1);
        for (place, stream) in streams.iter().enumerate() {
            if stream.state != State::Closed && round.wrapping_sub(stream.round) > 1 {
                self.peer.reset(*first + 2 * place as u32, ErrorCode::CANCEL);
            }
        }
        self.exchanges.close_if(|_, stream, round| round.wrapping_sub(stream.round) > 1);
    }
}

/// The requests of a connection, and what becomes of them.
struct Exchanges {
    requests: Arc<Requests>,
    /// The number of the first stream that is kept; each further one is higher by two.
    first: u32,
    streams: VecDeque<Stream>,
    open: usize,
    /// Streams whose bodies wait for a window.
    waiting: VecDeque<u32>,
    lost: Vec<(u16, Fault)>,
    is_over: bool,
    round: u32,
    message: Vec<u8>,
}

impl Exchanges {
    fn new(requests: Arc<Requests>) -> Self {
        Exchanges {
            requests,
            first: 1,
            streams: VecDeque::new(),
            open: 0,
            waiting: VecDeque::new(),
            lost: Vec::new(),
            is_over: false,
            round: 0,
            message: Vec::new(),
        }
    }

    /// The number of the next stream.
    fn next(&self) -> u32 {
        self.first + 2 * self.streams.len() as u32
    }

    fn request(&mut self, query: &mut [u8], peer: &mut Peer) {
        let number = self.next();
        let Some(id) = query.first_chunk_mut::<ID_BYTES>().map(std::mem::take) else { return };
        let has_body = self.requests.has_body();
        let flags = if has_body { 0 } else { frame::END_STREAM };
        let start = frame::begin(&mut peer.out, frame::HEADERS, flags, number);
        self.requests.encode(query, &mut peer.encoder, &mut peer.out);
        peer.requested();
        frame::end_headers(&mut peer.out, start, number);
        let unsent = if has_body { peer.send_body(number, query).map(Box::new) } else { None };
        if unsent.is_some() {
            self.waiting.push_back(number);
        }
        self.streams.push_back(Stream {
            id,
            state: State::Asked,
            round: self.round,
            length: None,
            body: Vec::new(),
            unsent,
        });
        self.open += 1;
    }

    fn frame(
        &mut self,
        peer: &mut Peer,
        head: Head,
        payload: &[u8],
        answer: &mut impl FnMut(&[u8]),
    ) -> Result<(), ErrorCode> {
        let mut response = Response::default();
        match peer.take(head, payload, |name, value| response.field(name, value))? {
            Event::Nothing => {}
            Event::Headers { stream, ends } => {
                let place = self.place(stream)?;
                self.headers(place, response, ends, peer)?;
                self.end_if(ends, place, peer, answer);
            }
            Event::Data { stream, bytes, ends } => {
                let place = self.place(stream)?;
                self.data(place, bytes, ends, answer)?;
                if let Some(place) = place.filter(|place| !ends && self.streams[*place].state == State::Over) {
                    // The query is lost already: the rest of the body is of no use. A body of one frame needs no reset.
                    peer.reset(stream, ErrorCode::CANCEL);
                    self.close(place);
                }
                self.end_if(ends, place, peer, answer);
            }
            Event::Reset { stream, code } => {
                if let Some(place) = self.place(stream)? {
                    peer.progressed();
                    self.lose(place, Fault::Reset(code));
                    self.close(place);
                }
            }
            Event::GoAway { last, code } => self.go_away(last, code),
            Event::Window { stream, bytes } => {
                if let Some(place) = self.place(stream)?
                    && let Some(unsent) = &mut self.streams[place].unsent
                {
                    unsent.widen(bytes);
                }
                self.go_on(peer);
            }
            Event::Windows { bytes } => {
                if bytes != 0 {
                    let unsent = self.streams.iter_mut().filter_map(|stream| stream.unsent.as_mut());
                    unsent.for_each(|one| one.widen(bytes));
                }
                self.go_on(peer);
            }
        }
        Ok(())
    }

    /// The place of an open stream. None if it is closed; an error if it was never begun.
    fn place(&self, number: u32) -> Result<Option<usize>, ErrorCode> {
        if number.is_multiple_of(2) || number >= self.next() {
            return Err(ErrorCode::PROTOCOL);
        }
        let place = number.checked_sub(self.first).map(|distance| distance as usize / 2);
        Ok(place.filter(|place| self.streams[*place].state != State::Closed))
    }

    fn headers(
        &mut self,
        place: Option<usize>,
        response: Response,
        ends: bool,
        peer: &mut Peer,
    ) -> Result<(), ErrorCode> {
        let Some(place) = place else { return Ok(()) };
        match self.streams[place].state {
            State::Asked if response.is_informational() => {
                if ends {
                    Err(ErrorCode::PROTOCOL)
                } else {
                    Ok(())
                }
            }
            State::Asked => {
                (self.streams[place].state, self.streams[place].length) = (State::Answering, response.length);
                peer.progressed();
                if let Some(fault) = response.fault() {
                    self.lose(place, fault);
                }
                Ok(())
            }
            // Trailers end the stream (RFC 9113 §8.1).
            State::Answering | State::Over if !ends => Err(ErrorCode::PROTOCOL),
            _ => Ok(()),
        }
    }

    fn data(
        &mut self,
        place: Option<usize>,
        bytes: &[u8],
        ends: bool,
        answer: &mut impl FnMut(&[u8]),
    ) -> Result<(), ErrorCode> {
        let Some(stream) = place.map(|place| &mut self.streams[place]) else { return Ok(()) };
        match stream.state {
            State::Asked => return Err(ErrorCode::PROTOCOL),
            State::Answering => {}
            State::Over | State::Closed => return Ok(()),
        }
        if stream.body.len() + bytes.len() > BODY_BYTES_MAX {
            return Err(ErrorCode::FLOW_CONTROL);
        }
        if ends && stream.body.is_empty() && bytes.len() > ID_BYTES && stream.has_length(bytes.len()) {
            // Mostly an answer comes in one piece.
            self.message.clear();
            self.message.extend_from_slice(&stream.id);
            self.message.extend_from_slice(&bytes[ID_BYTES..]);
            stream.state = State::Over;
            answer(&self.message);
        } else {
            stream.body.extend_from_slice(bytes);
        }
        Ok(())
    }

    /// Ends a stream, if it ends, with its answer.
    fn end_if(&mut self, ends: bool, place: Option<usize>, peer: &mut Peer, answer: &mut impl FnMut(&[u8])) {
        let Some(place) = place.filter(|_| ends) else { return };
        peer.progressed();
        let stream = &mut self.streams[place];
        if stream.state != State::Over {
            let (id, has_length) = (stream.id, stream.has_length(stream.body.len()));
            match stream.body.first_chunk_mut::<ID_BYTES>() {
                Some(place) if has_length => {
                    *place = id;
                    answer(&stream.body);
                    stream.state = State::Over;
                }
                _ => self.lose(place, Fault::Content),
            }
        }
        let stream = &self.streams[place];
        if stream.unsent.is_some() {
            // The response came before the whole request was sent: the rest is of no use.
            peer.reset(self.first + 2 * place as u32, ErrorCode::CANCEL);
        }
        self.close(place);
    }

    fn lose(&mut self, place: usize, fault: Fault) {
        let stream = &mut self.streams[place];
        if stream.state != State::Over {
            stream.state = State::Over;
            self.lost.push((u16::from_be_bytes(stream.id), fault));
        }
    }

    fn go_away(&mut self, last: u32, code: ErrorCode) {
        self.is_over = true;
        for place in 0..self.streams.len() {
            if self.first + 2 * place as u32 > last && self.streams[place].state != State::Closed {
                self.lose(place, Fault::GoAway(code));
            }
        }
        self.close_if(|number, _, _| number > last);
    }

    fn close(&mut self, place: usize) {
        let number = self.first + 2 * place as u32;
        self.close_one(place);
        if !self.waiting.is_empty() {
            self.waiting.retain(|waiting| *waiting != number);
        }
        self.forget_closed();
    }

    fn close_if(&mut self, mut is_to_close: impl FnMut(u32, &Stream, u32) -> bool) {
        for place in 0..self.streams.len() {
            let stream = &self.streams[place];
            if stream.state != State::Closed && is_to_close(self.first + 2 * place as u32, stream, self.round) {
                self.close_one(place);
            }
        }
        let (first, streams) = (self.first, &self.streams);
        self.waiting.retain(|number| streams[(number - first) as usize / 2].state != State::Closed);
        self.forget_closed();
    }

    fn close_one(&mut self, place: usize) {
        let stream = &mut self.streams[place];
        (stream.state, stream.body, stream.unsent) = (State::Closed, Vec::new(), None);
        self.open -= 1;
    }

    fn forget_closed(&mut self) {
        while self.streams.front().is_some_and(|stream| stream.state == State::Closed) {
            self.streams.pop_front();
            self.first += 2;
        }
    }

    /// Sends bodies that waited for windows, in their order.
    fn go_on(&mut self, peer: &mut Peer) {
        let (first, streams) = (self.first, &mut self.streams);
        self.waiting.retain(|number| {
            let stream = &mut streams[(number - first) as usize / 2];
            let is_sent = stream.unsent.as_mut().is_none_or(|unsent| peer.go_on(*number, unsent));
            if is_sent {
                stream.unsent = None;
            }
            !is_sent
        });
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
