//! EDNS as clients send it (RFC 6891): what all queries have in common, and what differs from one to the next.

use std::path::Path;

use dnsrig_core::{draw::is_share, failure::Failure, random::Random, whole_file};
use dnsrig_dns::edns::{
    CLIENT_COOKIE_BYTES, CLIENT_SUBNET, COOKIE, Edns, NSID, PADDING, Subnet, append_padded, push_option,
};

/// The highest number of subnets that queries come from.
const SUBNETS_MAX: usize = 1 << 20;

/// The longest list of subnets, in bytes.
const LIST_BYTES_MAX: u64 = 64 << 20;

/// The number of bytes that options of unknown kinds may have together.
const OTHERS_BYTES_MAX: usize = 4096;

/// The number of letters of a wrong list that an error shows.
const SHOWN_MAX: usize = 60;

/// What is in the OPT records of queries.
#[derive(Clone, Debug)]
pub struct ClientEdns {
    udp_payload_bytes: u16,
    /// The share of queries that ask for DNSSEC records.
    dnssec_ok_share: f64,
    /// Options that all queries have. A cookie is the first.
    common: Vec<u8>,
    /// The whole option of each subnet, of which each query has one.
    subnets: Vec<Vec<u8>>,
    padded: bool,
    /// Whether queries have an OPT record unless their line says so.
    pub everywhere: bool,
}

/// What the OPT record of one query has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Choice {
    pub dnssec_ok: bool,
    pub subnet: u32,
}

/// The options that are wanted.
#[derive(Clone, Debug, Default)]
pub struct Wanted<'a> {
    pub cookie: bool,
    pub nsid: bool,
    pub subnets: &'a [Subnet],
    pub others: &'a [Other],
    pub padded: bool,
}

impl ClientEdns {
    /// OPT records of this size in all queries, of which a share has DO.
    pub fn new(udp_payload_bytes: u16, dnssec_ok_share: f64, wanted: &Wanted<'_>) -> Result<Self, String> {
        let mut common = Vec::new();
        if wanted.cookie {
            // It is the first, so that its place follows from the question.
            push_option(&mut common, COOKIE, &[0; CLIENT_COOKIE_BYTES]);
        }
        if wanted.nsid {
            push_option(&mut common, NSID, &[]);
        }
        let others: usize = wanted.others.iter().map(|other| other.data.len()).sum();
        if others > OTHERS_BYTES_MAX {
            return Err(format!("--edns-option: {others} bytes of data, more than {OTHERS_BYTES_MAX}"));
        }
        wanted.others.iter().for_each(|other| push_option(&mut common, other.code, &other.data));
        let subnet = |subnet: &Subnet| {
            let mut option = Vec::new();
            push_option(&mut option, CLIENT_SUBNET, &subnet.data());
            option
        };
        let subnets = wanted.subnets.iter().map(subnet).collect();
        Ok(ClientEdns { udp_payload_bytes, dnssec_ok_share, common, subnets, padded: wanted.padded, everywhere: true })
    }

    /// OPT records of this size without options, only in queries whose line says so.
    pub fn where_lines_say(udp_payload_bytes: u16) -> Self {
        let (common, subnets) = (Vec::new(), Vec::new());
        ClientEdns { udp_payload_bytes, dnssec_ok_share: 0.0, common, subnets, padded: false, everywhere: false }
    }

    /// Draws what the next query has.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> Choice {
        let dnssec_ok = match self.dnssec_ok_share {
            0.0 => false,
            1.0 => true,
            share => is_share(random, share),
        };
        let subnet = if self.subnets.len() > 1 { random.below(self.subnets.len() as u64) as u32 } else { 0 };
        Choice { dnssec_ok, subnet }
    }

    /// Appends the OPT record to the message that begins at `start`.
    #[inline]
    pub fn append(&self, choice: Choice, start: usize, message: &mut Vec<u8>) {
        let edns = Edns { udp_payload_bytes: self.udp_payload_bytes, dnssec_ok: choice.dnssec_ok };
        let subnet = self.subnets.get(choice.subnet as usize).map_or(&[][..], Vec::as_slice);
        append_padded(message, start, edns, [&self.common, subnet], self.padded);
    }
}

/// An option as it is given: code and data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    code: u16,
    data: Vec<u8>,
}

/// Reads `CODE:HEX`, as dnsperf's -E has it.
pub fn parse_other(text: &str) -> Result<Other, String> {
    let expected = || "expected CODE:HEX with a code from 1 to 65535, such as 65001:c0ffee, or 65001: without data";
    let (code, hex) = text.split_once(':').ok_or_else(expected)?;
    let code = code.parse().ok().filter(|code| *code > 0).ok_or_else(expected)?;
    let instead = [(COOKIE, "--cookie"), (CLIENT_SUBNET, "--client-subnet"), (PADDING, "--padding"), (NSID, "--nsid")];
    if let Some((_, option)) = instead.iter().find(|(known, _)| *known == code) {
        return Err(format!("the option {code} has an option of its own: {option}"));
    }
    if !hex.len().is_multiple_of(2) || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(expected().into());
    }
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits");
    Ok(Other { code, data: (0..hex.len()).step_by(2).map(byte).collect() })
}

