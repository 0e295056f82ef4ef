//! The system around a real program under the real tracer: address space, kernel, randomness, call sites.

use std::collections::HashMap;
use std::path::PathBuf;

use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::launch::Invocation;
use heaptoll_experiment::places::Places;
use heaptoll_launcher::Ended;
use heaptoll_reftrace::event::{Event, Origin};
use heaptoll_reftrace::word::Text;
use heaptoll_reftrace::{Owner, Reference, Routine, Sink};
use heaptoll_reftrace_host::{Options, Traced, Tracer, trace};

fn places() -> Places {
    Places::at(&heaptoll_testing::staged::home())
}

#[derive(Debug, Default)]
struct Received {
    brk_bytes: u64,
    brk_most: u64,
    kernel: Vec<(u64, bool)>,
    names: HashMap<u64, Vec<String>>,
    objects: HashMap<u64, String>,
    sites: HashMap<u32, Vec<u64>>,
    /// Requested bytes and site of calls of malloc.
    calls: Vec<(u64, u32)>,
    /// Kinds that the manager announced.
    announced: Vec<u32>,
}

impl Sink for Received {
    fn references(&mut self, _: Owner, _: &[Reference]) {}

    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Map { length, origin: Origin::Brk, .. } => {
                self.brk_bytes += length;
                self.brk_most = self.brk_most.max(self.brk_bytes);
            }
            Event::Unmap { address, length } if (0x5555_5575_6000..0x6555_5575_6000).contains(address) => {
                self.brk_bytes -= length;
            }
            Event::Kernel { length, store, .. } => self.kernel.push((*length, *store)),
            Event::Site { site, frames } => drop(self.sites.insert(*site, frames.to_vec())),
            Event::Text { what: Text::Frame, word, bytes } => {
                let name = String::from_utf8_lossy(bytes).into_owned();
                self.names.entry(*word).or_default().push(name);
            }
            Event::Text { what: Text::FrameObject, word, bytes } => {
                self.objects.insert(*word, String::from_utf8_lossy(bytes).into_owned());
            }
            Event::Enter { routine: Routine::Malloc, arguments, site, .. } => {
                self.calls.push((arguments[0], *site));
            }
            Event::Announced { kind, .. } => self.announced.push(*kind),
            _ => {}
        }
    }
}

fn run(source: &str, options: &Options) -> Traced<Received> {
    run_under(&[], source, options)
}

/// Compiles the program and runs it with these objects preloaded.
fn run_under(preload: &[PathBuf], source: &str, options: &Options) -> Traced<Received> {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, binary) = (folder.path().join("program.c"), folder.path().join("program"));
    std::fs::write(&file, format!("#define _GNU_SOURCE\n{source}")).expect("writes");
    let made = std::process::Command::new("cc")
        .args(["-O1", "-g", "-fno-builtin", "-fno-inline", "-pthread", "-o"])
        .args([&binary, &file])
        .status()
        .expect("there is a compiler");
    assert!(made.success());
    let command = vec![binary.into_os_string()];
    let places = places();
    let tracer = Tracer::find(&places).expect("the tracer is staged: run `make build`");
    let invocation = Invocation { command, preload: preload.to_vec(), ..Invocation::default() };
    let traced = trace(&tracer, &places.launcher(), &invocation, options, &Interrupt::default(), |_| {
        Received::default()
    })
    .expect("it is traced");
    assert_eq!(traced.finished.ended, Ended::Exit(0), "{}", traced.finished.error_tail);
    traced
}

fn output(traced: &Traced<Received>) -> String {
    String::from_utf8_lossy(&traced.finished.output_head).into_owned()
}

#[test]
fn collections_that_a_manager_announces_are_recorded() {
    let source =
        "#include <stdlib.h>\nint main(void) { for (int i = 0; i < 30000; i++) malloc(1000); return 0; }";
    let layers = [places().announce_layer(), places().managers().join("bw16.so")];
    let traced = run_under(&layers, source, &Options::default());
    let image = &traced.images[0];
    let times = |kind: u32| image.sink.announced.iter().filter(|&&other| other == kind).count();
    assert!(times(1) > 0 && times(1) == times(2), "{:?}", image.sink.announced);
    assert!(image.totals[Owner::Collector as usize].instructions > 0);
    // Without the layer nothing is recorded.
    let traced = run_under(&layers[1..], source, &Options::default());
    assert!(traced.images[0].sink.announced.is_empty());
}

#[test]
fn brk_grows_to_a_gigabyte_and_is_recorded() {
    let source = "#include <unistd.h>\nint main(void) { char *p = sbrk(1L << 30); if (p == (void *)-1) return 1; \
                  p[(1L << 30) - 1] = 1; return brk(p) != 0; }";
    let traced = run(source, &Options::default());
    let received = &traced.images[0].sink;
    assert!(received.brk_most >= 1 << 30 && received.brk_bytes < 1 << 20, "{received:?}");
}

