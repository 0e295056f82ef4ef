//! The object stays loaded: its fork handlers and blocks outlive any dlclose.
fn main() {
    println!("cargo::rustc-link-arg-cdylib=-Wl,-z,nodelete");
}
