//! Counts of the queries over DNS over HTTPS that HTTP left without an answer, by their kind.

use std::{collections::BTreeMap, iter};

use dnsrig_net::http2::{CODES, ErrorCode, Fault};

use super::counter::{Counter, counters};

/// The statuses that servers are known to send, each with a count of its own.
const STATUSES: [u16; 16] = [301, 302, 307, 308, 400, 401, 403, 404, 405, 413, 415, 429, 500, 502, 503, 504];

counters! {
    /// Queries without an answer because of HTTP, by kind.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct HttpFaults {
        /// By status; the last count is for all others.
        pub statuses: [u64; STATUSES.len() + 1],
        /// Responses of another type than DNS messages.
        pub content_type: u64,
        /// Responses that are too short for a DNS message.
        pub content: u64,
        /// By the error code of RST_STREAM.
        pub resets: [u64; CODES],
        /// By the error code of GOAWAY.
        pub go_aways: [u64; CODES],
        /// By the error code that this side sent.
        pub protocol: [u64; CODES],
    }
}

impl HttpFaults {
    /// Counts a query.
    pub fn count(&mut self, fault: Fault) {
        *match fault {
            Fault::Status(status) => {
                let known = STATUSES.iter().position(|known| *known == status);
                &mut self.statuses[known.unwrap_or(STATUSES.len())]
            }
            Fault::ContentType => &mut self.content_type,
            Fault::Content => &mut self.content,
            Fault::Reset(code) => &mut self.resets[code.index()],
            Fault::GoAway(code) => &mut self.go_aways[code.index()],
            Fault::Protocol(code) => &mut self.protocol[code.index()],
        } += 1;
    }

    /// The counts above 0, by the name of the kind.
    pub fn named(&self) -> BTreeMap<String, u64> {
        let names = STATUSES.iter().map(|status| format!("status {status}")).chain(iter::once("other statuses".into()));
        let coded = |prefix: &'static str| (0..CODES).map(move |code| format!("{prefix} {}", ErrorCode::name_of(code)));
        let statuses = names.zip(self.statuses);
        let others = [("wrong content type", self.content_type), ("no DNS message", self.content)];
        let others = others.into_iter().map(|(name, count)| (name.to_owned(), count));
        let resets = coded("RST_STREAM").zip(self.resets);
        let go_aways = coded("GOAWAY").zip(self.go_aways);
        let protocol = coded("server broke the protocol:").zip(self.protocol);
        let all = statuses.chain(others).chain(resets).chain(go_aways).chain(protocol);
        all.filter(|(_, count)| *count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_name_and_a_count() {
        let mut faults = HttpFaults::default();
        for fault in [
            Fault::Status(500),
            Fault::Status(500),
            Fault::Status(418),
            Fault::ContentType,
            Fault::Content,
            Fault::Reset(ErrorCode::REFUSED_STREAM),
            Fault::GoAway(ErrorCode::NONE),
            Fault::Protocol(ErrorCode(0x1234)),
        ] {
            faults.count(fault);
        }
        let mut twice = faults;
        twice.add(&faults);
        let expected = [
            ("GOAWAY NO_ERROR", 2),
            ("RST_STREAM REFUSED_STREAM", 2),
            ("no DNS message", 2),
            ("other statuses", 2),
            ("server broke the protocol: other codes", 2),
            ("status 500", 4),
            ("wrong content type", 2),
        ];
        assert_eq!(twice.named(), expected.map(|(name, count)| (name.to_owned(), count)).into());
    }
}
