//! Whether the server reports how long it keeps an idle connection (edns-tcp-keepalive, RFC 7828).

use std::time::Duration;

use crate::interrogate::{
    answer::{Answer, Transport},
    asking::Asking,
    check::{BOTH, Check, no_connection, no_small_zone},
    connection::Records,
    exchange::Exchange,
    server::Talk,
};

pub const CHECK: Check = Check { name: "keepalive", transports: BOTH, ask };

fn ask(asking: &Asking, transport: Transport) -> Answer {
    let Some(zone) = asking.any() else { return no_small_zone() };
    match asking.server.open(transport) {
        Ok(mut connection) => {
            let mut talk = Talk::new(None);
            let query = talk.draft_keepalive(&zone.name);
            talk.note(connection.send(&[query], Records::OneEach));
            talk.listen(&mut connection);
            judge(&talk.exchange)
        }
        Err(close_reason) => no_connection(transport, &close_reason),
    }
}

fn judge(exchange: &Exchange) -> Answer {
    let Some(transfer) = exchange.transfers.first().filter(|transfer| transfer.is_done()) else {
        return Answer::cannot_tell(format!("no answer to a query with EDNS: {}", exchange.complaint()));
    };
    match transfer.keepalive.map(|timeout| (timeout, timeout.as_secs_f64())) {
        Some((Duration::ZERO, _)) => {
            Answer::yes("asks to close the connection at once").value("0 s").with("timeout_s", 0.0)
        }
        Some((_, timeout_s)) => Answer::yes("reports how long it keeps an idle connection")
            .value(format!("{timeout_s:.1} s"))
            .with("timeout_s", timeout_s),
        None => Answer::no("does not report it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dns::query::Ask;
    use crate::interrogate::{answer::Verdict, exchange::tests::Script};

    #[test]
    fn the_value_is_told() {
        let asked = || Script::asking(&[Ask::Soa]);
        let told = judge(&asked().keepalive(0, Duration::from_millis(30_000)).exchange());
        assert_eq!((told.verdict, told.value.as_deref()), (Verdict::Yes, Some("30.0 s")));
        assert_eq!(judge(&asked().soa(0).exchange()).verdict, Verdict::No);
        assert_eq!(judge(&asked().refused(0).exchange()).verdict, Verdict::CannotTell);
    }
}
