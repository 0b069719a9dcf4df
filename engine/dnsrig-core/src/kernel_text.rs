//! Reading the kernel's text files: no allocation once the places are known.
//!
//! All the files that are read here are lines of words. A value is *located* once, by the names around it, and from
//! then on read from its place: line and word. Every line that is read begins with the word that it began with when it
//! was located (`Tcp`, `eth0`, `usage_usec`); if it does not, the file has changed its shape (an interface went away,
//! `/proc/net/snmp` gained a line pair), and the caller locates again.

use std::{fs::File, io, os::unix::fs::FileExt};

/// A read that gives less than this was the last: the kernel gives a file in pieces of whole records (seq_file), each
/// of them as much of a page as the records fill, and no record that we read is longer than half a page.
const PIECE_BYTES_MIN: usize = 2048;

/// Which word of a line is the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The word at this position, the first word of the line being number 0.
    At(usize),
    /// The word after this one: `total=12`, `inuse 3`.
    After(&'static str),
    /// The word under this one, in a table of a header line and a value line that begin alike (`/proc/net/snmp`).
    Under(&'static str),
}

/// The place of a value in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line, counted from 0.
    pub line: usize,
    /// The word of that line, counted from 0.
    pub word: usize,
}

/// Reads a file from its beginning into `buffer`. A buffer that is full was too small: the rest is lost.
pub fn content<'a>(file: &File, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read_at(&mut buffer[length..], length as u64) {
            Ok(read) => {
                length += read;
                if read < PIECE_BYTES_MIN {
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(&buffer[..length])
}

/// Finds the value in `column` of the line that begins with `key`. An empty key is the first line, whatever it says.
pub fn locate(text: &[u8], key: &[u8], column: Column) -> Option<Place> {
    let mut lines = lines(text).enumerate().filter(|(_, line)| begins_with(line, key));
    let (line, content) = lines.next()?;
    match column {
        Column::At(word) => words(content).nth(word).map(|_| Place { line, word }),
        Column::After(name) => position(content, name).map(|word| Place { line, word: word + 1 }),
        Column::Under(name) => {
            let (line, _) = lines.next()?;
            position(content, name).map(|word| Place { line, word })
        }
    }
}

/// Reads the values at `wanted`, sorted by place, no place twice; each has the first word of its line beside it.
///
/// Calls `found` with the index and the value of each. False if one of them was not there.
pub fn read<'a>(
    text: &[u8],
    wanted: impl Iterator<Item = (Place, &'a [u8])>,
    mut found: impl FnMut(usize, i64),
) -> bool {
    let mut lines = lines(text).enumerate();
    let mut line = None;
    let mut all = true;
    for (index, (place, key)) in wanted.enumerate() {
        // Going on from where the last value was: one pass over the text, whatever is wanted from it.
        if line.as_ref().is_none_or(|(number, _)| *number != place.line) {
            let found = lines.find(|(number, _)| *number == place.line);
            let found = found.filter(|(_, content)| begins_with(content, key));
            line = found.map(|(number, content)| (number, words(content).enumerate()));
        }
        let word = line.as_mut().and_then(|(_, words)| words.find(|(number, _)| *number == place.word));
        match word.and_then(|(_, word)| number(word)) {
            Some(value) => found(index, value),
            None => all = false,
        }
    }
    all
}

/// The words of a line; spaces, colons and equals signs separate them.
pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| matches!(byte, b' ' | b'\t' | b':' | b'=')).filter(|word| !word.is_empty())
}

/// The lines of a text.
pub fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
}

fn begins_with(line: &[u8], key: &[u8]) -> bool {
    key.is_empty() || words(line).next() == Some(key)
}

fn position(line: &[u8], name: &str) -> Option<usize> {
    words(line).position(|word| word == name.as_bytes())
}

