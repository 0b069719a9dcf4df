use proptest::prelude::*;

use super::*;
use crate::base::testing::inputs;

fn stream_of(messages: &[Vec<u8>]) -> Vec<u8> {
    let frame = |message: &Vec<u8>| [&(message.len() as u16).to_be_bytes()[..], message].concat();
    messages.iter().flat_map(frame).collect()
}

/// What came out of pieces: each message as far as it was given, and its length.
fn taken<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<(Vec<u8>, usize)> {
    let (mut frames, mut messages) = (Frames::default(), Vec::new());
    for piece in pieces {
        frames.push(piece, |(octets, length)| messages.push((octets.to_vec(), length)));
        assert!(frames.kept.len() <= KEPT_OCTETS_MAX);
    }
    messages
}

fn whole(messages: &[Vec<u8>]) -> Vec<(Vec<u8>, usize)> {
    messages.iter().map(|message| (message.clone(), message.len())).collect()
}

#[test]
fn every_split_gives_the_same_messages() {
    let messages = [vec![1; 3], vec![], vec![2], vec![3; 12], vec![]];
    let stream = stream_of(&messages);
    for first in 0..=stream.len() {
        for second in first..=stream.len() {
            let pieces = [&stream[..first], &stream[first..second], &stream[second..]];
            assert_eq!(taken(pieces), whole(&messages), "split at {first} and {second}");
        }
    }
    assert_eq!(taken(stream.chunks(1)), whole(&messages));
}

#[test]
fn of_a_long_message_in_pieces_the_beginning_is_kept() {
    let long: Vec<u8> = (0..65_535_u32).map(|at| at as u8).collect();
    let stream = stream_of(&[long.clone(), vec![7; 20]]);
    for size in [1, 2, 3, 1_000, 30_000, 65_536] {
        let messages = taken(stream.chunks(size));
        let begun = (long[..CHECKED_OCTETS_MAX].to_vec(), 65_535);
        assert_eq!(messages, [begun, (vec![7; 20], 20)], "in pieces of {size}");
    }
}

#[test]
fn an_unfinished_message_is_forgotten() {
    let mut frames = Frames::default();
    frames.push(&[0, 9, 1, 2], |_| panic!("it is not complete"));
    frames.clear();
    let mut lengths = Vec::new();
    frames.push(&[0, 1, 5], |(_, length)| lengths.push(length));
    assert_eq!(lengths, [1]);
}

proptest! {
    #![proptest_config(inputs(256))]

    #[test]
    fn any_octets_in_any_pieces_are_taken_alike(
        octets in prop::collection::vec(prop_oneof![3 => 0_u8..4, 1 => any::<u8>()], 0..2_000),
        cuts in prop::collection::vec(0_usize..2_000, 0..8),
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(octets.len())).collect();
        cuts.extend([0, octets.len()]);
        cuts.sort_unstable();
        let in_pieces = taken(cuts.windows(2).map(|pair| &octets[pair[0]..pair[1]]));
        let at_once = taken([&octets[..]]);
        prop_assert_eq!(in_pieces.len(), at_once.len());
        for ((piece, length), (message, expected)) in in_pieces.iter().zip(&at_once) {
            prop_assert_eq!(length, expected);
            prop_assert!(message.starts_with(piece) && piece.len() >= message.len().min(CHECKED_OCTETS_MAX));
        }
    }
}
