//! Where managers are known to differ from what the suite asks. An entry whose manager no longer differs makes the
//! suite fail, so that the list stays true.

/// One known deviation.
#[derive(Debug, Clone, Copy)]
pub struct Deviation {
    /// Names of the managers.
    pub managers: &'static [&'static str],
    /// Names of the cases.
    pub cases: &'static [&'static str],
    /// False where it depends on timing: then a run in which the case holds says nothing.
    pub always: bool,
    /// What the manager does instead.
    pub reason: &'static str,
    /// How that is known.
    pub source: &'static str,
}

/// All of them.
pub const DEVIATIONS: &[Deviation] = &[];

/// The deviation that covers a manager and a case.
pub fn known(manager: &str, case: &str) -> Option<&'static Deviation> {
    DEVIATIONS.iter().find(|one| one.managers.contains(&manager) && one.cases.contains(&case))
}

/// The list as a Markdown table.
pub fn markdown() -> String {
    let mut text = String::from("| manager | cases | what it does instead | source |\n|---|---|---|---|\n");
    for one in DEVIATIONS {
        let sometimes = if one.always { "" } else { "sometimes: " };
        let row = [
            one.managers.join(", "),
            one.cases.join(", "),
            format!("{sometimes}{}", one.reason),
            one.source.into(),
        ];
        text.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    text
}
