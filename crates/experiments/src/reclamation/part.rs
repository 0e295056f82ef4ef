//! Which stacks are of this study: a manager alone, or with one oracle in front of it; and how moments are written.

use std::path::Path;

use heaptoll_experiment::stack::{LayerKind, layers};
use heaptoll_oracle::Moment;
use heaptoll_units::size;

use crate::studied::size_label;

/// A moment as it is written: `last-use`, `free`, `delay:64K`, `collect:1M`, `never`.
pub fn moment_label(moment: Moment) -> String {
    match moment {
        Moment::LastUse => "last-use".into(),
        Moment::Free => "free".into(),
        Moment::Delay(bytes) => format!("delay:{}", size_label(bytes)),
        Moment::Collect(bytes) => format!("collect:{}", size_label(bytes)),
        Moment::Never => "never".into(),
    }
}

/// The moment that is written so.
pub fn moment_of(text: &str) -> Option<Moment> {
    let bytes = |text: &str| size(text).filter(|bytes| *bytes > 0);
    match text.split_once(':') {
        None => match text {
            "last-use" => Some(Moment::LastUse),
            "free" => Some(Moment::Free),
            "never" => Some(Moment::Never),
            _ => None,
        },
        Some(("delay", text)) => bytes(text).map(Moment::Delay),
        Some(("collect", text)) => bytes(text).map(Moment::Collect),
        Some(_) => None,
    }
}

/// The stack of a moment over a manager, with the recordings of each program in a folder.
pub fn stack_word(moment: Moment, oracles: &Path, manager: &str) -> String {
    let label = moment_label(moment);
    let point = match label.split_once(':') {
        None => label,
        Some((point, bytes)) => format!("{point},bytes={bytes}"),
    };
    format!("oracle={point},file={}/{{program}}.oracle/{manager}", oracles.display())
}

/// A stack's part in this study: its manager, and when objects are freed, if there is an oracle in front of it. `None` for
/// a stack that has other layers or settings.
pub(super) fn part(stack: &str) -> Option<(String, Option<Moment>)> {
    let (in_front, manager) = layers(stack).ok()?;
    match in_front.as_slice() {
        [] => Some((manager.into(), None)),
        [only] if only.kind == LayerKind::Oracle => {
            let set = |name: &str| only.settings.iter().find(|(other, _)| other == name).map(|(_, value)| value);
            let bytes = || set("bytes")?.parse().ok();
            let moment = match set("point")?.as_str() {
                "last-use" => Moment::LastUse,
                "free" => Moment::Free,
                "never" => Moment::Never,
                "delay" => Moment::Delay(bytes()?),
                "collect" => Moment::Collect(bytes()?),
                _ => return None,
            };
            (set("check").is_none_or(|check| check == "off")).then(|| (manager.into(), Some(moment)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Moment; 5] =
        [Moment::LastUse, Moment::Free, Moment::Delay(1 << 16), Moment::Collect(1), Moment::Never];

    #[test]
    fn a_moment_is_read_as_it_is_written() {
        for moment in ALL {
            assert_eq!(moment_of(&moment_label(moment)), Some(moment), "{moment:?}");
        }
        for text in ["", "later", "delay", "delay:0", "delay:x", "free:1", "collect:"] {
            assert_eq!(moment_of(text), None, "{text}");
        }
    }

    #[test]
    fn a_stack_has_its_moment_and_its_manager() {
        for moment in ALL {
            let word = stack_word(moment, Path::new("/tmp/a b"), "mimalloc3");
            assert_eq!(part(&word), Some(("mimalloc3".into(), Some(moment))), "{word}");
        }
        assert_eq!(part("tithe"), Some(("tithe".into(), None)));
        assert_eq!(part("oracle=last-use,check=pages,file=/a.oracle/glibc"), None);
        assert_eq!(part("quarantine=2M/glibc"), None);
    }
}
