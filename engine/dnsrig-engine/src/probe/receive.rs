//! Messages from a blocking TCP connection, with a limit of the whole time: a read timeout limits each silence alone.

use std::{
    io::{self, Read as _},
    net::TcpStream,
    time::{Duration, Instant},
};

/// Receives a message, which comes after its length in two bytes.
pub fn message(connection: &mut TcpStream, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut length = [0; 2];
    read_exact(connection, &mut length, deadline)?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    read_exact(connection, &mut message, deadline)?;
    Ok(message)
}

/// Reads until `to` is full, or the time is over.
fn read_exact(connection: &mut TcpStream, mut to: &mut [u8], deadline: Instant) -> io::Result<()> {
    while !to.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // The kernel counts in milliseconds; a wait of none would be one without end.
        connection.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match connection.read(to) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => to = &mut to[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
