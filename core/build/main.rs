//! Writes the tables that the library embeds: the public vocabularies and classes of characters.

mod unicode;
mod vocabulary;

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let write = |name, bytes| fs::write(Path::new(&out).join(name), bytes).expect("OUT_DIR is writable");
    write("classes", unicode::classes());
    write("han", unicode::han());
    for (name, packed) in vocabulary::all() {
        write(name, packed);
    }
}
