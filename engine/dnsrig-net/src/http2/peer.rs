//! What a client and a server both keep of a connection: the settings and windows of either side, header blocks that
//! come in several frames, and what is to be sent.

use super::{
    fault::ErrorCode,
    frame::{self, FRAME_BYTES_MAX, Head},
    hpack::{Decoder, Encoder, LIST_BYTES_MAX},
};

/// The longest body: a DNS message has 16 bits for its length.
pub const BODY_BYTES_MAX: usize = 65_535;

/// The window of a stream that the other side sends in: the default (RFC 9113 §6.9.2). The longest body fits, so it is
/// never enlarged.
const STREAM_WINDOW: usize = BODY_BYTES_MAX;

/// The window of a connection that the other side sends in: enough for a thousand answers of 16 kB that come in a row.
/// It is replenished whenever half of it is used.
pub const WINDOW: usize = 16 << 20;

/// The window of a connection before its first update (RFC 9113 §6.9.2).
const WINDOW_DEFAULT: usize = 65_535;

/// The highest size of a window (RFC 9113 §6.9.1).
const WINDOW_MAX: i64 = 0x7fff_ffff;

/// The most frames in a row without progress: no request or response was completed. More are a flood. Servers send an
/// acknowledgement, a few settings, or updates of windows.
pub const IDLE_FRAMES_MAX: u32 = 1_000;

/// The further frames that each request of this side permits: some servers update windows for each.
pub const REQUEST_FRAMES: u32 = 4;

/// The most frames without progress, whatever the number of requests.
const FRAMES_MAX: u32 = 200_000;

/// The most frames of one header block. A block that keeps within [`LIST_BYTES_MAX`] needs no second one.
const CONTINUATIONS_MAX: u32 = 8;

/// The number of streams that may be open before the other side has sent its settings. There is no limit then, but the
/// settings, which may be on the way, hardly ever permit fewer (RFC 9113 §6.5.2).
const STREAMS_DEFAULT: u32 = 100;

const SETTINGS_HEADER_TABLE_SIZE: u16 = 1;
const SETTINGS_ENABLE_PUSH: u16 = 2;
const SETTINGS_MAX_CONCURRENT_STREAMS: u16 = 3;
const SETTINGS_INITIAL_WINDOW_SIZE: u16 = 4;
const SETTINGS_MAX_FRAME_SIZE: u16 = 5;
const SETTINGS_MAX_HEADER_LIST_SIZE: u16 = 6;

/// What a frame means.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// It was for the connection alone, or its meaning is not complete.
    Nothing,
    /// A header block is complete; its fields went to the closure.
    Headers {
        stream: u32,
        ends: bool,
    },
    Data {
        stream: u32,
        bytes: &'a [u8],
        ends: bool,
    },
    Reset {
        stream: u32,
        code: ErrorCode,
    },
    GoAway {
        last: u32,
        code: ErrorCode,
    },
    /// The window of a stream has grown.
    Window {
        stream: u32,
        bytes: i64,
    },
    /// The windows of all streams have changed by so much, or the window of the connection has grown.
    Windows {
        bytes: i64,
    },
}

/// A body that did not fit into the windows of the other side.
#[derive(Debug)]
pub struct Unsent {
    bytes: Vec<u8>,
    window: i64,
}

impl Unsent {
    /// Takes in that the window of the stream has changed.
    pub fn widen(&mut self, bytes: i64) {
        self.window += bytes;
    }
}

/// The state of one side.
pub struct Peer {
    /// What is to be sent.
    pub out: Vec<u8>,
    pub encoder: Encoder,
    decoder: Decoder,
    /// A header block that is not complete, and the stream that it is for.
    block: Vec<u8>,
    block_of: Option<Head>,
    continuations: u32,
    /// The window of the connection that this side sends in, and the initial one of each stream.
    window: i64,
    stream_window: i64,
    /// The number of streams that the other side permits.
    streams_max: u32,
    has_settings: bool,
    /// How many bytes the other side may still send.
    receive_window: usize,
    /// How many frames the other side may still send without progress.
    frames_left: u32,
}

