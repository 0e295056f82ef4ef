"""Runs one command under one mode, through heaptoll's launcher: CPU and peak memory of the program alone, a time limit,
and nothing left. The manager's statistics page and Tithe's log report what it did."""

import hashlib
import os
import re
import shutil
import struct
import subprocess
from dataclasses import dataclass, field

SLOTS = 4096
HEADER, SLOT = 4096, 512
MAGIC = 0x4C4C4F5450414548
KIND_MANAGER, IN_USE = 1, 2


@dataclass
class Outcome:
    ended: str  # "exit 0", "signal 11", "timeout"
    cpu_s: float
    wall_s: float
    rss_kib: int
    left_behind: int
    output: str  # digest of standard output
    errors: str  # digest of standard error
    error_text: bytes
    output_file: str
    collections: int = 0
    pause_max_us: int = 0
    abandoned: list = field(default_factory=list)
    heap_bytes: int = 0  # of the process with the largest heap
    processes: int = 0  # that reported


class Runner:
    def __init__(self, launcher, folder, timeout_s):
        self.launcher = launcher
        self.folder = folder  # keeps outputs
        self.timeout_s = timeout_s
        self.scratch = os.path.join(folder, "run")

    def run(self, case, mode, label, values):
        """One run; `values` are put in place of {inputs}, {cases}, {tmp}."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        os.makedirs(os.path.join(self.scratch, "home"))
        work = os.path.join(self.scratch, "work")
        os.makedirs(work)
        values = {**values, "tmp": work}
        put = lambda text: re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), text)
        page = os.path.join(self.folder, "page")
        log = os.path.join(self.folder, "log")
        new_page(page)
        if os.path.exists(log):
            os.remove(log)
        base = {
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": os.path.join(self.scratch, "home"),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "TERM": "dumb",
            "USER": "root",
            "LOGNAME": "root",
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        environment = {"INPUTS": values["inputs"], "CASES": values["cases"], **case.environment}
        if mode.object:
            environment |= {"LD_PRELOAD": mode.object, "HEAPTOLL_STATS": page, **mode.environment}
            if mode.tells_by_log:
                environment["TITHE_LOG"] = log
        reading, writing = os.pipe()
        words = [self.launcher, "report", str(writing), "timeout", str(int(self.timeout_s * 1000)), "thp", ""]
        words += ["counters", "0", "parent", str(os.getpid())]
        for name, value in environment.items():
            words += ["env", name, put(value)]
        words += ["--", *map(put, case.command)]
        names = [os.path.join(self.folder, f"{case.name.replace('/', '_')}.{label}.{end}") for end in ("out", "err")]
        with open(names[0], "wb") as out, open(names[1], "wb") as err, open(case.stdin or os.devnull, "rb") as stdin:
            child = subprocess.Popen(
                words,
                cwd=work,
                env=base,
                stdin=stdin,
                stdout=out,
                stderr=err,
                pass_fds=[writing],
                start_new_session=True,
            )
            os.close(writing)
            with os.fdopen(reading, encoding="utf-8", errors="replace") as messages:
                lines = messages.read().splitlines()
            child.wait()
        last = lines[-1].split() if lines else ["nothing"]
        if last[0] != "ended":
            raise RuntimeError(f"{self.launcher} sent `{' '.join(last)}` for {case.name}; run make build again")
        wall, user, system, rss = (int(word) for word in last[3:7])
        word = last[1] if last[1] == "timeout" else f"{last[1]} {last[2]}"
        outcome = Outcome(
            word,
            (user + system) / 1e6,
            wall / 1e9,
            rss,
            int(last[12]),
            self.digest(names[0], case.normalise),
            self.digest(names[1], case.normalise),
            normal(names[1], case.normalise)[-4000:],
            names[0],
        )
        if mode.object:
            read_page(page, outcome)
            read_log(log, outcome)
        return outcome

    @staticmethod
    def digest(name, replacements):
        return hashlib.sha256(normal(name, replacements)).hexdigest()


def binding(binary, preload):
    """The file name of the object that serves a program's calls of malloc; empty where it does not call malloc itself.
    The loader binds everything and prints that, and the program is not run."""
    environment = {"LD_TRACE_LOADED_OBJECTS": "1", "LD_WARN": "yes", "LD_BIND_NOW": "yes", "LD_DEBUG": "bindings"}
    if preload:
        environment["LD_PRELOAD"] = preload
    output = subprocess.run(
        [binary], env=environment, capture_output=True, text=True, errors="replace", check=False
    ).stderr
    pattern = rf"binding file {re.escape(binary)} \[0\] to (\S+) \[0\]: normal symbol `malloc'"
    found = re.search(pattern, output)
    return os.path.basename(found[1]) if found else ""


def normal(name, replacements):
    with open(name, "rb") as file:
        data = file.read()
    for pattern, replacement in replacements:
        data = re.sub(pattern, replacement, data)
    return data


def new_page(name):
    """The file that include/heaptoll.h describes."""
    with open(name, "wb") as file:
        file.write(struct.pack("<QIIIIII", MAGIC, 1, HEADER, SLOT, SLOTS, 0, 0))
        file.truncate(HEADER + SLOTS * SLOT)


def read_page(name, outcome):
    with open(name, "rb") as file:
        data = file.read()
    for at in range(HEADER, len(data) - SLOT + 1, SLOT):
        state, kind = struct.unpack_from("<II", data, at)
        if state != IN_USE or kind != KIND_MANAGER:
            continue
        outcome.processes += 1
        (heap,) = struct.unpack_from("<Q", data, at + 256 + 8)
        collections, _, pause = struct.unpack_from("<QQQ", data, at + 344)
        outcome.heap_bytes = max(outcome.heap_bytes, heap)
        outcome.collections += collections
        outcome.pause_max_us = max(outcome.pause_max_us, pause // 1000)


def read_log(name, outcome):
    """Tithe's log has more than the page: what was abandoned. Where both report, the higher counts."""
    if not os.path.exists(name):
        return
    collections = pause = 0
    with open(name, encoding="utf-8", errors="replace") as file:
        for line in file:
            keys = dict(word.split("=", 1) for word in line.split() if "=" in word)
            if "collection" in keys:
                collections += 1
                pause = max(pause, float(keys.get("pause_us", 0)))
            elif "abandoned" in keys:
                outcome.abandoned.append(
                    f"{keys.get('cause')} {keys.get('thread', '')} {keys.get('state', '')}".strip()
                )
    outcome.collections = max(outcome.collections, collections)
    outcome.pause_max_us = max(outcome.pause_max_us, pause)
