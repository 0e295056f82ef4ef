#!/usr/bin/env python3
"""The parts of `make test-slow`, and whether each passed on what is here now.

Usage: slow.py check [NAME]      fail, and name the parts to run, where inputs changed since a part passed; without a
                                 name of all but those that `make test` runs itself
       slow.py run LISTS PART... run parts and note the digest of their inputs; PART is a name, `due`, or `all`

testing/slow.toml has the parts. Inputs are patterns of git; LISTS is the folder of cargo's messages (binaries.py).
"""

import hashlib
import pathlib
import re
import subprocess
import sys
import tomllib

import binaries

FILE = binaries.ROOT / "testing" / "slow.toml"


class Refused(Exception):
    """What ends the command, in words for who typed it."""


def parts(file):
    """The parts by their names, in their order."""
    return {part["name"]: part for part in tomllib.loads(file.read_text(encoding="utf-8"))["part"]}


def digest(part, root):
    """Of the inputs' names and contents; files that git ignores are none."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]
    words += [f":(glob){pattern}" for pattern in part["inputs"]]
    output = subprocess.run(words, cwd=root, check=True, stdout=subprocess.PIPE).stdout
    whole = hashlib.sha256(" ".join(part["tests"]).encode())
    for name in sorted(set(output.split(b"\0")) - {b""}):
        path = root / pathlib.Path(name.decode())
        if path.is_file():
            whole.update(name + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()[:16]


def due(file, root):
    """The names of the parts whose inputs are not those that they last passed on."""
    return [name for name, part in parts(file).items() if digest(part, root) != part["passed"]]


def refuse_unknown(names):
    """Refuses a name that no part has: it would pass unnoticed."""
    known = parts(FILE)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise Refused(f"no part '{unknown[0]}'; there are {', '.join(known)}, due and all")


def is_asked(name, names):
    """Whether `check` is about this part."""
    return name in names if names else not any(map(is_made, parts(FILE)[name]["tests"]))


def note(file, name, passed):
    """Writes the digest of a part that passed."""
    text = file.read_text(encoding="utf-8")
    one = re.compile(rf'(^name = "{re.escape(name)}"\n.*?^passed = ")[^"]*', re.MULTILINE | re.DOTALL)
    file.write_text(one.sub(rf"\g<1>{passed}", text, count=1), encoding="utf-8")


def binary_of(test, built):
    """The binary of a test, and the words that select it there: "FOLDER BINARY PATTERN..."."""
    package, name, *patterns = test.split()
    found = [binary for binary in built if (binary.package, binary.name) == (package, name)]
    if not found:
        raise Refused(f"there is no test binary '{package} {name}', which testing/slow.toml names")
    return found, patterns


def is_made(test):
    """Whether it is no tests of a binary but words for make, which runs many."""
    return test.startswith("make ")


def run_part(part, built):
    """Runs the tests of a part; whether all passed. Not one may be none: a test that was renamed is missed.

    Without a pattern all tests of a binary are the part's."""
    passed_all = True
    for test in part["tests"]:
        if is_made(test):
            passed_all &= subprocess.run(test.split(), cwd=binaries.ROOT, check=False).returncode == 0
            continue
        found, patterns = binary_of(test, built)
        words = ["--ignored", *patterns] if patterns else []
        runs = [binaries.run(binary, words) for binary in found]
        passed, failed = sum(run.passed for run in runs), sum(run.failed for run in runs)
        print(f"{sum(run.cpu for run in runs):8.1f} CPU s  {test}: {passed} passed, {failed} failed", flush=True)
        if failed or not passed:
            passed_all = False
            print("".join(run.output for run in runs))
    return passed_all


def run(lists, names):
    """Runs parts; the names of those that failed."""
    known = parts(FILE)
    if names == ["all"]:
        names = list(known)
    elif names == ["due"]:
        names = due(FILE, binaries.ROOT)
    refuse_unknown(names)
    built = [binary for file in pathlib.Path(lists).iterdir() for binary in binaries.listed(file)]
    failed = []
    for name in names:
        before = digest(known[name], binaries.ROOT)
        print(f"== {name}", flush=True)
        if run_part(known[name], built) and digest(known[name], binaries.ROOT) == before:
            note(FILE, name, before)
        else:
            failed.append(name)
    return failed


def main(words):
    try:
        if words[:1] == ["check"]:
            refuse_unknown(words[1:])
            try:
                names = due(FILE, binaries.ROOT)
            except (OSError, subprocess.CalledProcessError):
                print("slow: git does not list the files here: not checked whether slow parts are due", file=sys.stderr)
                return len(words) - 1
            names = [name for name in names if is_asked(name, words[1:])]
            if names:
                raise Refused(
                    f"what these slow parts test has changed since they passed: {', '.join(names)}\n"
                    "      type: make test-slow PART=due, then commit testing/slow.toml"
                )
        elif len(words) > 2 and words[0] == "run":
            failed = run(words[1], words[2:])
            if failed:
                raise Refused(f"these parts failed: {', '.join(failed)}")
        else:
            raise Refused(__doc__)
    except Refused as refused:
        print(f"slow: {refused}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
