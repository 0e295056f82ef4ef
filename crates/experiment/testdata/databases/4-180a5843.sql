-- An experiment as heaptoll wrote it at 180a5843: with counts and cache misses of traced runs.
PRAGMA application_id = 1213484876;
PRAGMA user_version = 1;
CREATE TABLE description (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE observation (
    position INTEGER PRIMARY KEY, repetition INTEGER NOT NULL, phase TEXT NOT NULL,
    program TEXT NOT NULL, stack TEXT NOT NULL, outcome TEXT NOT NULL,
    user_s REAL NOT NULL, system_s REAL NOT NULL, wall_s REAL NOT NULL, peak_rss_kib INTEGER NOT NULL,
    minor_faults INTEGER NOT NULL, major_faults INTEGER NOT NULL,
    voluntary_switches INTEGER NOT NULL, involuntary_switches INTEGER NOT NULL,
    output_bytes INTEGER NOT NULL, output_digest TEXT NOT NULL, heap_high_water_bytes INTEGER,
    instructions INTEGER, cycles INTEGER, llc_misses INTEGER, dtlb_misses INTEGER,
    started_unix_s REAL NOT NULL, load_average REAL NOT NULL, env_padding INTEGER NOT NULL,
    stderr_tail TEXT NOT NULL, left_behind INTEGER NOT NULL, serve TEXT, collections TEXT, exact TEXT, locality TEXT);
CREATE TABLE memory_sample (
    program TEXT NOT NULL, stack TEXT NOT NULL, repetition INTEGER NOT NULL, t_s REAL NOT NULL, rss_kib INTEGER NOT NULL);
CREATE TABLE memory_mark (
    program TEXT NOT NULL, stack TEXT NOT NULL, repetition INTEGER NOT NULL, vm_hwm_kib INTEGER NOT NULL,
    anonymous_peak_kib INTEGER);
INSERT INTO description VALUES ('heaptoll_version', '"0.1.0"');
INSERT INTO description VALUES ('created_unix_s', '1763717436.5');
INSERT INTO description VALUES ('settings', '{"repetitions":2,"warmup":1,"seed":18446744073709551615,"timeout_s":60.5,"thp":"","expect_status":3,"directory":"/home/user","repeat_command":["heaptoll","run","--seed","18446744073709551615","--","prog","it''s"]}');
INSERT INTO description VALUES ('machine', '{"cpu":"A CPU","cores":2,"memory_kib":8130424,"kernel":"6.1.0","distribution":"Debian","libc":"2.36","thp":"madvise","governor":"unknown","aslr":"2","load":[0.5,0.25,0.125],"no_hardware_counters":null}');
INSERT INTO description VALUES ('baseline', '"glibc"');
INSERT INTO description VALUES ('programs', '[{"name":"prog","about":"a program","command":["prog","it''s"],"environment":[["LC_ALL","C"]],"stdin":null,"expected_digest":null,"serve":null}]');
INSERT INTO description VALUES ('stacks', '[{"program":"prog","name":"glibc","preload":[],"environment":[],"version":"1","origin":"ours","proof":"bound","warnings":[],"tells":false},{"program":"prog","name":"lea","preload":["/lib/lea.so"],"environment":[],"version":"1","origin":"ours","proof":"bound","warnings":[],"tells":true}]');
INSERT INTO description VALUES ('refused', '[["prog","knuth","does not load"]]');
INSERT INTO description VALUES ('own_cost', '[0.001,-4]');
INSERT INTO description VALUES ('complete', 'false');
INSERT INTO observation VALUES (0, 0, 'warmup', 'prog', 'glibc', '{"kind":"ok"}', 0.1, 0.25, 1.5, 1000, 100, 1, 2, 3, 5, 'abababababababababababababababababababababababababababababababab', NULL, NULL, NULL, NULL, NULL, 1763717440.25, 0.5, 64, '', 1, NULL, NULL, NULL, NULL);
INSERT INTO observation VALUES (1, 0, 'timed', 'prog', 'glibc', '{"kind":"ok"}', 1.1, 0.25, 1.5, 1001, 100, 1, 2, 3, 5, 'abababababababababababababababababababababababababababababababab', NULL, 9007199254740993, NULL, NULL, NULL, 1763717441.25, 0.5, 64, '', 1, '{"loaded_cpu_s":1.25,"ready_s":0.5,"load_s":2.0,"load_figures":{"p99":1.25},"load_report":"r"}', NULL, '{"instructions":{"program":1125899906842624,"allocator":2,"collector":3},"loads":{"program":4,"allocator":5,"collector":6},"stores":{"program":7,"allocator":8,"collector":9},"allocations":10,"frees":11,"heap_high_water_bytes":null,"images":1,"whole":true}', '{"references":{"program":1,"allocator":2,"collector":3},"line_bytes":64,"page_bytes":4096,"caches":[{"cache":"32K/8","misses":{"program":1,"allocator":2,"collector":3}}],"pages_touched":7,"sampled_one_in":1}');
INSERT INTO observation VALUES (2, 0, 'timed', 'prog', 'lea', '{"kind":"timeout","detail":1.5}', 2.1, 0.25, 1.5, 1002, 100, 1, 2, 3, 5, 'abababababababababababababababababababababababababababababababab', 4096, NULL, NULL, NULL, NULL, 1763717442.25, 0.5, 64, 'it''s an error', 1, NULL, '{"count":3,"pause_total_ns":5000000000,"pause_max_ns":4,"reclaimed_bytes":1099511627776}', NULL, NULL);
INSERT INTO memory_sample VALUES ('prog', 'glibc', 0, 0.0, 1);
INSERT INTO memory_sample VALUES ('prog', 'glibc', 0, 0.5, 2);
INSERT INTO memory_mark VALUES ('prog', 'glibc', 0, 3, 2);
