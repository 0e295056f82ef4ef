//! Every collector: real programs print under it what they print under the C library's malloc, and random graphs of
//! many seeds lose nothing.

use std::path::Path;
use std::time::Duration;

use heaptoll_conformance::process::{End, Ending, run};
use heaptoll_conformance::proof::subject::Subject;
use heaptoll_conformance::proof::verdict::Verdict;
use heaptoll_conformance::suite::in_parallel;

use super::PROGRAM;

const LIMIT: Duration = Duration::from_secs(300);

/// The command that must be there, and a script for the shell, which runs in a folder of its own.
const SCRIPTS: [(&str, &str); 16] = [
    (
        "perl",
        r#"perl -e 'my %h; for my $i (1..60000) { push @{$h{$i % 997}}, "v$i" x ($i % 7); delete $h{$i % 31} if $i % 5 == 0 }
            my $s = 0; $s = ($s * 31 + length join ",", @{$h{$_}}) % 1000003 for sort { $a <=> $b } keys %h; print "$s\n";
            my $t = join " ", map { $_ * 7 % 1013 } 1..30000; my $n = () = $t =~ /(\d)(\d)\2/g; print "$n\n"'"#,
    ),
    (
        "lua5.4",
        r#"lua5.4 -e 'local all = {} for i = 1, 300 do all[i] = coroutine.wrap(function() local t = {} for j = 1, 200 do
            t[#t + 1] = ("%d:%d"):format(i, j) coroutine.yield(#t) end return table.concat(t) end) end
            local sum = 0 for j = 1, 201 do for i = 1, 300 do local v = all[i]() sum = sum + (tonumber(v) or #v) end end print(sum)'"#,
    ),
    (
        "python3",
        r#"PYTHONMALLOC=malloc PYTHONHASHSEED=0 python3 -c '
import json, re, threading, pickle, zlib, weakref, decimal, gc, concurrent.futures, functools
class Node:
    def __init__(self, n): self.me = self; self.n = n
def work(k):
    rows = [{"k": k, "i": i, "s": str(i) * (i % 9)} for i in range(3000)]
    for i in range(2000): Node(i)
    text = json.dumps(rows)
    again = pickle.loads(pickle.dumps(json.loads(text)))
    return sum(len(x["s"]) for x in again) + zlib.crc32(text.encode()) + len(re.findall(r"(\d)\1", text))
with concurrent.futures.ThreadPoolExecutor(4) as pool: print(list(pool.map(work, range(8))))
gc.collect(); print(decimal.Decimal(2).sqrt(), functools.reduce(lambda a, b: a * b, range(1, 900)) % (10**9 + 7))'"#,
    ),
    (
        "sqlite3",
        r#"sqlite3 :memory: "create table t(a integer, b text); with recursive n(i) as (select 1 union all select i+1 from n
            where i<60000) insert into t select i*7919%10007, hex(i) from n; create index x on t(b,a);
            select count(*), sum(a), max(b) from t group by a%17 order by 1,2; delete from t where a%3=0; vacuum;
            select group_concat(b) from (select b from t order by a,b limit 300); pragma integrity_check;""#,
    ),
    (
        "gawk",
        r#"gawk 'BEGIN { for (i = 0; i < 120000; i++) { k = (i * 7919) % 10007; a[k] = a[k] "," i; if (i % 11 == 0) delete a[(i * 31) % 10007] }
            n = asorti(a, b, "@ind_num_asc"); for (j = 1; j <= n; j++) { gsub(/7,/, "<&>", a[b[j]]); s = (s * 31 + length(a[b[j]])) % 1000003 } print n, s }'"#,
    ),
    (
        "git",
        r#"export HOME=$PWD GIT_AUTHOR_DATE='1 Jan 2020 00:00 +0000' GIT_COMMITTER_DATE='1 Jan 2020 00:00 +0000'
            git init -q . && git config user.name a && git config user.email a@b && for i in $(seq 30); do seq $i $((i * 200)) >f$i; seq $((i * 99)) >g
            git add . && git commit -q -m "$i"; done; git gc -q --aggressive --prune=now; git fsck --full --strict; git log --stat | sha256sum; git repack -q -a -d -f; git rev-list --all --objects | sort | sha256sum"#,
    ),
    (
        "g++",
        r#"printf '#include <map>\n#include <regex>\n#include <string>\nint f(const char *s) { std::map<std::string, int> m; m[s]++; return std::regex_match(s, std::regex("a+b")) + m.size(); }\n' >f.cc
            g++ -O1 -S f.cc -o - | sha256sum"#,
    ),
    ("xz", "seq 400000 >f && xz -T2 -k f && xz -dc f.xz | sha256sum"),
    ("zstd", "seq 900000 >f && zstd -q -T2 -9 f && zstd -qdc f.zst | sha256sum"),
    (
        "ruby",
        r##"ruby -e 'f = 200.times.map { |i| Fiber.new { a = []; 300.times { |j| a << "#{i}-#{j}" * (j % 5); Fiber.yield a.size }; a.join.size } }
            s = 0; 301.times { f.each { |x| s += x.resume } }; puts s; t = 4.times.map { |k| Thread.new { (1..20000).map { |x| (x * k).to_s }.join.size } }
            p t.map(&:value)'"##,
    ),
    (
        "php",
        r#"php -n -r '$a = []; for ($i = 0; $i < 200000; $i++) { $a[$i % 997][] = str_repeat("x", $i % 13); if ($i % 7 == 0) unset($a[$i % 89]); }
            ksort($a); echo crc32(serialize($a)), "\n";'"#,
    ),
    (
        "node",
        r#"node -e 'const m = new Map(); for (let i = 0; i < 200000; i++) { m.set(i % 4999, [i, "v".repeat(i % 9)]); }
            let s = 0; for (const [k, v] of m) s = (s * 31 + k + v[1].length) % 1000003; console.log(s);
            Promise.all([1, 2, 3].map(async k => Buffer.alloc(k * 99999, k).reduce((a, b) => a + b))).then(x => console.log(x))'"#,
    ),
    ("bc", "echo 'scale=600; a(1)*4; e(1)' | bc -l"),
    (
        "jq",
        r#"jq -nc '[range(60000)|{a:(.%97),b:("x"*(.%5+1))}]|group_by(.a)|map({a:.[0].a,n:length,s:(map(.b|length)|add)})|.[:40]'"#,
    ),
    (
        "xmllint",
        r#"{ echo '<r>'; seq 20000 | sed 's/.*/<e n="&"><f>&<\/f><\/e>/'; echo '</r>'; } >f.xml; xmllint --format f.xml | sha256sum; xmllint --xpath 'count(//f[. > 5000])' f.xml"#,
    ),
    (
        "gs",
        r#"printf '%%!\n0 1 400 { dup 3 mul 1000 mod exch moveto 300 200 rlineto stroke } for /Times-Roman findfont 40 scalefont setfont 100 100 moveto (heap) show showpage\n' >f.ps
            gs -q -dNOSAFER -dBATCH -dNOPAUSE -sDEVICE=ppmraw -r50 -sOutputFile=- f.ps | sha256sum"#,
    ),
];

