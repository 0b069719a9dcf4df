//! Names and types in the format of master files (RFC 1035 §5.1), read without allocation.

use dnsrig_dns::name::{LABEL_BYTES_MAX, NAME_BYTES_MAX};
use domain::base::iana::Rtype;

/// Splits a line at the end of its first word: at white space that is not behind a backslash.
pub fn split_word(line: &[u8]) -> (&[u8], &[u8]) {
    let mut escaped = false;
    let end = line.iter().position(|byte| {
        let found = !escaped && byte.is_ascii_whitespace();
        escaped = !escaped && *byte == b'\\';
        found
    });
    let (word, rest) = line.split_at(end.unwrap_or(line.len()));
    (word, rest.trim_ascii_start())
}

/// Appends a name in wire format to `bytes`. It is absolute with a final dot or without; \DDD and \X are bytes.
pub fn push_name(bytes: &mut Vec<u8>, text: &[u8]) -> Result<(), String> {
    let start = bytes.len();
    // A dot alone is the root; in any other place it ends a label.
    let mut rest = if text == b"." { &[] } else { text };
    while !rest.is_empty() {
        rest = push_label(bytes, rest)?;
        // The root's byte is still to come.
        if bytes.len() - start >= NAME_BYTES_MAX {
            return Err(format!("a name of more than {NAME_BYTES_MAX} bytes"));
        }
    }
    bytes.push(0);
    Ok(())
}

/// Appends the first label of `text`. Returns what is behind it and its dot.
fn push_label<'a>(bytes: &mut Vec<u8>, text: &'a [u8]) -> Result<&'a [u8], String> {
    let length_at = bytes.len();
    bytes.push(0);
    let mut rest = text;
    loop {
        rest = match rest {
            [] => break,
            [b'.', behind @ ..] => {
                rest = behind;
                break;
            }
            [b'\\', behind @ ..] => push_escaped(bytes, behind)?,
            [byte, behind @ ..] => {
                bytes.push(*byte);
                behind
            }
        };
        if bytes.len() - length_at > 1 + LABEL_BYTES_MAX {
            return Err(format!("a label of more than {LABEL_BYTES_MAX} bytes"));
        }
    }
    match bytes.len() - length_at - 1 {
        0 => Err("an empty label: a dot where none may stand".into()),
        length => {
            bytes[length_at] = length as u8;
            Ok(rest)
        }
    }
}

/// Appends the byte behind a backslash, in decimal or as itself. Returns what follows.
fn push_escaped<'a>(bytes: &mut Vec<u8>, text: &'a [u8]) -> Result<&'a [u8], String> {
    let digit = |byte: u8| u16::from(byte - b'0');
    match text {
        [a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', rest @ ..] => {
            let value = digit(*a) * 100 + digit(*b) * 10 + digit(*c);
            bytes.push(u8::try_from(value).map_err(|_| format!("\\{value} is no byte"))?);
            Ok(rest)
        }
        [b'0'..=b'9', ..] => Err("three digits must stand behind a backslash, or a character that is none".into()),
        [byte, rest @ ..] => {
            bytes.push(*byte);
            Ok(rest)
        }
        [] => Err("a backslash with nothing behind it".into()),
    }
}

/// Reads a type: its mnemonic, or TYPE and a number (RFC 3597 §5). Types of transfers have no single answer.
pub fn parse_type(text: &[u8]) -> Result<Rtype, String> {
    match Rtype::from_bytes(text) {
        Some(Rtype::AXFR | Rtype::IXFR) => {
            Err(format!("`{}` is a transfer, which has no single answer: use `dnsrig transfer`", show(text)))
        }
        Some(rtype) => Ok(rtype),
        None => Err(format!("`{}` is no type, such as A, HTTPS or TYPE65", show(text))),
    }
}

/// The beginning of something unreadable, for a person to read. Bytes that are not text are written as \DDD.
pub fn show(text: &[u8]) -> String {
    const SHOWN_BYTES_MAX: usize = 60;
    let mut shown = String::new();
    for chunk in text[..text.len().min(SHOWN_BYTES_MAX)].utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter.is_ascii_graphic() || letter == ' ' || letter.is_alphanumeric() {
                shown.push(letter);
            } else {
                shown.extend(letter.encode_utf8(&mut [0; 4]).bytes().map(escape));
            }
        }
        shown.extend(chunk.invalid().iter().copied().map(escape));
    }
    if text.len() > SHOWN_BYTES_MAX { shown + "…" } else { shown }
}

