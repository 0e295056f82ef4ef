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
    elif mode.collects:
        collections = ", none" if outcome.processes else ", not reported"
    if outcome.abandoned:
        collections += f", {len(outcome.abandoned)} abandoned"
    return f"{words}, {figures}{collections}"


def table(rows, modes):
    lines = ["| program | what it does | glibc CPU s, MiB | " + " | ".join(f"`{mode.name}`" for mode in modes) + " |"]
    lines.append("|---" * (3 + len(modes)) + "|")
    for row in rows:
        base = row.reference
        lines.append(
            f"| {row.case.name} | {row.case.about} | {base.cpu_s:.2f}, {base.rss_kib / 1024:.0f} | "
            + " | ".join(cell(row, mode) for mode in modes)
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


def memory_notes(rows, bindings):
    """Where a program's memory comes from, where that is not simply malloc."""
    notes = {}
    for row in rows:
        if row.case.note:
            notes.setdefault(row.case.note, []).append(row.case.name)
    lines = [f"- {', '.join(names)}: {note}." for note, names in notes.items()]
    for name, (plain, preloaded, ours) in sorted(bindings.items()):
        if plain and not plain.startswith("libc."):
            lines.append(
                f"- {name}: without Tithe its malloc is not glibc's but {plain}'s, to which the column \"glibc\" then belongs. "
                + (
                    f"Preloaded, malloc is bound to {ours}: the run is Tithe's."
                    if preloaded == ours
                    else f"Preloaded, it is bound to {preloaded}."
                )
            )
        elif preloaded and preloaded != ours:
            lines.append(
                f"- {name}: its malloc is bound to {preloaded} even when {ours} is preloaded: the run shows nothing of Tithe."
            )
    return lines


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
        f"Geometric means of CPU and memory over programs of 0.2 s and more: {', '.join(words)}.",
        "`gcbench` is left out of them: it never frees, so that only a collector can reuse its memory.",
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
        "Written by `scripts/tithe-programs`: not to be edited. Every program is run under glibc and under Tithe's three",
        "modes. Exit status, standard output and standard error must be those of the run under glibc.",
        "",
        f"**{good} of {len(rows)} programs do the same in every mode** "
        f"({', '.join(f'`{mode.name}` {sum(not row.differences[mode] for row in rows)}' for mode in modes)}).",
        "",
        f"Tithe {tithe_version}, {datetime.date.today().isoformat()}, {platform.freedesktop_os_release()['PRETTY_NAME']}, "
        f"Linux {platform.release()}, {cpu}, {os.cpu_count()} cores, glibc {platform.libc_ver()[1]}; catalog programs at size "
        f"`{size}`; {seconds / 60:.0f} minutes.",
        "",
        "A cell: what differs; CPU time and peak resident memory as ratios to glibc's; collections of all processes × the",
        "longest pause (the world stopped). **The ratios are of single runs on a machine that may have been busy**: a",
        "difference under a fifth means nothing here, and on programs of a few hundredths of a second no ratio does.",
        "`make bench` measures. CPU time is that of all processes of a program together, memory that of its largest",
        'process. Processes that ended before they allocated much do not collect. "Not reported" means that no process found',
        "the statistics page: its malloc is not ours, or it cleared its environment.",
        "",
        *means(rows, modes),
        *table(rows, modes),
        "",
    ]
    out += section("What differs", differences(rows, modes))
    out += section("Collections abandoned", abandoned(rows, modes))
    out += section("Whose malloc", memory_notes(rows, bindings))
    out += section(
        "What of the outputs is not compared",
        [f"- {row.case.name}: {row.case.normalised}." for row in rows if row.case.normalised]
        + [f"- {row.case.name}: {row.unstable}, under glibc itself." for row in rows if row.unstable],
    )
    out += section("Not run", [f"- {case.name}: {why}" for case, why in skipped])
    out += section("Versions", [", ".join(f"{name} {version}" for name, version in sorted(packages.items())) + "."])
    return "\n".join(out).rstrip() + "\n"
