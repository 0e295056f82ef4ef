//! How a program is run: its command, input, environment, load.

use heaptoll_experiment::experiment::ProgramInfo;

use super::super::views::Fact;
use crate::format;

/// What there is of it, by name.
pub fn facts(info: &ProgramInfo) -> Vec<Fact> {
    let mut facts = vec![Fact::new("Command", format::shell_command(&info.command))];
    if let Some(stdin) = &info.stdin {
        facts.push(Fact::new("Standard input", stdin));
    }
    if !info.environment.is_empty() {
        facts.push(Fact::new("Environment", environment(&info.environment)));
    }
    if let Some(serve) = &info.serve {
        facts.push(Fact::new("Load", format::shell_command(&serve.load)));
    }
    if let Some(digest) = &info.expected_digest {
        facts.push(Fact::new("Expected output", format!("SHA-256 {digest}")));
    }
    facts
}

/// Pinned variables in shell syntax.
pub fn environment(pairs: &[(String, String)]) -> String {
    // The value alone is quoted: in quotes as a whole, a shell would take it for a command.
    let pair = |(name, value): &(String, String)| {
        format!("{name}={}", format::shell_command(std::slice::from_ref(value)))
    };
    let pairs: Vec<String> = pairs.iter().map(pair).collect();
    pairs.join(" ")
}
