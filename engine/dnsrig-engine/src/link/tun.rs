//! TUN interfaces: what is routed to one is read from a descriptor, what is written there is received from it
//! (Documentation/networking/tuntap.rst of Linux).

use std::{
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd},
        unix::fs::OpenOptionsExt,
    },
};

use dnsrig_core::{
    failure::{Failure, system_failed},
    kernel_text::{Column, content, lines, locate, words},
    route,
};
use dnsrig_net::namespace::inside;
use nix::{
    errno::Errno,
    net::if_::if_nametoindex,
    sys::socket::{AddressFamily, SockFlag, SockType, socket},
};

use super::options::End;

/// The step that fails if the namespace does not exist, or may not be entered.
const OPEN_NETNS: &str = "open the network namespace for";

/// The longest name in bytes, with the zero after it.
const NAME_BYTES: usize = libc::IFNAMSIZ;

/// Where `/proc/net/dev` has the packets that an interface did not take, counted from the name.
const TX_DROPPED: usize = 12;

/// The largest `/proc/net/dev` that is read, in bytes: some hundred interfaces.
const STATISTICS_BYTES: usize = 16 * 1024;

/// An interface of ours. It goes when this is dropped.
pub struct Tun {
    name: String,
    file: File,
    /// `/proc/net/dev` of its namespace.
    statistics: File,
}

impl Tun {
    /// Makes an interface, which is down and has no address, with room for `queue_packets` between two reads.
    pub fn create(end: &End, mtu_bytes: u16, queue_packets: u32) -> Result<Self, Failure> {
        let made = inside(&end.netns, || Ok(create_here(&end.interface, mtu_bytes, queue_packets)));
        made.unwrap_or_else(|error| Err((OPEN_NETNS, error))).map_err(|(step, error)| not_made(end, step, &error))
    }

    /// Reads one packet into `room`, and returns its length, or None if no packet waits.
    pub fn read(&self, room: &mut [u8]) -> Result<Option<usize>, Failure> {
        match (&self.file).read(room) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) => match error.raw_os_error() {
                // What a descriptor says whose interface was taken away.
                Some(libc::EBADFD | libc::EFAULT) => Err(self.gone()),
                Some(libc::EAGAIN | libc::EINTR) => Ok(None),
                _ => Err(system_failed("read from an interface", error)),
            },
        }
    }

    fn gone(&self) -> Failure {
        let hint = "stop `link` before you delete its namespaces and interfaces";
        Failure::new(format!("the interface {} no longer exists", self.name), hint)
    }

    /// Lets the interface receive a packet; false if it does not take it, as one that is down (EIO).
    pub fn write(&self, packet: &[u8]) -> bool {
        (&self.file).write(packet).is_ok()
    }

    /// How many packets the kernel dropped because they were not read in time; none if it does not say.
    pub fn missed_packets(&self) -> Option<u64> {
        let mut room = vec![0; STATISTICS_BYTES];
        let text = content(&self.statistics, &mut room).ok()?;
        let place = locate(text, self.name.as_bytes(), Column::At(TX_DROPPED))?;
        let word = lines(text).nth(place.line).and_then(|line| words(line).nth(place.word))?;
        std::str::from_utf8(word).ok()?.parse().ok()
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// An interface could not be made.
fn not_made(end: &End, step: &str, error: &io::Error) -> Failure {
    let End { netns, interface } = end;
    let hint = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "run this as root, with CAP_NET_ADMIN and CAP_SYS_ADMIN".into(),
        Some(libc::EBUSY) => "the interface already exists: delete it (ip link delete), or give another name".into(),
        Some(libc::ENOENT) if step == OPEN_NETNS => {
            format!("make the namespace first (ip netns add); `ip` keeps it at {}", netns.display())
        }
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
            "this kernel has no TUN: run `modprobe tun`, or build the kernel with CONFIG_TUN".into()
        }
        _ => "dmesg may say more".to_owned(),
    };
    Failure::new(format!("cannot {step} {interface} in {}: {error}", netns.display()), hint)
}

type Step<T> = Result<T, (&'static str, io::Error)>;

fn create_here(interface: &str, mtu_bytes: u16, queue_packets: u32) -> Step<Tun> {
    let at = |step| move |error: io::Error| (step, error);
    // The descriptor belongs to the namespace in which it is opened.
    let mut options = File::options();
    let file = options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun");
    let file = file.map_err(at("open /dev/net/tun for"))?;
    let mut request = request(interface);
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_TUN_EXCL) as i16;
    ioctl(&file, libc::TUNSETIFF, &mut request).map_err(at("make"))?;
    let control = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None);
    let control = control.map_err(|errno| ("make a socket for", errno.into()))?;
    request.ifr_ifru.ifru_mtu = mtu_bytes.into();
    ioctl(&control, libc::SIOCSIFMTU, &mut request).map_err(at("set the MTU of"))?;
    // This field of the request also holds the length of the queue (netdevice(7)).
    request.ifr_ifru.ifru_mtu = queue_packets.cast_signed();
    ioctl(&control, libc::SIOCSIFTXQLEN, &mut request).map_err(at("set the queue of"))?;
    let marked = if_nametoindex(interface).map_err(io::Error::from).and_then(route::mark_as_ours);
    marked.map_err(at("mark"))?;
    let statistics = File::open("/proc/thread-self/net/dev").map_err(at("open the statistics of"))?;
    Ok(Tun { name: interface.to_owned(), file, statistics })
}

/// A request about the interface `name`, which is shorter than [`NAME_BYTES`].
fn request(name: &str) -> libc::ifreq {
    // SAFETY: plain numbers, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name[..NAME_BYTES - 1].iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    request
}

fn ioctl(file: &impl AsRawFd, number: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: all three requests that we make take an ifreq, and keep no pointer to it.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), number, std::ptr::from_mut(request)) };
    Ok(Errno::result(result).map(drop)?)
}
