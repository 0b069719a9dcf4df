//! Queries without what names people: for a stream that is to be given away.
//!
//! Each label becomes another one of the same length and the same kinds of characters, decided by a keyed hash of
//! itself and all labels behind it: equal names stay equal, and names below a common one stay so. The key is drawn for
//! each stream and not kept. Of EDNS, cookies and unknown options are replaced, client subnets and padding become
//! zeros, all with their lengths. Other records are left out.

use dnsrig_dns::{
    edns::{self, CLIENT_SUBNET, COOKIE, OPT_BYTES, Opt, PADDING},
    header::{HEADER_BYTES, Header},
    name,
    query::Question,
    record::Walk,
};
use ring::{hmac, rand::SystemRandom};

/// Family and prefix lengths of a client subnet stay.
const SUBNET_HEAD_BYTES: usize = 4;

/// A hash.
type Hash = [u8; 32];

/// Rewrites messages.
pub struct Anonymiser {
    key: hmac::Key,
    /// Whether the last label of a name stays as it is.
    keep_tld: bool,
    message: Vec<u8>,
}

impl Anonymiser {
    /// With a new key.
    pub fn new(keep_tld: bool) -> Result<Self, ring::error::Unspecified> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())?;
        Ok(Anonymiser { key, keep_tld, message: Vec::new() })
    }

    /// The query of a client, rewritten; none if its question cannot be read.
    pub fn rewrite(&mut self, message: &[u8], client: u32) -> Option<&[u8]> {
        let header = Header::read(message).ok()?;
        // A query for a cookie alone has no question (RFC 7873 §5.4).
        let has_question = header.questions > 0;
        self.message.clear();
        // The additional records that are left are counted below.
        self.message.extend_from_slice(&message[..4]);
        self.message.extend_from_slice(&[0, u8::from(has_question), 0, 0, 0, 0, 0, 0]);
        let mut behind = HEADER_BYTES;
        if has_question {
            let question = Question::read(message).ok()?;
            behind = question.end();
            self.push_name(question.name());
            self.message.extend_from_slice(&question.wire[question.name().len()..]);
        }
        let is_alone = header.records() == 1 && header.additional == 1;
        if is_alone && let Some(options) = options(message, behind) {
            let head = &message[behind..][..OPT_BYTES];
            self.message[HEADER_BYTES - 1] = 1;
            self.message.extend_from_slice(head);
            self.push_options(options, client);
        }
        Some(&self.message)
    }

    /// Appends a name in wire format, label by label from the last one on.
    fn push_name(&mut self, name: &[u8]) {
        let start = self.message.len();
        self.message.extend_from_slice(name);
        let mut labels = Vec::with_capacity(16);
        let mut at = 0;
        while name[at] != 0 {
            let length = usize::from(name[at]);
            labels.push(at + 1..at + 1 + length);
            at += 1 + length;
        }
        let is_reverse = reverse(name);
        let mut hash = Hash::default();
        for (from_end, label) in labels.iter().rev().enumerate() {
            let original = &name[label.clone()];
            hash = self.hash(&[&hash, original.to_ascii_lowercase().as_slice()].concat());
            let keeps = (is_reverse && from_end < 2)
                || (self.keep_tld && from_end == 0 && labels.len() > 1)
                || original.first() == Some(&b'_');
            if !keeps {
                let random = [hash, self.hash(&hash)].concat();
                let into = &mut self.message[start + label.start..start + label.end];
                if is_reverse { rewrite_number(into, &random) } else { rewrite_label(into, &random) }
            }
        }
    }

    fn push_options(&mut self, options: &[u8], client: u32) {
        for (code, data) in edns::options(options).map_while(Result::ok) {
            self.message.extend_from_slice(&code.to_be_bytes());
            self.message.extend_from_slice(&(data.len() as u16).to_be_bytes());
            let start = self.message.len();
            self.message.resize(start + data.len(), 0);
            match code {
                CLIENT_SUBNET => {
                    let kept = data.len().min(SUBNET_HEAD_BYTES);
                    self.message[start..start + kept].copy_from_slice(&data[..kept]);
                }
                COOKIE => {
                    let random = self.hash(&[&client.to_be_bytes()[..], data].concat());
                    self.message[start..].iter_mut().zip(random).for_each(|(byte, random)| *byte = random);
                }
                PADDING => (),
                // Its meaning is not known: its length may matter to the server, its content may reveal somebody.
                _ => (),
            }
        }
    }

    fn hash(&self, bytes: &[u8]) -> Hash {
        hmac::sign(&self.key, bytes).as_ref().try_into().expect("SHA-256 has 32 bytes")
    }
}

