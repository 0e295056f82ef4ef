//! The changes that 64 bits need: each of one line, which is named by its digest.

use heaptoll_peers::manifest::digest;

use crate::Refusal;
use crate::recipe::Change;

/// The text with the change made.
///
/// # Errors
/// The line is another, or has what is to be replaced not exactly once.
pub(crate) fn apply(content: &[u8], change: &Change) -> Result<Vec<u8>, Refusal> {
    let misfit = || Refusal::Change { file: change.file.clone(), line: change.line };
    let mut lines: Vec<Vec<u8>> = content.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    let line = change.line.checked_sub(1).and_then(|at| lines.get_mut(at)).ok_or_else(misfit)?;
    let text = std::str::from_utf8(line).map_err(|_| misfit())?;
    if digest(line) != change.digest || text.matches(&change.find).count() != 1 {
        return Err(misfit());
    }
    *line = text.replace(&change.find, &change.put).into_bytes();
    Ok(lines.join(&b'\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(line: usize, of: &str, find: &str) -> Change {
        Change {
            file: "a.c".into(),
            line,
            digest: digest(of.as_bytes()),
            find: find.into(),
            put: "long c".into(),
        }
    }

    #[test]
    fn a_line_is_changed_and_all_else_stays() {
        let text = b"int c;\nc = a - b;\r\nc = 1;\xff\n";
        let changed = apply(text, &change(2, "c = a - b;\r", "c")).unwrap();
        assert_eq!(changed, b"int c;\nlong c = a - b;\r\nc = 1;\xff\n");
    }

    #[test]
    fn another_line_is_refused() {
        let text = b"c = a - b;\nc = c;\n";
        for wrong in [
            change(1, "c = a + b;", "c"),
            change(2, "c = c;", "c"),
            change(1, "c = a - b;", "d"),
            change(0, "c = a - b;", "c"),
            change(9, "", "c"),
        ] {
            assert!(matches!(apply(text, &wrong), Err(Refusal::Change { .. })), "{wrong:?}");
        }
    }
}