impl Peer {
    /// The state at the beginning, with `out` to be sent: settings, a larger window.
    pub fn new(mut out: Vec<u8>, settings: &[(u16, u32)]) -> Self {
        let start = frame::begin(&mut out, frame::SETTINGS, 0, 0);
        for (name, value) in settings {
            out.extend_from_slice(&name.to_be_bytes());
            out.extend_from_slice(&value.to_be_bytes());
        }
        frame::end(&mut out, start);
        window_update(&mut out, (WINDOW - WINDOW_DEFAULT) as u32);
        Peer {
            out,
            encoder: Encoder::default(),
            decoder: Decoder::default(),
            block: Vec::new(),
            block_of: None,
            continuations: 0,
            window: WINDOW_DEFAULT as i64,
            stream_window: WINDOW_DEFAULT as i64,
            streams_max: STREAMS_DEFAULT,
            has_settings: false,
            receive_window: WINDOW,
            frames_left: IDLE_FRAMES_MAX,
        }
    }

    /// The settings of a client (RFC 9113 §6.5.2): no pushed responses, and the longest header list.
    pub fn client_settings() -> [(u16, u32); 3] {
        [
            (SETTINGS_ENABLE_PUSH, 0),
            (SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW as u32),
            (SETTINGS_MAX_HEADER_LIST_SIZE, LIST_BYTES_MAX as u32),
        ]
    }

    /// The settings of a server that lets a client have so many streams.
    pub fn server_settings(streams_max: u32) -> [(u16, u32); 3] {
        [
            (SETTINGS_MAX_CONCURRENT_STREAMS, streams_max),
            (SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW as u32),
            (SETTINGS_MAX_HEADER_LIST_SIZE, LIST_BYTES_MAX as u32),
        ]
    }

    /// The number of streams that the other side permits at a time.
    pub fn streams_max(&self) -> u32 {
        self.streams_max
    }

    /// Takes in that a request or a response was completed.
    pub fn progressed(&mut self) {
        self.frames_left = self.frames_left.max(IDLE_FRAMES_MAX);
    }

    /// Takes in that this side makes a request.
    pub fn requested(&mut self) {
        self.frames_left = (self.frames_left + REQUEST_FRAMES).min(FRAMES_MAX);
    }

    /// Ends the connection because of an error.
    pub fn fail(&mut self, last: u32, code: ErrorCode) {
        let mut payload = [0; 8];
        payload[..4].copy_from_slice(&last.to_be_bytes());
        payload[4..].copy_from_slice(&code.0.to_be_bytes());
        frame::append(&mut self.out, frame::GOAWAY, 0, 0, &payload);
    }

    /// Ends a stream.
    pub fn reset(&mut self, stream: u32, code: ErrorCode) {
        frame::append(&mut self.out, frame::RST_STREAM, 0, stream, &code.0.to_be_bytes());
    }

