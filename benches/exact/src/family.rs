//! The names under which objects define the routines of the malloc family, read from the objects themselves and not
//! from the tracer: the comparison also checks that the tracer finds the same ones.

use std::collections::HashMap;
use std::path::Path;

use heaptoll_callgrind::symbols;
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
        Routine::New => &["_Znwm", "_Znam", "_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t"],
        Routine::NewAligned => &[
            "_ZnwmSt11align_val_t",
            "_ZnamSt11align_val_t",
            "_ZnwmSt11align_val_tRKSt9nothrow_t",
            "_ZnamSt11align_val_tRKSt9nothrow_t",
        ],
        Routine::Delete => &[
            "_ZdlPv",
            "_ZdaPv",
            "_ZdlPvm",
            "_ZdaPvm",
            "_ZdlPvRKSt9nothrow_t",
            "_ZdaPvRKSt9nothrow_t",
            "_ZdlPvSt11align_val_t",
            "_ZdaPvSt11align_val_t",
            "_ZdlPvmSt11align_val_t",
            "_ZdaPvmSt11align_val_t",
            "_ZdlPvSt11align_val_tRKSt9nothrow_t",
            "_ZdaPvSt11align_val_tRKSt9nothrow_t",
        ],
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
                for name in symbols::aliases(path, names(routine))?.into_iter().flatten() {
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
