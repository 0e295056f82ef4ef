#!/usr/bin/env python3
"""Writes the notices of all crates in a release: notices.py FILE. Fails where a licence is unknown or has no text."""

import os
import re
import sys

from crates import ROOT, Refused, Rules, linked

HEAD = """Notices of the Rust crates whose code is in this release's binaries.

Made from the metadata and the licence files of the crates themselves. NOTICE.md names what else is in it.
"""


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().strip()


def stand_in(package, terms):
    """The text of terms that a crate does not carry: of Apache-2.0 the one for all, of MIT with its authors."""
    if terms == "Apache-2.0":
        return read(os.path.join(ROOT, "LICENSE-APACHE"))
    if terms != "MIT":
        raise Refused(f"there is no text for {terms}, under which {package['name']} is passed on")
    authors = ", ".join(re.sub(r" *<[^>]*>", "", author) for author in package["authors"])
    if not authors:
        raise Refused(f"{package['name']} names no authors, and its MIT notice has to name them")
    text = read(os.path.join(ROOT, "LICENSE-MIT"))
    return re.sub(r"(?m)^Copyright .*$", f"Copyright (c) {authors}", text, count=1)


def texts(packages, rules):
    """Each text with the crates and files that it is of, crates in order. A text that many have stands once."""
    found = {}
    for package in packages:
        name = f"{package['name']} {package['version']} ({package['license']})"
        files, terms = rules.check(package)
        top = os.path.dirname(package["manifest_path"])
        parts = [(f"{name}: {os.path.relpath(path, top)}", read(path)) for path in files]
        if terms:
            parts = [(f"{name}: as {terms}", stand_in(package, terms))]
        if not any(text for _, text in parts):
            raise Refused(f"the licence files of {name} are empty")
        for label, text in parts:
            if text:
                found.setdefault(" ".join(text.split()), ([], text))[0].append(label)
    return found.values()


def notices(packages, rules):
    blocks = [HEAD]
    for labels, text in texts(packages, rules):
        blocks.append("\n".join(["=" * 100, *labels, "-" * 100, text, ""]))
    return "\n".join(blocks)


def main():
    packages, rules = linked(), Rules()
    text = notices(packages, rules)
    if left := rules.unused(packages):
        raise Refused(f"licences.toml has entries that no crate needs: {', '.join(left)}; remove them")
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(text)
    print(f"notices of {len(packages)} crates: {len(text) // 1024} KiB")


if __name__ == "__main__":
    try:
        main()
    except Refused as error:
        sys.exit(f"release: {error}")
