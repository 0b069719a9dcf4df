//! How the kernel sends packets to an address, as it reports itself (rtnetlink(7)).
//!
//! Facts from rtnetlink(7), include/uapi/linux/{rtnetlink,if_link}.h, and net/ipv4/route.c.

use std::{
    io,
    net::IpAddr,
    os::fd::{AsRawFd, OwnedFd},
};

use nix::sys::{
    socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, setsockopt, socket, sockopt},
    time::{TimeVal, TimeValLike},
};

use super::netlink::{self, REQUEST};

/// The alias (ip-link(8)) of interfaces that the rig makes, and of the loopback interface of each host that it makes.
const OURS: &[u8] = b"dnsrig";

/// The loopback interface is the first of every network namespace.
const LOOPBACK: u32 = 1;

/// Interfaces that have no way out of this machine by themselves: to another namespace, and to nowhere.
const WITHIN: [&[u8]; 2] = [b"veth", b"dummy"];

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_SETLINK: u16 = 19;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const NLM_F_ACK: u16 = 4;
/// The length of `struct rtmsg`, and where it has the type of a route.
const ROUTE_BYTES: usize = 12;
const ROUTE_TYPE: usize = 7;
const RTN_LOCAL: u8 = 2;
/// Attributes of a route.
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_VIA: u16 = 18;
/// The length of `struct ifinfomsg`, which has the number of an interface behind four bytes.
const LINK_BYTES: usize = 16;
/// Attributes of an interface, and of IFLA_LINKINFO.
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_IFALIAS: u16 = 20;
const IFLA_INFO_KIND: u16 = 1;

/// The kernel writes no longer datagrams than this (netlink_recvmsg() of net/netlink/af_netlink.c).
const DATAGRAM_BYTES_MAX: usize = 32 * 1024;

/// The number of datagrams that are read for an answer: the kernel sends one.
const DATAGRAMS_MAX: usize = 16;

/// The kernel answers at once.
const ANSWER_LIMIT_S: i64 = 5;

/// Where packets to an address go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// To this machine, to a host of the rig, or nowhere.
    Within,
    /// Elsewhere, by this interface.
    Out(String),
}

/// Where the kernel would send a packet to `address` from the network namespace of this thread.
pub fn way_to(address: IpAddr) -> io::Result<Way> {
    let mut kernel = Kernel::open()?;
    let destination = match &address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let attributes = [(RTA_DST, destination.as_slice())];
    let route = match kernel.ask(RTM_GETROUTE, RTM_NEWROUTE, &route_structure(address), &attributes) {
        Ok(answer) => Route::read(&answer),
        Err(error) if is_no_route(&error) => return Ok(Way::Within),
        Err(error) => return Err(error),
    };
    let route = route.ok_or_else(|| io::Error::other("the kernel reports a route without an interface"))?;
    if route.is_local || route.interface == LOOPBACK {
        return Ok(Way::Within);
    }
    let link = kernel.link(route.interface)?;
    let is_next_to_us = !route.has_gateway && WITHIN.contains(&link.kind.as_slice());
    if is_next_to_us || link.is_ours || kernel.link(LOOPBACK)?.is_ours {
        return Ok(Way::Within);
    }
    Ok(Way::Out(link.name))
}

/// Marks an interface of the network namespace of this thread as made by the rig.
pub fn mark_as_ours(interface: u32) -> io::Result<()> {
    let attributes: [(u16, &[u8]); 1] = [(IFLA_IFALIAS, OURS)];
    Kernel::open()?.ask(RTM_SETLINK, netlink::NLMSG_ERROR, &link_structure(interface), &attributes).map(drop)
}

/// No packet leaves without a route, or by one that refuses: unreachable, prohibit (ip-route(8)).
fn is_no_route(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::EACCES))
}

fn route_structure(address: IpAddr) -> [u8; ROUTE_BYTES] {
    let (family, bits) = if address.is_ipv4() { (libc::AF_INET, 32) } else { (libc::AF_INET6, 128) };
    let mut structure = [0; ROUTE_BYTES];
    structure[..2].copy_from_slice(&[family as u8, bits]);
    structure
}