    /// Takes in a frame. The fields of a header block that is complete go to `each`.
    pub fn take<'a>(
        &mut self,
        head: Head,
        payload: &'a [u8],
        each: impl FnMut(&[u8], &[u8]),
    ) -> Result<Event<'a>, ErrorCode> {
        self.frames_left = self.frames_left.checked_sub(1).ok_or(ErrorCode::ENHANCE_YOUR_CALM)?;
        if self.block_of.is_some() != (head.kind == frame::CONTINUATION) {
            return Err(ErrorCode::PROTOCOL);
        }
        if !self.has_settings && head.kind != frame::SETTINGS {
            return Err(ErrorCode::PROTOCOL);
        }
        match head.kind {
            frame::DATA => self.data(head, payload),
            frame::HEADERS => self.headers(head, payload, each),
            frame::CONTINUATION => self.continuation(head, payload, each),
            frame::RST_STREAM => {
                let code = ErrorCode(u32::from_be_bytes(exactly(payload)?));
                if head.stream == 0 { Err(ErrorCode::PROTOCOL) } else { Ok(Event::Reset { stream: head.stream, code }) }
            }
            frame::SETTINGS => self.settings(head, payload),
            frame::PUSH_PROMISE => Err(ErrorCode::PROTOCOL),
            frame::PING => self.ping(head, payload),
            frame::GOAWAY => go_away(head, payload),
            frame::WINDOW_UPDATE => self.window_update(head, payload),
            frame::PRIORITY if head.length != 5 => Err(ErrorCode::FRAME_SIZE),
            // Priorities, and kinds that are unknown, are ignored (RFC 9113 §4.1).
            _ => Ok(Event::Nothing),
        }
    }

    fn data<'a>(&mut self, head: Head, payload: &'a [u8]) -> Result<Event<'a>, ErrorCode> {
        // Padding uses the window as well (RFC 9113 §6.1).
        self.receive_window = self.receive_window.checked_sub(payload.len()).ok_or(ErrorCode::FLOW_CONTROL)?;
        if self.receive_window < WINDOW / 2 {
            window_update(&mut self.out, (WINDOW - self.receive_window) as u32);
            self.receive_window = WINDOW;
        }
        let bytes = without_padding(head, payload)?;
        if head.stream == 0 {
            return Err(ErrorCode::PROTOCOL);
        }
        Ok(Event::Data { stream: head.stream, bytes, ends: head.has(frame::END_STREAM) })
    }

    fn headers<'a>(
        &mut self,
        head: Head,
        payload: &[u8],
        each: impl FnMut(&[u8], &[u8]),
    ) -> Result<Event<'a>, ErrorCode> {
        let mut block = without_padding(head, payload)?;
        if head.has(frame::WITH_PRIORITY) {
            block = block.split_at_checked(5).ok_or(ErrorCode::FRAME_SIZE)?.1;
        }
        if head.stream == 0 {
            return Err(ErrorCode::PROTOCOL);
        }
        if head.has(frame::END_HEADERS) {
            self.decoder.decode(block, each).map_err(|_| ErrorCode::COMPRESSION)?;
            return Ok(Event::Headers { stream: head.stream, ends: head.has(frame::END_STREAM) });
        }
        self.block.extend_from_slice(block);
        (self.block_of, self.continuations) = (Some(head), 0);
        Ok(Event::Nothing)
    }

    fn continuation<'a>(
        &mut self,
        head: Head,
        payload: &[u8],
        each: impl FnMut(&[u8], &[u8]),
    ) -> Result<Event<'a>, ErrorCode> {
        let begun = self.block_of.filter(|begun| begun.stream == head.stream).ok_or(ErrorCode::PROTOCOL)?;
        self.continuations += 1;
        if self.continuations > CONTINUATIONS_MAX || self.block.len() + payload.len() > LIST_BYTES_MAX {
            return Err(ErrorCode::ENHANCE_YOUR_CALM);
        }
        self.block.extend_from_slice(payload);
        if !head.has(frame::END_HEADERS) {
            return Ok(Event::Nothing);
        }
        self.decoder.decode(&self.block, each).map_err(|_| ErrorCode::COMPRESSION)?;
        (self.block, self.block_of) = (Vec::new(), None);
        Ok(Event::Headers { stream: head.stream, ends: begun.has(frame::END_STREAM) })
    }

    fn settings<'a>(&mut self, head: Head, payload: &[u8]) -> Result<Event<'a>, ErrorCode> {
        if head.stream != 0 {
            return Err(ErrorCode::PROTOCOL);
        }
        if head.has(frame::ACK) {
            return if payload.is_empty() { Ok(Event::Nothing) } else { Err(ErrorCode::FRAME_SIZE) };
        }
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(ErrorCode::FRAME_SIZE);
        }
        if !self.has_settings {
            (self.has_settings, self.streams_max) = (true, u32::MAX);
        }
        let before = self.stream_window;
        for [high, low, value @ ..] in settings {
            self.set(u16::from_be_bytes([*high, *low]), u32::from_be_bytes(*value))?;
        }
        frame::append(&mut self.out, frame::SETTINGS, frame::ACK, 0, &[]);
        Ok(Event::Windows { bytes: self.stream_window - before })
    }

    fn set(&mut self, name: u16, value: u32) -> Result<(), ErrorCode> {
        match name {
            SETTINGS_HEADER_TABLE_SIZE => self.encoder.permit(value),
            SETTINGS_ENABLE_PUSH if value > 1 => return Err(ErrorCode::PROTOCOL),
            SETTINGS_MAX_CONCURRENT_STREAMS => self.streams_max = value,
            SETTINGS_INITIAL_WINDOW_SIZE if i64::from(value) > WINDOW_MAX => return Err(ErrorCode::FLOW_CONTROL),
            SETTINGS_INITIAL_WINDOW_SIZE => self.stream_window = i64::from(value),
            SETTINGS_MAX_FRAME_SIZE if !(FRAME_BYTES_MAX as u32..1 << 24).contains(&value) => {
                return Err(ErrorCode::PROTOCOL);
            }
            // The length of a header list is an advice, and unknown settings are ignored.
            _ => {}
        }
        Ok(())
    }

    fn ping<'a>(&mut self, head: Head, payload: &[u8]) -> Result<Event<'a>, ErrorCode> {
        let echoed = exactly::<8>(payload)?;
        if head.stream != 0 {
            return Err(ErrorCode::PROTOCOL);
        }
        if !head.has(frame::ACK) {
            frame::append(&mut self.out, frame::PING, frame::ACK, 0, &echoed);
        }
        Ok(Event::Nothing)
    }

    fn window_update<'a>(&mut self, head: Head, payload: &[u8]) -> Result<Event<'a>, ErrorCode> {
        let bytes = i64::from(u32::from_be_bytes(exactly(payload)?)) & WINDOW_MAX;
        if bytes == 0 {
            return Err(ErrorCode::PROTOCOL);
        }
        if head.stream != 0 {
            return Ok(Event::Window { stream: head.stream, bytes });
        }
        self.window += bytes;
        if self.window > WINDOW_MAX { Err(ErrorCode::FLOW_CONTROL) } else { Ok(Event::Windows { bytes: 0 }) }
    }

    /// Sends a body, as far as the windows of the other side permit. Returns what has to wait.
    pub fn send_body(&mut self, stream: u32, body: &[u8]) -> Option<Unsent> {
        let room = self.window.min(self.stream_window);
        if body.len() as i64 <= room && body.len() <= FRAME_BYTES_MAX {
            self.window -= body.len() as i64;
            frame::append(&mut self.out, frame::DATA, frame::END_STREAM, stream, body);
            return None;
        }
        let mut unsent = Unsent { bytes: body.to_vec(), window: self.stream_window };
        (!self.go_on(stream, &mut unsent)).then_some(unsent)
    }

    /// Sends more of a body. Returns whether it is all sent.
    pub fn go_on(&mut self, stream: u32, unsent: &mut Unsent) -> bool {
        loop {
            let room = self.window.min(unsent.window).clamp(0, FRAME_BYTES_MAX as i64) as usize;
            let length = room.min(unsent.bytes.len());
            if length == 0 {
                return false;
            }
            let is_last = length == unsent.bytes.len();
            let flags = if is_last { frame::END_STREAM } else { 0 };
            frame::append(&mut self.out, frame::DATA, flags, stream, &unsent.bytes[..length]);
            unsent.bytes.drain(..length);
            unsent.window -= length as i64;
            self.window -= length as i64;
            if is_last {
                return true;
            }
        }
    }
}

