//! `heaptoll-bench`: heaptoll measured by itself, and what it is compared with; a command each.

fn main() -> std::process::ExitCode {
    heaptoll_bench::main()
}
