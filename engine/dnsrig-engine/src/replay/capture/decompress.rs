//! Compressed captures: gzip, xz, zstd and lz4, told by the bytes that they begin with.

mod zstd;

use std::io::{self, BufRead, BufReader, Cursor, Read};

use lzma_rust2::XzReader;

/// Compressed bytes are read in pieces of so many.
const READ_BYTES: usize = 1 << 18;

/// What xz may take: its highest preset takes 65 MiB.
const XZ_MEMORY_KIB_MAX: u32 = 256 << 10;

/// The longest of the numbers that a compressed file begins with.
const MAGIC_BYTES: u64 = 6;

/// What is in `source`, and the name of its compression, if it is compressed. An error comes behind `bytes_max` bytes:
/// a small file can hold any number of them.
pub fn open(source: impl Read + 'static, bytes_max: u64) -> io::Result<(Box<dyn Read>, Option<&'static str>)> {
    let mut source = BufReader::with_capacity(READ_BYTES, source);
    let mut begins = Vec::new();
    source.by_ref().take(MAGIC_BYTES).read_to_end(&mut begins)?;
    let magic = begins.clone();
    // Boxed, so that the decoders are compiled for one type only.
    let source: Box<dyn BufRead> = Box::new(Cursor::new(begins).chain(source));
    let (name, plain): (_, Box<dyn Read>) = match magic.as_slice() {
        [0x1f, 0x8b, ..] => ("gzip", Box::new(flate2::bufread::MultiGzDecoder::new(source))),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => ("xz", Box::new(XzReader::new_mem_limit(source, true, XZ_MEMORY_KIB_MAX))),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => ("zstd", Box::new(zstd::Frames::new(source))),
        [0x04, 0x22, 0x4d, 0x18, ..] => ("lz4", Box::new(lz4_flex::frame::FrameDecoder::new(source))),
        _ => return Ok((Box::new(source), None)),
    };
    Ok((Box::new(Limited { plain, left: bytes_max, bytes_max }), Some(name)))
}

/// No more than a number of bytes.
struct Limited<R> {
    plain: R,
    left: u64,
    bytes_max: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.plain.read(into)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::other(format!("more than {} bytes come out of it: raise --decompressed-max", self.bytes_max))
        })?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(bytes: &[u8], bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut plain = Vec::new();
        super::open(Cursor::new(bytes.to_owned()), bytes_max)?.0.read_to_end(&mut plain)?;
        Ok(plain)
    }

    #[test]
    fn concatenated_xz_streams_are_all_decoded() {
        // `printf 'one ' | xz` and `printf two | xz`.
        const ONE: &[u8] =
            b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4F\x02\0!\x01\x16\0\0\0t/\xe5\xa3\x01\0\x03one \0Z\x8c\x83\xa315\
            \xef~\0\x01\x1c\x04o,\x9c\xc1\x1f\xb6\xf3}\x01\0\0\0\0\x04YZ";
        const TWO: &[u8] = b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4F\x02\0!\x01\x16\0\0\0t/\xe5\xa3\x01\0\x02two\0\0]\xd3y)u(R\
            \x03\0\x01\x1b\x03\x0b/\xb9\x10\x1f\xb6\xf3}\x01\0\0\0\0\x04YZ";
        let both = [ONE, TWO].concat();
        assert_eq!(open(&both, 7).unwrap(), b"one two");
        assert!(open(&both, 6).unwrap_err().to_string().contains("--decompressed-max"));
        assert!(open(&both[..both.len() - 1], 7).is_err());
    }
}
