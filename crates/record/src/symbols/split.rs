//! Split DWARF: debug information of compile units in files of their own, `.dwo`, or all of them in one `.dwp`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::{LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::{Dwarf, DwarfPackage, Reader};

use super::binary::{Bytes, empty, read, section};

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
        let beside = self.folder.join(name.file_name()?);
        [compiled_in.join(&name), self.folder.join(&name), beside].iter().find_map(|file| unit(file, load))
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

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, SystemTime};

    use super::super::binary::{SourceLocation, extent, load};

    const CODE: &str = "#include <stdlib.h>\n\
        static inline __attribute__((always_inline)) char *inlined(int n) {\n\
        return malloc(n); }\n\
        __attribute__((noinline)) char *outer(int n) {\n\
        return inlined(n + 1) + 1; }\n\
        int main(int n, char **v) { return outer(n) == *v; }\n";

    /// Before, the line of an inlined function was shown as its caller's where `.dwo` files were not read.
    #[test]
    fn a_line_is_shown_with_its_own_function_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("x.c"), CODE).expect("writes");
        let cc = |arguments: &[&str]| {
            let built = Command::new("cc").current_dir(folder.path()).args(["-O2"]).args(arguments).status();
            assert!(built.is_ok_and(|status| status.success()), "{arguments:?}");
        };
        let locations = |program: &str| {
            let program = path(program);
            let data = std::fs::read(&program).expect("reads");
            let file = object::File::parse(&*data).expect("ELF");
            let symbol = object::Object::symbols(&file)
                .find(|symbol| object::ObjectSymbol::name(symbol) == Ok("outer"))
                .map(|symbol| (object::ObjectSymbol::address(&symbol), object::ObjectSymbol::size(&symbol)));
            let (start, size) = symbol.expect("a symbol");
            let (_, bytes) = extent(&program).expect("segments");
            let binary = load(&program, bytes, SystemTime::now() + Duration::from_secs(9));
            (start..start + size).map(|address| binary.locations(address)).collect::<Vec<_>>()
        };
        let has = |all: &[Vec<SourceLocation>]| {
            let is =
                |one: &SourceLocation, function, line| one.function == function && one.line.ends_with(line);
            all.iter().any(|at| matches!(&at[..], [inner, outer] if is(inner, "inlined", "x.c:3") && is(outer, "outer", "x.c:5")))
        };
        let has_none = |all: &[Vec<SourceLocation>]| {
            all.iter().all(|at| matches!(&at[..], [one] if one.function == "outer" && one.line.is_empty()))
        };
        cc(&["-g", "-o", "plain", "x.c"]);
        cc(&["-g", "-gsplit-dwarf", "-c", "x.c"]);
        cc(&["-o", "split", "x.o"]);
        assert!(has(&locations("plain")) && has(&locations("split")));
        if Command::new("dwp")
            .current_dir(folder.path())
            .args(["-e", "split", "-o", "packed.dwp"])
            .status()
            .is_ok_and(|status| status.success())
        {
            std::fs::copy(path("split"), path("packed")).expect("copies");
        }
        // Another compilation's, and none.
        std::fs::write(path("x.c"), CODE.replace("n + 1", "n + 2")).expect("writes");
        cc(&["-g", "-gsplit-dwarf", "-c", "x.c"]);
        std::fs::copy(path("split"), path("stale")).expect("copies");
        assert!(has_none(&locations("stale")));
        std::fs::remove_file(path("x.dwo")).expect("removes");
        std::fs::copy(path("split"), path("alone")).expect("copies");
        assert!(has_none(&locations("alone")));
        assert!(!path("packed").exists() || has(&locations("packed")));
    }
}
