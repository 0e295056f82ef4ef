#!/usr/bin/env python3
"""Runs the test binaries of `make test` side by side. Usage: fast.py PARTS JOBS HALF LIST...

HALF is `product`, `lab`, or empty for both. Each LIST has cargo's messages of what it built (binaries.py). The CPU and
wall seconds of each binary are added to the file PARTS, as scripts/part does. What failed is printed at the end, and a few
tests that failed are run again, alone: one that passes then depends on chance or on its neighbours. It is named as a
defect, and does not stop the rest of the work. The last line is the number of tests that passed and that failed; none at
all is a failure.
"""

import concurrent.futures
import os
import re
import sys

import binaries

# More failures than this are no chance.
AGAIN = 3


def dearest_first(found):
    """The longest come first, or the last of them would run alone: those with most code, which is known in advance."""
    return sorted(found, key=lambda binary: -os.path.getsize(binary.path))


def failures(output):
    """What libtest prints of its failures: without the lines of tests that passed."""
    lines = output.splitlines()
    kept = [line for line in lines if not (line.startswith("test ") and line.endswith(("... ok", "ignored")))]
    return "\n".join(line for line in kept if "... ignored, " not in line)


def names(output):
    """The tests that failed, as libtest lists them at its end. A binary that dies lists none."""
    lists = re.findall(r"^failures:\n((?:    \S+\n)+)", output, re.MULTILINE)
    return lists[-1].split() if lists else []


def by_chance(failed):
    """Runs failed tests again, each alone. Returns those that passed."""
    tests = [names(done.output) for done in failed]
    if not all(len(found) == done.failed for found, done in zip(tests, failed)) or sum(map(len, tests)) > AGAIN:
        return []
    single = [(done.binary, name) for done, found in zip(failed, tests) for name in found]
    runs = [binaries.run(binary, ["--exact", name]) for binary, name in single]
    return [one for one, again in zip(single, runs) if (again.passed, again.failed) == (1, 0)]


def main(parts, jobs, half, *lists):
    listed = [binary for file in lists for binary in binaries.listed(file)]
    found = dearest_first([binary for binary in listed if half in ("", binaries.half(binary))])
    failed = []
    passed = 0
    with concurrent.futures.ThreadPoolExecutor(int(jobs)) as side_by_side:
        started = [side_by_side.submit(binaries.run, binary, threads=jobs) for binary in found]
        for done in map(concurrent.futures.Future.result, concurrent.futures.as_completed(started)):
            passed += done.passed
            if done.failed:
                failed.append(done)
            with open(parts, "a", encoding="utf-8") as file:
                print(f"{done.cpu:.1f} {done.wall:.1f} {done.binary}", file=file)
            verdict = f", {done.failed} FAILED" if done.failed else ""
            print(f"{done.cpu:8.1f} CPU s  {done.binary}: {done.passed} passed{verdict}", flush=True)
    for done in failed:
        print(f"\n== {done.binary}\n{failures(done.output)}")
    chance = by_chance(failed)
    for binary, name in chance:
        print(f"DEFECT: {binary}: {name} failed beside other tests, and passed alone")
    bad = sum(done.failed for done in failed) - len(chance)
    print(f"{passed + len(chance)} passed, {bad} failed")
    return 1 if bad or not passed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
