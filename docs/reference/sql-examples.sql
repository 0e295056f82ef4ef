-- Statements over the views of an experiment file: sqlite3 -box experiment.db < docs/reference/sql-examples.sql
-- Every later version of heaptoll must run them; a test does on files of every version so far.

-- What was compared, under which settings?
SELECT heaptoll_version, datetime(begun_unix_s, 'unixepoch') AS begun, is_complete, baseline, repetitions,
       warmup_repetitions, seed_text, timeout_s, pairing, precision_share, budget_s, thp, is_exact, repeat_command_json,
       machine_cpu, machine_cores, machine_memory_kib, machine_kernel
FROM settings;

-- Which programs, and how were they run?
SELECT program, about, command_json, environment_json, stdin, is_server FROM programs;

-- Which managers, and which were left out?
SELECT program, stack, is_baseline, version, origin, preload_json, environment_json, proof, refused_because
FROM stacks ORDER BY program, stack;

-- CPU time and memory of each manager: means of good timed runs.
SELECT program, stack, count(*) AS runs, avg(cpu_s) AS cpu_s, avg(peak_rss_kib) / 1024.0 AS peak_rss_mib
FROM runs WHERE phase = 'timed' AND outcome = 'ok' GROUP BY program, stack ORDER BY program, cpu_s;

-- Ratios to the baseline, paired within a repetition. No intervals: `heaptoll report` computes them.
SELECT other.program, other.stack, avg(other.cpu_s / base.cpu_s) AS cpu_ratio
FROM runs AS other JOIN runs AS base USING (program, repetition, phase)
WHERE phase = 'timed' AND base.stack = (SELECT baseline FROM settings) AND base.cpu_s > 0
GROUP BY other.program, other.stack;

-- Runs that did not end well.
SELECT run, repetition, phase, program, stack, outcome, outcome_detail, wall_s FROM runs WHERE outcome <> 'ok';

-- Everything the kernel counts.
SELECT run, user_s, system_s, minor_faults, major_faults, voluntary_switches, involuntary_switches, disk_read_blocks,
       output_bytes, output_digest_sha256, instructions, cycles, llc_misses, dtlb_misses, started_unix_s, load_average
FROM runs ORDER BY run;

-- What managers and layers report.
SELECT run, heap_high_water_bytes, used_high_bytes, held_high_bytes, refused_calls, written_after_free,
       collector_cpu_ns / 1e9 AS collector_cpu_s, collections, pause_total_ns / 1e6 AS pause_total_ms, pause_max_ns,
       reclaimed_bytes, program_instructions, allocator_instructions, collector_instructions, program_figures_json
FROM runs ORDER BY run;

-- Blocks in which the machine did something else for more than a tenth of the time.
SELECT repetition, program, stack, span_s, steal_share, interrupt_share, other_work_share, throttled_share
FROM runs WHERE coalesce(steal_share, 0) + coalesce(other_work_share, 0) > 0.1;

-- Memory over time of watched runs.
SELECT program, stack, repetition, t_s, rss_kib FROM memory_samples ORDER BY program, stack, repetition, t_s;
