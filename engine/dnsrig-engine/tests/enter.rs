//! `enter` from outside. These tests make namespaces and mounts, so they need root: set `DNSRIG_ROOT_TESTS=1`.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Output, Stdio},
};

const ENGINE: &str = env!("CARGO_BIN_EXE_dnsrig-engine");

/// Whether tests that need root were asked for. What is skipped is said, so that nobody takes it for a pass.
fn may_run() -> bool {
    let asked = std::env::var_os("DNSRIG_ROOT_TESTS").is_some_and(|value| value == "1");
    if !asked {
        eprintln!("skipped: it needs root; set DNSRIG_ROOT_TESTS=1");
    }
    asked
}

fn enter(arguments: &[&str]) -> Output {
    Command::new(ENGINE).arg("enter").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A root file system made of this machine's: links for what is in /usr, empty directories for the rest.
fn make_root(root: &Path) {
    for directory in ["run", "tmp", "mnt", "proc", "sys", "dev", "var", "var/tmp", "usr"] {
        fs::create_dir(root.join(directory)).unwrap();
    }
    for directory in ["bin", "sbin", "lib", "lib64"] {
        symlink(format!("usr/{directory}"), root.join(directory)).unwrap();
    }
}

#[test]
fn exit_codes_are_those_of_chroot() {
    assert_eq!(enter(&["--", "dnsrig-no-such-command"]).status.code(), Some(127));
    assert_eq!(enter(&["--", "/etc/passwd"]).status.code(), Some(126));
    assert_eq!(enter(&["--cgroup", "/nowhere", "--", "true"]).status.code(), Some(125));
    assert_eq!(enter(&["--", "sh", "-c", "exit 42"]).status.code(), Some(42));
    assert_eq!(enter(&["--bind", "nonsense", "--", "true"]).status.code(), Some(2));
    assert_eq!(enter(&["--capability", "CAP_NET_ADMIN", "--", "true"]).status.code(), Some(2), "whose?");
}

#[test]
fn an_error_is_one_sentence_and_a_hint() {
    let output = enter(&["--netns", "/nowhere", "--", "true"]);
    let lines = text(&output.stderr);
    let lines: Vec<_> = lines.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("dnsrig-engine enter: cannot open network namespace /nowhere: "));
    assert!(lines[1].starts_with("hint: "));
    assert!(output.stdout.is_empty());
}

#[test]
fn the_stamp_and_the_environment_reach_the_command() {
    let directory = tempfile::tempdir().unwrap();
    let stamp = directory.path().join("stamp.json");
    let stamp = stamp.to_str().unwrap();
    let command = "printf '%s %s' \"$A\" $(ulimit -n)";
    let output = enter(&["--env", "A=1=2", "--nofile", "77", "--stamp", stamp, "--", "sh", "-c", command]);
    assert_eq!(text(&output.stdout), "1=2 77");
    let stamp: serde_json::Value = serde_json::from_slice(&fs::read(stamp).unwrap()).unwrap();
    for key in ["exec_monotonic_ns", "exec_realtime_ns", "anchor_error_ns"] {
        assert!(stamp[key].is_i64(), "{key}");
    }
}

#[test]
fn nothing_is_inherited_that_was_not_meant_to_be() {
    let signals = "/^SigBlk/ { print $2 } /^SigIgn/ { print $2 }";
    let output = text(&enter(&["--", "awk", signals, "/proc/self/status"]).stdout);
    let sets: Vec<u64> = output.lines().map(|set| u64::from_str_radix(set, 16).unwrap()).collect();
    assert_eq!(sets[0], 0, "no signal is blocked");
    // Bit 12 is signal 13, SIGPIPE, which every Rust program ignores. Others may be ignored by who runs the tests.
    assert_eq!(sets[1] & 1 << 12, 0, "SIGPIPE is not ignored");
    let output = Command::new("sh")
        .args(["-c", "exec 7</dev/null; exec \"$0\" enter -- ls /proc/self/fd", ENGINE])
        .output()
        .unwrap();
    // 3 is the directory that ls reads.
    assert_eq!(text(&output.stdout), "0\n1\n2\n3\n");
}

