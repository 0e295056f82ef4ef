"""The crates whose code is in a release's binaries, from cargo's own metadata, with their licences and licence files."""

import json
import os
import re
import subprocess
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LICENCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "licences.toml")
TARGET = "x86_64-unknown-linux-gnu"
# What is installed of each workspace; None: all of its packages.
WORKSPACES = {
    "Cargo.toml": ["heaptoll", "heaptoll-lab", "heaptoll-launcher", "heaptoll-replay", "heaptoll-espresso", "heaptoll-sqlite"],
    "preload/Cargo.toml": None,
    "moving/Cargo.toml": ["heaptoll-mmtk"],
}
FILE = re.compile(r"(?i)(licen[cs]e|copying|unlicense|notice|copyright)([-._].*)?(?<!\.rs)(?<!\.[ch])(?<!\.py)$")
# Folders of a crate whose licence files are of what is not compiled.
ASIDE = {"tests", "test", "examples", "benches", "fuzz", "target", ".git"}


class Refused(Exception):
    """A release that may not be made: what, of which crate, and what to do."""


def metadata(manifest):
    """cargo's metadata of a workspace."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", TARGET]
    text = subprocess.run([*command, "--manifest-path", manifest], capture_output=True, text=True, check=False)
    if text.returncode != 0:
        raise Refused(f"cargo metadata of {manifest} failed: {text.stderr.strip()}")
    return json.loads(text.stdout)


def closure(found, roots):
    """The packages that roots are linked with. Procedural macros and build scripts run while compiling only."""
    packages = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    members = set(found["workspace_members"])
    todo = [each for each in members if roots is None or packages[each]["name"] in roots]
    seen = {}
    while todo:
        each = todo.pop()
        kinds = {kind for target in packages[each]["targets"] for kind in target["kind"]}
        if each in seen or "proc-macro" in kinds:
            continue
        seen[each] = packages[each]
        for dependency in nodes[each]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                todo.append(dependency["pkg"])
    return list(seen.values())


def linked(root=ROOT):
    """All crates of others in a release, by name and version."""
    crates = {}
    for manifest, roots in WORKSPACES.items():
        for package in closure(metadata(os.path.join(root, manifest)), roots):
            if package["source"] is not None:
                crates[package["name"], package["version"]] = package
    return [crates[key] for key in sorted(crates)]


def licence_files(package):
    """Paths of licence files in a crate's folder, those of code that it brings along included."""
    top = os.path.dirname(package["manifest_path"])
    found = []
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(name for name in folders if name not in ASIDE)
        found += [os.path.join(folder, name) for name in sorted(files) if FILE.match(name)]
    if named := package.get("license_file"):
        path = os.path.join(top, named)
        if os.path.exists(path) and path not in found:
            found.append(path)
    return found


def options(expression):
    """The licences of an SPDX expression of which one is enough, each a list of those that hold together."""
    plain = expression.replace("/", " OR ").replace("(", " ").replace(")", " ")
    if "(" in expression and " AND " in expression:
        # Few crates nest them: then all of what is named must be allowed.
        return [[part.strip() for part in re.split(r"\bAND\b|\bOR\b", plain)]]
    return [[part.strip() for part in re.split(r"\bAND\b", option)] for option in re.split(r"\bOR\b", plain)]


class Rules:
    """What licences.toml allows."""

    def __init__(self, path=LICENCES):
        with open(path, "rb") as file:
            rules = tomllib.load(file)
        self.allowed = set(rules["allowed"])
        self.without_file = {entry["crate"]: entry["terms"] for entry in rules.get("without-file", [])}
        self.other_choice = {(entry["crate"], entry["file"]) for entry in rules.get("other-choice", [])}

    def check(self, package):
        """The licence files of a crate; the terms that stand in for them where it has none.

        Raises Refused for a licence that is unknown, and for terms that are not there."""
        name, expression = f"{package['name']} {package['version']}", package.get("license")
        if not expression:
            raise Refused(f"{name} states no licence; replace it, or find out and add a rule to {LICENCES}")
        if not any(all(part in self.allowed for part in option) for option in options(expression)):
            raise Refused(f"{name} is under {expression}, which {LICENCES} does not allow; replace it, or add the licence")
        top = os.path.dirname(package["manifest_path"])
        chosen = lambda path: (package["name"], os.path.relpath(path, top)) not in self.other_choice
        files = [path for path in licence_files(package) if chosen(path)]
        if files:
            return files, None
        terms = self.without_file.get(package["name"])
        if terms is None:
            raise Refused(f"{name} carries no licence file; add an entry [[without-file]] to {LICENCES}")
        if [terms] not in options(expression):
            raise Refused(f"{name} is under {expression}: {terms} in {LICENCES} is not one of these")
        return [], terms

    def unused(self, packages):
        """Entries that no crate needs any more."""
        lacking = {package["name"] for package in packages if not licence_files(package)}
        return sorted(set(self.without_file) - lacking)
