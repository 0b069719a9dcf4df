//! Checks of the messages of a transfer: their size, their number, and pauses between them.

use std::time::Duration;

use crate::interrogate::{
    answer::{Answer, CannotTell, Transport, milliseconds},
    exchange::Exchange,
    interrogation::{Interrogation, no_zone},
    limits::IN_TURN,
};

/// What we call few: an eighth of what a message may have.
const FEW_BYTES: usize = 8_192;

/// How much of a zone a message carries: RFC 5936 §2.2 asks for as many records as fit.
pub fn message_bytes(interrogation: &Interrogation, _: Transport) -> Result<Answer, CannotTell> {
    match interrogation.survey.most_messages() {
        Some(known) if known.message_bytes.len() > 1 || interrogation.survey.done().next().is_some() => {
            Ok(judge_message_bytes(&known.message_bytes, known.transfer.counts().records))
        }
        _ => Err(no_zone()),
    }
}

/// Judges by the sizes of one zone's messages, in their order.
fn judge_message_bytes(bytes: &[usize], records: u64) -> Answer {
    // The last one has what is left.
    let [full @ .., _] = bytes else { return Answer::cannot_tell("no zone could be transferred") };
    if full.is_empty() {
        return Answer::cannot_tell("no zone takes several messages");
    }
    let mut sorted = full.to_vec();
    sorted.sort_unstable();
    let (typical, largest) = (sorted[sorted.len() / 2], bytes.iter().copied().max().unwrap_or_default());
    let records_per_message = records as f64 / bytes.len() as f64;
    let detail = format!(
        "typically {typical} bytes, at most {largest}: {} messages of {records_per_message:.0} records on average",
        bytes.len()
    );
    let answer = if typical >= FEW_BYTES { Answer::yes(detail) } else { Answer::partly(detail) };
    answer
        .value(format!("{typical} bytes"))
        .with("typical_bytes", typical)
        .with("largest_bytes", largest)
        .with("messages", bytes.len())
        .with("records", records)
}

/// How many messages a zone takes that would fit into one.
pub fn messages_for_a_tiny_zone(interrogation: &Interrogation, _: Transport) -> Result<Answer, CannotTell> {
    let known = interrogation.small_zone()?;
    Ok(judge_messages_for_a_tiny_zone(known.messages(), known.bytes(), known.transfer.counts().records))
}

fn judge_messages_for_a_tiny_zone(messages: usize, bytes: u64, records: u64) -> Answer {
    let zone = format!("a zone of {records} records");
    let answer = match messages {
        1 => Answer::yes(format!("{zone} comes in one message")),
        _ => Answer::partly(format!("{zone} comes in {messages} messages, {bytes} bytes in all")),
    };
    answer.value(messages.to_string()).with("messages", messages).with("bytes", bytes).with("records", records)
}

/// Linux delays acknowledgements by 40 ms at least (TCP_DELACK_MIN); half of that is no coincidence.
const PAUSE_MIN: Duration = Duration::from_millis(20);

/// Whether a transfer of several small writes pauses for the client's delayed acknowledgement (Nagle, RFC 896; RFC 1122
/// §4.2.3.2), which some 40 ms later lets the server send on.
pub fn delayed_ack_pause(interrogation: &Interrogation, transport: Transport) -> Result<Answer, CannotTell> {
    let zones = interrogation.small_zones(IN_TURN)?;
    let measure = |acknowledges_at_once: bool| -> Result<Exchange, CannotTell> {
        let mut connection = interrogation.open(transport)?;
        if acknowledges_at_once {
            connection.acknowledge_at_once();
        }
        Ok(interrogation.server.ask_in_turn(&mut connection, &zones))
    };
    let (usual, at_once) = (measure(false), measure(true));
    Ok(judge_delayed_ack_pause(&usual?, &at_once?))
}

