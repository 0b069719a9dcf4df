//! Compressed captures: gzip, xz, zstd and lz4, recognised by the bytes that they begin with.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use lzma_rust2::XzReader;
use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

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
        [0x28, 0xb5, 0x2f, 0xfd, ..] => ("zstd", Box::new(Frames::new(source))),
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

/// The largest window. `zstd` needs `--long` or `--ultra` to write larger ones, and its decoder refuses them, too.
const WINDOW_BYTES_MAX: u64 = 128 << 20;

/// The content of all frames. A decoder ends with its frame, so it is set to each next frame here.
pub struct Frames<R> {
    source: R,
    frame: FrameDecoder,
}

impl<R: BufRead> Frames<R> {
    pub fn new(source: R) -> Self {
        let mut frame = FrameDecoder::new();
        frame.set_max_window_size(WINDOW_BYTES_MAX);
        Frames { source, frame }
    }

    /// Reads the header of the next frame with content. False: the file has no further frame.
    fn begin_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.frame.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    self.skip(length.into())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }

    fn skip(&mut self, length: u64) -> io::Result<()> {
        let skipped = io::copy(&mut self.source.by_ref().take(length), &mut io::sink())?;
        if skipped == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Compares the checksum in the frame, if there is one, with the checksum of what came out of it.
    fn check(&self) -> io::Result<()> {
        match self.frame.get_checksum_from_data() {
            Some(checksum) if self.frame.get_calculated_checksum() != Some(checksum) => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "the checksum of a zstd frame is wrong"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.frame.can_collect() == 0 {
            if !self.frame.is_finished() {
                self.frame
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(io::Error::other)?;
            } else {
                self.check()?;
                if !self.begin_frame()? {
                    return Ok(0);
                }
            }
        }
        self.frame.read(into)
    }
}

#[cfg(test)]
mod tests {
    use dnsrig_testing::{harm, harms, inputs};
    use proptest::prelude::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

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

    /// `printf 'one ' | zstd`: with a checksum.
    const ONE: &[u8] = b"\x28\xb5\x2f\xfd\x24\x04\x21\0\0one \x29\x92\x3f\xd7";

    /// A frame of two bytes to skip.
    const SKIPPED: &[u8] = b"\x5a\x2a\x4d\x18\x02\0\0\0zz";

    fn plain(file: &[u8]) -> io::Result<Vec<u8>> {
        let mut plain = Vec::new();
        // A source that gives few bytes at a time, as a pipe may.
        Frames::new(io::BufReader::with_capacity(3, file)).read_to_end(&mut plain)?;
        Ok(plain)
    }

    #[test]
    fn all_frames_are_decoded_and_frames_to_skip_are_skipped() {
        let content = (0..300_000_u32).flat_map(|number| (number / 7).to_le_bytes()).collect::<Vec<u8>>();
        let large = compress_to_vec(&content[..], CompressionLevel::Fastest);
        let empty = compress_to_vec(&[][..], CompressionLevel::Fastest);
        let file = [SKIPPED, ONE, SKIPPED, SKIPPED, &empty, &large, ONE, SKIPPED].concat();
        assert_eq!(plain(&file).unwrap(), [b"one ", &content[..], b"one "].concat());
        assert_eq!(plain(&[]).unwrap(), b"");
    }

    #[test]
    fn what_is_cut_or_altered_is_an_error() {
        let file = [ONE, SKIPPED].concat();
        for end in (1..file.len()).filter(|end| *end != ONE.len()) {
            assert!(plain(&file[..end]).is_err(), "{end}");
        }
        let altered = [&ONE[..9], b"two ", &ONE[13..]].concat();
        assert!(plain(&altered).unwrap_err().to_string().contains("checksum"));
        assert!(plain(&[ONE, b"else"].concat()).is_err());
    }

    proptest! {
        #![proptest_config(inputs(256))]

        #[test]
        fn a_damaged_file_is_an_error_or_other_content(
            content in prop::collection::vec(0..4_u8, 0..2_000),
            harms in prop::collection::vec(harms(), 1..4),
        ) {
            let mut file = compress_to_vec(&content[..], CompressionLevel::Fastest);
            harms.into_iter().for_each(|one| harm(&mut file, one));
            let mut some = Vec::new();
            let _ = Frames::new(&file[..]).take(1 << 20).read_to_end(&mut some);
        }
    }
}
