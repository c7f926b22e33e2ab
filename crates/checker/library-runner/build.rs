//! Libraries that the runner loads must find its memory functions, and its answers about the machine, before the C
//! library's: so the program's symbols are dynamic ones.

fn main() {
    println!("cargo:rustc-link-arg-bins=-rdynamic");
    println!("cargo:rerun-if-changed=build.rs");
}
