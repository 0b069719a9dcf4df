//! Bytes of any kind as what a server or a client sends, and as header blocks. A long run: FUZZ_INPUTS=10000000.

use std::sync::Arc;

use dnsrig_testing::fuzz::fuzz;

use super::{
    Client, Method, Path, Requests, Server,
    hpack::{Decoder, LIST_BYTES_MAX},
};

fn client(method: Method) -> Client {
    Client::new(Arc::new(Requests::new(method, "dns.example".into(), &Path::parse("/dns-query").unwrap())))
}

/// What a client with three requests sends, and what a server answers.
fn conversation(method: Method) -> (Vec<u8>, Vec<u8>) {
    let (mut client, mut server) = (client(method), Server::new(None));
    (0..3).for_each(|id| client.request(&mut [0, id, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, 1, 0, 1]));
    let up = std::mem::take(client.output());
    let mut queries = Vec::new();
    server.receive(&up, |query| queries.push(query.to_vec())).unwrap();
    queries.iter().for_each(|query| server.respond(query));
    (up, std::mem::take(server.output()))
}

/// The answers and losses of a client that receives bytes in one piece or cut.
fn received(bytes: &[u8], cut: usize) -> (Vec<Vec<u8>>, usize, bool) {
    let (mut client, mut answers) = (client(Method::Post), Vec::new());
    (0..3).for_each(|id| client.request(&mut [0, id, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
    client.output().clear();
    let (first, rest) = bytes.split_at(cut);
    let mut each = |answer: &[u8]| answers.push(answer.to_vec());
    let is_good = client.receive(first, &mut each).is_ok() && client.receive(rest, &mut each).is_ok();
    let lost = client.take_lost().count();
    client.sweep();
    client.sweep();
    assert!(client.output().len() <= 64 * bytes.len() + 1_000, "{} bytes", client.output().len());
    (answers, lost, is_good)
}

#[test]
fn whatever_a_server_sends_each_query_ends_at_most_once_wherever_it_is_cut() {
    let corpus = [conversation(Method::Post).1, conversation(Method::Get).1];
    fuzz(3_000, &corpus, |bytes, random| {
        let whole = received(bytes, 0);
        assert_eq!(received(bytes, random.below(bytes.len() as u64 + 1) as usize), whole);
        let (answers, lost, _) = whole;
        assert!(answers.len() + lost <= 3);
        assert!(answers.iter().all(|answer| answer[0] == 0 && answer[1] < 3 && answer.len() <= 65_535));
    });
}

#[test]
fn whatever_a_client_sends_the_server_answers_within_bounds() {
    let corpus = [conversation(Method::Post).0, conversation(Method::Get).0];
    fuzz(3_000, &corpus, |bytes, random| {
        let mut server = Server::new(None);
        let cut = random.below(bytes.len() as u64 + 1) as usize;
        let mut queries = Vec::new();
        let mut each = |query: &[u8]| queries.push(query.to_vec());
        let _ = server.receive(&bytes[..cut], &mut each).is_ok() && server.receive(&bytes[cut..], &mut each).is_ok();
        queries.iter().for_each(|query| server.respond(query));
        assert!(server.output().len() <= 64 * bytes.len() + 1_000);
    });
}

#[test]
fn any_header_block_is_decoded_or_refused() {
    let corpus = [
        vec![0x82, 0x86, 0x84, 0x41, 0x8c, 0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff],
        vec![0x3f, 0xe1, 0x1f, 0x88, 0x5f, 0x03, b'a', b'/', b'b', 0xbe, 0x0f, 0x0d, 0x02, b'4', b'2'],
    ];
    fuzz(20_000, &corpus, |bytes, random| {
        let cut = random.below(bytes.len() as u64 + 1) as usize;
        let (mut decoder, mut list_bytes) = (Decoder::default(), 0);
        let (first, second) = bytes.split_at(cut);
        for block in [first, second] {
            let decoded = decoder.decode(block, |name, value| list_bytes += name.len() + value.len() + 32);
            assert!(list_bytes <= 2 * (LIST_BYTES_MAX + 16_384));
            if decoded.is_err() {
                break;
            }
        }
    });
}
