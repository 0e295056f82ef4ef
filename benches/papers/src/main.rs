//! heaptoll-papers
fn main() {}