fn link_structure(interface: u32) -> [u8; LINK_BYTES] {
    let mut structure = [0; LINK_BYTES];
    structure[4..8].copy_from_slice(&interface.to_ne_bytes());
    structure
}

/// A route, as the kernel reports it.
#[derive(Debug, PartialEq, Eq)]
struct Route {
    is_local: bool,
    interface: u32,
    has_gateway: bool,
}

impl Route {
    fn read(payload: &[u8]) -> Option<Self> {
        let (structure, attributes) = payload.split_at_checked(ROUTE_BYTES)?;
        let mut route = Route { is_local: structure[ROUTE_TYPE] == RTN_LOCAL, interface: 0, has_gateway: false };
        for (kind, value) in netlink::attributes(attributes) {
            match kind {
                RTA_OIF => route.interface = u32::from_ne_bytes(netlink::array(value, 0)?),
                RTA_GATEWAY | RTA_VIA => route.has_gateway = true,
                _ => {}
            }
        }
        (route.is_local || route.interface != 0).then_some(route)
    }
}

/// An interface, as the kernel reports it.
#[derive(Debug, PartialEq, Eq)]
struct Link {
    name: String,
    /// The kind of a virtual interface; empty for another interface.
    kind: Vec<u8>,
    is_ours: bool,
}

impl Link {
    fn read(payload: &[u8]) -> Option<Self> {
        let mut link = Link { name: String::new(), kind: Vec::new(), is_ours: false };
        for (kind, value) in netlink::attributes(payload.get(LINK_BYTES..)?) {
            match kind {
                IFLA_IFNAME => link.name = String::from_utf8_lossy(text(value)).into_owned(),
                IFLA_IFALIAS => link.is_ours = text(value) == OURS,
                IFLA_LINKINFO => {
                    let found = netlink::attributes(value).find(|(kind, _)| *kind == IFLA_INFO_KIND);
                    link.kind = found.map(|(_, value)| text(value).to_vec()).unwrap_or_default();
                }
                _ => {}
            }
        }
        Some(link)
    }
}

