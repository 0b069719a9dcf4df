//! What files with a name a line have in common: their [lines](Lines), the mark that some programs put first, and what
//! other kinds of lists have beside the name.

use std::io::{self, BufRead, Read};

use domain::base::Name;

/// With this some programs begin UTF-8.
const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// A line longer than a name can be written, even with every byte as \DDD (RFC 1035 §5.1) and a path behind it.
const LINE_BYTES_MAX: u64 = 8192;

/// A line could not be read, or does not belong into a list.
#[derive(Debug)]
pub enum LineError {
    Read(io::Error),
    Line { line: usize, reason: String },
}

/// The lines of a list: trimmed, without those that are empty or a comment, which begins with # or ;.
pub struct Lines<Input> {
    input: Input,
    bytes: Vec<u8>,
    number: usize,
}

impl<Input: BufRead> Lines<Input> {
    pub fn new(input: Input) -> Self {
        Lines { input, bytes: Vec::new(), number: 0 }
    }

    /// The next line with its number, which begins at 1; none at the end.
    pub fn next_line(&mut self) -> Result<Option<(usize, &str)>, LineError> {
        loop {
            self.bytes.clear();
            let read = Read::take(&mut self.input, LINE_BYTES_MAX + 1).read_until(b'\n', &mut self.bytes);
            if read.map_err(LineError::Read)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            let text = read_line(&self.bytes).map_err(|reason| LineError::Line { line: self.number, reason })?;
            if !text.is_empty() && !text.starts_with(['#', ';']) {
                break;
            }
        }
        // It was read just now.
        Ok(read_line(&self.bytes).ok().map(|text| (self.number, text)))
    }
}

fn read_line(bytes: &[u8]) -> Result<&str, String> {
    if bytes.len() as u64 > LINE_BYTES_MAX {
        return Err(format!("a line of more than {LINE_BYTES_MAX} bytes"));
    }
    let text = std::str::from_utf8(after_mark(bytes)?).ok().filter(|text| !text.contains('\0'));
    text.map(str::trim).ok_or_else(|| "it is not text in UTF-8".into())
}

/// The text of a line after the mark, which files that were put together have in the middle, too; a mark of UTF-16 is
/// an error.
pub fn after_mark(line: &[u8]) -> Result<&[u8], String> {
    match line {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Err("it is UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`".into()),
        _ => Ok(line.strip_prefix(&MARK).unwrap_or(line)),
    }
}

/// A name as a line begins with it, with its dot at the end. A # or a ; at the beginning would make the line a comment.
pub fn written(name: &Name<[u8]>) -> String {
    let text = name.fmt_with_dot().to_string();
    match text.as_bytes()[0] {
        first @ (b'#' | b';') => format!("\\{first:03}{}", &text[1..]),
        _ => text,
    }
}

/// Refuses what other kinds of lists have: all of it would be taken for one name. Those are URLs, rows of a table with
/// ranks, and what has quotes or a comma around the name.
pub fn refuse_other_lists(name: &str) -> Result<(), String> {
    if name.contains("://") {
        return Err(format!("`{name}` is a URL: keep only the host names, for example with `cut -d/ -f3`"));
    }
    let fields: Vec<_> = name.split(',').map(|field| field.trim_matches('"')).collect();
    let is_rank = |field: &&str| !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = |field: &&str| !field.is_empty() && !is_rank(field);
    let quotes = if name.contains('"') { r#" | tr -d '"'"# } else { "" };
    if fields.iter().any(is_rank)
        && let Some(place) = fields.iter().position(is_name)
    {
        let place = place + 1;
        return Err(format!(
            "`{name}` is a rank and a name: keep only the names, for example with `cut -d, -f{place}{quotes}`"
        ));
    }
    if name.starts_with('"') || name.ends_with([',', '"']) {
        return Err(format!("`{name}` contains more than a name: keep only the names, for example with `tr -d '\",'`"));
    }
    Ok(())
}

/// Refuses a name and more behind a space: it would be taken for one name with a space in it.
pub fn refuse_words(name: &str) -> Result<(), String> {
    if !name.replace("\\ ", "").contains(' ') {
        return Ok(());
    }
    Err(format!(
        "`{name}` contains more than a name: write one name per line. Names with types are for `load --queries`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Result<Vec<(usize, String)>, String> {
        let (mut lines, mut all) = (Lines::new(text), Vec::new());
        loop {
            match lines.next_line() {
                Ok(Some((number, text))) => all.push((number, text.to_owned())),
                Ok(None) => return Ok(all),
                Err(LineError::Line { line, reason }) => return Err(format!("{line}: {reason}")),
                Err(LineError::Read(error)) => return Err(error.to_string()),
            }
        }
    }

    #[test]
    fn a_line_is_text_without_marks_and_comments() {
        // Two files with a mark, one behind the other.
        let found = lines("\u{feff}a\n\n# c\n; d\n\u{feff} b \r\nc".as_bytes()).unwrap();
        assert_eq!(found, [(1, "a".into()), (5, "b".into()), (6, "c".into())]);
        for (bytes, said) in [
            (&b"a\n\xff\xfeb\0"[..], "2: it is UTF-16: convert it with `iconv"),
            (b"a\nb\xff\n", "2: it is not text in UTF-8"),
            (b"a\0\n", "1: it is not text"),
            (&[b'a'; 8193], "1: a line of more than 8192 bytes"),
        ] {
            assert!(lines(bytes).unwrap_err().starts_with(said), "{bytes:?}");
        }
        assert_eq!(lines(&[b'a'; 8192]).unwrap().len(), 1);
    }

    #[test]
    fn a_name_is_written_as_no_comment() {
        for (wire, text) in [(&b"\0"[..], "."), (b"\x02#x\0", "\\035x."), (b"\x02x#\0", "x#.")] {
            assert_eq!(written(Name::from_slice(wire).unwrap()), text);
        }
        let wire = &b"\x02;x\0"[..];
        let text = written(Name::from_slice(wire).unwrap());
        assert_eq!(lines(format!("{text}\n").as_bytes()).unwrap(), [(1, text)]);
    }

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
    fn rows_of_other_lists_are_refused_with_what_keeps_the_name() {
        for name in ["a.example", "a,b", ",a", "1\\,a", "a\"b.example", "0/25.2.0.192.in-addr.arpa", "1.2"] {
            assert_eq!(refuse_other_lists(name), Ok(()), "{name}");
        }
        for (name, remedy) in [
            ("1,a.example", "`cut -d, -f2`"),
            ("1,1,a.example", "`cut -d, -f3`"),
            ("a.example,1", "`cut -d, -f1`"),
            ("\"1\",\"a.example\",\"10.00\"", "`cut -d, -f2 | tr -d '\"'`"),
            ("\"a.example\"", "`tr -d '\",'`"),
            ("a.example,", "`tr -d '\",'`"),
            ("https://a.example/b", "`cut -d/ -f3`"),
        ] {
            let refused = refuse_other_lists(name).unwrap_err();
            assert!(refused.ends_with(remedy), "{name}: {refused}");
        }
    }
}