/// Reads `--client-subnet`: prefixes with commas between them, or the path of a file with one on each line.
pub fn read_subnets(text: &str) -> Result<Vec<Subnet>, Failure> {
    let path = Path::new(text);
    if !path.is_file() {
        let read = text.split(',').map(|prefix| prefix.trim().parse()).collect::<Result<Vec<Subnet>, String>>();
        return read.map_err(|reason| {
            let shown: String = text.chars().take(SHOWN_MAX).collect();
            unusable(&format!("--client-subnet {shown}"), &format!("it is no file, and {reason}"))
        });
    }
    let content = whole_file::read_text(path, LIST_BYTES_MAX).map_err(|error| unusable(text, &error.to_string()))?;
    let mut subnets = Vec::new();
    for (number, line) in content.lines().map(str::trim).enumerate() {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let place = || format!("{}, line {}", path.display(), number + 1);
        subnets.push(line.parse().map_err(|reason: String| unusable(&place(), &reason))?);
        if subnets.len() > SUBNETS_MAX {
            return Err(unusable(&place(), &format!("more than {SUBNETS_MAX} prefixes")));
        }
    }
    if subnets.is_empty() { Err(unusable(&path.display().to_string(), "it has no prefix")) } else { Ok(subnets) }
}

fn unusable(place: &str, reason: &str) -> Failure {
    Failure::bad_input(
        format!("{place}: {reason}"),
        "give prefixes with commas between them, or a file with one on each line",
    )
}

/// The cookie of a client, which it keeps (RFC 7873 §4.1). Another seed gives other cookies.
pub fn client_cookie(seed: u64, client: u64) -> [u8; CLIENT_COOKIE_BYTES] {
    const PURPOSE: u64 = 0x636f_6f6b_6965;
    Random::new(seed ^ client.wrapping_mul(0x9e37_79b9_7f4a_7c15), PURPOSE).bits().to_be_bytes()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_option_is_a_code_and_hex() {
        assert_eq!(parse_other("65001:c0FFee"), Ok(Other { code: 65001, data: vec![0xc0, 0xff, 0xee] }));
        assert_eq!(parse_other("1:"), Ok(Other { code: 1, data: vec![] }));
        for wrong in ["", "1", "0:", "65536:", "x:00", "1:0", "1:0g", "1:é"] {
            assert!(parse_other(wrong).unwrap_err().contains("CODE:HEX"), "{wrong}");
        }
        assert!(parse_other("10:00").unwrap_err().contains("--cookie"));
    }

    #[test]
    fn subnets_are_listed_or_in_a_file() {
        let prefixes = ["192.0.2.0/24", "2001:db8::/56"].map(|text| text.parse().unwrap());
        assert_eq!(read_subnets("192.0.2.0/24, 2001:db8::/56").unwrap(), prefixes);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("subnets");
        fs::write(&path, "# ours\n192.0.2.0/24\r\n\n2001:db8::/56").unwrap();
        assert_eq!(read_subnets(path.to_str().unwrap()).unwrap(), prefixes);
        fs::write(&path, "\n192.0.2.1/24\n").unwrap();
        assert!(read_subnets(path.to_str().unwrap()).unwrap_err().sentence.contains("line 2: `192.0.2.1/24`"));
        fs::write(&path, "\n").unwrap();
        assert!(read_subnets(path.to_str().unwrap()).unwrap_err().sentence.contains("no prefix"));
        assert!(read_subnets("missing.txt").unwrap_err().sentence.contains("it is no file"));
    }

    #[test]
    fn a_share_of_the_queries_asks_for_dnssec_and_all_subnets_are_used() {
        let subnets = ["192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"].map(|text| text.parse().unwrap());
        let edns = ClientEdns::new(1232, 0.3, &Wanted { subnets: &subnets, ..Wanted::default() }).unwrap();
        let mut random = Random::new(1, 1);
        let drawn: Vec<_> = (0..10_000).map(|_| edns.draw(&mut random)).collect();
        let with = drawn.iter().filter(|choice| choice.dnssec_ok).count();
        // Four deviations of 10,000 draws are 183.
        assert!((2_800..3_200).contains(&with), "{with}");
        for subnet in 0..3 {
            let of_it = drawn.iter().filter(|choice| choice.subnet == subnet).count();
            assert!((3_100..3_550).contains(&of_it), "{of_it}");
        }
    }

    #[test]
    fn a_client_keeps_its_cookie_and_no_other_has_it() {
        let cookies: std::collections::HashSet<_> = (0..1000).map(|client| client_cookie(1, client)).collect();
        assert_eq!(cookies.len(), 1000);
        assert!(cookies.contains(&client_cookie(1, 7)) && !cookies.contains(&client_cookie(2, 7)));
    }
}
