//! The names under which objects define the routines of the malloc family, read from the objects themselves and not
//! from the tracer: the comparison also checks that the tracer finds the same ones.

use std::collections::HashMap;
use std::path::Path;

use heaptoll_elf::family;
use heaptoll_reftrace::Routine;

use crate::Error;

/// Symbols of a routine.
fn names(routine: Routine) -> &'static [&'static str] {
    match routine {
        Routine::Malloc => &["malloc", "__libc_malloc", "heaptoll_malloc_pointer_free"],
        Routine::Free => &["free", "cfree", "__libc_free"],
        Routine::Calloc => &["calloc", "__libc_calloc"],
        Routine::Realloc => &["realloc", "__libc_realloc"],
        Routine::Reallocarray => &["reallocarray", "__libc_reallocarray"],
        Routine::Memalign => &["memalign", "__libc_memalign"],
        Routine::PosixMemalign => &["posix_memalign"],
        Routine::AlignedAlloc => &["aligned_alloc"],
        Routine::Valloc => &["valloc", "pvalloc", "__libc_valloc", "__libc_pvalloc"],
        Routine::UsableSize => &["malloc_usable_size"],
        Routine::New => &family::NEW,
        Routine::NewAligned => &family::NEW_ALIGNED,
        Routine::Delete => &family::DELETE,
    }
}

/// The routines of all objects of a process.
#[derive(Debug, Default)]
pub struct Family {
    of: HashMap<String, HashMap<String, Routine>>,
}

impl Family {
    /// Reads the symbols of objects. The dynamic linker's own do not belong to a manager.
    ///
    /// # Errors
    /// An object that is a file and cannot be read.
    pub fn read<'a>(objects: impl IntoIterator<Item = &'a str>) -> Result<Family, Error> {
        let mut family = Family::default();
        for object in objects {
            let path = Path::new(object);
            if !path.is_file() || object.contains("/ld-linux") {
                continue;
            }
            let mut found = HashMap::new();
            for routine in Routine::ALL {
                for name in aliases(path, names(routine))?.into_iter().flatten() {
                    // If a compiler has merged two routines into one function, it counts as the first of them.
                    found.entry(name).or_insert(routine);
                }
            }
            if !found.is_empty() {
                family.of.insert(object.to_owned(), found);
            }
        }
        Ok(family)
    }

    /// The routine of an object's function.
    pub fn routine(&self, object: &str, function: &str) -> Option<Routine> {
        self.of.get(object)?.get(function).copied()
    }
}

/// The names of an object's functions, as [`heaptoll_elf::aliases`] finds them.
///
/// # Errors
/// An object that cannot be read, with its path.
pub fn aliases(path: &Path, functions: &[&str]) -> Result<Vec<Vec<String>>, Error> {
    heaptoll_elf::aliases(path, functions).map_err(|error| {
        let message = error.to_string();
        heaptoll_callgrind::Error::NotElf { path: path.to_path_buf(), message }.into()
    })
}
