//! Which stacks are of this study: a manager alone, or with one oracle in front of it; and how points are written.

use std::path::Path;

use heaptoll_oracle::FreePoint;
use heaptoll_units::{size, size_label};

use crate::layered;
use crate::oracle;

/// A point as it is written: `last-use`, `unreachable`, `free`, `delay:64K`, `collect:1M`, `never`.
pub fn point_label(point: FreePoint) -> String {
    match point {
        FreePoint::LastUse => "last-use".into(),
        FreePoint::Unreachable => "unreachable".into(),
        FreePoint::Free => "free".into(),
        FreePoint::Delay(bytes) => format!("delay:{}", size_label(bytes)),
        FreePoint::Collect(bytes) => format!("collect:{}", size_label(bytes)),
        FreePoint::Never => "never".into(),
    }
}

/// The point that is written so.
pub fn point_of(text: &str) -> Option<FreePoint> {
    let bytes = |text: &str| size(text).filter(|bytes| *bytes > 0);
    match text.split_once(':') {
        None => match text {
            "last-use" => Some(FreePoint::LastUse),
            "unreachable" => Some(FreePoint::Unreachable),
            "free" => Some(FreePoint::Free),
            "never" => Some(FreePoint::Never),
            _ => None,
        },
        Some(("delay", text)) => bytes(text).map(FreePoint::Delay),
        Some(("collect", text)) => bytes(text).map(FreePoint::Collect),
        Some(_) => None,
    }
}

/// The stack of a point over a manager, with the recordings of each program in a folder.
pub fn stack_word(point: FreePoint, oracles: &Path, manager: &str) -> String {
    let label = point_label(point);
    let point = match label.split_once(':') {
        None => label,
        Some((point, bytes)) => format!("{point},bytes={bytes}"),
    };
    format!("oracle={point},file={}/{{program}}.oracle/{manager}", oracles.display())
}

/// A stack's part in this study: its manager, and when objects are freed, if there is an oracle in front of it. `None` for
/// a stack that has other layers or settings.
pub(super) fn part(stack: &str) -> Option<(String, Option<FreePoint>)> {
    let (manager, layer) = layered::part(stack, |kind| kind.name == oracle::LAYER)?;
    let Some(layer) = layer else { return Some((manager, None)) };
    let point = match (layer.setting("point")?, layer.setting("bytes")) {
        (point, None) => point_of(point)?,
        (point, Some(bytes)) => point_of(&format!("{point}:{bytes}"))?,
    };
    layer.setting("check").is_none_or(|check| check == "off").then_some((manager, Some(point)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [FreePoint; 6] = [
        FreePoint::LastUse,
        FreePoint::Unreachable,
        FreePoint::Free,
        FreePoint::Delay(1 << 16),
        FreePoint::Collect(1),
        FreePoint::Never,
    ];

    #[test]
    fn a_point_is_read_as_it_is_written() {
        for point in ALL {
            assert_eq!(point_of(&point_label(point)), Some(point), "{point:?}");
        }
        for text in ["", "later", "delay", "delay:0", "delay:x", "free:1", "collect:"] {
            assert_eq!(point_of(text), None, "{text}");
        }
    }

    #[test]
    fn a_stack_has_its_point_and_its_manager() {
        for point in ALL {
            let word = stack_word(point, Path::new("/tmp/a b"), "mimalloc3");
            assert_eq!(part(&word), Some(("mimalloc3".into(), Some(point))), "{word}");
        }
        assert_eq!(part("tithe"), Some(("tithe".into(), None)));
        assert_eq!(part("oracle=last-use,check=pages,file=/a.oracle/glibc"), None);
        assert_eq!(part("quarantine=2M/glibc"), None);
    }
}
