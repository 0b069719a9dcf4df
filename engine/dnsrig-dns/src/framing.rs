//! DNS messages in a stream: two bytes of length before each (RFC 1035 §4.2.2, RFC 7766 §8). No I/O.

/// The bytes of the length field.
pub const PREFIX_BYTES: usize = 2;

/// Room that is kept between two messages; room above it is given back.
const KEPT_BYTES_MAX: usize = 4096;

/// Cuts a stream into messages, however its bytes arrive.
///
/// What is kept between two calls is a part of one message: never more than 65,537 bytes.
#[derive(Debug, Default)]
pub struct Frames {
    partial: Vec<u8>,
}

impl Frames {
    /// Takes in what came and calls `each` with every message that is now complete, in order, without its length.
    ///
    /// A message that lies whole in `bytes` is given from there; the pieces of others are put together.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(&[u8])) {
        let mut rest = bytes;
        while !self.partial.is_empty() {
            let missing_bytes = self.missing_bytes();
            // All at once: what has come so far is moved once at most.
            self.partial.reserve_exact(missing_bytes);
            let (taken, after) = rest.split_at(missing_bytes.min(rest.len()));
            self.partial.extend_from_slice(taken);
            rest = after;
            if self.missing_bytes() == 0 {
                each(&self.partial[PREFIX_BYTES..]);
                self.partial.clear();
            } else if rest.is_empty() {
                return;
            }
        }
        while let Some((message, after)) = split_first(rest) {
            each(message);
            rest = after;
        }
        if rest.is_empty() {
            // Nothing more may come for long. A stream in full flow never ends between two messages.
            self.partial.shrink_to(KEPT_BYTES_MAX);
        } else {
            let bytes = rest.first_chunk().map_or(0, |prefix| usize::from(u16::from_be_bytes(*prefix)));
            self.partial.reserve_exact(PREFIX_BYTES + bytes);
            self.partial.extend_from_slice(rest);
        }
    }

    /// Forgets the unfinished message, and gives back the room for it.
    pub fn clear(&mut self) {
        self.partial.clear();
        self.partial.shrink_to(KEPT_BYTES_MAX);
    }

    /// How many bytes wait for the rest of their message.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.partial.len()
    }

    /// Whether no message is incomplete.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.partial.is_empty()
    }

    /// How many bytes more complete the length field or, once it is there, the message.
    fn missing_bytes(&self) -> usize {
        match self.partial[..] {
            [] => PREFIX_BYTES,
            [_] => 1,
            [high, low, ref message @ ..] => usize::from(u16::from_be_bytes([high, low])) - message.len(),
        }
    }
}

/// The first message and the bytes after it, if the message is complete.
fn split_first(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (prefix, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*prefix)))
}

/// Appends `message`, with its length before it; it has at most 65,535 bytes. Returns where the message begins.
pub fn append(to: &mut Vec<u8>, message: &[u8]) -> usize {
    let length = u16::try_from(message.len()).expect("a DNS message has at most 65,535 bytes");
    to.extend_from_slice(&length.to_be_bytes());
    to.extend_from_slice(message);
    to.len() - message.len()
}

/// Cuts what was framed here into its frames, lengths included.
pub fn each_frame(mut frames: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (message, _) = split_first(frames)?;
        let (frame, rest) = frames.split_at(PREFIX_BYTES + message.len());
        frames = rest;
        Some(frame)
    })
}

#[cfg(test)]
mod tests {
    use dnsrig_testing::fuzz::fuzz;

    use super::*;

    fn stream(messages: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for message in messages {
            append(&mut bytes, message);
        }
        bytes
    }

    /// The messages found when the stream is cut behind each of `cuts`.
    fn found(bytes: &[u8], cuts: &[usize]) -> (Vec<Vec<u8>>, Frames) {
        let mut frames = Frames::default();
        let mut messages = Vec::new();
        let mut start = 0;
        for end in cuts.iter().copied().chain([bytes.len()]) {
            frames.feed(&bytes[start..end], |message| messages.push(message.to_vec()));
            start = end;
        }
        (messages, frames)
    }

    #[test]
    fn messages_are_whole_wherever_the_stream_is_cut_twice() {
        let messages = [vec![1; 3], vec![], vec![2; 4], vec![3]];
        let bytes = stream(&messages);
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let (found, frames) = found(&bytes, &[first, second]);
                assert_eq!(found, messages, "cut at {first} and {second}");
                assert!(frames.is_empty());
            }
        }
    }

    #[test]
    fn one_byte_at_a_time_keeps_no_more_than_one_message() {
        let bytes = stream(&[vec![7; 300], vec![8; 65_535]]);
        let mut frames = Frames::default();
        let mut lengths = Vec::new();
        for byte in &bytes {
            frames.feed(&[*byte], |message| lengths.push(message.len()));
            assert!(frames.len() < 65_535 + PREFIX_BYTES);
        }
        assert_eq!(lengths, [300, 65_535]);
        assert!(frames.partial.capacity() <= KEPT_BYTES_MAX, "room for the largest message is given back");
    }

    #[test]
    fn what_is_incomplete_waits() {
        let (messages, frames) = found(&[0, 4, 1, 2, 3], &[]);
        assert_eq!((messages.len(), frames.len()), (0, 5));
    }

    #[test]
    fn while_bytes_flow_room_is_neither_given_back_nor_asked_for_again() {
        let bytes = stream(&vec![vec![7; 60_000]; 20]);
        let mut frames = Frames::default();
        let (mut count, mut rooms) = (0, Vec::new());
        for piece in bytes.chunks(100_000) {
            frames.feed(piece, |message| count += usize::from(message == [7; 60_000]));
            rooms.push(frames.partial.capacity());
        }
        assert_eq!(count, 20);
        let (last, others) = rooms.split_last().unwrap();
        assert!(others.iter().all(|room| *room == 60_000 + PREFIX_BYTES), "{rooms:?}");
        assert!(*last <= KEPT_BYTES_MAX);
    }

    #[test]
    fn an_unfinished_message_is_forgotten() {
        let mut frames = Frames::default();
        frames.feed(&[0xff, 0xff, 1], |_| panic!("it is not complete"));
        frames.clear();
        let mut messages = Vec::new();
        frames.feed(&[0, 1, 5], |message| messages.push(message.to_vec()));
        assert_eq!(messages, [[5]]);
        assert!(frames.partial.capacity() <= KEPT_BYTES_MAX);
    }

    #[test]
    fn any_bytes_cut_anywhere_give_the_same_messages() {
        let corpus =
            [stream(&[vec![1; 3], vec![], vec![2; 40], vec![3]]), stream(&[vec![7; 300], vec![8; 2]]), vec![0; 9]];
        fuzz(2_000, &corpus, |bytes, random| {
            let mut cuts: Vec<_> =
                (0..random.below(20)).map(|_| random.below(bytes.len() as u64 + 1) as usize).collect();
            cuts.sort_unstable();
            let (in_one, rest) = found(bytes, &[]);
            let (in_parts, rest_of_parts) = found(bytes, &cuts);
            assert_eq!((&in_one, &rest.partial), (&in_parts, &rest_of_parts.partial));
            assert!(rest.partial.capacity() <= PREFIX_BYTES + 65_535);
            let framed = stream(&in_one);
            assert_eq!(each_frame(&framed).collect::<Vec<_>>().concat(), framed);
            assert_eq!([framed, rest.partial].concat(), bytes);
        });
    }
}
