//! Transparent huge pages of the measured processes.

/// Where they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thp {
    /// Everywhere (only where the system's own setting is `always`)
    Always,
    /// Where the program or the manager requests them (not where the system's own setting is `never`)
    Madvise,
    /// Nowhere
    Never,
}

impl Thp {
    /// The word by which it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Thp::Always => "always",
            Thp::Madvise => "madvise",
            Thp::Never => "never",
        }
    }

    /// Whether a process can have this where the system is set to `system`: it can only have less.
    pub fn is_allowed_where(self, system: &str) -> bool {
        match self {
            Thp::Always => system == "always",
            Thp::Madvise => system != "never",
            Thp::Never => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_can_have_huge_pages_only_where_the_system_has_them() {
        let allowed =
            |system| [Thp::Always, Thp::Madvise, Thp::Never].map(|word| word.is_allowed_where(system));
        assert_eq!(allowed("always"), [true, true, true]);
        assert_eq!(allowed("madvise"), [false, true, true]);
        assert_eq!(allowed("never"), [false, false, true]);
    }
}