/// The options of the OPT record at `at`, if that is its place, and all of them are whole.
fn options(message: &[u8], at: usize) -> Option<&[u8]> {
    let record = Walk::from(message, at).any_record().ok().filter(|_| message[at] == 0)?;
    let opt = Opt::read(&record)?;
    edns::options(opt.options).all(|option| option.is_ok()).then_some(opt.options)
}

/// Whether the name is a reverse name of an address (RFC 1035 §3.5, RFC 3596 §2.5).
fn reverse(name: &[u8]) -> bool {
    [&b"\x07in-addr\x04arpa\0"[..], b"\x03ip6\x04arpa\0"].iter().any(|suffix| name::ends_with(name, suffix))
}

/// Letters become letters in the same case, digits digits; hyphens stay where they are.
fn rewrite_label(label: &mut [u8], random: &[u8]) {
    for (byte, random) in label.iter_mut().zip(random) {
        *byte = match *byte {
            b'0'..=b'9' => b'0' + random % 10,
            b'A'..=b'Z' => b'A' + random % 26,
            b'-' => b'-',
            _ => b'a' + random % 26,
        };
    }
}

/// A part of an address becomes another one of the same length.
fn rewrite_number(label: &mut [u8], random: &[u8]) {
    let number = match (label.len(), u16::from_be_bytes([random[0], random[1]])) {
        (1, random) => format!("{:x}", random % if label[0].is_ascii_digit() { 10 } else { 16 }),
        (2, random) => format!("{}", 10 + random % 90),
        (3, random) => format!("{}", 100 + random % 156),
        _ => return rewrite_label(label, random),
    };
    label.copy_from_slice(number.as_bytes());
}

#[cfg(test)]
mod tests {
    use dnsrig_dns::query::TAIL_BYTES;
    use dnsrig_testing::fuzz::fuzz;

    use super::*;
    use crate::replay::message::{Kind, kind};

    fn query(name: &str, options: Option<&[u8]>) -> Vec<u8> {
        let mut message = vec![1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(options.is_some())];
        for label in name.split('.').filter(|label| !label.is_empty()) {
            message.push(label.len() as u8);
            message.extend(label.as_bytes());
        }
        message.extend([0, 0, 1, 0, 1]);
        if let Some(options) = options {
            message.extend([0, 0, 41, 4, 208, 0, 0, 128, 0, 0, options.len() as u8]);
            message.extend(options);
        }
        message
    }

    /// The labels of the rewritten name.
    fn name_of(message: &[u8]) -> Vec<String> {
        let mut labels = Vec::new();
        name::labels(message, HEADER_BYTES, |label| labels.push(String::from_utf8(label.to_vec()).unwrap())).unwrap();
        labels
    }

    fn rewritten(anonymiser: &mut Anonymiser, name: &str) -> Vec<String> {
        name_of(anonymiser.rewrite(&query(name, None), 0).unwrap())
    }

    #[test]
    fn names_keep_their_structure_and_nothing_else() {
        let mut one = Anonymiser::new(false).unwrap();
        let www = rewritten(&mut one, "www.Some-Person-7.example");
        assert_eq!(www.iter().map(String::len).collect::<Vec<_>>(), [3, 13, 7]);
        assert!(www[1].as_bytes()[0].is_ascii_uppercase() && &www[1][4..5] == "-" && &www[1][11..12] == "-");
        assert!(www[1].as_bytes()[12].is_ascii_digit() && www[1] != "Some-Person-7" && www[2] != "example");
        let mail = rewritten(&mut one, "_dmarc.some-person-7.example");
        assert_eq!((mail[0].as_str(), mail[1].clone(), &mail[2]), ("_dmarc", www[1].to_lowercase(), &www[2]));
        let elsewhere = rewritten(&mut one, "some-person-7.test");
        assert_ne!(elsewhere[0], mail[1]);
        let mut two = Anonymiser::new(true).unwrap();
        let other = rewritten(&mut two, "www.Some-Person-7.example");
        assert_eq!((other[2].as_str(), other[1] == www[1]), ("example", false));
        assert_ne!(rewritten(&mut two, "my-own-computer"), ["my-own-computer"]);
    }

