//! Which targets need a promise, by the kernel's routes. In a namespace of its own, with root: set
//! `DNSRIG_ROOT_TESTS=1`.

use std::process::Command;

const ENGINE: &str = env!("CARGO_BIN_EXE_dnsrig-engine");
const REFUSED: &str = "packets to it leave this machine by";

/// A network namespace, which goes with it.
struct Namespace(String);

impl Namespace {
    /// None where root tests were not asked for.
    fn new() -> Option<Self> {
        if std::env::var_os("DNSRIG_ROOT_TESTS").is_none_or(|value| value != "1") {
            eprintln!("skipped: it needs root; set DNSRIG_ROOT_TESTS=1");
            return None;
        }
        let namespace = Namespace(format!("dnsrig-targets-{}", std::process::id()));
        assert!(Command::new("ip").args(["netns", "add", &namespace.0]).status().unwrap().success());
        Some(namespace)
    }

    fn ip(&self, line: &str) {
        let status = Command::new("ip").args(["-n", &self.0]).args(line.split(' ')).status().unwrap();
        assert!(status.success(), "ip {line}");
    }

    /// What a subcommand says that has a target and nothing to send.
    fn says(&self, subcommand: &str) -> String {
        let output = Command::new(ENGINE)
            .args(["enter", "--netns", &format!("/run/netns/{}", self.0), "--", ENGINE])
            .args(subcommand.split(' '))
            .output()
            .unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}

#[test]
fn a_benchmark_address_is_free_only_where_packets_stay_on_this_machine() {
    let Some(namespace) = Namespace::new() else { return };
    let transfer = |address: &str| namespace.says(&format!("transfer {address} --zone-list /nowhere"));
    assert!(!transfer("198.18.0.2").contains(REFUSED), "there is no route, so nothing leaves");
    namespace.ip("link set lo up");
    namespace.ip("link add out type veth peer name outside");
    namespace.ip("address add 192.0.2.2/24 dev out");
    namespace.ip("address add 2001:db8::2/64 dev out nodad");
    namespace.ip("link set outside up");
    namespace.ip("link set out up");
    namespace.ip("route add default via 192.0.2.1");
    namespace.ip("-6 route add default via 2001:db8::1");
    for address in ["198.18.0.2", "2001:2::2"] {
        let heard = transfer(address);
        assert!(heard.contains(&format!("{REFUSED} out")), "{heard}");
        assert!(heard.contains(&format!("--i-am-authorized {address}")), "{heard}");
        let vouched = namespace.says(&format!("transfer {address} --zone-list /nowhere --i-am-authorized {address}"));
        assert!(vouched.contains("/nowhere"), "{vouched}");
    }
    for subcommand in [
        "load 198.18.0.2 --zone-list /nowhere",
        "replay play /nowhere --server 198.18.0.2",
        "probe 198.18.0.2 --zone-list /nowhere --serial 1",
        "probe follow 198.18.0.2 --zone-list /nowhere --rate 1 --out /nowhere/out",
        "probe records 198.18.0.2 --zone-list list",
        "propagation --primary 198.18.0.2 --secondary 127.0.0.1 --zone-list /nowhere",
        "interrogate 198.18.0.2 --zone-list /nowhere",
        "change 198.18.0.2 --zone-list /nowhere --changes-per-s 1",
    ] {
        let heard = namespace.says(subcommand);
        assert!(heard.contains(REFUSED), "{subcommand}: {heard}");
    }
    // Routes that keep packets here: to an address of this host, and straight to what a veth leads to.
    namespace.ip("route add local 198.18.1.0/24 dev lo");
    namespace.ip("route add 198.18.2.0/24 dev out");
    for address in ["198.18.1.9", "198.18.2.9"] {
        assert!(!transfer(address).contains(REFUSED), "{address}");
    }
    // Through a TUN interface packets go to a program, which may be a VPN; but not through one of a link of ours.
    namespace.ip("tuntap add mode tun name tunnel");
    namespace.ip("link set tunnel up");
    namespace.ip("route add 198.18.4.0/24 dev tunnel");
    assert!(transfer("198.18.4.9").contains(&format!("{REFUSED} tunnel")));
    namespace.ip("link set tunnel alias dnsrig");
    assert!(!transfer("198.18.4.9").contains(REFUSED));
    // A host that the rig made: wherever its routes lead.
    assert!(transfer("198.18.0.2").contains(REFUSED));
    namespace.ip("link set lo alias dnsrig");
    assert!(!transfer("198.18.0.2").contains(REFUSED));
}