/// A whole number with nothing else around it. A counter beyond 2^63 is cut there.
fn number(word: &[u8]) -> Option<i64> {
    let (digits, sign) = word.strip_prefix(b"-").map_or((word, 1), |digits| (digits, -1));
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0_i64, |sum, digit| sum.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    Some(sign * value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SNMP: &[u8] = b"Ip: Forwarding DefaultTTL\nIp: 2 64\nTcp: RtoMin MaxConn InSegs\nTcp: 200 -1 5534\n";
    const PRESSURE: &[u8] = b"some avg10=0.02 avg60=0.06 avg300=0.09 total=2748312\nfull avg10=0.00 total=17\n";
    const SOCKSTAT: &[u8] = b"sockets: used 10\nTCP: inuse 1 orphan 0 tw 41 alloc 3 mem 30\nUDP: inuse 7 mem 0\n";
    const DEV: &[u8] = b"Inter-| Receive\n face |bytes packets\n    lo:  3193      29\n  eth0:222954004 5616\n";

    fn value(text: &[u8], key: &str, column: Column) -> Option<i64> {
        let place = locate(text, key.as_bytes(), column)?;
        let mut value = None;
        read(text, [(place, key.as_bytes())].into_iter(), |_, number| value = Some(number));
        value
    }

    #[test]
    fn each_kind_of_file_can_be_read() {
        assert_eq!(value(b"12345\n", "", Column::At(0)), Some(12345));
        assert_eq!(value(b"usage_usec 17\nuser_usec 9\n", "user_usec", Column::At(1)), Some(9));
        assert_eq!(value(PRESSURE, "some", Column::After("total")), Some(2_748_312));
        assert_eq!(value(PRESSURE, "full", Column::After("total")), Some(17));
        assert_eq!(value(SOCKSTAT, "TCP", Column::After("tw")), Some(41));
        assert_eq!(value(SOCKSTAT, "UDP", Column::After("inuse")), Some(7));
        assert_eq!(value(SNMP, "Tcp", Column::Under("InSegs")), Some(5534));
        assert_eq!(value(SNMP, "Tcp", Column::Under("MaxConn")), Some(-1));
        assert_eq!(value(DEV, "eth0", Column::At(1)), Some(222_954_004));
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        assert_eq!(value(SNMP, "Tcp", Column::Under("NoSuchCounter")), None);
        assert_eq!(value(SNMP, "Udp", Column::Under("InDatagrams")), None);
        assert_eq!(value(b"Tcp: A\n", "Tcp", Column::Under("A")), None);
        assert_eq!(value(b"", "", Column::At(0)), None);
        assert_eq!(value(b"max\n", "", Column::At(0)), None);
    }

    #[test]
    fn a_shifted_file_is_noticed() {
        let place = locate(SNMP, b"Tcp", Column::Under("InSegs")).unwrap();
        let shifted = [b"IcmpMsg: InType3\nIcmpMsg: 1\n", SNMP].concat();
        assert!(!read(&shifted, [(place, &b"Tcp"[..])].into_iter(), |_, _| panic!("read from the wrong line")));
        assert_eq!(value(&shifted, "Tcp", Column::Under("InSegs")), Some(5534));
    }

    #[test]
    fn numbers_are_whole_words() {
        assert_eq!(number(b"99999999999999999999999"), Some(i64::MAX));
        assert_eq!(number(b"-5"), Some(-5));
        for wrong in ["", "-", "1.5", "0x1", "12a", "--1"] {
            assert_eq!(number(wrong.as_bytes()), None, "{wrong}");
        }
    }

    fn kernel_like() -> impl Strategy<Value = Vec<u8>> {
        "([a-zA-Z]{0,6}[ :=]{0,2}-?[0-9]{0,20}[ \n\0]){0,40}".prop_map(String::into_bytes)
    }

    proptest! {
        /// 256 inputs of any bytes and 256 that resemble the kernel's, at any place.
        #[test]
        fn nothing_makes_it_panic(
            text in prop_oneof![proptest::collection::vec(any::<u8>(), 0..400), kernel_like()],
            key in "[a-zA-Z]{0,2}", line in 0_usize..40, word in 0_usize..40,
        ) {
            for column in [Column::At(word), Column::After("a"), Column::Under("a")] {
                let _ = locate(&text, key.as_bytes(), column);
            }
            let places = [Place { line, word }, Place { line: line + 1, word: 0 }];
            read(&text, places.map(|place| (place, key.as_bytes())).into_iter(), |_, _| {});
        }

        #[test]
        fn what_was_written_is_read(values in proptest::collection::vec(any::<u32>(), 1..30)) {
            let text: String = values.iter().enumerate().map(|(n, value)| format!("key{n} {value}\n")).collect();
            let keys: Vec<String> = (0..values.len()).map(|n| format!("key{n}")).collect();
            let places: Vec<Place> =
                keys.iter().map(|key| locate(text.as_bytes(), key.as_bytes(), Column::At(1)).unwrap()).collect();
            let mut read_back = vec![0; values.len()];
            let wanted = places.into_iter().zip(keys.iter().map(String::as_bytes));
            prop_assert!(read(text.as_bytes(), wanted, |index, value| read_back[index] = value));
            prop_assert_eq!(read_back, values.into_iter().map(i64::from).collect::<Vec<_>>());
        }
    }
}
