//! `load` over DNS over HTTPS against `serve echo`, well behaved and with each of its faults, and curl and kdig against
//! `serve echo`.

use std::{fs, io::Write, path::Path, process::Command};

use crate::{
    process::Server,
    streams::{count, load},
};
use serde_json::Value;

fn echo(arguments: &str) -> Server {
    Server::start(&format!("echo 127.0.0.1:0 --transport doh --doh-port 0 --threads 1 {arguments}"))
}

/// What a load over HTTPS comes to.
fn load_doh(server: &Server, options: &[&str]) -> Value {
    load(server.address("doh"), "doh", options)
}

fn connections(summary: &Value, kind: &str) -> u64 {
    summary["connections"][kind].as_u64().unwrap()
}

/// The number of queries that HTTP left without an answer for this reason.
fn http_fault(summary: &Value, kind: &str) -> u64 {
    summary["http_faults"][kind].as_u64().unwrap_or_else(|| panic!("no {kind}: {summary}"))
}

/// Each query that was sent has ended in one way.
fn assert_all_ended(summary: &Value) {
    let lost: u64 = summary["lost"].as_object().unwrap().values().map(|lost| lost.as_u64().unwrap()).sum();
    assert_eq!(count(summary, "answered") + count(summary, "timeouts") + lost, count(summary, "sent"), "{summary}");
}

/// Files of a certificate for the name `dns.example`, and of its key.
fn certificate(directory: &Path) -> [String; 2] {
    let made = rcgen::generate_simple_self_signed(["dns.example".to_owned()]).unwrap();
    let files = ["certificate.pem", "key.pem"].map(|name| directory.join(name));
    fs::write(&files[0], made.cert.pem()).unwrap();
    fs::write(&files[1], made.signing_key.serialize_pem()).unwrap();
    files.map(|path| path.display().to_string())
}

#[test]
fn over_https_all_is_answered_with_both_methods_and_sessions_are_resumed() {
    let server = echo("");
    for method in ["get", "post"] {
        let summary = load_doh(&server, &["--outstanding", "40", "--clients", "3", "--doh-method", method]);
        assert!(count(&summary, "answered") > 50, "{summary}");
        assert_eq!(summary["answered"], summary["sent"], "{summary}");
        assert_eq!((connections(&summary, "attempted"), connections(&summary, "established")), (3, 3));
        assert_eq!(summary["rcodes"]["NOERROR"], summary["answered"]);
    }
    for (option, resumes) in [(&[][..], true), (&["--no-resumption"], false)] {
        let options = [&["--rate", "50", "--queries-per-connection", "1"], option].concat();
        let summary = load_doh(&server, &options);
        assert_eq!((&summary["answered"], connections(&summary, "attempted")), (&summary["sent"], 25), "{summary}");
        assert_eq!(connections(&summary, "resumed") > 0, resumes, "{summary}");
        assert!(summary["handshake_ns"]["min"].as_u64().unwrap() > 0);
    }
    let summary = server.end();
    assert!(summary["dropped"]["malformed"] == 0 && summary["queries"] == summary["answers"], "{summary}");
}

#[test]
fn a_certificate_is_checked_if_that_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let [certificate, key] = certificate(directory.path());
    let server = echo(&format!("--certificate {certificate} --key {key}"));
    let checked = |name| {
        let check = ["--verify", "ca", "--ca", &certificate, "--server-name", name];
        load_doh(&server, &[&["--rate", "40"], &check[..]].concat())
    };
    let summary = checked("dns.example");
    assert_eq!((count(&summary, "sent"), count(&summary, "answered")), (20, 20), "{summary}");
    let summary = checked("other.example");
    assert_eq!((count(&summary, "answered"), &summary["lost"]["tls"]), (0, &summary["sent"]), "{summary}");
    assert_eq!(summary["tls_sentence"], "the server's certificate is for another name");
}

#[test]
fn what_is_no_answer_is_counted_by_kind() {
    for (fault, kind) in [
        ("status=500", "status 500"),
        ("status=418", "other statuses"),
        ("content-type", "wrong content type"),
        ("reset", "RST_STREAM INTERNAL_ERROR"),
    ] {
        let summary = load_doh(&echo(&format!("--doh-fault {fault}")), &["--rate", "100", "--clients", "2"]);
        let sent = count(&summary, "sent");
        assert_eq!((sent, http_fault(&summary, kind), &summary["lost"]["http"]), (50, 50, &summary["sent"]), "{fault}");
        assert_eq!((count(&summary, "answered"), connections(&summary, "attempted")), (0, 2), "the connections go on");
    }
    let summary = load_doh(&echo(""), &["--rate", "100", "--doh-path", "/other"]);
    assert_eq!(http_fault(&summary, "status 404"), 50, "{summary}");
}

