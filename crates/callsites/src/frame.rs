//! One frame of a call stack, as the recorder or the tracer names it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A frame of a stack. Unknown members are empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Function, demangled.
    pub function: &'a str,
    /// `file:line`.
    pub line: &'a str,
    /// Path of the file that its code is in.
    pub object: &'a str,
    /// Address in `object`; in memory when that is empty.
    pub offset: u64,
}

/// A frame of a stack for JSON. Unknown members are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WholeFrame {
    /// Function, demangled and unabridged.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub function: String,
    /// Path of the source file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// Line in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Path of the executable or library.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub object: String,
    /// Address in `object`; in memory when that is empty.
    pub offset: u64,
}

impl<'a> Frame<'a> {
    /// As Valgrind writes a frame: `function (file:line)` or `function (in object)`, `???` for an unknown function.
    pub fn parse(text: &'a str, offset: u64) -> Frame<'a> {
        let place = text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
        let (function, place) = place.unwrap_or((text, ""));
        let function = if function.starts_with("???") { "" } else { function };
        match place.strip_prefix("in ") {
            Some(object) => Frame { function, line: "", object, offset },
            // Text in brackets that is no position belongs to the name: `f(int) (.cold)`.
            None if place.is_empty() || place.contains(':') => {
                Frame { function, line: place, object: "", offset }
            }
            None => Frame { function: text, line: "", object: "", offset },
        }
    }

    /// All known members.
    pub fn whole(&self) -> WholeFrame {
        let numbered = self.line.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
        WholeFrame {
            function: self.function.to_owned(),
            file: numbered.map_or(self.line, |(file, _)| file).to_owned(),
            line: numbered.map(|(_, line)| line),
            object: self.object.to_owned(),
            offset: self.offset,
        }
    }

    /// The source file and line without folders: `parse.c:120`.
    pub(crate) fn short_line(&self) -> &'a str {
        file_name(self.line)
    }
}

/// What follows the path of an object whose file was gone when its names were looked up.
pub const NOT_HERE: &str = " (not here)";
/// What follows the path of an object whose file was another one then.
pub const CHANGED: &str = " (changed)";

/// The file name of an object, without the reason why it has no names.
pub fn object_name(object: &str) -> &str {
    let name = file_name(object);
    name.strip_suffix(NOT_HERE).or_else(|| name.strip_suffix(CHANGED)).unwrap_or(name)
}

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valgrinds_text_is_parsed() {
        let frame = |function, line, object| Frame { function, line, object, offset: 7 };
        for (text, parsed) in [
            ("parse (parse.c:12)", frame("parse", "parse.c:12", "")),
            ("std::foo(int) (in /usr/bin/x)", frame("std::foo(int)", "", "/usr/bin/x")),
            ("??? (in /usr/bin/x)", frame("", "", "/usr/bin/x")),
            ("(below main) (libc_start.c:3)", frame("(below main)", "libc_start.c:3", "")),
            ("main", frame("main", "", "")),
            ("f(int) (.cold)", frame("f(int) (.cold)", "", "")),
            ("???", frame("", "", "")),
        ] {
            assert_eq!(Frame::parse(text, 7), parsed);
        }
    }

    #[test]
    fn a_whole_frame_has_file_and_line_apart() {
        let whole = Frame { function: "f", line: "/a/b:c.c:12", object: "/x", offset: 1 }.whole();
        assert_eq!((whole.file.as_str(), whole.line, whole.object.as_str()), ("/a/b:c.c", Some(12), "/x"));
        let whole = Frame { line: "b.c", ..Frame::default() }.whole();
        assert_eq!((whole.file.as_str(), whole.line), ("b.c", None));
    }
}
