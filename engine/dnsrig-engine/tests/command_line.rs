//! How options are spelled, now and formerly, and how the engine names itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    os::unix::process::CommandExt,
    path::Path,
    process::Command,
};

use crate::process::ENGINE;

const COMMANDS: [&str; 25] = [
    "generate zones",
    "generate tld",
    "generate clients",
    "generate world",
    "watch",
    "probe",
    "probe follow",
    "probe records",
    "propagation",
    "change",
    "load",
    "merge",
    "replay prepare",
    "replay describe",
    "replay play",
    "replay compare",
    "transfer",
    "interrogate",
    "serve echo",
    "serve zones",
    "serve world",
    "link",
    "clock serve",
    "clock compare",
    "enter",
];

/// The old spellings of each command, and the new ones.
const RENAMED: [(&str, &str); 19] = [
    ("generate zones", "refresh-s:refresh"),
    ("generate clients", "duration-s:duration page-gap-ms:page-gap repeat-after-ms:repeat-after"),
    ("watch", "interval-ms:interval sockets-interval-ms:sockets-interval duration-s:duration"),
    ("probe", "zones:zone-list timeout-ms:timeout limit-s:limit progress-ms:progress"),
    ("probe follow", "zones:zone-list"),
    ("propagation", "zones:zone-list duration-s:duration pause-ms:pause pause-spread-ms:pause-spread"),
    ("propagation", "limit-s:limit learn-limit-s:learn-limit stop-after-s:stop-after"),
    ("change", "zones:zone-list duration-s:duration timeout-s:timeout"),
    ("load", "zones:zone-list duration-s:duration timeout-s:timeout"),
    ("load", "ramp-latency-ms:ramp-latency interval-s:interval"),
    ("replay prepare", "gap-s:gap transport:transport-share edns:edns-share"),
    ("replay play", "duration-s:duration timeout-s:timeout idle-timeout-s:idle-timeout"),
    ("replay play", "interval-s:interval port:source-port"),
    ("replay compare", "duration-s:duration"),
    ("transfer", "zones:zone-list time-max-s:time-max duration-s:duration"),
    ("interrogate", "zones:zone-list"),
    ("serve zones", "refresh-s:refresh"),
    ("clock compare", "interval-s:interval"),
    ("clock compare", "limit-s:limit"),
];

/// Options whose value differs between commands, with the same meaning.
const VALUES_DIFFER: [&str; 6] = ["out", "rate", "segmentation", "server", "transport", "types"];

fn run(name: &str, command: &str, arguments: &[&str]) -> (String, String) {
    let output = Command::new(ENGINE).arg0(name).args(command.split(' ')).args(arguments).output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// The options in the help of a command, and their values.
fn options(command: &str) -> BTreeMap<String, String> {
    let (help, _) = run(ENGINE, command, &["--help"]);
    // The lines of examples are indented less.
    let options = help.lines().filter_map(|line| line.strip_prefix("      --"));
    options.map(|option| option.split_once(' ').unwrap_or((option, ""))).map(|(a, b)| (a.into(), b.into())).collect()
}

#[test]
fn an_old_spelling_is_read_and_not_shown() {
    for (command, pairs) in RENAMED {
        let shown = options(command);
        for (old, new) in pairs.split(' ').map(|pair| pair.split_once(':').unwrap()) {
            assert!(shown.contains_key(new) && !shown.contains_key(old), "{command} --{old}: {shown:?}");
            let (_, errors) = run(ENGINE, command, &[&format!("--{old}=nonsense")]);
            assert!(!errors.contains("unexpected argument"), "{command} --{old}: {errors}");
        }
    }
}

#[test]
fn no_option_has_the_unit_of_a_duration_in_its_name() {
    for command in COMMANDS {
        let is_old = |name: &String| {
            let has_unit = ["-s", "-ms", "-us"].iter().any(|unit| name.ends_with(unit));
            has_unit && !name.ends_with("-per-s")
        };
        assert_eq!(options(command).into_keys().find(is_old), None, "{command}");
    }
}

#[test]
fn an_option_has_one_meaning_in_all_commands() {
    let mut values = BTreeMap::<String, BTreeSet<String>>::new();
    for (name, value) in COMMANDS.into_iter().flat_map(options) {
        values.entry(name).or_default().insert(value);
    }
    // Zones are counted in `generate world` alone, and listed nowhere by that name.
    values.retain(|name, values| values.len() > 1 && !VALUES_DIFFER.contains(&name.as_str()));
    assert!(values.is_empty(), "{values:?}");
}

#[test]
fn a_bare_number_is_refused_with_both_units() {
    let (_, errors) = run(ENGINE, "load", &["127.0.0.1", "--queries", "-", "--duration", "5"]);
    assert!(errors.contains("a duration needs a unit: write 5s or 5ms"), "{errors}");
}

#[test]
fn usage_and_errors_name_the_command_as_it_was_typed() {
    for name in ["dnsrig", "dnsrig-engine"] {
        let (help, _) = run(name, "load", &["--help"]);
        assert!(help.contains(&format!("Usage: {name} load")), "{help}");
        let (_, errors) = run(&format!("/somewhere/{name}"), "probe", &["127.0.0.1", "--zone-list", "/nowhere"]);
        assert!(errors.starts_with(&format!("{name} probe: ")), "{errors}");
    }
}

/// Why a command refuses a value of an option, if that is beyond its limits.
fn limit(command: &str, option: &str, value: &str) -> Option<String> {
    // Nothing is run, whatever is read.
    let (_, errors) = run(ENGINE, command, &[&format!("--{option}={value}"), "--no-such-option"]);
    let reason = errors.lines().next()?.split_once("': ")?.1;
    [" is not in ", " from "].iter().any(|word| reason.contains(word)).then(|| reason.to_owned())
}

/// The limits of all options are in `golden/limits.txt`. If a change of them is meant, make the file anew with
/// `DNSRIG_BLESS=1`.
#[test]
fn options_have_the_limits_that_they_had() {
    let mut found = String::new();
    for command in COMMANDS.into_iter().filter(|command| *command != "enter") {
        for (option, value) in options(command) {
            let beyond: &[&str] = match value.as_str() {
                "" => continue,
                value if value.starts_with("<TIME>") => &["99999999h"],
                _ => &["-1", "18446744073709551615"],
            };
            if let Some(reason) = beyond.iter().find_map(|value| limit(command, &option, value)) {
                found += &format!("{command} --{option}: {reason}\n");
            }
        }
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/limits.txt");
    if env::var_os("DNSRIG_BLESS").is_some() {
        fs::write(&golden, &found).unwrap();
    }
    assert_eq!(found, fs::read_to_string(&golden).unwrap());
}
