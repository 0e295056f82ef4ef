//! Reading the binding reports that the counting layer appends (its format is described in `preload/layers/count`), and
//! the lines in which each layer reports what it forwards to (`preload/layer-support/next`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::objects::is_libc;

/// One report of one process.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Whose file it stood in: any process of that user may have written it.
    pub user: u32,
    /// Process id.
    pub pid: i32,
    /// Whether it was made on the way out, when every function that was ever called is bound.
    pub at_exit: bool,
    /// `CLOCK_MONOTONIC`, ns.
    pub time_ns: u64,
    /// The program.
    pub exe: PathBuf,
    /// The counting layer as the loader names it.
    pub layer: PathBuf,
    /// What a global lookup finds, by symbol.
    pub default: BTreeMap<String, PathBuf>,
    /// The next definition after the layer's, by symbol.
    pub next: BTreeMap<String, PathBuf>,
    /// Loaded objects.
    pub objects: Vec<PathBuf>,
    /// Slots that are bound to an object other than the layer: (whose slot, symbol, bound to).
    pub elsewhere: Vec<(PathBuf, String, PathBuf)>,
    /// Functions that objects other than glibc refer to.
    pub referenced: BTreeSet<String>,
    /// Slots bound to the layer.
    pub to_layer: usize,
    /// Slots never called so far.
    pub lazy: usize,
    /// Whether the report did not fit its buffer.
    pub cut: bool,
    /// The object that each layer reported to forward to, by layer.
    pub forwards_to: BTreeMap<PathBuf, PathBuf>,
}

/// One layer's line: which object its `malloc` forwards to.
#[derive(Debug, Clone, PartialEq)]
pub struct Forwarding {
    /// Process id.
    pub pid: i32,
    /// `CLOCK_MONOTONIC`, ns.
    pub time_ns: u64,
    layer: PathBuf,
    object: PathBuf,
}

/// The forwarding lines of a report file, in order.
pub fn forwardings(bytes: &[u8]) -> Vec<Forwarding> {
    let read = |line: &str| match line.split('\t').collect::<Vec<_>>()[..] {
        ["behind", "1", pid, time, layer, object] => Some(Forwarding {
            pid: pid.parse().ok()?,
            time_ns: time.parse().ok()?,
            layer: layer.into(),
            object: object.into(),
        }),
        _ => None,
    };
    String::from_utf8_lossy(bytes).lines().filter_map(read).collect()
}

/// A program that is not position-independent and takes the address of `malloc` (Debian's python3 does) has a stub of
/// its own under that name, and a global lookup finds the stub. It defines nothing: the program's slot shows where the
/// calls go. `exports` remembers what files export.
fn see_through_stubs(mut report: Report, exports: &mut BTreeMap<PathBuf, Vec<String>>) -> Report {
    let exe = report.exe.clone();
    let stubs = report.default.iter_mut().filter(|(_, object)| **object == exe);
    for (symbol, object) in stubs {
        let exported = exports.entry(exe.clone()).or_insert_with(|| {
            // A file that cannot be read may export anything: then the lookup stands as it is.
            heaptoll_elf::read(&exe)
                .map_or_else(|_| vec![symbol.clone()], |facts| facts.exports.into_iter().collect())
        });
        let elsewhere = report.elsewhere.iter().find(|(owner, name, _)| *owner == exe && name == symbol);
        if !exported.contains(symbol) {
            *object = elsewhere.map_or_else(|| report.layer.clone(), |(_, _, target)| target.clone());
        }
    }
    report
}

