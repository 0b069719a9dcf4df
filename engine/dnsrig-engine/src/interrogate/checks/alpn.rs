//! Whether the server wants to hear `dot` (ALPN): RFC 9103 §7.1 has clients say it, and servers need not insist.

use crate::{
    dns::query::Ask,
    interrogate::{
        answer::{Answer, Transport},
        asking::Asking,
        check::{Check, TLS, no_connection, no_small_zone},
        connection::{CloseReason, Records},
    },
};

pub const CHECK: Check = Check { name: "alpn-dot-required", transports: TLS, ask };

/// A protocol that no DNS server speaks on this port.
const OTHER: &str = "http/1.1";

fn ask(asking: &Asking, transport: Transport) -> Answer {
    if let Err(close_reason) = asking.server.open(transport) {
        return no_connection(transport, &close_reason);
    }
    let Some(zone) = asking.small() else { return no_small_zone() };
    let transfers_with = |alpn: &[&str]| -> Result<bool, CloseReason> {
        let mut connection = asking.server.open_tls(alpn, None)?;
        let exchange = asking.server.ask_at_once(&mut connection, &[(&zone.name, Ask::Axfr)], Records::OneEach);
        exchange.close_reason.clone().map_or(Ok(exchange.done() > 0), Err)
    };
    judge(&transfers_with(&[]), &transfers_with(&[OTHER]))
}

/// Whether a transfer came without ALPN, and with another protocol than `dot`.
fn judge(without: &Result<bool, CloseReason>, with_other: &Result<bool, CloseReason>) -> Answer {
    let said = |outcome: &Result<bool, CloseReason>| match outcome {
        Ok(true) => "served".to_owned(),
        Ok(false) => "refused".to_owned(),
        Err(close_reason) => close_reason.to_string(),
    };
    let answer = match (without, with_other) {
        (Ok(true), Ok(true)) => Answer::no("transfers without ALPN, and with another protocol named"),
        (Ok(true), _) => Answer::no("transfers without ALPN, but not with another protocol named"),
        _ => Answer::yes(format!("no transfer without it: {}", said(without))),
    };
    answer.with("without", said(without)).with("with_other", said(with_other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrogate::answer::Verdict;

    #[test]
    fn it_is_required_if_nothing_comes_without() {
        let failed = || Err(CloseReason::Tls("no application protocol".into()));
        assert_eq!(judge(&Ok(true), &Ok(true)).verdict, Verdict::No);
        assert_eq!(judge(&Ok(true), &failed()).verdict, Verdict::No);
        assert_eq!(judge(&Ok(false), &failed()).verdict, Verdict::Yes);
        assert_eq!(judge(&failed(), &failed()).verdict, Verdict::Yes);
    }
}
