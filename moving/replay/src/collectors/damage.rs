//! An invariant of a heap that does not hold.

use std::fmt;

/// See the module. As text it is the fault: figures that should be equal, or the invariant and that it does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// The invariant, in words.
    pub invariant: &'static str,
    /// Two figures that should be equal, each with its name.
    pub unequal: Option<[(&'static str, usize); 2]>,
}

impl Damage {
    /// An error unless the invariant holds.
    ///
    /// # Errors
    /// It does not.
    pub fn unless(holds: bool, invariant: &'static str) -> Result<(), Damage> {
        if holds { Ok(()) } else { Err(Damage { invariant, unequal: None }) }
    }

    /// An error unless two figures, each with its name, are equal.
    ///
    /// # Errors
    /// They are not.
    pub fn unless_equal(
        invariant: &'static str,
        one: (&'static str, usize),
        other: (&'static str, usize),
    ) -> Result<(), Damage> {
        if one.1 == other.1 { Ok(()) } else { Err(Damage { invariant, unequal: Some([one, other]) }) }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, into: &mut fmt::Formatter) -> fmt::Result {
        match self.unequal {
            Some([(name, one), (other_name, other)]) => write!(into, "{name}: {one}, {other_name}: {other}"),
            None => write!(into, "this does not hold: {}", self.invariant),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_shown_as_the_fault_and_not_as_what_should_be() {
        let text = |checked: Result<(), Damage>| checked.err().map(|damage| damage.to_string());
        let equal = |other| Damage::unless_equal("all are counted", ("here", 8), ("counted", other));
        assert_eq!(text(equal(8)), None);
        assert_eq!(text(equal(7)), Some("here: 8, counted: 7".into()));
        assert_eq!(text(Damage::unless(true, "it is so")), None);
        assert_eq!(text(Damage::unless(false, "it is so")), Some("this does not hold: it is so".into()));
    }
}
