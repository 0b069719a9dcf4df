//! The next version of a zone, where the user has none: another serial, and other TTLs for a share of the RRsets.

use domain::base::{Name, ToName as _, iana::Rtype, rdata::ComposeRecordData};

use super::text::{escaped, push_hex};
use dnsrig_core::random::Random;

/// The longest TTL (RFC 2181 §8).
const TTL_MAX: u32 = (1 << 31) - 1;

/// How a version of a zone differs from the user's file.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// What is added to the serial (RFC 1982) and to the TTLs that change; at least 1.
    pub steps: u32,
    /// The share of the RRsets whose TTL changes, from 0 to 1.
    pub share: f64,
    /// Whether signed zones may change, too, although their signatures are then wrong.
    pub signed: bool,
}

impl Change {
    /// Whether an RRset changes. It depends on its name and type alone, so that all records of the RRset do.
    pub fn touches(&self, owner: &Name<impl AsRef<[u8]>>, rtype: Rtype) -> bool {
        // The SOA record changes anyway, and an RRSIG has the TTL of what it signs.
        if matches!(rtype, Rtype::SOA | Rtype::RRSIG) {
            return false;
        }
        // FNV-1a: a fixed hash, so that the same files give the same version everywhere.
        let hash = owner.as_slice().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let drawn = Random::new(hash, u64::from(rtype.to_int())).bits();
        (drawn as f64) < self.share * (u64::MAX as f64)
    }

    /// Another TTL.
    pub fn ttl(&self, ttl: u32) -> u32 {
        if ttl <= TTL_MAX - self.steps { ttl + self.steps } else { ttl.saturating_sub(self.steps) }
    }
}

/// A record as a line that any server reads, whatever the origin and the type are: its data as in RFC 3597 §5.
pub fn line<O: AsRef<[u8]>>(owner: &Name<O>, ttl: u32, rtype: Rtype, data: &impl ComposeRecordData) -> String {
    let mut bytes = Vec::new();
    data.compose_rdata(&mut bytes).expect("a vector takes any data");
    let mut text = format!("{} {ttl} IN {rtype} \\# {}", escaped(owner.to_name::<Vec<u8>>().as_slice()), bytes.len());
    if !bytes.is_empty() {
        text.push(' ');
        push_hex(&mut text, &bytes);
    }
    text.push('\n');
    text
}