#[test]
fn a_server_that_says_goodbye_is_asked_on_a_new_connection() {
    let summary = load_doh(&echo("--doh-fault goaway=10"), &["--rate", "200", "--clients", "1"]);
    assert_all_ended(&summary);
    assert!(count(&summary, "answered") >= 90 && connections(&summary, "attempted") >= 10, "{summary}");
    assert!(connections(&summary, "went_away") >= 9, "{summary}");
    // With many queries under way, some come too late for the connection.
    let summary = load_doh(&echo("--doh-fault goaway=10 --delay 20ms"), &["--outstanding", "40", "--clients", "1"]);
    assert_all_ended(&summary);
    assert!(http_fault(&summary, "GOAWAY NO_ERROR") > 0 && count(&summary, "answered") > 10, "{summary}");
}

#[test]
fn a_connection_that_ends_in_the_middle_of_a_response_loses_its_queries_and_no_others() {
    let summary = load_doh(&echo("--doh-fault cut=10"), &["--rate", "200", "--clients", "1"]);
    assert_all_ended(&summary);
    let closed = summary["lost"]["closed"].as_u64().unwrap();
    assert!(count(&summary, "answered") >= 80 && closed >= 9 && connections(&summary, "attempted") >= 10, "{summary}");
}

#[test]
fn a_server_that_permits_one_stream_gets_one_query_at_a_time() {
    let server = echo("--doh-fault streams=1 --delay 5ms");
    let summary = load_doh(&server, &["--outstanding", "4", "--clients", "1"]);
    assert_all_ended(&summary);
    let refused = summary["http_faults"]["RST_STREAM REFUSED_STREAM"].as_u64().unwrap_or(0);
    // Those that left before the settings of the server came.
    assert!(refused <= 3 && summary["lost"]["http"] == refused, "{summary}");
    assert!(count(&summary, "answered") > 10 && count(&summary, "waited_for_stream") > 10, "{summary}");
    // Streams of queries that were given up become free again.
    let server = echo("--doh-fault streams=2 --loss 30%");
    let summary = load_doh(&server, &["--rate", "100", "--clients", "1", "--timeout", "50ms"]);
    assert_all_ended(&summary);
    assert!(count(&summary, "timeouts") > 0 && count(&summary, "answered") > 5, "{summary}");
}

#[test]
fn a_server_that_speaks_dns_over_tls_alone_does_not_agree() {
    let server = Server::start("echo 127.0.0.1:0 --transport dot --dot-port 0");
    let summary = load(server.address("dot"), "doh", &["--rate", "50"]);
    assert_eq!(summary["lost"]["tls"], summary["sent"], "{summary}");
}

/// A query for www.example.com, and the answer that echo gives.
const QUERY: &[u8] = b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x03com\0\0\x01\0\x01";

#[test]
fn curl_gets_answers_with_both_methods() {
    let Ok(version) = Command::new("curl").arg("--version").output() else { return };
    if !String::from_utf8_lossy(&version.stdout).contains("HTTP2") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let [certificate, key] = certificate(directory.path());
    let server = echo(&format!("--certificate {certificate} --key {key}"));
    let mut file = fs::File::create(directory.path().join("query")).unwrap();
    file.write_all(QUERY).unwrap();
    let port = server.address("doh").port();
    let base = format!("https://dns.example:{port}/dns-query");
    let body = format!("@{}", directory.path().join("query").display());
    let post = ["-H", "content-type: application/dns-message", "--data-binary", &body, &base];
    let get = [format!("{base}?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB")];
    let expected = [&QUERY[..2], &[0x85], &QUERY[3..]].concat();
    for request in [&post[..], &[&get[0]]] {
        let resolve = format!("dns.example:{port}:127.0.0.1");
        let shown = ["-s", "-f", "--http2", "--cacert", &certificate, "--resolve", &resolve, "-w", "%{http_version}"];
        let output = Command::new("curl").args(shown).args(request).output().unwrap();
        assert_eq!(output.stdout, [&expected, &b"2"[..]].concat(), "{output:?}");
    }
    let status = ["-s", "-k", "-o", "/dev/null", "-w", "%{http_code}", &format!("https://127.0.0.1:{port}/")];
    assert_eq!(Command::new("curl").args(status).output().unwrap().stdout, b"404");
}

#[test]
fn kdig_gets_answers_with_both_methods() {
    let server = echo("");
    let port = server.address("doh").port().to_string();
    for method in ["+https", "+https-get"] {
        let arguments = ["@127.0.0.1", "-p", &port, method, "www.example.com"];
        let Ok(output) = Command::new("kdig").args(arguments).output() else { return };
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("status: NOERROR") && text.contains("HTTP/2"), "{method}: {text}");
    }
}
