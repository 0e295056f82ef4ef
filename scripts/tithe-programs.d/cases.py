"""The programs of Debian that are run: how, on what, and what of their output is no fact of the program.

A case is a script in this folder, or a command. It runs in a fresh folder, which has the same path in every mode, with
the generated inputs in $INPUTS and this folder in $CASES.
"""

import os
import subprocess
from dataclasses import dataclass, field

import inputs


@dataclass
class Case:
    name: str
    about: str
    command: list
    needs: list  # programs and files, by path
    packages: list  # that bring them
    environment: dict = field(default_factory=dict)
    normalise: list = field(default_factory=list)  # (regular expression, replacement) for both outputs
    normalised: str = ""  # what that leaves out, and why
    note: str = ""  # what the reader must know of its memory
    quick: bool = False
    stdin: str = ""
    digest: str = ""


PYTHON_TIMES = [
    (rb"(?m)^\d+:\d\d:\d\d load avg: [0-9.]+ ", b""),
    (rb"(?m)(load avg: [0-9.]+|in [0-9.]+ m?s(ec)?|[0-9.]+ (sec|min)( [0-9]+ sec)?)", b"T"),
    (rb"(?m)^Total duration: .*$", b"T"),
    (rb"(?m)^== (?!Tests).*\n", b""),
]
OWN_HEAP = (
    "has a heap of its own in mapped memory; malloc serves the rest, and some of its blocks are held only from there"
)


def script(name, about, needs, packages, **more):
    """A case that is NAME.sh."""
    return Case(name, about, ["/bin/bash", f"{{cases}}/{name}.sh"], ["/bin/bash", *needs], packages, **more)


def python_tests(name, about, modules, environment, **more):
    command = ["/usr/bin/python3", "-m", "test", *modules]
    needs = ["/usr/bin/python3", *(f"{{python}}/test/{module}.py" for module in modules)]
    environment = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", **environment}
    return Case(
        name,
        about,
        command,
        needs,
        ["python3", "libpython3-testsuite"],
        environment,
        PYTHON_TIMES,
        "times, load and the description of the machine",
        **more,
    )


