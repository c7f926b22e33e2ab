//! Links a program of its own: no start-up code, no library, at an address where no other program is.

fn main() {
    for argument in [
        "-nostartfiles",
        "-nostdlib",
        "-static",
        "-no-pie",
        "-Wl,-Ttext-segment=0x600000000000",
        "-Wl,--build-id=none",
        "-Wl,-z,noexecstack",
        "-Wl,--gc-sections",
        "-Wl,-e,scalefs_start",
    ] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
