//! No command replaces a file that it reads.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Stdio},
};

use crate::process::{ENGINE, nobody};

/// Runs the engine in a folder; its exit code and what it says.
fn run(folder: &Path, arguments: &str, input: Stdio) -> (Option<i32>, String) {
    let mut command = Command::new(ENGINE);
    let output = command.args(arguments.split_whitespace()).current_dir(folder).stdin(input).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn an_output_that_is_an_input_is_refused_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // A line that is a name in every list of names; what reads captures does not come to read it.
    fs::write(folder.join("in"), "a.example\n").unwrap();
    symlink("in", folder.join("link")).unwrap();
    fs::hard_link(folder.join("in"), folder.join("hard")).unwrap();
    let server = nobody();
    for command in [
        "replay prepare in --out OUT".to_owned(),
        "replay prepare other in --out OUT".to_owned(),
        "generate clients --names in --clients 1 --qps 9 --duration 1s --out OUT".to_owned(),
        "generate clients --names in --clients 1 --qps 9 --duration 1s --out new --names-out OUT".to_owned(),
        "generate clients --like in --out OUT".to_owned(),
        "generate world --from in --out OUT".to_owned(),
        "generate world --from-stream in --out new --names-out OUT".to_owned(),
        format!("probe {server} --zone-list in --limit 1s --out OUT"),
        format!("probe follow {server} --zone-list in --out OUT"),
        format!("propagation --primary {server} --secondary {server} --zone-list in --changes 1 --out OUT"),
        format!("change {server} --zone-list in --changes-per-s 1 --duration 1s --out OUT"),
        format!("change {server} --catalog c.example --members in --changes-per-s 1 --duration 1s --out OUT"),
        format!("interrogate {server} --zone-list in --out OUT"),
    ] {
        for output in ["in", "./in", "link", "hard"] {
            let (code, errors) = run(folder, &command.replace("OUT", output), Stdio::null());
            assert!(
                code == Some(2) && errors.contains("is the same file as"),
                "{command}, {output}: {code:?}: {errors}"
            );
            assert_eq!(fs::read(folder.join("in")).unwrap(), b"a.example\n", "{command}, {output}");
        }
    }
    let input = fs::File::open(folder.join("in")).unwrap();
    let (code, errors) = run(folder, "replay prepare - --out in", input.into());
    assert!(code == Some(2) && errors.contains("is the same file as -"), "{errors}");
    // One path for two outputs loses one of them.
    for command in [
        "watch --host h,cgroup=/ --out same --sockets-out same --duration 1s",
        "generate clients --clients 1 --qps 9 --duration 1s --out same --names-out same",
    ] {
        let (code, errors) = run(folder, command, Stdio::null());
        assert!(code == Some(2) && errors.contains("two outputs"), "{command}: {errors}");
    }
    for (command, name) in [
        (format!("load {server} --zone-list out/NAME --rate 1 --duration 0.1s --out out"), "summary.json"),
        (format!("load {server} --queries out/NAME --rate 1 --duration 0.1s --out out"), "latency.hlog"),
        (format!("replay play out/NAME --server {server} --out out"), "queries.arrow"),
        (format!("transfer {server} --zone-list out/NAME --out out"), "transfers.arrow"),
        (format!("transfer {server} --zone-list out/NAME --write out"), "a.example.zone"),
        ("serve world out/NAME --port 0 --out out".into(), "manifest.json"),
    ] {
        let read = folder.join("out").join(name);
        fs::create_dir(folder.join("out")).unwrap();
        let content = if command.starts_with("serve") { "seed = 1\n" } else { "a.example\n" };
        fs::write(&read, content).unwrap();
        let (code, errors) = run(folder, &command.replace("NAME", name), Stdio::null());
        assert!(code == Some(2) && errors.contains("is the same file as"), "{command}: {code:?}: {errors}");
        assert_eq!(fs::read_to_string(&read).unwrap(), content, "{command}");
        fs::remove_dir_all(folder.join("out")).unwrap();
    }
    let mut left: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["hard", "in", "link"]);
}

#[test]
fn an_output_without_a_folder_is_refused_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("in"), "a.example\n").unwrap();
    let server = nobody();
    for command in [
        format!("probe {server} --zone-list in --limit 0.1s --out none/out"),
        format!("propagation --primary {server} --secondary {server} --zone-list in --changes 1 --out none/out"),
        format!("change {server} --zone-list in --changes-per-s 9 --duration 0.1s --timeout 0.1s --out none/out"),
        format!("interrogate {server} --zone-list in --out none/out"),
        format!("load {server} --zone-list in --rate 1 --duration 0.1s --out none"),
        format!("transfer {server} --zone-list in --retries 0 --timeout 10ms --write none"),
        format!("transfer {server} --zone-list in --retries 0 --timeout 10ms --out in"),
    ] {
        let (code, errors) = run(folder, &command, Stdio::null());
        assert!(code == Some(1) && errors.contains("cannot write to the folder"), "{command}: {code:?}: {errors}");
    }
    let (code, errors) = run(folder, &format!("probe {server} --zone-list in --limit 0.1s --out ."), Stdio::null());
    assert!(code == Some(2) && errors.contains(". is a folder, but a file is needed"), "{code:?}: {errors}");
}

/// The place of an output that is not made may be anything, such as a current folder that is read-only.
#[test]
fn the_place_of_an_output_that_is_not_made_does_not_matter() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sockets.arrow")).unwrap();
    let watch = "watch --host h,cgroup=/sys/fs/cgroup --out out --duration 100ms";
    let (code, errors) = run(folder.path(), watch, Stdio::null());
    assert_eq!(code, Some(0), "{errors}");
    let listing = "watch --host h,netns=/proc/self/ns/net,sockets --out out --duration 100ms";
    let (code, errors) = run(folder.path(), listing, Stdio::null());
    assert!(code == Some(2) && errors.contains("sockets.arrow is a folder"), "{code:?}: {errors}");
}

#[test]
fn a_secret_is_not_repeated() {
    let (folder, server) = (tempfile::tempdir().unwrap(), nobody());
    fs::write(folder.path().join("in"), "a.example\n").unwrap();
    for command in [
        format!("propagation --primary {server} --secondary {server} --zone-list in --changes 1"),
        format!("change {server} --zone-list in --changes-per-s 9"),
        format!("interrogate {server} --zone-list in"),
        format!("transfer {server} --zone-list in"),
        format!("load {server} --zone-list in"),
        format!("serve zones {server} --count 1"),
    ] {
        let (code, errors) = run(folder.path(), &format!("{command} --tsig hmac-md5:key:c2VjcmV0"), Stdio::null());
        assert!(
            code == Some(2) && errors.contains("--tsig: the algorithm is not one of"),
            "{command}: {code:?}: {errors}"
        );
        assert!(
            errors.contains("hint: give --tsig ALGORITHM:NAME:SECRET") && !errors.contains("c2VjcmV0\n"),
            "{errors}"
        );
        assert!(!errors.contains("key:c2VjcmV0"), "{command}: {errors}");
    }
}