def cases(quick):
    """All cases; the quick ones on smaller inputs."""
    modules = ["test_list", "test_dict"] if quick else ["test_list", "test_dict", "test_gc", "test_threading"]
    return [
        script(
            "git-clone", "clones, packs with two threads, checks all objects", ["/usr/bin/git"], ["git"], quick=True
        ),
        script("git-log", "log -p of a history, blame, grep with threads, a merge", ["/usr/bin/git"], ["git"]),
        script(
            "vim", "batch mode: edits and sorts a text, a script of lists and dictionaries", ["/usr/bin/vim"], ["vim"]
        ),
        script("gcc", "gcc -O2 on a large generated file", ["/usr/bin/gcc"], ["gcc"], quick=True, note=OWN_HEAP),
        script("g++", "a file of many templates", ["/usr/bin/g++"], ["g++"], note=OWN_HEAP),
        script("clang", "clang -O2 on the same file as gcc", ["/usr/bin/clang-14"], ["clang-14"]),
        script(
            "binutils",
            "as, ld, ar, nm, objdump, readelf, strip",
            ["/usr/bin/objdump", "/usr/bin/gcc"],
            ["binutils", "gcc"],
        ),
        script("make-j2", "make -j2 of eight files", ["/usr/bin/make", "/usr/bin/gcc"], ["make", "gcc"]),
        python_tests(
            "python-tests-malloc",
            "Python's own " + " ".join(modules),
            modules,
            {"PYTHONMALLOC": "malloc"},
            quick=True,
        ),
        python_tests(
            "python-tests",
            "the same with Python's own allocator",
            modules,
            {},
            note="objects up to 512 bytes come from arenas of its own",
        ),
        script("sqlite-file", "a database in a file, with full-text search", ["/usr/bin/sqlite3"], ["sqlite3"]),
        script(
            "redis",
            "a server under load, with fork and Lua",
            ["/usr/bin/redis-server", "/usr/bin/redis-benchmark", "/usr/bin/redis-cli"],
            ["redis-server", "redis-tools"],
            environment={"REQUESTS": "5000" if quick else "60000"},
        ),
        Case(
            "ruby",
            "strings, hashes, threads, fibres, compaction, fork",
            ["/usr/bin/ruby", "{cases}/ruby.rb", "{inputs}/text"],
            ["/usr/bin/ruby"],
            ["ruby"],
            note=OWN_HEAP,
        ),
        Case(
            "php",
            "arrays, cycles, generators, JSON",
            ["/usr/bin/php", "-n", "{cases}/php.php", "{inputs}/text"],
            ["/usr/bin/php"],
            ["php-cli"],
            note=OWN_HEAP,
        ),
        Case(
            "php-malloc",
            "the same with malloc in place of PHP's own allocator",
            ["/usr/bin/php", "-n", "{cases}/php.php", "{inputs}/text"],
            ["/usr/bin/php"],
            ["php-cli"],
            {"USE_ZEND_ALLOC": "0"},
        ),
        Case(
            "node",
            "buffers, workers, zlib and scrypt in the thread pool",
            ["/usr/bin/node", "{cases}/node.js", "{inputs}/text"],
            ["/usr/bin/node"],
            ["nodejs"],
            note=OWN_HEAP,
        ),
        script(
            "java",
            "javac, then maps, direct buffers and zlib in two threads",
            ["/usr/bin/javac"],
            ["default-jdk-headless"],
            note=OWN_HEAP,
        ),
        Case(
            "emacs",
            "batch mode: buffers, byte compilation, hash tables, threads",
            ["/usr/bin/emacs", "--batch", "-Q", "-l", "{cases}/emacs.el"],
            ["/usr/bin/emacs"],
            ["emacs-nox"],
            {"TEXT": "{inputs}/short"},
            note="Lisp data lies in blocks of malloc, some of them aligned, and is collected by Emacs",
        ),
        Case(
            "perl-queue",
            "threads that share a queue, fork meanwhile",
            ["/usr/bin/perl", "{cases}/perl-queue.pl"],
            ["/usr/bin/perl"],
            ["perl"],
        ),
        script(
            "tar-xz",
            "tar, xz -T2, zstd -T2, gzip, bzip2",
            ["/usr/bin/xz", "/usr/bin/zstd", "/usr/bin/bzip2"],
            ["xz-utils", "zstd", "bzip2"],
        ),
        script(
            "openssl",
            "certificates, digests, ciphers, signatures: fixed work",
            ["/usr/bin/openssl", "/etc/ssl/certs/ca-certificates.crt"],
            ["openssl", "ca-certificates"],
        ),
        script("ssh-keygen", "signs, verifies, converts", ["/usr/bin/ssh-keygen"], ["openssh-client"]),
        script("curl", "file:// one by one and in parallel", ["/usr/bin/curl"], ["curl"]),
        script(
            "nginx",
            "two workers and a thread pool under curl",
            ["/usr/sbin/nginx", "/usr/bin/curl"],
            ["nginx-light", "curl"],
        ),
        script(
            "bash",
            "arrays, subshells, traps, a coprocess",
            [],
            ["bash"],
            quick=True,
            environment={"LINES_READ": "200" if quick else "1500"},
        ),
        script("mawk", "counts and strings", ["/usr/bin/mawk"], ["mawk"]),
        script("coreutils", "sort with threads, diff, grep, sed, find", ["/usr/bin/sort"], ["coreutils", "diffutils"]),
        script("jq", "groups and sorts a table", ["/usr/bin/jq"], ["jq"]),
        script("bc", "long numbers", ["/usr/bin/bc"], ["bc"]),
        script("cmake", "a script in its own language", ["/usr/bin/cmake"], ["cmake"]),
        script(
            "gdb",
            "symbols, a breakpoint, a stack, Python",
            ["/usr/bin/gdb", "/usr/bin/gcc"],
            ["gdb", "gcc"],
            normalise=[
                (rb"0x[0-9a-f]+", b"0x"),
                (rb"\(process \d+\)", b"(process)"),
                (rb"(?m)^\[?(Thread debugging|Using host libthread_db|Inferior|warning: ).*\n", b""),
                (rb"(?s)Non-debugging symbols:.*?\n\n", b""),
            ],
            normalised="addresses, process numbers, and the list of symbols without debugging information",
        ),
        script("groff", "manual pages for a terminal", ["/usr/bin/groff"], ["groff-base"]),
        script(
            "shellcheck", "checks scripts; written in Haskell", ["/usr/bin/shellcheck"], ["shellcheck"], note=OWN_HEAP
        ),
        script("apt-cache", "all packages, and a search", ["/usr/bin/apt-cache"], ["apt"]),
        script("rsync", "copies a tree, then its differences", ["/usr/bin/rsync"], ["rsync"]),
    ]


def make_inputs(folder, quick):
    """Everything the cases read, the same every time but for two keys."""
    part = 8 if quick else 1
    os.makedirs(folder, exist_ok=True)
    where = lambda name: os.path.join(folder, name)
    inputs.text(where("text"), 1, 12000 // part)
    inputs.text(where("short"), 2, 1500 // part)
    inputs.tree(where("tree"), 3, 240 // part)
    inputs.c_source(where("large.c"), 4, 320 // part)
    inputs.c_source(where("small.c"), 5, 40 // part)
    inputs.cpp_source(where("heavy.cc"), 40, 12 // part)
    inputs.sql(where("script.sql"), 6, 60000 // part)
    if os.path.exists("/usr/bin/git"):
        inputs.repository(where("repository.git"), 7, 600 // part)
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if os.path.exists("/usr/bin/openssl"):
        subprocess.run(["openssl", "genrsa", "-out", where("rsa.pem"), "3072"], **quiet)
    if os.path.exists("/usr/bin/ssh-keygen"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "tester", "-f", where("key")], **quiet)
