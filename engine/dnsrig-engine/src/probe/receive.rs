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

#[cfg(test)]
mod tests {
    use std::{io::Write as _, net::TcpListener, thread};

    use super::*;

    /// What comes of bytes that are sent one by one, before the connection ends.
    fn received(bytes: &'static [u8], deadline: Instant) -> Result<Vec<u8>, io::ErrorKind> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut connection, _) = listener.accept().unwrap();
        sender.set_nodelay(true).unwrap();
        let sending = thread::spawn(move || bytes.iter().try_for_each(|byte| sender.write_all(&[*byte])).unwrap());
        let message = message(&mut connection, deadline);
        sending.join().unwrap();
        message.map_err(|error| error.kind())
    }

    #[test]
    fn a_message_comes_in_any_pieces_or_not_at_all() {
        let soon = Instant::now() + Duration::from_secs(20);
        for (bytes, expected) in [
            (&[0, 3, b'a', b'b', b'c'][..], Ok(b"abc".to_vec())),
            (&[0, 0], Ok(vec![])),
            (&[0, 1, b'a', b'b'], Ok(b"a".to_vec())),
            (&[0, 3, b'a', b'b'], Err(io::ErrorKind::UnexpectedEof)),
            (&[0], Err(io::ErrorKind::UnexpectedEof)),
            (&[], Err(io::ErrorKind::UnexpectedEof)),
        ] {
            assert_eq!(received(bytes, soon), expected, "{bytes:?}");
        }
        assert_eq!(received(&[0, 0], Instant::now()), Err(io::ErrorKind::TimedOut));
    }
}
