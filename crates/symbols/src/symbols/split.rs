//! Split DWARF: debug information of compile units in files of their own, `.dwo`, or all of them in one `.dwp`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::{LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::{Dwarf, DwarfPackage, Reader};

use super::file::{Bytes, empty, read, section};

/// What a file's compile units have moved elsewhere.
#[derive(Default)]
pub struct SplitDwarf {
    /// Where relative paths lie if not in the folder of the compilation.
    folder: PathBuf,
    package: Option<DwarfPackage<Bytes>>,
}

impl SplitDwarf {
    /// Of the file at `path`.
    pub fn of(path: &Path) -> SplitDwarf {
        let mut package = path.as_os_str().to_os_string();
        package.push(".dwp");
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        SplitDwarf { folder, package: load_package(Path::new(&package)) }
    }

    /// The result of a lookup, for which what was moved elsewhere is read. `None`: it is not there, or is another
    /// compilation's.
    pub fn finish<L>(&self, mut lookup: LookupResult<L>) -> Option<L::Output>
    where
        L: LookupContinuation<Buf = Bytes>,
    {
        loop {
            match lookup {
                LookupResult::Output(output) => return Some(output),
                LookupResult::Load { load, continuation } => {
                    lookup = continuation.resume(Some(self.load(&load)?));
                }
            }
        }
    }

    fn load(&self, load: &SplitDwarfLoad<Bytes>) -> Option<Arc<Dwarf<Bytes>>> {
        if let Some(package) = &self.package
            && let Ok(Some(unit)) = package.find_cu(load.dwo_id, &load.parent)
        {
            return Some(Arc::new(unit));
        }
        let name = path(load.path.as_ref()?)?;
        let compiled_in = load.comp_dir.as_ref().and_then(path).unwrap_or_default();
        let near = self.folder.join(name.file_name()?);
        [compiled_in.join(&name), self.folder.join(&name), near].iter().find_map(|file| unit(file, load))
    }
}

/// The unit in a file, if it is of the same compilation.
fn unit(file: &Path, load: &SplitDwarfLoad<Bytes>) -> Option<Arc<Dwarf<Bytes>>> {
    let data = read(file, None)?;
    let file = object::File::parse(&*data).ok()?;
    let named =
        |id: gimli::SectionId| id.dwo_name().map_or_else(|| empty(&file), |name| section(&file, name));
    let mut dwarf = Dwarf::load(|id| Ok::<_, gimli::Error>(named(id))).ok()?;
    dwarf.make_dwo(&load.parent);
    let header = dwarf.units().next().ok()??;
    let own = dwarf.unit(header).ok()?.dwo_id;
    (own == Some(load.dwo_id)).then(|| Arc::new(dwarf))
}

fn load_package(path: &Path) -> Option<DwarfPackage<Bytes>> {
    let data = read(path, None)?;
    let file = object::File::parse(&*data).ok()?;
    let named =
        |id: gimli::SectionId| id.dwo_name().map_or_else(|| empty(&file), |name| section(&file, name));
    DwarfPackage::load(|id| Ok::<_, gimli::Error>(named(id)), empty(&file)).ok()
}

fn path(bytes: &Bytes) -> Option<PathBuf> {
    Some(PathBuf::from(&*bytes.to_string().ok()?))
}
