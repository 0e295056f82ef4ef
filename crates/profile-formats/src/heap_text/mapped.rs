//! The files whose code lay in a process's memory, from the list in `/proc/PID/maps`.

/// A file with code in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapped {
    /// Its path.
    pub path: String,
    /// Where its first byte lay.
    pub start: u64,
    /// The end of what was listed of it; memory of it that begins as zeroes comes after.
    pub end: u64,
}

/// The files of which some code was mapped; the lines of one file follow each other. What is no such line is left out.
pub fn files<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Mapped> {
    let mut files: Vec<(Mapped, bool)> = Vec::new();
    for line in lines {
        let Some((start, end, has_code, offset, path)) = mapping(line) else { continue };
        match files.last_mut() {
            Some((file, code)) if file.path == path && offset > 0 => {
                file.end = file.end.max(end);
                *code |= has_code;
            }
            _ => {
                let start = start.saturating_sub(offset);
                files.push((Mapped { path: path.to_owned(), start, end }, has_code));
            }
        }
    }
    files.into_iter().filter_map(|(file, has_code)| has_code.then_some(file)).collect()
}

/// `55d0c0000000-55d0c0001000 r-xp 00001000 08:01 1234    /bin/x`: start, end, whether it is code, offset, path.
fn mapping(line: &str) -> Option<(u64, u64, bool, u64, &str)> {
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut fields = line.trim().splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let (rights, offset) = (fields.next()?, fields.next()?);
    let path = fields.nth(2)?.trim_start();
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    path.starts_with('/').then_some(())?;
    Some((number(start)?, number(end)?, rights.contains('x'), number(offset)?, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_code_are_found_whole() {
        let maps = "\
            400000-401000 r--p 00000000 08:01 7                          /bin/a b\n\
            401000-402000 r-xp 00001000 08:01 7                          /bin/a b\n\
            402000-403000 rw-p 00002000 08:01 7                          /bin/a b\n\
            500000-600000 rw-p 00000000 00:00 0                          [heap]\n\
            600000-601000 r--p 00000000 08:01 8                          /etc/data\n\
            701000-702000 r-xp 00001000 08:01 9                          /lib/x.so (deleted)\n\
            7ff000-800000 r-xp 00000000 00:00 0                          [vdso]\n\
            what is no mapping\n";
        let file = |path: &str, start, end| Mapped { path: path.into(), start, end };
        assert_eq!(
            files(maps.lines()),
            [file("/bin/a b", 0x40_0000, 0x40_3000), file("/lib/x.so", 0x70_0000, 0x70_2000)]
        );
    }
}