fn escape(byte: u8) -> String {
    format!("\\{byte:03}")
}

#[cfg(test)]
mod tests {
    use dnsrig_testing::inputs;
    use domain::base::Name;
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        push_name(&mut bytes, text.as_bytes()).map(|()| bytes)
    }

    #[test]
    fn names_are_absolute_with_a_dot_or_without() {
        assert_eq!(name("a.bc").unwrap(), b"\x01a\x02bc\0");
        assert_eq!(name("a.bc.").unwrap(), b"\x01a\x02bc\0");
        assert_eq!(name(".").unwrap(), b"\0");
        assert_eq!(name("_x-1.*").unwrap(), b"\x04_x-1\x01*\0");
    }

    #[test]
    fn a_backslash_escapes_an_byte() {
        assert_eq!(name("a\\.b.c\\000\\255\\\\").unwrap(), b"\x03a.b\x04c\0\xff\\\0");
        for wrong in ["\\256", "\\25", "\\2x5", "a\\", "\\1"] {
            assert!(name(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn dots_and_lengths_have_their_limits() {
        for wrong in ["..", ".a", "a..b", "a..", ""] {
            // The empty text is a word of no line: it reads as the root.
            assert_eq!(name(wrong).is_err(), !wrong.is_empty(), "{wrong}");
        }
        let (fits, too_long) = ("a".repeat(63), "a".repeat(64));
        assert_eq!(name(&fits).unwrap().len(), 65);
        assert!(name(&too_long).unwrap_err().contains("63 bytes"));
        assert_eq!(name(&"a.".repeat(127)).unwrap().len(), 255);
        assert!(name(&"a.".repeat(128)).unwrap_err().contains("255 bytes"));
    }

    #[test]
    fn a_word_ends_at_white_space_that_is_not_escaped() {
        assert_eq!(split_word(b"a\\ b\\\\ \t A "), (&b"a\\ b\\\\"[..], &b"A "[..]));
        assert_eq!(split_word(b"a"), (&b"a"[..], &b""[..]));
    }

    #[test]
    fn what_cannot_be_read_is_shown_as_it_is() {
        let control = "a\u{1b}[0m\t";
        for (text, shown) in [("a\\.b", "a\\.b"), ("\"é\" 1", "\"é\" 1"), (control, "a\\027[0m\\009")] {
            assert_eq!(show(text.as_bytes()), shown);
        }
        assert_eq!(show(b"\xff\0"), "\\255\\000");
        assert_eq!(show(&[b'a'; 61]), "a".repeat(60) + "…");
    }

    #[test]
    fn types_are_mnemonics_or_numbers() {
        let read = |text: &str| parse_type(text.as_bytes());
        assert_eq!([read("a"), read("HTTPS"), read("any")], [Ok(Rtype::A), Ok(Rtype::HTTPS), Ok(Rtype::ANY)]);
        assert_eq!([read("TYPE1"), read("type65535")], [Ok(Rtype::A), Ok(Rtype::from_int(65535))]);
        for wrong in ["", "TYPE", "TYPE65536", "TYPE-1", "1", "A.", "axfr", "TYPE251"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(read(&"\u{7}".repeat(100)).unwrap_err().len() < 500);
    }

    proptest! {
        #![proptest_config(inputs(20_000))]

        /// 20,000 names of any bytes, written by another library, are read back as they were.
        #[test]
        fn names_are_read_as_another_library_writes_them(
            labels in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..=63), 0..4), dot: bool,
        ) {
            let mut wire: Vec<u8> = labels.iter().flat_map(|label| [&[label.len() as u8][..], label].concat()).collect();
            wire.push(0);
            let text = Name::from_slice(&wire).unwrap().to_string();
            let text = if dot && text != "." { text + "." } else { text };
            prop_assert_eq!(split_word(text.as_bytes()).0, text.as_bytes());
            prop_assert_eq!(name(&text), Ok(wire));
        }
    }
}
