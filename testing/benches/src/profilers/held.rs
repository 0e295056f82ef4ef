//! What the call sites of a program hold at its end, by a profile of any tool.

use std::collections::HashMap;
use std::path::Path;

use heaptoll_command::failure::Failure;
use heaptoll_command::foreign;
use heaptoll_profiles::{Frame, Measure, Profile};

use crate::Error;

/// Frames by which a call site is known: the program's own innermost ones.
const FRAMES: usize = 3;
/// Memory that a profile may take, bytes.
const MEMORY: u64 = 4 << 30;

/// Bytes at the end, by call site.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Held {
    /// By the names of a site's frames, innermost first.
    pub sites: HashMap<Vec<String>, f64>,
}

impl Held {
    /// By a profile of a program whose code is in a file of this name.
    ///
    /// # Errors
    /// The profile cannot be read.
    pub fn read(path: &Path, object: &str) -> Result<Held, Error> {
        let failed = |failure: Failure| Error::failed(path.display().to_string(), failure);
        let found = foreign::profile(path, MEMORY).map_err(failed)?;
        let found = found.ok_or_else(|| Error::Unexpected(format!("{} is no profile", path.display())))?;
        Ok(Held::of(&found.profile, object))
    }

    fn of(profile: &Profile, object: &str) -> Held {
        let mut held = Held::default();
        let Some(column) = profile.column(Measure::EndBytes) else { return held };
        for stack in profile.stacks() {
            let own = profile.frames_of(stack.call).filter(|frame| frame.object_name() == object);
            let site: Vec<String> = own.take(FRAMES).map(|frame: &Frame| frame.name().into_owned()).collect();
            if stack.values[column] > 0 {
                *held.sites.entry(site).or_default() += stack.values[column] as f64;
            }
        }
        held
    }

    /// Of all sites.
    pub fn total(&self) -> f64 {
        self.sites.values().sum()
    }

    /// Those that hold most, first; of equal ones in the order of their names.
    pub fn largest(&self, count: usize) -> Vec<(&[String], f64)> {
        let mut sites: Vec<_> = self.sites.iter().map(|(site, bytes)| (&site[..], *bytes)).collect();
        sites.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        sites.truncate(count);
        sites
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_profiles::Builder;

    use super::*;

    #[test]
    fn a_site_is_what_the_programs_own_frames_are() {
        let mut builder = Builder::new(vec![Measure::EndObjects, Measure::EndBytes]);
        let mut frame = |function: &str, object: &str| {
            let object = object.into();
            builder.frame(Frame { function: function.into(), object, ..Frame::default() })
        };
        let [inside, f, main, start] =
            [("", "/lib/libtcmalloc.so.4"), ("f", "/bin/x"), ("main", "/bin/x"), ("_start", "/bin/x")]
                .map(|(function, object)| frame(function, object));
        builder.stack(&[inside, f, main, start], &[1, 10]);
        builder.stack(&[f, main, start], &[1, 30]);
        builder.stack(&[main, start], &[1, 20]);
        builder.stack(&[start], &[1, 0]);
        let held = Held::of(&builder.finish(), "x");
        assert_eq!((held.total(), held.sites.len()), (60.0, 2));
        assert_eq!(held.largest(1), [(&["f".to_owned(), "main".to_owned(), "_start".to_owned()][..], 40.0)]);
    }
}
