//! The program `heaptoll`.

fn main() -> std::process::ExitCode {
    heaptoll::main_of(&heaptoll::REGISTRY)
}
