//! Folded stacks: a line a stack, the outermost function first, `main;parse;xmalloc 96`.
//!
//! The format has no way to write its own separators: `;` within a name becomes `:`, as Linux's perf script writes it,
//! and a control character becomes a space.

use std::io::{self, Write};

use heaptoll_profiles::Profile;

use crate::format::Choice;

use crate::line::one_line;

pub fn write(profile: &Profile, choice: Choice, out: &mut dyn Write) -> io::Result<()> {
    let Some(column) = profile.column(choice.count.measure(choice.instant)) else { return Ok(()) };
    let names: Vec<String> =
        profile.frames().iter().map(|frame| one_line(&frame.name()).trim().replace(';', ":")).collect();
    for stack in profile.stacks().filter(|stack| stack.values[column] > 0) {
        let mut path: Vec<&str> = profile
            .path(stack.call)
            .map(|call| &*names[profile.calls()[call as usize].frame as usize])
            .collect();
        path.reverse();
        writeln!(out, "{} {}", path.join(";"), stack.values[column])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::{CHOICE, hostile, small, text};
    use crate::{Choice, Count, Format, Instant};

    #[test]
    fn a_stack_is_a_line_from_the_outermost_function_on() {
        assert_eq!(
            text(Format::Folded, &small(), CHOICE),
            "main;parse;xmalloc 96\nmain;grow;xmalloc 40\nmain 8\n"
        );
        let live = Choice { count: Count::LiveObjects, instant: Instant::End };
        assert_eq!(text(Format::Folded, &small(), live), "main;parse;xmalloc 1\n", "nothing of none");
    }

    #[test]
    fn separators_within_names_are_replaced() {
        let folded = text(Format::Folded, &hostile(), CHOICE);
        assert_eq!(folded.lines().count(), 1, "{folded}");
        assert_eq!(folded, "a:b;new line;<script>alert(1)</script>;é \u{fffd};bin+0x40 7\n");
    }
}