#[test]
fn what_the_kernel_reads_and_writes_is_recorded() {
    let source = "#include <fcntl.h>\n#include <unistd.h>\nstatic char block[5003];\nint main(void) { \
                  int fd = open(\"/dev/zero\", O_RDONLY); if (read(fd, block, 4999) != 4999) return 1; \
                  return write(1, block, 3001) != 3001; }";
    let references = Options { references: true, ..Options::default() };
    let traced = run(source, &references);
    let kernel = &traced.images[0].sink.kernel;
    assert!(kernel.contains(&(4999, true)) && kernel.contains(&(3001, false)), "{kernel:?}");
    // The path, with its NUL.
    assert!(kernel.contains(&(10, false)), "{kernel:?}");
    assert!(run(source, &Options::default()).images[0].sink.kernel.is_empty());
}

#[test]
fn sites_begin_at_the_caller_and_are_recorded_once() {
    let source = "#include <stdlib.h>\nvoid *inner(int n) { void *p = malloc(n); return (char *)p + (n == 0); }\n\
                  void *outer(int n) { void *p = inner(n); return (char *)p + (n == 0); }\n\
                  int main(void) { for (volatile int i = 0; i < 5; i++) outer(1001); inner(1002); return 0; }";
    let traced = run(source, &Options { sites: 3, ..Options::default() });
    let received = &traced.images[0].sink;
    let frames = |bytes: u64| {
        let sites: Vec<u32> =
            received.calls.iter().filter(|call| call.0 == bytes).map(|call| call.1).collect();
        assert!(sites.iter().all(|site| *site == sites[0] && *site != 0), "{sites:?}");
        let names = received.sites[&sites[0]].iter().map(|frame| received.names[frame].join(" < "));
        (sites.len(), names.collect::<Vec<_>>())
    };
    let (calls, names) = frames(1001);
    assert_eq!((calls, names.len()), (5, 3));
    // With the folders of the source: they show whose code it is.
    for (name, (function, line)) in names.iter().zip([
        ("inner (/", "/program.c:3)"),
        ("outer (/", "/program.c:4)"),
        ("main (/", "/program.c:5)"),
    ]) {
        assert!(name.starts_with(function) && name.ends_with(line), "{names:?}");
    }
    assert!(frames(1002).1[1].starts_with("main"), "{:?}", frames(1002));
    let object = &received.objects[&received.sites[&received.calls[0].1][0]];
    assert!(object.contains(" /") && object.ends_with("/program"), "{object}");
}

/// Before, code that was inlined had the name of the function around it, and its own line.
#[test]
fn an_inlined_function_has_a_name_of_its_own() {
    let source = "#include <stdlib.h>\n\
                  static inline __attribute__((always_inline)) void *within(int n) { return malloc(n); }\n\
                  __attribute__((noinline)) void *around(int n) { void *p = within(n); return (char *)p + (n == 0); }\n\
                  int main(void) { around(1001); return 0; }";
    let traced = run(source, &Options { sites: 3, ..Options::default() });
    let received = &traced.images[0].sink;
    let site = received.calls.iter().find(|call| call.0 == 1001).map(|call| call.1).expect("its call");
    let names = &received.names[&received.sites[&site][0]];
    let functions: Vec<&str> = names.iter().filter_map(|name| name.split(' ').next()).collect();
    assert_eq!(functions, ["within", "around"], "{names:?}");
}

#[test]
fn randomness_is_the_same_in_every_run_unless_it_is_not_to_be() {
    let source = "#include <fcntl.h>\n#include <stdio.h>\n#include <sys/auxv.h>\n#include <sys/random.h>\n\
                  #include <unistd.h>\nint main(void) { unsigned long a[2], b, c; getrandom(a, 16, 0); \
                  int fd = open(\"/dev/urandom\", O_RDONLY); read(fd, &b, 8); \
                  c = *(unsigned long *)getauxval(AT_RANDOM); printf(\"%lx %lx %lx %lx\\n\", a[0], a[1], b, c); \
                  return 0; }";
    let drawn = |pin| output(&run(source, &Options { pin, ..Options::default() }));
    let pinned = drawn(true);
    assert_eq!(pinned, drawn(true));
    let words: Vec<&str> = pinned.split_whitespace().collect();
    assert!(
        words.iter().all(|word| word.len() > 10 && words.iter().filter(|other| other == &word).count() == 1)
    );
    for (word, other) in words.iter().zip(drawn(false).split_whitespace()) {
        assert_ne!(*word, other);
    }
}

