//! The objects stay loaded: their fork handlers and blocks outlive any dlclose. (`rustc-link-arg-cdylib` is for libraries.)
fn main() {
    println!("cargo::rustc-link-arg=-Wl,-z,nodelete");
}
