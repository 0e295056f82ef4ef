#!/usr/bin/env python3
"""Writes a release's bill of materials as CycloneDX 1.5: sbom.py TREE VERSION COMMIT VALGRIND FILE."""

import glob
import json
import os
import sys
import tomllib

from crates import ROOT, Refused, linked

# What is in the binaries and is neither a crate nor a peer. Their texts and places: NOTICE.md.
OTHERS = [
    ("rust-std", "Rust's standard library", "MIT OR Apache-2.0"),
    ("glibc", "inside heaptoll-launch and the tracer's launcher, which are linked statically", "LGPL-2.1-or-later"),
    ("libstdc++", "inside the managers written in C++", "GPL-3.0-or-later WITH GCC-exception-3.1"),
]


def checksums():
    """SHA-256 of each crate's archive, from the lock files."""
    found = {}
    for lock in ["Cargo.lock", "preload/Cargo.lock", "moving/Cargo.lock"]:
        with open(os.path.join(ROOT, lock), "rb") as file:
            for package in tomllib.load(file)["package"]:
                if "checksum" in package:
                    found[package["name"], package["version"]] = package["checksum"]
    return found


def crate(package, sums):
    name, version = package["name"], package["version"]
    return {
        "type": "library",
        "bom-ref": f"pkg:cargo/{name}@{version}",
        "purl": f"pkg:cargo/{name}@{version}",
        "name": name,
        "version": version,
        "licenses": [{"expression": package["license"].replace("/", " OR ")}],
        "hashes": [{"alg": "SHA-256", "content": sums[name, version]}],
    }


def managers(tree):
    """The managers of others, from the descriptions next to them."""
    for path in sorted(glob.glob(os.path.join(tree, "lib/heaptoll/managers/*.toml"))):
        with open(path, "rb") as file:
            note = tomllib.load(file)
        if note.get("kind") == "peer":
            yield {
                "type": "library",
                "bom-ref": f"manager/{note['name']}",
                "name": note["name"],
                "version": note["version"],
                "description": f"{note['about']}; from {note['origin']}",
                "hashes": [{"alg": "SHA-256", "content": note["sha256"]}],
            }


def tracer(tree, valgrind):
    if os.path.exists(os.path.join(tree, "lib/heaptoll/tracer/VERSION")):
        yield {
            "type": "library",
            "bom-ref": "valgrind",
            "purl": f"pkg:deb/debian/valgrind@{valgrind}",
            "name": "valgrind",
            "version": valgrind,
            "description": "inside the tracer",
            "licenses": [{"expression": "GPL-2.0-or-later"}],
        }


def document(tree, version, commit, valgrind):
    sums = checksums()
    others = [
        {"type": "library", "bom-ref": name, "name": name, "description": about, "licenses": [{"expression": licence}]}
        for name, about, licence in OTHERS
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "heaptoll",
                "name": "heaptoll",
                "version": version,
                "description": f"commit {commit}",
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
            }
        },
        "components": [crate(package, sums) for package in linked()]
        + list(managers(tree))
        + list(tracer(tree, valgrind))
        + others,
    }


if __name__ == "__main__":
    try:
        text = json.dumps(document(*sys.argv[1:5]), indent=1, ensure_ascii=False)
    except Refused as error:
        sys.exit(f"release: {error}")
    with open(sys.argv[5], "w", encoding="utf-8") as out:
        out.write(text + "\n")
