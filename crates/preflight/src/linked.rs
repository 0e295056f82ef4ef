//! What a program links in glibc's place, and what has to be preloaded because of that.

use std::path::{Path, PathBuf};

use crate::binding::Report;
use crate::judge::{self, Expected, Fault, ImageFinding, Source};
use crate::objects;
use crate::process::own_user;

/// Objects to preload besides, with the reason: glibc where a program links another allocator and glibc is to be
/// measured, the C++ runtime where an allocator's own `operator new` would win over the manager's `malloc`.
pub fn additions<'a>(
    reports: impl Iterator<Item = &'a Report>,
    expected: &Expected,
    preload: &[PathBuf],
) -> Vec<(PathBuf, String)> {
    let mut found: Vec<(PathBuf, String)> = Vec::new();
    // What is preloaded runs as this user: another user's report is not enough.
    for report in reports.filter(|report| report.user == own_user()) {
        let mut add = |is: fn(&Path) -> bool, reason: String| {
            let Some(object) = report.objects.iter().find(|o| is(o)) else { return };
            let there =
                preload.iter().chain(found.iter().map(|f| &f.0)).any(|p| objects::same_file(p, object));
            if !there && object.is_absolute() {
                found.push((object.clone(), reason));
            }
        };
        let exe = report.exe.display();
        let fault = judge::misbinding(report, expected);
        if let (Source::Glibc, Some(Fault::BoundTo(other))) = (&expected.source, &fault) {
            add(objects::is_libc, format!("{exe} links the allocator {}", other.display()));
        }
        if let Some(new) = report.next.get("_Znwm")
            && !expected.holds(new)
            && !objects::is_cxx_runtime(new)
            && !matches!(fault, Some(Fault::OwnMalloc(_)))
        {
            add(objects::is_cxx_runtime, format!("{exe} would take operator new from {}", new.display()));
        }
    }
    found
}

/// The allocator that a process of this user would use without heaptoll, where glibc is proved and is not it.
pub fn linked<'a>(reports: impl Iterator<Item = &'a Report>, expected: &Expected) -> Option<PathBuf> {
    let own = reports.filter(|report| report.user == own_user());
    let mut faults = own.filter_map(|report| judge::misbinding(report, expected));
    faults.find_map(|fault| match (&expected.source, fault) {
        (Source::Glibc, Fault::BoundTo(other)) => Some(other),
        _ => None,
    })
}

/// Whether processes that load this allocator made most calls.
pub fn is_mostly(findings: &[ImageFinding], allocator: &Path) -> bool {
    let (mut own, mut all) = (0_u64, 0_u64);
    for ImageFinding { report, process, .. } in findings {
        all = all.saturating_add(process.malloc_calls);
        if report.as_ref().is_some_and(|report| report.objects.iter().any(|object| object == allocator)) {
            own = own.saturating_add(process.malloc_calls);
        }
    }
    own > all / 2
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn another_users_report_never_decides_what_is_preloaded() {
        let expected = Expected { layers: Vec::new(), source: Source::Glibc };
        let of = |user| Report {
            user,
            layer: "/count.so".into(),
            default: BTreeMap::from([("malloc".into(), "/count.so".into())]),
            next: BTreeMap::from([("malloc".into(), "/other.so".into())]),
            objects: vec!["/tmp/libc.so.6".into()],
            ..Report::default()
        };
        let found = |user| additions([of(user)].iter(), &expected, &[]).len();
        assert_eq!((found(own_user()), found(own_user() + 1)), (1, 0));
    }
}
