#!/usr/bin/env python3
"""Checks that every file of a tree runs where a release must: symbols.py TREE. Prints what each kind of file needs.

No symbol of a glibc after 2.31 or of a C++ run-time after gcc 10's, no symbol that was in none of the libraries when it
was linked, and no library that a bare system lacks."""

import os
import re
import subprocess
import sys

# The latest version of each library's symbols: those of Debian 11.
LATEST = {"GLIBC": (2, 31), "GLIBCXX": (3, 4, 28), "CXXABI": (1, 3, 12), "GCC": (10,)}
LIBRARIES = re.compile(r"(libc|libm|libdl|libpthread|librt|ld-linux-x86-64|libgcc_s)\.so\.\d+$")
# Files that need a library which a system may lack: each is refused by name until it is there.
MAY_LACK = {
    "lib/heaptoll/programs/queries": {"libsqlite3.so.0"},
    "lib/heaptoll/programs/reverse-shared-ptr": {"libstdc++.so.6"},
}


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def objdump(option, path):
    return subprocess.run(["objdump", option, path], capture_output=True, text=True, check=False).stdout


def faults(path, name):
    """What a file needs beyond the oldest system, and the latest glibc that it needs."""
    found, glibc = [], (0,)
    table = objdump("-T", path)
    # Without a version a symbol was found in no library (SQLite's have none); a weak one may be missing.
    for symbol in [] if name in MAY_LACK else re.finditer(r"^[0-9a-f]+ +(?!w)\S* *D[FO]? *\*UND\*\s[0-9a-f]+ +([^\s(]+)$", table, re.M):
        found.append(f"{name}: {symbol[1]} is in none of the libraries that it was linked with")
    for symbol in re.finditer(r"\*UND\*.*?\(?(GLIBC|GLIBCXX|CXXABI|GCC)_([0-9.]+)\)? +(\S+)", table):
        library, version = symbol[1], tuple(int(part) for part in symbol[2].split("."))
        if library == "GLIBC":
            glibc = max(glibc, version)
        if version > LATEST[library]:
            found.append(f"{name}: {symbol[3]} is of {library}_{symbol[2]}")
    for library in re.findall(r"NEEDED +(\S+)", objdump("-p", path)):
        if not LIBRARIES.match(library) and library not in MAY_LACK.get(name, ()):
            found.append(f"{name}: needs {library}, which a system may lack")
    return found, glibc


def check(tree):
    """All faults of a tree, how many files were checked, and the latest glibc that they need."""
    found, count, latest = [], 0, (0,)
    for folder, _, files in os.walk(tree):
        for file in sorted(files):
            path = os.path.join(folder, file)
            if os.path.islink(path) or not is_elf(path):
                continue
            count += 1
            these, glibc = faults(path, os.path.relpath(path, tree))
            found += these
            latest = max(latest, glibc)
    return found, count, latest


if __name__ == "__main__":
    wrong, number, newest = check(sys.argv[1])
    if wrong or number == 0:
        sys.exit("release: " + ("\n         ".join(wrong) or f"no program in {sys.argv[1]}"))
    print(f"{number} files need glibc {'.'.join(map(str, newest))} or less")
