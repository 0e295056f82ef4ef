<?php
// Groups an access log into sessions and ranks its pages. usage: sessions.php LOG ROUNDS
function report(string $path): array {
    $sessions = [];
    $pages = [];
    foreach (file($path, FILE_IGNORE_NEW_LINES) as $line) {
        if (!preg_match('/^(\S+) \S+ \S+ \[([^\]]+)\] "(\S+) (\S+)[^"]*" (\d+) (\S+)/', $line, $found)) {
            continue;
        }
        [, $client, $time, $method, $page, $status, $bytes] = $found;
        $sessions[$client][] = ['time' => $time, 'page' => $page, 'status' => (int) $status, 'bytes' => (int) $bytes];
        $pages[$page] ??= ['visits' => 0, 'bytes' => 0, 'after' => []];
        $pages[$page]['visits']++;
        $pages[$page]['bytes'] += (int) $bytes;
        $pages[$page]['after'][$method . ' ' . $status] = ($pages[$page]['after'][$method . ' ' . $status] ?? 0) + 1;
    }
    uksort($pages, fn($a, $b) => [$pages[$b]['visits'], $a] <=> [$pages[$a]['visits'], $b]);
    $lines = [];
    foreach (array_slice($pages, 0, 200) as $page => $figures) {
        ksort($figures['after']);
        $lines[] = "$page {$figures['visits']} {$figures['bytes']} " . json_encode($figures['after']);
    }
    $lines[] = count($sessions) . ' clients, longest ' . max(array_map('count', $sessions));
    return $lines;
}
$lines = [];
for ($round = 0; $round < (int) $argv[2]; $round++) {
    $lines = report($argv[1]);
}
echo implode("\n", $lines), "\n";