fn go_away<'a>(head: Head, payload: &[u8]) -> Result<Event<'a>, ErrorCode> {
    let (numbers, _) = payload.split_first_chunk::<8>().ok_or(ErrorCode::FRAME_SIZE)?;
    if head.stream != 0 {
        return Err(ErrorCode::PROTOCOL);
    }
    let [last, code] = [0, 4].map(|at| u32::from_be_bytes(numbers[at..at + 4].try_into().expect("four bytes")));
    Ok(Event::GoAway { last: last & frame::STREAM_MAX, code: ErrorCode(code) })
}

fn window_update(out: &mut Vec<u8>, bytes: u32) {
    frame::append(out, frame::WINDOW_UPDATE, 0, 0, &bytes.to_be_bytes());
}

fn exactly<const N: usize>(payload: &[u8]) -> Result<[u8; N], ErrorCode> {
    payload.try_into().map_err(|_| ErrorCode::FRAME_SIZE)
}

/// The payload without its padding, if it has any (RFC 9113 §6.1).
fn without_padding(head: Head, payload: &[u8]) -> Result<&[u8], ErrorCode> {
    if !head.has(frame::PADDED) {
        return Ok(payload);
    }
    let (padding, rest) = payload.split_first().ok_or(ErrorCode::FRAME_SIZE)?;
    let length = rest.len().checked_sub(usize::from(*padding)).ok_or(ErrorCode::PROTOCOL)?;
    Ok(&rest[..length])
}
