//! `load` with early data (0-RTT) over DoT and DoH against `serve echo`, which takes it, refuses it, or does not permit
//! it.

use crate::{
    process::Server,
    streams::{count, load},
};

#[test]
fn queries_go_as_early_data_where_the_server_permits_it_and_again_where_it_refuses() {
    let options = ["--rate", "50", "--queries-per-connection", "1", "--clients", "2", "--timeout", "5s"];
    for (transport, method) in [("dot", &[][..]), ("doh", &["--doh-method", "get"])] {
        for (permitted, [is_early, is_refused]) in
            [("", [false, false]), ("--early-data", [true, false]), ("--early-data=refuse", [false, true])]
        {
            let ports = "--dot-port 0 --doh-port 0 --threads 1";
            let server = Server::start(&format!("echo 127.0.0.1:0 --transport {transport} {ports} {permitted}"));
            let summary =
                load(server.address(transport), transport, &[&options[..], method, &["--early-data"]].concat());
            let of = |kind: &str| summary["connections"][kind].as_u64().unwrap();
            assert_eq!((count(&summary, "answered"), count(&summary, "duplicates")), (25, 0), "{summary}");
            assert!(of("resumed") > 10, "{transport} {permitted}: {summary}");
            assert_eq!((of("early_accepted") > 10, of("early_rejected") > 10), (is_early, is_refused), "{summary}");
            let served = server.end();
            assert_eq!(served["queries"], 25, "each query was read once: {served}");
        }
    }
}