/// The collectors, with collections as often as they permit and what they reclaim overwritten.
fn collectors() -> Vec<Subject> {
    let object =
        |name: &str| Subject::of(name, heaptoll_testing::staged::file(&format!("managers/{name}.so")));
    let tithe = object("tithe").with("TITHE_POISON", "1").with("TITHE_MIN_HEADROOM", "256K");
    let mode = |name: &str, setting: &str, value: &str| {
        let subject = tithe.with("TITHE_MODE", if name == "hybrid" { "hybrid" } else { "collect" });
        Subject { name: format!("tithe {name} {setting}={value}"), ..subject.with(setting, value) }
    };
    vec![
        mode("hybrid", "TITHE_GENERATIONS", "on"),
        mode("collect", "TITHE_GENERATIONS", "off"),
        mode("collect", "TITHE_GENERATIONS", "on"),
        mode("collect", "TITHE_PAUSE", "10ms"),
        object("bw16"),
        object("bw26"),
        object("treadmill"),
    ]
}

fn shell(script: &str, subject: &Subject) -> End {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let script = format!("cd '{}'\n{script}", folder.path().display());
    let arguments = ["-c", script.as_str()];
    run(Path::new("/bin/sh"), &arguments, &subject.preload(), &subject.environment, LIMIT).expect("it runs")
}

