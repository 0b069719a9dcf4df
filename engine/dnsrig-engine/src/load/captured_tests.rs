use super::*;

const WAY: Way = Way { transport: Transport::Udp, asks_again: false, begins_connection: false };

/// Chunks of queries due at so many nanoseconds each, of the client 7, whose message is the due time.
fn chunk(due_ns: &[i64]) -> Chunk {
    let mut chunk = Chunk::default();
    due_ns.iter().for_each(|due_ns| chunk.push((0, *due_ns), 7, WAY, &due_ns.to_be_bytes()));
    chunk
}

#[test]
fn queries_are_taken_when_they_are_due_and_kept_until_they_end() {
    let (mut sender, receiver) = channel();
    sender.give(chunk(&[10, 20])).unwrap();
    sender.give(chunk(&[20, 30])).unwrap();
    let mut captured = Captured::new(receiver, 8);
    assert_eq!((captured.next_due_ns(), captured.take(9)), (10, None));
    let mut take = |now_ns| captured.take(now_ns).map(|taken| (taken.due_ns, taken.client, taken.place));
    let taken = [take(25), take(25), take(25), take(25)];
    assert_eq!(
        taken.map(|taken| taken.map(|(due_ns, client, _)| (due_ns, client))),
        [Some((10, 7)), Some((20, 7)), Some((20, 7)), None]
    );
    let [first, second, third] = [0, 1, 2].map(|at| taken[at].unwrap().2);
    assert_eq!(captured.message(second), Some(&20_i64.to_be_bytes()[..]));
    captured.ended(second);
    captured.ended(third);
    assert!(sender.spare.pop().is_err(), "the first query has not ended");
    captured.ended(first);
    assert!(sender.spare.pop().is_ok());
    assert_eq!([first, second].map(|place| captured.message(place)), [None, None]);
    assert_eq!(captured.message(third), Some(&20_i64.to_be_bytes()[..]), "others are taken from its chunk");
    // The last one that was read; whether others follow is not known.
    assert!(captured.take(30).is_some());
    assert_eq!((captured.take(99), captured.next_due_ns()), (None, 30));
    sender.give(chunk(&[40])).unwrap();
    assert_eq!(captured.take(99).unwrap().due_ns, 40);
    drop(sender);
    assert_eq!((captured.take(99), captured.next_due_ns()), (None, i64::MAX));
}

#[test]
fn numbers_of_chunks_begin_anew_and_memory_does_not_grow() {
    let (mut sender, receiver) = channel();
    sender.give(chunk(&[0])).unwrap();
    let mut captured = Captured::new(receiver, 8);
    let mut old = captured.take(0).unwrap().place;
    for number in 1..100_000 {
        assert!(sender.give(chunk(&[number])).unwrap().is_empty());
        let taken = captured.take(number).unwrap();
        assert_eq!(captured.message(taken.place), Some(&number.to_be_bytes()[..]));
        assert_eq!(captured.message(old), Some(&(number - 1).to_be_bytes()[..]));
        captured.ended(old);
        assert_eq!(captured.message(old), None);
        assert!(captured.chunks.len() == 1 && sender.spare.pop().is_ok());
        old = taken.place;
    }
}

#[test]
fn a_stream_without_queries_is_at_its_end() {
    let (sender, receiver) = channel();
    drop(sender);
    let mut captured = Captured::new(receiver, 8);
    assert_eq!((captured.take(i64::MAX), captured.next_due_ns()), (None, i64::MAX));
}

#[test]
fn who_reads_ahead_gets_used_chunks_and_hears_when_nobody_takes_any() {
    let (mut sender, receiver) = channel();
    sender.give(chunk(&[1])).unwrap();
    sender.give(chunk(&[2])).unwrap();
    let mut captured = Captured::new(receiver, 8);
    let first = captured.take(1).unwrap().place;
    captured.take(2).unwrap();
    captured.ended(first);
    let used = sender.give(chunk(&[3])).unwrap();
    assert!(used.is_empty() && used.messages.capacity() >= 8, "its memory is used again");
    drop(captured);
    let given = (0..=CHUNKS_AHEAD as i64).map_while(|number| sender.give(chunk(&[number])));
    assert!(given.count() <= CHUNKS_AHEAD, "it ends as soon as there is no room");
}