    #[test]
    fn addresses_in_names_stay_addresses() {
        let mut anonymiser = Anonymiser::new(false).unwrap();
        let name = rewritten(&mut anonymiser, "9.10.200.192.in-addr.arpa");
        assert_eq!(name[4..], ["in-addr", "arpa"]);
        let lengths = name[..4].iter().map(|label| (label.len(), label.parse::<u8>().is_ok())).collect::<Vec<_>>();
        assert_eq!(lengths, [(1, true), (2, true), (3, true), (3, true)]);
        let name = rewritten(&mut anonymiser, "a.0.f.ip6.arpa");
        assert_eq!((name.len(), &name[3..]), (5, &["ip6".to_owned(), "arpa".to_owned()][..]));
    }

    #[test]
    fn options_keep_their_lengths() {
        let mut anonymiser = Anonymiser::new(false).unwrap();
        let options =
            [0, 8, 0, 7, 0, 1, 24, 0, 9, 9, 9, 0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 12, 0, 2, 7, 7, 9, 9, 0, 1, 5];
        let message = query("a.example", Some(&options));
        let found = anonymiser.rewrite(&message, 1).unwrap();
        assert_eq!(found.len(), message.len());
        let found = &found[message.len() - options.len()..];
        assert_eq!(found[..11], [0, 8, 0, 7, 0, 1, 24, 0, 0, 0, 0]);
        assert_ne!(found[15..23], options[15..23]);
        assert_eq!(found[23..], [0, 12, 0, 2, 0, 0, 9, 9, 0, 1, 0]);
    }

    #[test]
    fn a_query_without_a_question_stays_one() {
        let options = [0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8];
        let mut message =
            [&query("", Some(&options))[..HEADER_BYTES], &query("", Some(&options))[HEADER_BYTES + 5..]].concat();
        message[5] = 0;
        let found = Anonymiser::new(false).unwrap().rewrite(&message, 1).unwrap().to_vec();
        assert_eq!((found.len(), found[..27] == message[..27], found[27..] == message[27..]), (35, true, false));
    }

    /// Whatever a client sent: a message of the same form that has nothing of the names and the options.
    #[test]
    fn harmed_messages_are_rewritten_or_left_out() {
        let mut corpus = dnsrig_dns::testing::messages();
        let options = [0, 8, 0, 7, 0, 1, 24, 0, 9, 9, 9, 0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 12, 0, 2, 7, 7];
        corpus.extend([query("w.ab-1.example", Some(&options)), query("x.1.168.192.in-addr.arpa", None)]);
        let mut anonymiser = Anonymiser::new(false).unwrap();
        fuzz(2_000, &corpus, |message, random| {
            let client = random.below(3) as u32;
            let Some(found) = anonymiser.rewrite(message, client).map(<[u8]>::to_vec) else {
                assert_ne!(kind(message), Kind::Query);
                return;
            };
            assert!(found.len() <= message.len() && found[..4] == message[..4]);
            assert_eq!(anonymiser.rewrite(message, client), Some(&found[..]), "equal stays equal");
            // Without a question there are no names, and EDNS that is not whole or not alone is left out.
            if kind(message) != Kind::Query || message[5] == 0 {
                return;
            }
            assert_eq!(kind(&found), Kind::Query);
            let [question, before] = [&found[..], message].map(dnsrig_dns::query::question);
            assert_eq!(question.len(), before.len());
            let [mut labels, mut labels_before] = [Vec::new(), Vec::new()];
            name::labels(&found, HEADER_BYTES, |label| labels.push(label)).unwrap();
            name::labels(message, HEADER_BYTES, |label| labels_before.push(label)).unwrap();
            assert_eq!(question[question.len() - TAIL_BYTES..], before[before.len() - TAIL_BYTES..]);
            for (label, before) in labels.iter().zip(&labels_before) {
                assert_eq!(label.len(), before.len());
                // Twelve letters or digits are hardly drawn again.
                let is_short = before.iter().filter(|byte| **byte != b'-').count() < 12;
                let is_kept = before.first() == Some(&b'_') || reverse(&message[HEADER_BYTES..]);
                assert!(label != before || is_short || is_kept, "{before:02x?}");
            }
        });
    }
}
