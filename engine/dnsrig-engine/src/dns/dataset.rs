//! What generated datasets and those who read them agree on.

/// The version of what the generators make; it rises when the same arguments give other bytes.
pub const VERSION: u32 = 2;

/// The file whose presence means that a dataset is complete.
pub const DESCRIPTION: &str = "dataset.json";

/// The name of the zone with this number, from 0.
pub fn zone_name(number: u64, suffix: &str) -> String {
    format!("z{number:06}.{suffix}")
}

/// Reads a domain name in lower case without a final dot, of letters, digits and hyphens (RFC 1123 §2.1).
pub fn parse_name(text: &str) -> Result<String, String> {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if text.len() <= 128 && text.split('.').all(label) {
        Ok(text.to_owned())
    } else {
        Err("expected a domain name in lower case without a final dot, at most 128 bytes, such as example".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        assert!(parse_name("a-1.example").is_ok());
        for wrong in ["", "a..b", "example.", "A", "-a", "a-", "a b", &"a".repeat(64), &"a.".repeat(80)] {
            assert!(parse_name(wrong).is_err(), "{wrong}");
        }
    }
}
