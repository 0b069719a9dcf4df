//! What files with a name a line have in common: the mark that some programs put first, and what lines of other kinds
//! of lists have beside the name.

use std::io::{self, BufRead, Read};

use domain::base::Name;

/// A line longer than a name can be written, even with every byte as \DDD (RFC 1035 §5.1) and a path behind it.
const LINE_BYTES_MAX: u64 = 8192;

/// With this some programs begin UTF-8.
pub const MARK: char = '\u{feff}';

/// The text of a file after the [mark](MARK); a mark of UTF-16 is an error.
pub fn after_mark(text: &[u8]) -> Result<&[u8], String> {
    match text {
        [0xef, 0xbb, 0xbf, rest @ ..] => Ok(rest),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Err("it is UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`".into()),
        _ => Ok(text),
    }
}

/// Reads the next line, of which `number` is counted from 1, without the [mark](MARK) at the beginning; false behind
/// the last one.
pub fn next_line(input: &mut impl BufRead, number: usize, line: &mut String) -> io::Result<bool> {
    line.clear();
    let mut bytes = std::mem::take(line).into_bytes();
    // A byte more than is allowed tells a line that is too long from one that just fits.
    let read = input.take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut bytes)?;
    let wrong = |what| Err(io::Error::new(io::ErrorKind::InvalidData, format!("line {number} {what}")));
    if read as u64 > LINE_BYTES_MAX {
        return wrong(format!("has more than {LINE_BYTES_MAX} bytes"));
    }
    let Ok(text) = String::from_utf8(bytes) else { return wrong("is not text in UTF-8".into()) };
    *line = text;
    if number == 1 && line.starts_with(MARK) {
        line.drain(..MARK.len_utf8());
    }
    Ok(read > 0)
}

/// A name as a line begins with it, with its dot at the end. A # at the beginning would make the line a comment.
pub fn written(name: &Name<[u8]>) -> String {
    let text = name.fmt_with_dot().to_string();
    text.strip_prefix('#').map(|rest| format!("\\035{rest}")).unwrap_or(text)
}

/// Refuses a number, a comma and a name, as lists of popular names have them: it would be taken for one name.
pub fn refuse_rank(name: &str) -> Result<(), String> {
    match name.split_once(',') {
        Some((rank, rest))
            if rank.bytes().all(|byte| byte.is_ascii_digit()) && !rank.is_empty() && !rest.is_empty() =>
        {
            Err(format!("`{name}` is a rank and a name: keep the names alone, such as with `cut -d, -f2`"))
        }
        _ => Ok(()),
    }
}

/// Refuses a name and more behind a space: it would be taken for one name with a space in it.
pub fn refuse_words(name: &str) -> Result<(), String> {
    if !name.replace("\\ ", "").contains(' ') {
        return Ok(());
    }
    Err(format!("`{name}` is more than a name: a line is one name, and names with types are for `load --queries`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_more_is_refused() {
        for (name, refused) in [("a.example A", true), ("a\\ b.example", false), ("a.example", false)] {
            assert_eq!(refuse_words(name).is_err(), refused, "{name}");
        }
    }

    #[test]
    fn a_mark_is_no_part_of_the_text() {
        assert_eq!(after_mark(b"\xef\xbb\xbfa A"), Ok(&b"a A"[..]));
        assert_eq!((after_mark(b""), after_mark(b"\xef\xbb")), (Ok(&b""[..]), Ok(&b"\xef\xbb"[..])));
        assert!(after_mark(b"\xff\xfea\0").unwrap_err().contains("UTF-16"));
    }

    #[test]
    fn a_line_has_a_limit_and_is_text() {
        let read = |text: &[u8], number| {
            let mut line = "what was there".to_owned();
            next_line(&mut &text[..], number, &mut line).map(|more| (more, line)).map_err(|error| error.to_string())
        };
        assert_eq!(read("\u{feff}a\nb".as_bytes(), 1), Ok((true, "a\n".into())));
        assert_eq!(read("\u{feff}a".as_bytes(), 2), Ok((true, "\u{feff}a".into())));
        assert_eq!(read(b"", 3), Ok((false, String::new())));
        let line = [b'a'; LINE_BYTES_MAX as usize + 1];
        assert_eq!(read(&line[1..], 7).unwrap().1.len(), line.len() - 1);
        assert_eq!(read(&line, 7), Err("line 7 has more than 8192 bytes".into()));
        assert_eq!(read(b"a\n\xff\n", 1).and_then(|_| read(b"\xff\n", 2)), Err("line 2 is not text in UTF-8".into()));
    }

    #[test]
    fn a_name_is_written_as_no_comment() {
        for (wire, text) in [(&b"\0"[..], "."), (b"\x02#x\0", "\\035x."), (b"\x02x#\0", "x#.")] {
            assert_eq!(written(Name::from_slice(wire).unwrap()), text);
        }
    }

    #[test]
    fn a_rank_before_a_name_is_refused() {
        for (name, refused) in [("1,a.example", true), ("a,b", false), (",a", false), ("1,", false), ("1\\,a", false)] {
            assert_eq!(refuse_rank(name).is_err(), refused, "{name}");
        }
    }
}
