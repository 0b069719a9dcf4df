//! What files with a name a line have in common: the mark that some programs put first, and what lines of other kinds
//! of lists have beside the name.

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
    fn a_rank_before_a_name_is_refused() {
        for (name, refused) in [("1,a.example", true), ("a,b", false), (",a", false), ("1,", false), ("1\\,a", false)] {
            assert_eq!(refuse_rank(name).is_err(), refused, "{name}");
        }
    }
}
