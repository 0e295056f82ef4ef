//! A process's samples with the names of its call stacks.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use heaptoll_sampling::Estimate;
use heaptoll_sampling::tool::ProcessSamples;
use heaptoll_symbols::Symbols;
use heaptoll_trace::Sites;

/// A process image.
#[derive(Debug, Clone, Default)]
pub struct NamedProcess {
    /// Process number.
    pub pid: i32,
    /// The file it executes.
    pub exe: PathBuf,
    /// The object that its `malloc` is bound to.
    pub manager: PathBuf,
    /// When it began, Unix ns.
    pub started_unix_ns: u64,
    /// The estimates, by number of a call stack.
    pub samples: Vec<NamedSite>,
    /// The call stacks.
    pub sites: Sites,
    /// Samples whose call stack is not known.
    pub without_site: u64,
    /// Samples that do not count as live.
    pub not_followed: u64,
}

/// What was sampled of a call stack.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct NamedSite {
    /// All allocations.
    pub allocated: Estimate,
    /// Those that were not freed.
    pub live: Estimate,
}

impl NamedProcess {
    /// Looks up the names. `folder`: where the process's relative paths begin.
    pub fn new(process: &ProcessSamples, folder: &Path) -> NamedProcess {
        let mut symbols = Symbols::in_folder(folder.to_owned());
        let mut order: Vec<usize> = (1..process.sites.len()).collect();
        order.sort_by_key(|&site| process.sites[site].objects);
        let mut objects = process.objects.iter();
        let mut defined = 0;
        for site in order {
            let known = process.sites[site].objects;
            for object in objects.by_ref().take(known.saturating_sub(defined)) {
                define_object(&mut symbols, object);
                defined += 1;
            }
            if !process.sites[site].words.is_empty() {
                symbols.define(site as u32, &process.sites[site].words);
            }
        }
        objects.for_each(|object| define_object(&mut symbols, object));
        NamedProcess {
            pid: i32::try_from(process.pid).unwrap_or(0),
            exe: process.exe.clone(),
            manager: process.manager.clone(),
            started_unix_ns: process.started_unix_ns,
            samples: process
                .sites
                .iter()
                .map(|site| NamedSite { allocated: site.allocated, live: site.live })
                .collect(),
            sites: symbols.finish(),
            without_site: process.without_site,
            not_followed: process.not_followed,
        }
    }

    /// The sums over all call stacks.
    pub fn total(&self) -> NamedSite {
        self.samples.iter().fold(NamedSite::default(), |sum, site| NamedSite {
            allocated: sum.allocated.plus(site.allocated),
            live: sum.live.plus(site.live),
        })
    }
}

fn define_object(symbols: &mut Symbols, object: &heaptoll_sampling::tool::ObjectWords) {
    // A clock that was changed meanwhile may be beyond all times.
    let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(object.recorded_unix_s));
    symbols.define_object(&object.words, at.unwrap_or(SystemTime::UNIX_EPOCH));
}

#[cfg(test)]
mod tests {
    use heaptoll_sampling::tool::{ObjectWords, SiteSamples};

    use super::*;

    #[test]
    fn a_stack_is_of_the_objects_that_were_loaded_when_it_was_seen() {
        let object = |name: u8| ObjectWords {
            recorded_unix_s: 1,
            words: vec![0x1000, 0x2000, 0x1000, 2, u64::from(b'/') | u64::from(name) << 8],
        };
        let site = |objects: usize, words: &[u64]| SiteSamples {
            objects,
            words: words.to_vec(),
            ..Default::default()
        };
        let process = ProcessSamples {
            objects: vec![object(b'a'), object(b'b')],
            sites: vec![site(0, &[]), site(2, &[0x1500]), site(1, &[0x1500]), site(0, &[])],
            ..ProcessSamples::default()
        };
        let named = NamedProcess::new(&process, Path::new("/"));
        let object_of = |site: usize| {
            let frame = named.sites.sites[site].frames[0];
            named.sites.frames[frame as usize].object.clone()
        };
        assert_eq!((object_of(1), object_of(2)), ("/b (not here)".to_owned(), "/a (not here)".to_owned()));
        assert_eq!(named.samples.len(), 4);
    }
}
