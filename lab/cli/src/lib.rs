//! heaptoll-lab: the whole tool, the laboratory's commands with the product's, which hands them over to it. A library, so that
//! tests see the schemas that its commands name.

mod command;
#[cfg(test)]
mod documented;
mod extension;
#[cfg(test)]
mod fields_page;
#[cfg(test)]
mod options_page;
#[cfg(test)]
mod schema_files;
mod study_arguments;
#[cfg(test)]
mod surface;

pub use command::REGISTRY;

/// The whole program, with what the laboratory adds to runs.
pub fn main() -> std::process::ExitCode {
    if let Err(failure) = heaptoll::laboratory::of_this_version() {
        return heaptoll::refused(&failure);
    }
    heaptoll_experiment::extension::hand_in(&extension::Laboratory);
    heaptoll::main_of(&REGISTRY)
}
