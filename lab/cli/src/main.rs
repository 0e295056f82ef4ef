//! The program `heaptoll-lab`.

fn main() -> std::process::ExitCode {
    heaptoll::main_of(&heaptoll_lab::REGISTRY)
}
