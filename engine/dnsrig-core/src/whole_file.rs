//! Files that are read as a whole, up to a limit: a device, a pipe and a sparse file can have any length.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// The content of the file at `path`; of a longer one an error.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = File::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if read as u64 > bytes_max {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is longer than {bytes_max} bytes")));
    }
    Ok(bytes)
}

/// The same, of a text.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    String::from_utf8(read(path, bytes_max)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_read_up_to_the_limit() {
        let error = read(Path::new("/dev/zero"), 1_000).unwrap_err();
        assert_eq!(error.to_string(), "it is longer than 1000 bytes");
        assert!(read(Path::new("/dev/null"), 0).unwrap().is_empty());
    }
}
