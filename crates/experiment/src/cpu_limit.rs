//! How long limits of CPU time have held heaptoll's control group back (`cpu.max`; `cpu.cfs_quota_us` in version 1). Only
//! the group that has the limit counts it, so those above heaptoll's own are read, too.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Seconds since the groups were made, summed over processors; `None` where no group counts them.
pub fn throttled_s() -> Option<f64> {
    throttled_by(stat_files())
}

/// The `cpu.stat` of heaptoll's control group and of those above it: any of them may have a limit.
fn stat_files() -> &'static [PathBuf] {
    static FILES: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FILES.get_or_init(|| {
        let [groups, mounts] = ["cgroup", "mountinfo"]
            .map(|name| read_to_string(format!("/proc/self/{name}")).unwrap_or_default());
        groups_of(&groups, &mounts)
            .iter()
            .map(|folder| folder.join("cpu.stat"))
            .filter(|file| file.exists())
            .collect()
    })
}

/// Folders of the control groups that may limit CPU time, from the process's own up to the mount's: of the one tree of
/// version 2, and of the tree of the controller `cpu` in version 1.
fn groups_of(groups: &str, mounts: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let kind = if controllers.is_empty() { "cgroup2" } else { "cgroup" };
        if !controllers.is_empty() && !controllers.split(',').any(|one| one == "cpu") {
            continue;
        }
        let Some((root, at)) = mounts.lines().find_map(|mount| mounted(mount, kind)) else { continue };
        // A mount of a part of the tree shows that part only.
        let Ok(below) = Path::new(path).strip_prefix(root) else { continue };
        let own = Path::new(at).join(below);
        folders.extend(own.ancestors().take_while(|folder| folder.starts_with(at)).map(Path::to_path_buf));
    }
    folders
}

/// Which part of a control group tree a line of `mountinfo` mounts, and where; of version 1 only the controller `cpu`'s.
fn mounted<'a>(mount: &'a str, kind: &str) -> Option<(&'a str, &'a str)> {
    let (head, tail) = mount.split_once(" - ")?;
    let (mut head, mut tail) = (head.split(' ').skip(3), tail.split(' '));
    let (found, options) = (tail.next()?, tail.nth(1)?);
    let fits = found == kind && (kind == "cgroup2" || options.split(',').any(|option| option == "cpu"));
    if fits { Some((head.next()?, head.next()?)) } else { None }
}

/// The same by these files.
fn throttled_by(files: &[PathBuf]) -> Option<f64> {
    let counted = files.iter().filter_map(|file| throttled_in(&read_to_string(file).ok()?));
    counted.reduce(|sum, one| sum + one)
}

/// The same of one file: microseconds in version 2, nanoseconds in version 1.
fn throttled_in(stat: &str) -> Option<f64> {
    let value = |key: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?;
        line.trim().parse::<u64>().ok()
    };
    let by_version_2 = value("throttled_usec").map(|count| count as f64 / 1e6);
    by_version_2.or_else(|| value("throttled_time").map(|count| count as f64 / 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_this_group_and_of_those_above_are_found() {
        let mounts = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
            33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n\
            32 31 0:29 / /sys/fs/cgroup/cpu rw shared:1 - cgroup cgroup rw,cpu\n\
            41 31 0:38 /pod /two rw,nosuid - cgroup2 cgroup2 rw\n";
        let folders = |groups: &str| groups_of(groups, mounts);
        assert_eq!(folders("0::/pod/a/b\n"), ["/two/a/b", "/two/a", "/two"].map(PathBuf::from));
        assert_eq!(
            folders("3:cpuacct:/x\n1:cpu:/x\n"),
            ["/sys/fs/cgroup/cpu/x", "/sys/fs/cgroup/cpu"].map(PathBuf::from)
        );
        assert!(folders("0::/elsewhere\n").is_empty() && folders("nonsense").is_empty());
    }

    #[test]
    fn held_back_time_is_read_of_both_versions() {
        assert_eq!(throttled_in("nr_throttled 3\nthrottled_usec 1500000\n"), Some(1.5));
        assert_eq!(throttled_in("nr_throttled 3\nthrottled_time 2500000000\n"), Some(2.5));
        assert_eq!(throttled_in("usage_usec 5\n"), None);
        let folder = tempfile::tempdir().expect("a folder");
        let files = ["a", "b", "c"].map(|name| folder.path().join(name));
        std::fs::write(&files[0], "throttled_usec 1000000\n").expect("written");
        std::fs::write(&files[1], "throttled_usec 500000\n").expect("written");
        assert_eq!(throttled_by(&files), Some(1.5));
        assert_eq!(throttled_by(&files[2..]), None);
    }
}
