#!/usr/bin/env python3
"""Packs a tree, laid out like an installation, into the folder OUT, for those who install it:

pack.py packages TREE VERSION DAY OUT        a Debian package, and a wheel for pip
pack.py tarball TREE VERSION DAY OUT NAME    NAME.tar.gz

The same tree gives the same bytes: files are in order, belong to root and carry the commit's day."""

import base64
import calendar
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

MAINTAINER = "The heaptoll authors <heaptoll@example.invalid>"
ABOUT = "what memory management costs a program, and what another manager would cost"
# Releases run with this glibc and later.
GLIBC = "2.31"
LAUNCHER = '''"""heaptoll, as pip installs it: `heaptoll` executes the program that lies next to this file."""

import os
import sys


def main():
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "installation", "bin", "heaptoll")
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"heaptoll: cannot execute {program}: {error.strerror}; it needs Linux on x86-64 with glibc, see README")


if __name__ == "__main__":
    main()
'''


def files(tree):
    """The paths of all files below a folder, relative to it, in order."""
    for folder, folders, names in os.walk(tree):
        folders.sort()
        for name in sorted(names):
            yield os.path.relpath(os.path.join(folder, name), tree)


def is_program(path):
    return os.stat(path).st_mode & 0o100 != 0


def tarball(tree, out, name, seconds):
    """NAME.tar.gz, with everything in a folder NAME: gzip, which every system has, tar's included."""

    def plain(info):
        info.uid = info.gid = 0
        info.uname = info.gname = "root"
        info.mtime = seconds
        info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
        return info

    path = os.path.join(out, f"{name}.tar.gz")
    with open(path, "wb") as file, gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=9, mtime=seconds) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
            folders = set()
            for inner in files(tree):
                parts = os.path.dirname(inner).split("/")
                for depth in range(len(parts) + 1):
                    folder = "/".join([name, *parts[:depth]]).rstrip("/")
                    if folder not in folders:
                        folders.add(folder)
                        tar.add(os.path.join(tree, *parts[:depth]), folder, recursive=False, filter=plain)
                tar.add(os.path.join(tree, inner), f"{name}/{inner}", recursive=False, filter=plain)
    return path


def debian(tree, version, out, seconds):
    """A Debian package, under /usr."""
    path = os.path.join(out, f"heaptoll_{version}_amd64.deb")
    with tempfile.TemporaryDirectory() as work:
        shutil.copytree(tree, os.path.join(work, "usr"), symlinks=True)
        documents = os.path.join(work, "usr/share/doc/heaptoll")
        with open(os.path.join(documents, "copyright"), "w", encoding="utf-8") as file:
            for part in ["NOTICE.md", "LICENSE-MIT"]:
                with open(os.path.join(documents, part), encoding="utf-8") as text:
                    file.write(text.read() + "\n")
        for folder, _, names in os.walk(os.path.join(work, "usr/share/man")):
            for name in names:
                subprocess.run(["gzip", "-9n", os.path.join(folder, name)], check=True)
        size = sum(os.path.getsize(os.path.join(work, inner)) for inner in files(work)) // 1024
        os.mkdir(os.path.join(work, "DEBIAN"))
        with open(os.path.join(work, "DEBIAN/control"), "w", encoding="utf-8") as file:
            file.write(
                f"Package: heaptoll\nVersion: {version}\nArchitecture: amd64\nMaintainer: {MAINTAINER}\n"
                f"Installed-Size: {size}\nDepends: libc6 (>= {GLIBC})\nSuggests: libsqlite3-0\n"
                f"Section: devel\nPriority: optional\nDescription: {ABOUT}\n"
                " It runs an unmodified program under many allocators and collectors and compares\n"
                " CPU time, memory, faults and start-up, with intervals on every ratio.\n"
            )
        subprocess.run(
            ["dpkg-deb", "-Zxz", "--root-owner-group", "--build", work, path],
            env={**os.environ, "SOURCE_DATE_EPOCH": str(seconds)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
    return path


def wheel(tree, version, out, seconds):
    """A wheel: the tree inside a package, and the command that executes it."""
    tag = f"py3-none-manylinux_{GLIBC.replace('.', '_')}_x86_64"
    path = os.path.join(out, f"heaptoll-{version}-{tag}.whl")
    information = f"heaptoll-{version}.dist-info"
    record = io.StringIO()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:

        def put(name, data, mode=0o644):
            entry = zipfile.ZipInfo(name, time.gmtime(seconds)[:6])
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.write(f"{name},sha256={digest},{len(data)}\n")

        put("heaptoll/__init__.py", b'"""heaptoll, as pip installs it."""\n')
        put("heaptoll/__main__.py", LAUNCHER.encode())
        for inner in files(tree):
            whole = os.path.join(tree, inner)
            with open(whole, "rb") as file:
                put(f"heaptoll/installation/{inner}", file.read(), 0o755 if is_program(whole) else 0o644)
        put(
            f"{information}/METADATA",
            f"Metadata-Version: 2.1\nName: heaptoll\nVersion: {version}\nSummary: {ABOUT}\n"
            "License: MIT OR Apache-2.0; the tracer in it: GPL-2.0-or-later\nRequires-Python: >=3.8\n".encode(),
        )
        put(f"{information}/WHEEL", f"Wheel-Version: 1.0\nGenerator: heaptoll\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
        put(f"{information}/entry_points.txt", b"[console_scripts]\nheaptoll = heaptoll.__main__:main\n")
        name = f"{information}/RECORD"
        entry = zipfile.ZipInfo(name, time.gmtime(seconds)[:6])
        entry.external_attr = 0o100644 << 16
        archive.writestr(entry, record.getvalue() + f"{name},,\n")
    return path


def main():
    what, tree, version, day, out, *name = sys.argv[1:]
    seconds = calendar.timegm(time.strptime(day, "%Y-%m-%d"))
    if what == "tarball":
        made = [tarball(tree, out, name[0], seconds)]
    else:
        made = [debian(tree, version, out, seconds), wheel(tree, version, out, seconds)]
    for path in made:
        print(f"{os.path.basename(path)}: {os.path.getsize(path) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
