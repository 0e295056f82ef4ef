//! One function of a call stack, and which functions the compiler inlined.

use std::borrow::Cow;

/// A function at one position of the code. Unknown members are empty.
///
/// The texts come from the program under measurement: they may have any character but NUL, so whatever shows them
/// escapes them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Function, demangled and unabridged.
    pub function: String,
    /// Path of the source file.
    pub file: String,
    /// Line in it; 0 when unknown.
    pub line: u32,
    /// Path of the executable or library.
    pub object: String,
    /// Return address, as addresses in `object` count; in memory when `object` is empty. 0 when unknown.
    pub offset: u64,
    /// The compiler inlined it into its caller, which is the next frame outward and has the same address.
    pub inlined: bool,
}

impl Frame {
    /// A name for each frame: the function, `tar+0xaecf` without one, `0x7f00` for code of no file.
    pub fn name(&self) -> Cow<'_, str> {
        match (self.function.is_empty(), self.object.is_empty()) {
            (false, _) => Cow::Borrowed(&self.function),
            (true, false) => Cow::Owned(format!("{}+{:#x}", self.object_name(), self.offset)),
            (true, true) => Cow::Owned(format!("{:#x}", self.offset)),
        }
    }

    /// The name of the object without its folders.
    pub fn object_name(&self) -> &str {
        self.object.rsplit('/').next().unwrap_or(&self.object)
    }

    /// Address of the call instruction's last byte, by which tools look up a line; 0 when unknown.
    pub fn call_address(&self) -> u64 {
        self.offset.saturating_sub(1)
    }
}

/// For each frame of a stack, innermost first, whether it was inlined into the next: it has the same address, and the
/// expansion of that address has not begun again (then it is recursion). `place` names the position of a frame,
/// `number` the frame itself.
pub fn inlined<Place: PartialEq, Number: PartialEq>(stack: &[(Place, Number)]) -> Vec<bool> {
    let mut group = 0;
    let mut result = vec![false; stack.len()];
    for at in 1..stack.len() {
        let begins = stack[at].0 != stack[at - 1].0
            || stack[group..at].iter().any(|(_, number)| *number == stack[at].1);
        if begins {
            group = at;
        } else {
            result[at - 1] = true;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_has_a_name() {
        let frame = |function: &str, object: &str| Frame {
            function: function.into(),
            object: object.into(),
            offset: 0xaecf,
            ..Frame::default()
        };
        assert_eq!(frame("f", "/bin/tar").name(), "f");
        assert_eq!(frame("", "/bin/tar").name(), "tar+0xaecf");
        assert_eq!(frame("", "").name(), "0xaecf");
    }

    #[test]
    fn a_frame_of_its_callers_address_is_inlined_unless_it_recurs() {
        assert_eq!(inlined(&[(7, 'a'), (7, 'b'), (8, 'c')]), [true, false, false]);
        assert_eq!(inlined(&[(7, 'a'), (7, 'a'), (8, 'c')]), [false, false, false], "recursion");
        assert_eq!(inlined(&[(7, 'a'), (7, 'b'), (7, 'a'), (7, 'b')]), [true, false, true, false]);
        assert_eq!(inlined::<u64, u32>(&[]), [false; 0]);
    }
}