/// Without its terminating zero.
fn text(value: &[u8]) -> &[u8] {
    value.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// The kernel, asked about the network namespace in which this was opened.
struct Kernel {
    netlink: OwnedFd,
    sequence: u32,
    room: Vec<u8>,
}

impl Kernel {
    fn open() -> io::Result<Self> {
        let kind = (AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute);
        let netlink = socket(kind.0, kind.1, kind.2, kind.3)?;
        setsockopt(&netlink, sockopt::ReceiveTimeout, &TimeVal::seconds(ANSWER_LIMIT_S))?;
        Ok(Kernel { netlink, sequence: 0, room: vec![0; DATAGRAM_BYTES_MAX] })
    }

    fn link(&mut self, interface: u32) -> io::Result<Link> {
        let answer = self.ask(RTM_GETLINK, RTM_NEWLINK, &link_structure(interface), &[])?;
        Link::read(&answer).ok_or_else(|| io::Error::other("the kernel reports an interface without its properties"))
    }

    /// What is in the message of the kind `wanted` with which the kernel answers.
    fn ask(&mut self, kind: u16, wanted: u16, structure: &[u8], attributes: &[(u16, &[u8])]) -> io::Result<Vec<u8>> {
        self.sequence += 1;
        let flags = if wanted == netlink::NLMSG_ERROR { REQUEST | NLM_F_ACK } else { REQUEST };
        let question = netlink::write(kind, flags, self.sequence, structure, attributes);
        send(self.netlink.as_raw_fd(), &question, MsgFlags::empty())?;
        for _ in 0..DATAGRAMS_MAX {
            let length = recv(self.netlink.as_raw_fd(), &mut self.room, MsgFlags::empty())?;
            if let Some(answer) = read(&self.room[..length], self.sequence, wanted)? {
                return Ok(answer.to_vec());
            }
        }
        Err(io::Error::other("the kernel gives no answer"))
    }
}

/// What is in the message of the kind `wanted`, if the datagram has one for this `sequence`; or the kernel's refusal.
fn read(datagram: &[u8], sequence: u32, wanted: u16) -> io::Result<Option<&[u8]>> {
    let mut rest = datagram;
    while let Some((kind, number, payload, behind)) = netlink::message(rest) {
        rest = behind;
        if number != sequence {
            continue;
        }
        if kind == netlink::NLMSG_ERROR && netlink::error(payload) != 0 {
            return Err(io::Error::from_raw_os_error(netlink::error(payload)));
        }
        if kind == wanted {
            return Ok(Some(payload));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use dnsrig_testing::{any_bytes, inputs};
    use proptest::prelude::*;

    use super::*;

    fn route(kind: u8, attributes: &[(u16, &[u8])]) -> Option<Route> {
        let mut structure = [0; ROUTE_BYTES];
        structure[ROUTE_TYPE] = kind;
        let datagram = netlink::write(RTM_NEWROUTE, 0, 7, &structure, attributes);
        Route::read(read(&datagram, 7, RTM_NEWROUTE).unwrap().unwrap())
    }

    #[test]
    fn a_route_has_an_interface_and_perhaps_a_gateway() {
        let two: &[u8] = &2_u32.to_ne_bytes();
        let direct = Route { is_local: false, interface: 2, has_gateway: false };
        assert_eq!(route(1, &[(RTA_DST, [198, 18, 0, 9].as_slice()), (RTA_OIF, two)]), Some(direct));
        for gateway in [RTA_GATEWAY, RTA_VIA] {
            assert!(route(1, &[(gateway, [192, 0, 2, 1].as_slice()), (RTA_OIF, two)]).unwrap().has_gateway);
        }
        assert!(route(RTN_LOCAL, &[]).unwrap().is_local);
        assert_eq!(route(1, &[]), None, "of several ways that the kernel does not choose among");
    }

    #[test]
    fn an_interface_has_a_name_and_perhaps_a_kind_and_our_alias() {
        let kind =
            netlink::write(0, 0, 0, &[], &[(IFLA_INFO_KIND, b"veth".as_slice())])[netlink::HEADER_BYTES..].to_vec();
        let read = |attributes: &[(u16, &[u8])]| {
            let datagram = netlink::write(RTM_NEWLINK, 0, 7, &link_structure(2), attributes);
            Link::read(super::read(&datagram, 7, RTM_NEWLINK).unwrap().unwrap()).unwrap()
        };
        let eth0: (u16, &[u8]) = (IFLA_IFNAME, b"eth0\0");
        assert_eq!(read(&[eth0]), Link { name: "eth0".into(), kind: Vec::new(), is_ours: false });
        assert_eq!(read(&[eth0, (0x8000 | IFLA_LINKINFO, kind.as_slice())]).kind, b"veth");
        assert!(
            read(&[(IFLA_IFALIAS, b"dnsrig\0".as_slice())]).is_ours
                && !read(&[(IFLA_IFALIAS, b"dnsrig2\0".as_slice())]).is_ours
        );
    }

    #[test]
    fn a_refusal_is_an_error_and_another_answer_is_passed_over() {
        let refusal = netlink::write(netlink::NLMSG_ERROR, 0, 7, &(-libc::EPERM).to_ne_bytes(), &[]);
        assert_eq!(read(&refusal, 7, RTM_NEWROUTE).unwrap_err().raw_os_error(), Some(libc::EPERM));
        assert_eq!(read(&refusal, 8, RTM_NEWROUTE).unwrap(), None);
    }

    #[test]
    fn loopback_stays_on_this_machine() {
        assert_eq!(way_to("127.0.0.1".parse().unwrap()).unwrap(), Way::Within);
    }

    proptest! {
        #![proptest_config(inputs(20_000))]

        /// 20,000 inputs of any bytes as what the kernel answers.
        #[test]
        fn any_bytes_are_read_without_panic(bytes in any_bytes(300)) {
            let _ = read(&bytes, 0, RTM_NEWROUTE);
            Route::read(&bytes);
            Link::read(&bytes);
        }
    }
}