/// The C library's `fork` is the only one that calls handlers.
#[test]
fn a_child_of_the_system_call_collects_nothing_and_its_standard_error_is_the_programs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let manager =
        |name: &str| Subject::of(name, heaptoll_testing::staged::file(&format!("managers/{name}.so")));
    let mut subjects = ["tithe", "bw16", "bw26", "treadmill"].map(manager).to_vec();
    subjects.push(
        Subject::glibc().with_layer("sweep", heaptoll_testing::staged::file("layers/libheaptoll_sweep.so")),
    );
    let log = folder.path().join("log").display().to_string();
    for subject in subjects {
        let end = PROGRAM.run("process_fork_raw", &subject.with("TITHE_LOG", &log), LIMIT).expect("it runs");
        assert_eq!((&end.ending, end.stderr.as_str()), (&Ending::Status(0), ""), "{}", subject.name);
    }
    let lines = std::fs::read_to_string(log).expect("a log");
    assert!(lines.contains(" cause=process "), "{lines}");
}

#[test]
#[ignore = "slow: 16 programs under 7 collectors, some minutes"]
fn real_programs_print_under_each_collector_what_they_print_under_glibc() {
    let is_here = |command: &str| {
        shell(&format!("command -v {command}"), &Subject::glibc()).ending == Ending::Status(0)
    };
    let (here, missing): (Vec<_>, Vec<_>) = SCRIPTS.into_iter().partition(|(command, _)| is_here(command));
    eprintln!(
        "left out, since they are not installed: {:?}",
        missing.iter().map(|(name, _)| name).collect::<Vec<_>>()
    );
    assert!(here.len() >= 8, "only {} programs are installed", here.len());
    let collectors = collectors();
    let jobs: Vec<_> =
        here.iter().flat_map(|script| collectors.iter().map(move |one| (script, one))).collect();
    let wrong: Vec<String> = in_parallel(&jobs, |((command, script), subject)| {
        let expected = shell(script, &Subject::glibc());
        let found = shell(script, subject);
        let same = expected.ending == found.ending && expected.stdout == found.stdout;
        assert!(expected.ending == Ending::Status(0), "{command} fails by itself: {}", expected.stderr);
        (!same).then(|| {
            format!("{command} under {}: {}: {} {}", subject.name, found.ending, found.stderr, found.stdout)
        })
    })
    .into_iter()
    .flatten()
    .collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), jobs.len());
}

#[test]
#[ignore = "slow: 12 seeds of random graphs under 8 collectors, some minutes"]
fn random_graphs_of_many_seeds_lose_nothing_under_any_collector() {
    let mut subjects = collectors();
    subjects.push(
        Subject::glibc().with_layer("sweep", heaptoll_testing::staged::file("layers/libheaptoll_sweep.so")),
    );
    let mut jobs = Vec::new();
    for seed in 1..=12 {
        for subject in &subjects {
            let subject = subject.with("PROOF_SEED", &(seed * 7919).to_string());
            let subject = subject.with("PROOF_THREADS", &(1 + seed % 5).to_string());
            jobs.extend(["stress_graph", "stress_fork"].map(|case| (case, subject.clone())));
        }
    }
    let verdicts =
        in_parallel(&jobs, |(case, subject)| PROGRAM.judge(case, subject, LIMIT).expect("it runs"));
    let wrong: Vec<String> = jobs
        .iter()
        .zip(verdicts)
        .filter(|(_, verdict)| !matches!(verdict, Verdict::Holds))
        .map(|((case, subject), verdict)| {
            format!("{case} under {} {:?}: {verdict:?}", subject.name, subject.environment)
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), jobs.len());
}
