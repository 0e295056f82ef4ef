#!/usr/bin/env python3
"""Runs the test binaries of `make test` side by side. Usage: fast.py PARTS JOBS LIST...

Each LIST has cargo's messages of what it built (binaries.py). The CPU and wall seconds of each binary are added to the
file PARTS, as scripts/part does. What failed is printed at the end; the last line is the number of tests that passed and
that failed.
"""

import concurrent.futures
import os
import sys

import binaries


def dearest_first(found):
    """The longest come first, or the last of them would run alone: those with most code, which is known in advance."""
    return sorted(found, key=lambda binary: -os.path.getsize(binary.path))


def failures(output):
    """What libtest prints of its failures: without the lines of tests that passed."""
    lines = output.splitlines()
    kept = [line for line in lines if not (line.startswith("test ") and line.endswith(("... ok", "ignored")))]
    return "\n".join(line for line in kept if "... ignored, " not in line)


def main(parts, jobs, *lists):
    found = dearest_first([binary for file in lists for binary in binaries.listed(file)])
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
    print(f"{passed} passed, {sum(done.failed for done in failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
