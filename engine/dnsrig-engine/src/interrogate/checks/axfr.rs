//! AXFR (RFC 5936) as such, over TCP and over TLS (XoT, RFC 9103).

use crate::{
    dns::query::Ask,
    interrogate::{
        answer::{Answer, Transport},
        asking::Asking,
        check::{Check, TCP, no_connection, no_small_zone},
        connection::{CloseReason, Handshake, Records},
        exchange::Exchange,
        survey::Survey,
    },
};

pub const CHECK: Check = Check { name: "axfr", transports: TCP, ask };

/// What was looked at before already says it, if that was over TCP.
fn ask(asking: &Asking, transport: Transport) -> Answer {
    let survey = &asking.survey;
    if survey.transport == transport {
        return judge(survey);
    }
    let Some(zone) = survey.zones.first() else { return no_small_zone() };
    match asking.server.ask_once(transport, &zone.name, Ask::Axfr) {
        Ok(exchange) if exchange.done() > 0 => Answer::yes("serves whole zones"),
        Ok(exchange) => Answer::no(format!("serves them over TLS only: {}", exchange.complaint())),
        Err(close_reason) => Answer::no(format!("serves them over TLS only: {close_reason}")),
    }
}

fn judge(survey: &Survey) -> Answer {
    let (asked, done) = (survey.zones.len(), survey.done().count());
    let why = survey.zones.iter().find_map(|known| match known.transfer.outcome {
        Some(outcome) if outcome.is_good() => None,
        Some(outcome) => Some(outcome.word().to_owned()),
        None => None,
    });
    let why = why.or_else(|| survey.close_reason.as_ref().map(ToString::to_string)).unwrap_or_default();
    let answer = match (asked, done) {
        (0, _) if why.is_empty() => Answer::cannot_tell("no zone was given"),
        (_, 0) => Answer::no(format!("none of {asked} zones could be transferred: {why}")),
        _ if done < asked => Answer::partly(format!("{done} of {asked} zones; the first of the others: {why}")),
        _ => Answer::yes(format!("all of {asked} zones that were tried")),
    };
    survey.summary().into_iter().fold(answer, |answer, (name, value)| answer.with(&name, value))
}

/// A transfer over TLS, and what its handshake came to.
pub fn over_tls(asking: &Asking, transport: Transport) -> Answer {
    let mut connection = match asking.server.open(transport) {
        Ok(connection) => connection,
        Err(close_reason) => return Answer::no(format!("port {}: {close_reason}", asking.server.xot.port())),
    };
    let Some(handshake) = connection.handshake() else { return no_connection(transport, &CloseReason::Closed) };
    let Some(zone) = asking.small().or(asking.survey.zones.first()) else { return no_small_zone() };
    let exchange = asking.server.ask_at_once(&mut connection, &[(&zone.name, Ask::Axfr)], Records::OneEach);
    judge_over_tls(&exchange, &handshake)
}

fn judge_over_tls(exchange: &Exchange, handshake: &Handshake) -> Answer {
    let is_done = exchange.done() > 0;
    let (version, alpn) = (&handshake.version, handshake.alpn.as_deref());
    let answer = if !is_done {
        let why = exchange.complaint();
        Answer::partly(format!("{version} is there, but no transfer over it: {why}"))
    } else if version != "TLSv1.3" {
        Answer::partly(format!("transfers over {version}, where RFC 9103 asks for TLSv1.3"))
    } else if alpn.is_none() {
        Answer::yes(format!("transfers over {version}; the server passes over the ALPN that it was offered (dot)"))
    } else {
        Answer::yes(format!("transfers over {version}, ALPN dot"))
    };
    answer
        .value(version.clone())
        .with("version", version.clone())
        .with("suite", handshake.suite.clone())
        .with("alpn", alpn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::{answer::Verdict, exchange::tests::Script};

    fn handshake(version: &str, alpn: Option<&str>) -> Handshake {
        Handshake {
            version: version.into(),
            suite: "TLS13_AES_256_GCM_SHA384".into(),
            alpn: alpn.map(Into::into),
            is_resumed: false,
            is_early_data_accepted: false,
        }
    }

    #[test]
    fn xot_is_tls_1_3_and_a_transfer() {
        let served = Script::asked(1).whole(0).exchange();
        let judged = |exchange, version, alpn| judge_over_tls(exchange, &handshake(version, alpn)).verdict;
        assert_eq!(judged(&served, "TLSv1.3", Some("dot")), Verdict::Yes);
        assert_eq!(judged(&served, "TLSv1.3", None), Verdict::Yes);
        assert_eq!(judged(&served, "TLSv1.2", Some("dot")), Verdict::Partly);
        let refused = Script::asked(1).refused(0).exchange();
        assert_eq!(judged(&refused, "TLSv1.3", Some("dot")), Verdict::Partly);
    }

    #[test]
    fn axfr_is_as_many_zones_as_were_done() {
        assert_eq!(judge(&Survey::new(Transport::Tcp)).verdict, Verdict::CannotTell);
        let survey = |script: Script| script.survey();
        assert_eq!(judge(&survey(Script::asked(2).whole(0).whole(1))).verdict, Verdict::Yes);
        assert_eq!(judge(&survey(Script::asked(2).whole(0).refused(1))).verdict, Verdict::Partly);
        assert_eq!(judge(&survey(Script::asked(2).refused(0).refused(1))).verdict, Verdict::No);
    }
}
