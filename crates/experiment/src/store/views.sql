-- What readers may rely on: columns of these views keep their names, their units and their order; new ones come last.
DROP VIEW IF EXISTS runs;
CREATE VIEW runs AS SELECT {runs} FROM observation;
DROP VIEW IF EXISTS programs;
CREATE VIEW programs AS SELECT
    json_extract(one.value, '$.name') AS program, json_extract(one.value, '$.about') AS about,
    one.value -> '$.command' AS command_json, one.value -> '$.environment' AS environment_json,
    json_extract(one.value, '$.stdin') AS stdin, json_extract(one.value, '$.serve') IS NOT NULL AS is_server
FROM description, json_each(description.value) AS one WHERE description.key = 'programs';
DROP VIEW IF EXISTS stacks;
CREATE VIEW stacks AS SELECT
    json_extract(one.value, '$.program') AS program, json_extract(one.value, '$.name') AS stack,
    json_extract(one.value, '$.name') = (SELECT json_extract(value, '$') FROM description WHERE key = 'baseline')
        AS is_baseline,
    json_extract(one.value, '$.version') AS version, json_extract(one.value, '$.origin') AS origin,
    one.value -> '$.preload' AS preload_json, one.value -> '$.environment' AS environment_json,
    json_extract(one.value, '$.proof') AS proof, NULL AS refused_because
FROM description, json_each(description.value) AS one WHERE description.key = 'stacks'
UNION ALL SELECT
    json_extract(one.value, '$[0]'), json_extract(one.value, '$[1]'),
    json_extract(one.value, '$[1]') = (SELECT json_extract(value, '$') FROM description WHERE key = 'baseline'),
    NULL, NULL, NULL, NULL, NULL, json_extract(one.value, '$[2]')
FROM description, json_each(description.value) AS one WHERE description.key = 'refused';
DROP VIEW IF EXISTS settings;
CREATE VIEW settings AS SELECT
    (SELECT json_extract(value, '$') FROM description WHERE key = 'heaptoll_version') AS heaptoll_version,
    (SELECT json_extract(value, '$') FROM description WHERE key = 'created_unix_s') AS begun_unix_s,
    (SELECT json_extract(value, '$') FROM description WHERE key = 'complete') AS is_complete,
    (SELECT json_extract(value, '$') FROM description WHERE key = 'baseline') AS baseline,
    json_extract(asked.value, '$.repetitions') AS repetitions, json_extract(asked.value, '$.warmup') AS warmup_repetitions,
    -- Text: a seed may exceed SQLite's integers.
    asked.value -> '$.seed' AS seed_text,
    json_extract(asked.value, '$.timeout_s') AS timeout_s,
    coalesce(json_extract(asked.value, '$.pairing'), 'interleaved') AS pairing,
    json_extract(asked.value, '$.precision') AS precision_share, json_extract(asked.value, '$.budget_s') AS budget_s,
    json_extract(asked.value, '$.thp') AS thp, coalesce(json_extract(asked.value, '$.exact'), 0) AS is_exact,
    asked.value -> '$.repeat_command' AS repeat_command_json,
    json_extract(machine.value, '$.cpu') AS machine_cpu, json_extract(machine.value, '$.cores') AS machine_cores,
    json_extract(machine.value, '$.memory_kib') AS machine_memory_kib,
    json_extract(machine.value, '$.kernel') AS machine_kernel
FROM description AS asked, description AS machine WHERE asked.key = 'settings' AND machine.key = 'machine';
DROP VIEW IF EXISTS memory_samples;
CREATE VIEW memory_samples AS SELECT program, stack, repetition, t_s, rss_kib FROM memory_sample;