fn judge_delayed_ack_pause(usual: &Exchange, at_once: &Exchange) -> Answer {
    let (Some(usual), Some(at_once)) = (typical(usual), typical(at_once)) else {
        return Answer::cannot_tell("too few transfers came on one connection");
    };
    let pause = usual.saturating_sub(at_once);
    let answer = if pause >= PAUSE_MIN {
        Answer::yes(format!(
            "{:.1} ms per zone; {:.1} ms if the client acknowledges at once (TCP_QUICKACK)",
            milliseconds(usual),
            milliseconds(at_once)
        ))
        .value(format!("{:.0} ms", milliseconds(pause)))
    } else {
        Answer::no(format!("{:.1} ms per zone on a reused connection", milliseconds(usual)))
    };
    answer.with("usual_ms", milliseconds(usual)).with("acknowledged_at_once_ms", milliseconds(at_once))
}

/// The median of the second half: in the first a new connection acknowledges at once by itself.
fn typical(exchange: &Exchange) -> Option<Duration> {
    let done: Vec<_> = exchange.transfers.iter().filter(|transfer| transfer.is_done()).collect();
    let mut times: Vec<_> = done[done.len() / 2..].iter().filter_map(|transfer| transfer.took()).collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, sync::Arc};

    use dnsrig_net::tls::{Client, Settings};

    use super::*;
    use crate::interrogate::{answer::Verdict, exchange::tests::Script, idle::Idle, server::Server};

    #[test]
    fn the_last_message_does_not_count() {
        let judged = judge_message_bytes(&[300, 20_000, 20_000, 20_000, 10], 4_000);
        assert_eq!((judged.verdict, judged.value.as_deref()), (Verdict::Yes, Some("20000 bytes")));
        assert_eq!(judge_message_bytes(&[500, 500, 500], 30).verdict, Verdict::Partly);
        assert_eq!(judge_message_bytes(&[20_000], 500).verdict, Verdict::CannotTell);
        assert_eq!(judge_message_bytes(&[], 0).verdict, Verdict::CannotTell);
    }

    #[test]
    fn one_is_enough() {
        assert_eq!(judge_messages_for_a_tiny_zone(1, 200, 5).verdict, Verdict::Yes);
        assert_eq!(
            (judge_messages_for_a_tiny_zone(3, 300, 5).verdict, judge_messages_for_a_tiny_zone(3, 300, 5).value),
            (Verdict::Partly, Some("3".into()))
        );
    }

    #[test]
    fn a_pause_is_what_quick_acknowledgement_takes_away() {
        let each = |ms: u64| {
            let took = |script: Script, number| script.after(Duration::from_millis(ms)).whole(number);
            (0..IN_TURN).fold(Script::in_turn(IN_TURN), took).exchange()
        };
        assert_eq!(judge_delayed_ack_pause(&each(44), &each(1)).verdict, Verdict::Yes);
        assert_eq!(judge_delayed_ack_pause(&each(1), &each(1)).verdict, Verdict::No);
        // A long way: both are slow.
        assert_eq!(judge_delayed_ack_pause(&each(100), &each(100)).verdict, Verdict::No);
        assert_eq!(judge_delayed_ack_pause(&Script::asked(0).exchange(), &each(1)).verdict, Verdict::CannotTell);
    }

    #[test]
    fn a_zone_of_one_message_shows_its_size_only_if_a_zone_came_whole() {
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let tls = Client::new(nobody.ip(), Settings::default()).unwrap();
        let server = Server { tcp: nobody, xot: nobody, signer: None, tls, quic: Arc::new(Settings::default()) };
        let shown = |script: Script, messages: usize| {
            let mut survey = script.survey();
            survey.zones[0].message_bytes = vec![100; messages];
            let idle = [(); 2].map(|()| Idle::watch(&server, Transport::Tcp, &b"\0".to_vec()));
            let interrogation = Interrogation::new(server.clone(), survey, idle);
            message_bytes(&interrogation, Transport::Tcp).map(|answer| answer.verdict)
        };
        assert_eq!(
            shown(Script::asked(1).first(0), 2),
            Ok(Verdict::Partly),
            "the first message of a zone that was cut"
        );
        assert_eq!(shown(Script::asked(1).first(0), 1), Err(no_zone()));
        assert_eq!(shown(Script::asked(1).refused(0), 1), Err(no_zone()));
        assert_eq!(shown(Script::asked(1), 0), Err(no_zone()));
        assert_eq!(shown(Script::asked(1).whole(0), 1), Ok(Verdict::CannotTell), "a zone of one message");
    }
}