/// Parses a report file. What is damaged (a process died while it wrote) is skipped.
pub fn parse(bytes: &[u8]) -> Vec<Report> {
    let text = String::from_utf8_lossy(bytes);
    let mut reports: Vec<Report> = Vec::new();
    let mut open: Option<Report> = None;
    let mut exports = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        if let (["slot", symbol, _], Some(report)) = (fields.as_slice(), open.as_mut())
            && !report.objects.last().is_some_and(|o| is_libc(o))
        {
            report.referenced.insert((*symbol).to_owned());
        }
        match (fields.as_slice(), open.as_mut()) {
            (["report", "1", pid, stage, time, exe], _) => {
                open = match (pid.parse(), time.parse()) {
                    (Ok(pid), Ok(time_ns)) => Some(Report {
                        pid,
                        time_ns,
                        at_exit: *stage == "exit",
                        exe: PathBuf::from(exe),
                        ..Report::default()
                    }),
                    _ => None,
                };
            }
            (["end"], Some(_)) => {
                reports.extend(open.take().map(|report| see_through_stubs(report, &mut exports)))
            }
            (["layer", path], Some(report)) => report.layer = PathBuf::from(path),
            (["default", symbol, object], Some(report)) if *object != "-" => {
                report.default.insert((*symbol).to_owned(), PathBuf::from(object));
            }
            (["next", symbol, object], Some(report)) if *object != "-" => {
                report.next.insert((*symbol).to_owned(), PathBuf::from(object));
            }
            (["object", path], Some(report)) => report.objects.push(PathBuf::from(path)),
            (["slot", _, "@layer"], Some(report)) => report.to_layer += 1,
            (["slot", _, "@lazy"], Some(report)) => report.lazy += 1,
            (["slot", _, "@plt" | "@null" | "-"], Some(_)) => {}
            (["slot", symbol, object], Some(report)) => {
                let owner = report.objects.last().cloned().unwrap_or_default();
                report.elsewhere.push((owner, (*symbol).to_owned(), PathBuf::from(object)));
            }
            (["cut"], Some(report)) => report.cut = true,
            _ => {}
        }
    }
    // Layers write before the first report of their process image; another image's lines are newer.
    let forwardings = forwardings(bytes);
    for report in &mut reports {
        let own = forwardings.iter().filter(|line| line.pid == report.pid && line.time_ns <= report.time_ns);
        report.forwards_to = own.map(|line| (line.layer.clone(), line.object.clone())).collect();
    }
    reports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_report_is_read_and_a_torn_one_skipped() {
        let text = "report\t1\t7\tstart\t100\t/bin/a\nlayer\t/l.so\n\
            report\t1\t8\texit\t200\t/bin/b c\ncalls\t1\t2\t3\t4\t5\t6\nlayer\t/l.so\ndefault\tmalloc\t/l.so\n\
            next\tmalloc\t/m.so\nnext\t_Znwm\t-\nobject\t/bin/b c\nslot\tmalloc\t@layer\nslot\tfree\t@lazy\n\
            object\t/p.so\nslot\tmalloc\t/lib/libc.so.6\nslot\tfree\t@plt\nend\n";
        let reports = parse(text.as_bytes());
        assert_eq!(reports.len(), 1);
        let report = &reports[0];
        assert_eq!((report.pid, report.at_exit, report.time_ns), (8, true, 200));
        assert_eq!(report.exe, PathBuf::from("/bin/b c"));
        assert_eq!(report.next.get("malloc"), Some(&PathBuf::from("/m.so")));
        assert_eq!(report.next.get("_Znwm"), None);
        assert_eq!((report.to_layer, report.lazy), (1, 1));
        assert_eq!(
            report.elsewhere,
            [(PathBuf::from("/p.so"), "malloc".to_owned(), PathBuf::from("/lib/libc.so.6"))]
        );
    }

    #[test]
    fn forwarding_lines_belong_to_the_next_reports_of_their_process() {
        let text = "behind\t1\t7\t90\t/q.so\t/m.so\nreport\t1\t7\tstart\t100\t/bin/a\nend\n\
            behind\t1\t7\t190\t/q.so\t/n.so\nbehind\t1\t7\tx\t/q.so\t/o.so\nbehind\t1\t8\t190\n\
            report\t1\t7\tstart\t200\t/bin/b\nend\nreport\t1\t8\tstart\t200\t/bin/c\nend\n";
        let forwards_to: Vec<Option<PathBuf>> = parse(text.as_bytes())
            .into_iter()
            .map(|report| report.forwards_to.get(&PathBuf::from("/q.so")).cloned())
            .collect();
        assert_eq!(forwards_to, [Some("/m.so".into()), Some("/n.so".into()), None]);
        assert_eq!(forwardings(text.as_bytes()).len(), 2);
    }

    #[test]
    fn garbage_gives_nothing() {
        assert_eq!(parse(b"\xff\xfe\tend\nend\nslot\tmalloc\t/x\n"), []);
    }
}
