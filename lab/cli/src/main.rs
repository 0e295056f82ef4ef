//! The program `heaptoll-lab`.

fn main() -> std::process::ExitCode {
    heaptoll_lab::main()
}
