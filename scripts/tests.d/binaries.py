"""The test binaries that cargo built, and one run of one: as `cargo test` runs it, with the CPU seconds that it took."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time
import tomllib
from dataclasses import dataclass

# A shell's job in the background ignores Ctrl-C, and so would each program under test: some are to die of it.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = pathlib.Path(__file__).resolve().parents[2]
# As libtest prints it; a test without a harness prints none, and is one test.
RESULT = re.compile(r"^test result: \S+ (\d+) passed; (\d+) failed; (\d+) ignored", re.MULTILINE)


@dataclass(frozen=True)
class Binary:
    """A test binary: its package's folder from the root of the repository, its name, and where it is."""

    package: str
    name: str
    path: str

    def __str__(self):
        return f"{self.package} {self.name}"


def laboratory():
    """The folders of the laboratory, as the budget of lines has them."""
    sizes = tomllib.loads((ROOT / "testing/lint/sizes.toml").read_text(encoding="utf-8"))
    return next(part["paths"] for part in sizes["budget"]["part"] if part["name"] == "laboratory")


def half(binary):
    """The half of the tests that a binary is of: `lab` for the laboratory's and what depends on it, or `product`."""
    if any(f"{binary.package}/".startswith(f"{path}/") for path in laboratory()):
        return "lab"
    manifest = tomllib.loads((ROOT / binary.package / "Cargo.toml").read_text(encoding="utf-8"))
    return "lab" if "heaptoll-laboratory" in manifest.get("dependencies", {}) else "product"


@dataclass
class Run:
    """What a run of a test binary came to."""

    binary: Binary
    passed: int
    failed: int
    cpu: float
    wall: float
    output: str


def listed(file):
    """The test binaries of a file with the messages of `cargo test --no-run --message-format=json`."""
    found = []
    with open(file, encoding="utf-8") as messages:
        for message in map(json.loads, messages):
            if message.get("executable") and message["profile"]["test"]:
                package = os.path.relpath(os.path.dirname(message["manifest_path"]), ROOT)
                target = message["target"]
                name = target["name"] if target["kind"] == ["test"] else "unit-tests"
                found.append(Binary(package, name, message["executable"]))
    return found


def counts(output, status):
    """The tests that passed and that failed. What ends without its result line, or fails in spite of it, has failed."""
    results = [tuple(map(int, found)) for found in RESULT.findall(output)]
    passed = sum(result[0] for result in results)
    failed = sum(result[1] for result in results)
    if not results and status == 0:
        passed = 1
    if status != 0 and failed == 0:
        failed = 1
    return passed, failed


def run(binary, words=(), threads=None):
    """Runs a test binary in its package's folder, as cargo does, until it and its children have ended."""
    folder = ROOT / binary.package
    environment = {**os.environ, "CARGO_MANIFEST_DIR": str(folder)}
    if threads:
        environment["RUST_TEST_THREADS"] = str(threads)
    begun = time.monotonic()
    # A pipe would be held open by what a test leaves behind.
    file = pathlib.Path(binary.path).with_suffix(".output")
    with open(file, "wb") as output:
        child = subprocess.Popen(
            [binary.path, *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    text = file.read_text(encoding="utf-8", errors="replace")
    file.unlink()
    if child.returncode < 0:
        text += f"\n{binary} was ended by signal {-child.returncode}\n"
    passed, failed = counts(text, child.returncode)
    return Run(binary, passed, failed, used.ru_utime + used.ru_stime, time.monotonic() - begun, text)
