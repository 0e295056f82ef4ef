//! What comes before the first run: programs and managers are found, each manager is proved on each program, and the
//! experiment is described and given its file.

pub mod baseline;
pub mod beginning;
pub mod derived;
pub mod estimate;
pub mod experiment_file;
pub mod pairing;
pub mod preflights;
pub mod proof_run;
pub mod repeat_command;
pub mod resume;
pub mod settings_in_environment;
pub mod stand_ins;
