//! Where heaptoll finds its own pieces, installed or in the build tree, and where it keeps what it makes.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// The folders of one installation: `ROOT/lib/heaptoll` and `ROOT/share/heaptoll`.
#[derive(Debug, Clone)]
pub struct Places {
    root: PathBuf,
}

/// No installation was found.
#[derive(Debug, Error)]
pub enum PlacesError {
    /// None of the searched places has one.
    #[error(
        "heaptoll's own files were not found (no lib/heaptoll/heaptoll-launch below {searched}); \
         run `make build` in the source tree, or `make install PREFIX=...`, or set HEAPTOLL_HOME to where they are"
    )]
    NotThere {
        /// The folders, with commas between them.
        searched: String,
    },
    /// It is not known where to search.
    #[error(
        "heaptoll cannot find its own files, because it cannot read /proc/self/exe ({cause}); mount /proc, \
         or set HEAPTOLL_HOME to where its files are"
    )]
    Lost {
        /// The system's error.
        cause: std::io::Error,
    },
}

impl Places {
    /// Searches `HEAPTOLL_HOME` if that is set; else the folders above the binary (`PREFIX/bin/heaptoll`), and in the
    /// build tree (`target/release/heaptoll` with `target/stage`, `target/debug/heaptoll` with `target/debug/stage`).
    ///
    /// # Errors
    /// None of them holds the launcher; or it is not known where the binary is.
    pub fn find() -> Result<Places, PlacesError> {
        // A home that was named is the only one: others would be measured in silence.
        let named = std::env::var_os("HEAPTOLL_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let mut candidates: Vec<PathBuf> = named.iter().cloned().collect();
        if named.is_none() {
            let exe = std::env::current_exe().and_then(|exe| exe.canonicalize());
            let exe = exe.map_err(|cause| PlacesError::Lost { cause })?;
            let above = |levels: usize| exe.ancestors().nth(levels).map(Path::to_path_buf);
            candidates.extend(above(2));
            // What `make test` stages lies with what it compiles, in target/debug; test binaries live one level deeper,
            // in target/debug/deps.
            for levels in 1..=3 {
                candidates.extend(above(levels).map(|folder| folder.join("stage")));
            }
        }
        candidates.iter().find(|root| Places { root: root.to_path_buf() }.launcher().is_file()).map_or_else(
            || {
                let searched: Vec<String> =
                    candidates.iter().map(|path| path.display().to_string()).collect();
                Err(PlacesError::NotThere { searched: searched.join(", ") })
            },
            |root| Ok(Places { root: root.clone() }),
        )
    }

    /// An installation at a known root.
    pub fn at(root: &Path) -> Places {
        Places { root: root.to_path_buf() }
    }

    fn lib(&self, name: &str) -> PathBuf {
        self.root.join("lib/heaptoll").join(name)
    }

    /// The launcher binary.
    pub fn launcher(&self) -> PathBuf {
        self.lib("heaptoll-launch")
    }

    /// Managers built here: `NAME.so` with `NAME.toml`.
    pub fn managers(&self) -> PathBuf {
        self.lib("managers")
    }

    /// Layers: `libheaptoll_NAME.so`, and `NAME.toml` of those that stacks name.
    pub fn layers(&self) -> PathBuf {
        self.lib("layers")
    }

    /// A layer by its name.
    pub fn layer(&self, name: &str) -> PathBuf {
        self.layers().join(format!("libheaptoll_{name}.so"))
    }

    /// The counting layer.
    pub fn count_layer(&self) -> PathBuf {
        self.layer("count")
    }

    /// The layer that stops a program where `main` would begin.
    pub fn start_layer(&self) -> PathBuf {
        self.lib("layers/libheaptoll_start.so")
    }

    /// The recording layer.
    pub fn record_layer(&self) -> PathBuf {
        self.lib("layers/libheaptoll_record.so")
    }

    /// The driver of replays.
    pub fn replay_driver(&self) -> PathBuf {
        self.lib("heaptoll-replay")
    }

    /// What replays traces with pointers under collectors that move objects.
    pub fn mmtk(&self) -> PathBuf {
        self.lib("heaptoll-mmtk")
    }

    /// The manager that does nothing, for what a replay itself costs.
    pub fn null_manager(&self) -> PathBuf {
        self.lib("layers/libheaptoll_null.so")
    }

    /// The tracer: Valgrind's core with our tool in it, and the files it needs.
    pub fn tracer(&self) -> PathBuf {
        self.lib("tracer")
    }

    /// The table of allocators under names of their own.
    pub fn allocator_symbols(&self) -> PathBuf {
        self.root.join("share/heaptoll/allocator-symbols.toml")
    }

    /// The layer that reports to the tracer what the manager announces.
    pub fn announce_layer(&self) -> PathBuf {
        self.lib("layers/libheaptoll_announce.so")
    }

    /// Bundled programs.
    pub fn programs(&self) -> PathBuf {
        self.lib("programs")
    }

    /// The catalog and its scripts.
    pub fn catalog(&self) -> PathBuf {
        self.root.join("share/heaptoll/programs")
    }

    /// Generated inputs: `$XDG_CACHE_HOME/heaptoll/inputs`.
    pub fn inputs() -> PathBuf {
        Places::cache().join("inputs")
    }

    /// Programs of others that the user has added: `$XDG_DATA_HOME/heaptoll/programs`.
    pub fn added() -> PathBuf {
        base("XDG_DATA_HOME", ".local/share").join("heaptoll/programs")
    }

    /// Managers that the user has added: `$XDG_DATA_HOME/heaptoll/managers`.
    pub fn added_managers() -> PathBuf {
        base("XDG_DATA_HOME", ".local/share").join("heaptoll/managers")
    }

    /// The recipes of managers of others, a folder each.
    pub fn manager_recipes(&self) -> PathBuf {
        self.root.join("share/heaptoll/managers")
    }

    /// The recipe of programs of others that have this name.
    pub fn recipe(&self, name: &str) -> PathBuf {
        self.catalog().join("originals").join(name)
    }

    /// What can be made again, and the secret from which the names of scratch folders are derived:
    /// `$XDG_CACHE_HOME/heaptoll`.
    pub fn cache() -> PathBuf {
        base("XDG_CACHE_HOME", ".cache").join("heaptoll")
    }

    /// Experiments without a `--db` of their own: `$XDG_STATE_HOME/heaptoll`.
    pub fn experiments() -> PathBuf {
        base("XDG_STATE_HOME", ".local/state").join("heaptoll")
    }
}

/// The descriptions in a folder; none where there is no folder.
pub(crate) fn descriptions(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder);
    let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect()
}

fn base(variable: &str, below_home: &str) -> PathBuf {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute()).unwrap_or_else(|| {
        std::env::var_os("HOME").map(PathBuf::from).unwrap_or_else(std::env::temp_dir).join(below_home)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_lie_below_the_root() {
        let places = Places::at(Path::new("/opt/x"));
        assert_eq!(places.launcher(), Path::new("/opt/x/lib/heaptoll/heaptoll-launch"));
        assert_eq!(places.catalog(), Path::new("/opt/x/share/heaptoll/programs"));
    }
}
