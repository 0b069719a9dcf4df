//! Gives the program the name of the profile that it is built with: Cargo states only "release" or "debug", and `dist`
//! is neither.

use std::{env, path::Path};

fn main() {
    let out = env::var("OUT_DIR").expect("Cargo sets it");
    // target/PROFILE/build/PACKAGE/out
    let profile = Path::new(&out).ancestors().nth(3).and_then(Path::file_name).expect("the layout of target/");
    println!("cargo::rustc-env=DNSRIG_PROFILE={}", profile.display());
    println!("cargo::rerun-if-changed=build.rs");
}
