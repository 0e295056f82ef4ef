"""docs/results/tithe-programs.md from what was run."""

import datetime
import os
import platform
import statistics
import subprocess


def versions(packages):
    """Versions of Debian packages that are installed."""
    query = subprocess.run(
        ["dpkg-query", "-W", "-f", "${binary:Package} ${Version} ${db:Status-Abbrev}\n", *sorted(set(packages))],
        capture_output=True,
        text=True,
        check=False,
    )
    found = (line.split() for line in query.stdout.splitlines())
    return {words[0].split(":")[0]: words[1] for words in found if len(words) == 3 and words[2].startswith("ii")}


def ratio(value, base):
    return f"{value / base:.2f}" if base > 0 else "–"


def duration(us):
    return f"{us / 1000:.1f} ms" if us < 1_000_000 else f"{us / 1e6:.2f} s"


def cell(row, mode):
    """What a mode did with a program, in one cell."""
    outcome, differences = row.outcomes[mode], row.differences[mode]
    base = row.reference
    words = "same" if not differences else "**" + "; ".join(differences) + "**"
    figures = f"{ratio(outcome.cpu_s, base.cpu_s)} / {ratio(outcome.rss_kib, base.rss_kib)}"
    collections = ""
    if outcome.collections:
        collections = f", {outcome.collections} × ≤ {duration(outcome.pause_max_us)}"
    elif mode.collects and not outcome.processes:
        collections = ", not reported"
    if outcome.abandoned:
        collections += f", {len(outcome.abandoned)} abandoned"
    return f"{words}, {figures}{collections}"


def table(rows, modes):
    lines = ["| program | glibc CPU s, MiB | " + " | ".join(f"`{mode.name}`" for mode in modes) + " |"]
    lines.append("|---" * (2 + len(modes)) + "|")
    for row in rows:
        base = row.reference
        lines.append(
            f"| {row.case.name} | {base.cpu_s:.2f}, {base.rss_kib / 1024:.0f} | "
            + " | ".join(cell(row, mode).removeprefix("same, ") for mode in modes)
            + " |"
        )
    return lines


def section(title, lines):
    return [f"## {title}", "", *lines, ""] if lines else []


def differences(rows, modes):
    lines = []
    for row in rows:
        for mode in modes:
            if not row.differences[mode]:
                continue
            outcome = row.outcomes[mode]
            text = outcome.error_text.decode(errors="replace").strip().splitlines()[-6:]
            lines.append(f"- **{row.case.name}** under `{mode.name}`: {'; '.join(row.differences[mode])}.")
            lines += ["", "  ```", *("  " + line[:200] for line in text), "  ```", ""] if text else []
    return lines


def abandoned(rows, modes):
    lines = []
    for row in rows:
        for mode in modes:
            causes = row.outcomes[mode].abandoned
            if causes:
                kinds = sorted({cause: causes.count(cause) for cause in causes}.items())
                lines.append(
                    f"- {row.case.name} under `{mode.name}`: " + ", ".join(f"{cause} ({n})" for cause, n in kinds)
                )
    return lines


def by_note(pairs):
    """A line for each note, with the programs that have it."""
    notes = {}
    for name, note in pairs:
        notes.setdefault(note, []).append(name)
    return [f"- {', '.join(names)}: {note}." for note, names in notes.items()]


def memory_notes(rows, bindings):
    """Programs whose memory does not simply come from malloc."""
    pairs = [(row.case.name, row.case.note) for row in rows if row.case.note]
    for name, (plain, preloaded, ours) in sorted(bindings.items()):
        if plain and not plain.startswith("libc."):
            bound = "the run is Tithe's" if preloaded == ours else f"malloc is bound to {preloaded}"
            pairs.append((name, f'the column "glibc" shows malloc of {plain}; with Tithe preloaded {bound}'))
        elif preloaded and preloaded != ours:
            pairs.append((name, f"malloc is bound to {preloaded} even with {ours} preloaded: the run shows nothing of Tithe"))
    return by_note(pairs)


def means(rows, modes):
    """Geometric means over the programs that ran alike."""
    words = []
    for mode in modes:
        alike = [row for row in rows if not row.differences[mode] and row.case.name != "gcbench"]
        pairs = [(row.outcomes[mode], row.reference) for row in alike]
        pairs = [(outcome, base) for outcome, base in pairs if base.cpu_s >= 0.2 and outcome.cpu_s > 0]
        if pairs:
            cpu = statistics.geometric_mean(outcome.cpu_s / base.cpu_s for outcome, base in pairs)
            rss = statistics.geometric_mean(outcome.rss_kib / base.rss_kib for outcome, base in pairs)
            words.append(f"`{mode.name}` {cpu:.2f} / {rss:.2f}")
    if not words:
        return []
    return [
        f"Geometric means of CPU and memory over programs of 0.2 s and more, without `gcbench`, which never frees: {', '.join(words)}.",
        "",
    ]


def markdown(rows, modes, skipped, bindings, size, tithe_version, seconds):
    good = sum(not any(row.differences.values()) for row in rows)
    packages = versions(package for row in rows for package in row.case.packages)
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        cpu = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())
    out = [
        "# Programs under Tithe",
        "",
        "`scripts/tithe-programs` writes this page. Every program runs under glibc and under Tithe's three modes. Exit status,",
        "standard output and standard error must equal glibc's. [Why the dearest are dear](collectors.md#other-programs).",
        "",
        f"**{good} of {len(rows)} programs do the same in every mode** "
        f"({', '.join(f'`{mode.name}` {sum(not row.differences[mode] for row in rows)}' for mode in modes)}).",
        "",
        f"Tithe {tithe_version}, {datetime.date.today().isoformat()}, {platform.freedesktop_os_release()['PRETTY_NAME']}, "
        f"Linux {platform.release()}, {cpu}, {os.cpu_count()} cores, glibc {platform.libc_ver()[1]}; catalog programs at size "
        f"`{size}`; {seconds / 60:.0f} minutes.",
        "",
        "A cell: what differs; CPU time (all processes) and peak resident memory (the largest process) over glibc's;",
        "collections × longest pause, if any. **The ratios are of single runs on a machine that may have been busy**: ignore a",
        'difference under a fifth. "Not reported": no process found the statistics page.',
        "",
        *means(rows, modes),
        *table(rows, modes),
        "",
    ]
    out += section("What differs", differences(rows, modes))
    out += section("Collections abandoned", abandoned(rows, modes))
    out += section("Whose malloc", memory_notes(rows, bindings))
    out += section(
        "Not compared",
        by_note((row.case.name, row.case.normalised) for row in rows if row.case.normalised)
        + by_note((row.case.name, f"{row.unstable}, under glibc itself") for row in rows if row.unstable),
    )
    out += section("Not run", [f"- {case.name}: {why}" for case, why in skipped])
    out += section("Versions", [", ".join(f"{name} {version}" for name, version in sorted(packages.items())) + "."])
    return "\n".join(out).rstrip() + "\n"
