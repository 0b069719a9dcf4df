//! A reader that reads nothing.

use std::{
    fs::File,
    io::{ErrorKind, Write},
    os::fd::OwnedFd,
};

use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    unistd::pipe2,
};

/// Both ends of a pipe that is full: who writes to the second waits.
pub fn full_pipe() -> (OwnedFd, File) {
    let (read, write) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).unwrap();
    let mut write = File::from(write);
    for bytes in [4096, 1] {
        loop {
            match write.write(&vec![b' '; bytes]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
    fcntl(&write, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    (read, write)
}
