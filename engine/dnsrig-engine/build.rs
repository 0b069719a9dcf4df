//! Writes the version of the program: with the name of the profile that it is built with, because Cargo's own variable
//! states only "release" or "debug" and `dist` is neither, and with the commit where the build was given it.

use std::{env, path::Path};

fn main() {
    let (version, out) = (env::var("CARGO_PKG_VERSION").unwrap(), env::var("OUT_DIR").unwrap());
    // target/PROFILE/build/PACKAGE/out
    let profile = Path::new(&out).ancestors().nth(3).and_then(Path::file_name).expect("the layout of target/");
    let commit = env::var("DNSRIG_COMMIT").map(|commit| format!(", commit {commit}")).unwrap_or_default();
    println!("cargo::rustc-env=DNSRIG_VERSION={version} (profile {}{commit})", profile.display());
    println!("cargo::rerun-if-env-changed=DNSRIG_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
}
