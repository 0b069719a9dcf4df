//! Frames (RFC 9113 §4): how a stream of bytes is cut into them, and how they are written.

use super::fault::ErrorCode;

/// The length of what precedes each payload.
pub const HEAD_BYTES: usize = 9;

/// The longest payload that either side may send, unless the other one permits more (RFC 9113 §6.5.2): nobody does.
pub const FRAME_BYTES_MAX: usize = 16_384;

/// What a client sends first (RFC 9113 §3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

/// Flags, of the kinds of frames that have them.
pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const PADDED: u8 = 8;
pub const WITH_PRIORITY: u8 = 32;

/// What precedes a payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub length: usize,
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
}

impl Head {
    fn read(bytes: &[u8; HEAD_BYTES]) -> Self {
        let [high, middle, low, kind, flags, stream @ ..] = *bytes;
        Head {
            length: u32::from_be_bytes([0, high, middle, low]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & STREAM_MAX,
        }
    }

    /// Whether a flag is set.
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The highest number of a stream.
pub const STREAM_MAX: u32 = 0x7fff_ffff;

/// Appends a frame of this kind.
pub fn append(to: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let start = begin(to, kind, flags, stream);
    to.extend_from_slice(payload);
    end(to, start);
}

/// Appends the head of a frame whose payload follows; [`end`] takes what is returned.
pub fn begin(to: &mut Vec<u8>, kind: u8, flags: u8, stream: u32) -> usize {
    let start = to.len();
    to.extend_from_slice(&[0, 0, 0, kind, flags]);
    to.extend_from_slice(&stream.to_be_bytes());
    start
}

/// Writes the length of the frame that begins at `start` and ends at the end.
pub fn end(to: &mut [u8], start: usize) {
    let length = (to.len() - start - HEAD_BYTES) as u32;
    debug_assert!(length as usize <= FRAME_BYTES_MAX);
    to[start..start + 3].copy_from_slice(&length.to_be_bytes()[1..]);
}

/// Ends the header block that begins at `start`: in further frames if it is longer than one.
pub fn end_headers(to: &mut Vec<u8>, start: usize, stream: u32) {
    let first = start + HEAD_BYTES + FRAME_BYTES_MAX;
    let rest = if to.len() > first { to.split_off(first) } else { Vec::new() };
    to[start + 4] |= if rest.is_empty() { END_HEADERS } else { 0 };
    end(to, start);
    let mut pieces = rest.chunks(FRAME_BYTES_MAX).peekable();
    while let Some(piece) = pieces.next() {
        append(to, CONTINUATION, if pieces.peek().is_none() { END_HEADERS } else { 0 }, stream, piece);
    }
}

/// Cuts bytes into frames. It keeps one incomplete frame at most.
#[derive(Default)]
pub struct Frames {
    partial: Vec<u8>,
}

impl Frames {
    /// Takes in bytes, and calls `each` with the frames that are complete, until it fails.
    pub fn feed(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(Head, &[u8]) -> Result<(), ErrorCode>,
    ) -> Result<(), ErrorCode> {
        while !self.partial.is_empty() && !bytes.is_empty() {
            let wanted = frame_bytes(&self.partial)?.unwrap_or(HEAD_BYTES);
            let (more, rest) = bytes.split_at(bytes.len().min(wanted - self.partial.len()));
            self.partial.extend_from_slice(more);
            bytes = rest;
            if let Some((head, payload, _)) = split_first(&self.partial)? {
                each(head, payload)?;
                self.partial.clear();
            }
        }
        while let Some((head, payload, rest)) = split_first(bytes)? {
            each(head, payload)?;
            bytes = rest;
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    /// The number of bytes that are kept.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.partial.len()
    }
}

/// The length of the frame that these bytes begin, once it is known.
fn frame_bytes(bytes: &[u8]) -> Result<Option<usize>, ErrorCode> {
    let Some(head) = bytes.first_chunk().map(Head::read) else { return Ok(None) };
    if head.length > FRAME_BYTES_MAX { Err(ErrorCode::FRAME_SIZE) } else { Ok(Some(HEAD_BYTES + head.length)) }
}

/// The first frame, and the bytes behind it.
type Split<'a> = (Head, &'a [u8], &'a [u8]);

fn split_first(bytes: &[u8]) -> Result<Option<Split<'_>>, ErrorCode> {
    let Some(length) = frame_bytes(bytes)?.filter(|length| *length <= bytes.len()) else { return Ok(None) };
    let (frame, rest) = bytes.split_at(length);
    let (head, payload) = frame.split_first_chunk().expect("a frame is not shorter than its head");
    Ok(Some((Head::read(head), payload, rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_whole_wherever_the_stream_is_cut_twice() {
        let mut bytes = Vec::new();
        append(&mut bytes, SETTINGS, 0, 0, &[1; 12]);
        append(&mut bytes, DATA, END_STREAM, 5, &[]);
        append(&mut bytes, 0xfe, 0xff, STREAM_MAX, b"kind of the future");
        let found = |cuts: &[usize]| {
            let (mut frames, mut found, mut start) = (Frames::default(), Vec::new(), 0);
            for end in cuts.iter().copied().chain([bytes.len()]) {
                let each = |head: Head, payload: &[u8]| {
                    found.push((head, payload.to_vec()));
                    Ok(())
                };
                frames.feed(&bytes[start..end], each).unwrap();
                start = end;
            }
            assert_eq!(frames.kept(), 0);
            found
        };
        let whole = found(&[]);
        let head = Head { length: 0, kind: DATA, flags: END_STREAM, stream: 5 };
        assert_eq!((whole.len(), &whole[1]), (3, &(head, vec![])));
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                assert_eq!(found(&[first, second]), whole, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_by_its_head_alone() {
        let head = [0, 0x40, 1, DATA, 0, 0, 0, 0, 1];
        let feed = |bytes: &[u8], frames: &mut Frames| frames.feed(bytes, |_, _| Ok(()));
        assert_eq!(feed(&head, &mut Frames::default()), Err(ErrorCode::FRAME_SIZE));
        let mut frames = Frames::default();
        feed(&head[..4], &mut frames).unwrap();
        assert_eq!(feed(&[head[4..].to_vec(), vec![0]].concat(), &mut frames), Err(ErrorCode::FRAME_SIZE));
    }

    #[test]
    fn no_more_than_a_frame_is_kept() {
        let mut bytes = Vec::new();
        append(&mut bytes, DATA, 0, 1, &[7; FRAME_BYTES_MAX]);
        let (mut frames, mut count) = (Frames::default(), 0);
        for byte in bytes.repeat(2) {
            let each = |_: Head, payload: &[u8]| {
                count += usize::from(payload == [7; FRAME_BYTES_MAX]);
                Ok(())
            };
            frames.feed(&[byte], each).unwrap();
            assert!(frames.kept() < HEAD_BYTES + FRAME_BYTES_MAX);
        }
        assert_eq!(count, 2);
    }
}
