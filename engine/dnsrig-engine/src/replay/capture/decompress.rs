//! Compressed captures: gzip, xz, zstd and lz4, told by the bytes that they begin with.

use std::io::{self, BufReader, Cursor, Read};

use liblzma::stream::{CONCATENATED, Stream};

/// Compressed bytes are read in pieces of so many.
const READ_BYTES: usize = 1 << 18;

/// What xz may take: its highest preset takes 65 MiB.
const XZ_MEMORY_BYTES_MAX: u64 = 256 << 20;

/// The longest of the numbers that a compressed file begins with.
const MAGIC_BYTES: u64 = 6;

/// What is in `source`, and the name of its compression, if it is compressed. An error comes behind `bytes_max` bytes:
/// a small file can hold any number of them.
pub fn open(source: impl Read + 'static, bytes_max: u64) -> io::Result<(Box<dyn Read>, Option<&'static str>)> {
    let mut source = BufReader::with_capacity(READ_BYTES, source);
    let mut begins = Vec::new();
    source.by_ref().take(MAGIC_BYTES).read_to_end(&mut begins)?;
    let magic = begins.clone();
    let source = Cursor::new(begins).chain(source);
    let (name, plain): (_, Box<dyn Read>) = match magic.as_slice() {
        [0x1f, 0x8b, ..] => ("gzip", Box::new(flate2::bufread::MultiGzDecoder::new(source))),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => {
            let stream = Stream::new_stream_decoder(XZ_MEMORY_BYTES_MAX, CONCATENATED)?;
            ("xz", Box::new(liblzma::bufread::XzDecoder::new_stream(source, stream)))
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => ("zstd", Box::new(zstd::Decoder::with_buffer(source)?)),
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