#[test]
fn a_program_finds_its_own_mappings_only() {
    let source = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint main(void) { malloc(10); \
                  FILE *maps = fopen(\"/proc/self/maps\", \"r\"); char line[600]; \
                  while (fgets(line, sizeof line, maps)) fputs(line, stdout); return 0; }";
    let maps = output(&run(source, &Options::default()));
    assert!(!maps.contains("heaptoll-") && !maps.contains("vgpreload"), "{maps}");
    for name in ["[heap]", "[stack]", "libc.so.6"] {
        assert!(maps.contains(name), "{maps}");
    }
    assert!(maps.lines().all(|line| !line.contains("rwx")), "{maps}");
}

/// Collectors stop threads by handlers that request an alternative stack, and few threads have one. Wherever in its
/// page the stack pointer is then: the frame of the signal grows the first thread's stack, or lies in another's.
#[test]
fn a_handler_that_requests_an_alternative_stack_grows_the_ordinary_one() {
    let source = r#"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
enum { STEP = 512, DEPTH = 1024 };
static volatile int handled;
static char alternative[65536], *volatile low, *volatile frame;
static void handle(int number, siginfo_t *information, void *context) { char here; frame = &here; handled++; }
static int on_alternative(void) { return frame >= alternative && frame < alternative + sizeof alternative; }
static void descend(int depth) {
    volatile char space[STEP];
    low = (char *)space;
    raise(SIGUSR1);
    if (on_alternative() || frame >= low) abort();
    if (depth > 0) descend(depth - 1);
    space[0] = 0;
}
static void *run(void *none) { descend(DEPTH); return none; }
int main(void) {
    struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_ONSTACK | SA_SIGINFO | SA_RESTART };
    stack_t stack = { .ss_sp = alternative, .ss_size = sizeof alternative };
    pthread_t thread;
    sigfillset(&action.sa_mask);
    if (sigaction(SIGUSR1, &action, 0)) return 1;
    descend(DEPTH);
    if (pthread_create(&thread, 0, run, 0) || pthread_join(thread, 0)) return 2;
    if (handled != 2 * (DEPTH + 1)) return 3;
    if (sigaltstack(&stack, 0)) return 4;
    raise(SIGUSR1);
    return on_alternative() ? 0 : 5;
}
"#;
    run(source, &Options::default());
}

/// Threads add to one counter, each in a sequence: if a sequence were not aborted after another thread has run in
/// between, the addition of that thread would be lost.
#[test]
fn restartable_sequences_are_restarted() {
    let source = r#"
#include <pthread.h>
#include <stdio.h>
#include <sys/rseq.h>
static long counter, aborts, added;
enum { ROUNDS = 150000, MOST = 1000 * ROUNDS, THREADS = 4 };
static int add(struct rseq *area) {
    __asm__ goto volatile(
        ".pushsection __rseq_cs,\"aw\"\n.balign 32\n3: .long 0,0\n.quad 1f,2f-1f,4f\n.popsection\n"
        "leaq 3b(%%rip),%%rax\n movq %%rax,8(%0)\n"
        "1: movq (%1),%%rcx\n movl $20,%%edx\n5: decl %%edx\n jnz 5b\n addq $1,%%rcx\n movq %%rcx,(%1)\n2:\n"
        ".pushsection __rseq_fail,\"ax\"\n.byte 0x0f,0xb9,0x3d\n.long 0x53053053\n4: jmp %l[abort]\n.popsection\n"
        ::"r"(area), "r"(&counter) : "rax", "rcx", "rdx", "memory", "cc" : abort);
    return 0;
abort:
    return 1;
}
/* The scheduler decides when a thread is interrupted: every thread goes on until one was. */
static void *run(void *none) {
    struct rseq *area = (void *)((char *)__builtin_thread_pointer() + __rseq_offset);
    long i = 0;
    while (i < ROUNDS || (i < MOST && !__atomic_load_n(&aborts, __ATOMIC_RELAXED))) {
        while (add(area)) __sync_fetch_and_add(&aborts, 1);
        i++;
    }
    __sync_fetch_and_add(&added, i);
    return none;
}
int main(void) {
    pthread_t threads[THREADS];
    if (__rseq_size == 0) return 1;
    for (int i = 0; i < THREADS; i++) if (pthread_create(&threads[i], 0, run, 0)) return 1;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    fprintf(stderr, "%ld of %ld\n", counter, added);
    printf("%ld\n", aborts);
    return counter != added;
}
"#;
    let aborts = output(&run(source, &Options::default()));
    assert_ne!(aborts, "0\n", "no thread was interrupted: nothing is proved");
}