#[test]
fn a_root_is_read_only_and_has_fresh_places() {
    if !may_run() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (root, data) = (directory.path().join("root"), directory.path().join("data"));
    [&root, &data].into_iter().for_each(|path| fs::create_dir(path).unwrap());
    make_root(&root);
    fs::write(data.join("given"), "given").unwrap();
    let (usr, seen, shown) =
        ("/usr:/usr:ro", format!("{}:/mnt/w", data.display()), format!("{}:/run/r:ro", data.display()));
    let script = "cat given; echo new > new; \
        for path in /no /usr/no /run/r/no; do echo x > $path && echo wrong; done; \
        for path in /run /tmp /var/tmp /dev/shm /mnt; do echo x > $path/yes || echo wrong; done; \
        echo x > /dev/null; ls /dev; ls /proc/self/ns > /dev/null || echo wrong";
    let binds = ["--bind", usr, "--bind", &seen, "--bind", &shown];
    let output = Command::new(ENGINE)
        .args(["enter", "--root", root.to_str().unwrap(), "--workdir", "/mnt/w"])
        .args(binds)
        .args(["--", "sh", "-c", script])
        .output()
        .unwrap();
    let expected = "givenfd\nfull\nnull\nrandom\nshm\nstderr\nstdin\nstdout\nurandom\nzero\n";
    assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(data.join("new")).unwrap(), "new\n");
    // Of all that was mounted, nothing is left, and the root is as it was.
    assert!(fs::read_dir(root.join("dev")).unwrap().next().is_none());
    assert!(!fs::read_to_string("/proc/self/mounts").unwrap().contains(root.to_str().unwrap()));
}

#[test]
fn a_user_has_no_rights_and_gets_none() {
    if !may_run() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("given"), "given").unwrap();
    let bind = format!("{}:/mnt/w:ro", directory.path().display());
    let script = "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs)' /proc/self/status; cat /mnt/w/given; echo; \
        for path in /no /usr/no /home/no /root/no /mnt/no /mnt/w/no; do (echo x > $path) 2> /dev/null && echo wrong; done; \
        ls -A /home /root /run | grep -v -e : -e mnt; tail -n +3 /proc/net/dev; echo x > /tmp/yes || echo wrong";
    let given = ["--root", "/", "--bind", &bind, "--no-network", "--user", "65534"];
    let kept = ["--capability", "CAP_NET_BIND_SERVICE", "--capability", "CAP_NET_ADMIN", "--", "sh", "-c", script];
    let output = enter(&[&given[..], &kept[..]].concat());
    let said = text(&output.stdout);
    let lines = said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut lines = lines.filter(|line| !line.is_empty());
    let mut next = || lines.next().unwrap_or_default();
    assert_eq!(next(), "Uid: 65534 65534 65534 65534", "{}", text(&output.stderr));
    assert_eq!(next(), "Gid: 65534 65534 65534 65534");
    assert_eq!(next(), "Groups:");
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(next(), format!("{set}: 0000000000001400"));
    }
    assert_eq!(next(), "NoNewPrivs: 1");
    assert_eq!(next(), "given");
    assert!(next().starts_with("lo: 0 0"), "{said}");
    assert_eq!(next(), "", "{said}");
}

#[test]
fn the_command_is_the_same_process() {
    let mut command = Command::new(ENGINE);
    let child = command.args(["enter", "--", "sh", "-c", "echo $$"]).stdout(Stdio::piped()).spawn().unwrap();
    let id = child.id();
    assert_eq!(text(&child.wait_with_output().unwrap().stdout).trim(), id.to_string());
}

#[test]
fn a_network_namespace_is_joined() {
    if !may_run() {
        return;
    }
    let name = format!("dnsrig-test-{}", std::process::id());
    let ip = |arguments: &[&str]| assert!(Command::new("ip").args(arguments).status().unwrap().success());
    ip(&["netns", "add", &name]);
    let path = format!("/run/netns/{name}");
    let script = "wc -l < /proc/net/dev; ls -d /sys/fs/cgroup";
    let output = enter(&["--netns", &path, "--", "sh", "-c", script]);
    ip(&["netns", "delete", &name]);
    // Two lines of heading and the new namespace's own lo; the cgroups stay in sight.
    assert_eq!(text(&output.stdout), "3\n/sys/fs/cgroup\n");
}
