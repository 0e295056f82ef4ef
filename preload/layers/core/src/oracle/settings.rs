//! The value of `HEAPTOLL_ORACLE`: `point=last-use,file=/tmp/cfrac.oracle,check=pages`.

use heaptoll_next::settings::{InvalidPair, each, size};

/// What is allowed, as text.
pub const ALLOWED: &str = "it takes point=record|keep|free|last-use|unreachable|delay|collect|never, bytes=BYTES for \
                           delay and collect (1 or more; K, M, G are powers of 1024), file=PATH, check=off|pages|poison, hide=NAME+NAME, \
                           separated by commas";

/// When the layer frees an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// When the program does; the sequence is not compared: as it runs while it is recorded.
    Record,
    /// Not at all, and the sequence is not compared: as it runs while it is recorded what can be reached. No address is
    /// used twice, so a word that leads to an object leads to no other.
    Keep,
    /// When the program does.
    Free,
    /// Before the first allocation after its last use.
    LastUse,
    /// Before the first allocation after the point at which it could not be reached any more.
    Unreachable,
    /// When so many bytes have been allocated since the program freed it.
    Delay(u64),
    /// When the bytes allocated reach the next multiple of this since the program freed it.
    Collect(u64),
    /// Not at all.
    Never,
}

impl Point {
    /// Whether the recorded sequence is followed.
    pub fn follows(self) -> bool {
        !matches!(self, Point::Record | Point::Keep)
    }
}

/// How it is checked that no object is touched after it was freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// It is not: the manager has the blocks.
    Off,
    /// Each block has pages of its own, inaccessible from when it is freed.
    Pages,
    /// No block's memory is reused; it is overwritten when it is freed.
    Poison,
}

/// How the layer works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings<'a> {
    /// When objects are freed.
    pub point: Point,
    /// The file of the recorded sequence; none for [`Point::Record`] and [`Point::Keep`].
    pub file: &'a [u8],
    /// Whether early frees are checked.
    pub check: Check,
    /// Variables that the program does not see, besides heaptoll's own: names separated by `+`.
    pub hidden: &'a [u8],
}

impl<'a> Settings<'a> {
    /// Reads a variable's value.
    ///
    /// # Errors
    /// The first pair that is not possible, or the point if what it needs is missing.
    pub fn read(text: &'a [u8]) -> Result<Settings<'a>, InvalidPair<'a>> {
        let mut settings = Settings { point: Point::Record, file: b"", check: Check::Off, hidden: b"" };
        let (mut point, mut bytes) = (&b""[..], None);
        each(text, |name, value| match (name, value) {
            (b"point", _) => {
                point = value;
                true
            }
            (b"bytes", _) => {
                bytes = size(value).filter(|&bytes| bytes > 0).map(|bytes| bytes as u64);
                bytes.is_some()
            }
            (b"file", [b'/', ..]) => {
                settings.file = value;
                true
            }
            (b"check", _) => match value {
                b"off" => set(&mut settings.check, Check::Off),
                b"pages" => set(&mut settings.check, Check::Pages),
                b"poison" => set(&mut settings.check, Check::Poison),
                _ => false,
            },
            (b"hide", _) => {
                settings.hidden = value;
                true
            }
            _ => false,
        })?;
        settings.point = match (point, bytes) {
            (b"record", None) => Point::Record,
            (b"keep", None) => Point::Keep,
            (b"free", None) => Point::Free,
            (b"last-use", None) => Point::LastUse,
            (b"unreachable", None) => Point::Unreachable,
            (b"never", None) => Point::Never,
            (b"delay", Some(bytes)) => Point::Delay(bytes),
            (b"collect", Some(bytes)) => Point::Collect(bytes),
            _ => return Err(InvalidPair { pair: text }),
        };
        if settings.point.follows() && settings.file.is_empty() {
            return Err(InvalidPair { pair: text });
        }
        Ok(settings)
    }
}

fn set(check: &mut Check, to: Check) -> bool {
    *check = to;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_read() {
        let point = |text: &'static str| Settings::read(text.as_bytes()).map(|settings| settings.point);
        assert_eq!(point("point=record"), Ok(Point::Record));
        assert_eq!(point("point=keep"), Ok(Point::Keep));
        assert_eq!(point("point=unreachable,file=/f"), Ok(Point::Unreachable));
        assert_eq!(point("point=free,file=/f"), Ok(Point::Free));
        assert_eq!(point("file=/f,point=last-use,check=poison"), Ok(Point::LastUse));
        assert_eq!(point("point=delay,bytes=64K,file=/f"), Ok(Point::Delay(65536)));
        assert_eq!(point("point=collect,bytes=1,file=/f"), Ok(Point::Collect(1)));
        assert_eq!(point("point=never,file=/f"), Ok(Point::Never));
        let all = Settings::read(b"point=free,file=/a b.oracle,check=pages,hide=A+B");
        let expected =
            Settings { point: Point::Free, file: b"/a b.oracle", check: Check::Pages, hidden: b"A+B" };
        assert_eq!(all, Ok(expected));
    }

    #[test]
    fn an_impossible_or_missing_setting_is_an_error() {
        for text in [
            "",
            "point=free",
            "point=unreachable",
            "point=free,file=relative",
            "point=delay,file=/f",
            "point=delay,bytes=0,file=/f",
            "point=never,bytes=1,file=/f",
            "point=later,file=/f",
            "point=free,file=/f,check=on",
        ] {
            assert!(Settings::read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
