<?php
// Arrays, strings, objects in cycles, regular expressions, sorting, closures and generators.
ini_set('memory_limit', '-1');
$words = preg_split('/\s+/', trim(file_get_contents($argv[1])));
$counts = [];
foreach ($words as $index => $word) {
    $counts[$word][] = $index;
}
uksort($counts, fn($a, $b) => [count($counts[$b]), $a] <=> [count($counts[$a]), $b]);
foreach (array_slice($counts, 0, 20, true) as $word => $places) {
    echo $word, ' ', count($places), ' ', array_sum($places), "\n";
}
class Node
{
    public $other;
    public array $data;

    public function __construct(public int $number)
    {
        $this->data = array_fill(0, $number % 20, "text $number");
    }
}
$collected = 0;
for ($round = 0; $round < 20; $round++) {
    for ($i = 0; $i < 5000; $i++) {
        $a = new Node($i);
        $b = new Node($i + 1);
        $a->other = $b;
        $b->other = $a;
    }
    $collected += gc_collect_cycles();
}
echo "cycles: ", $collected > 0 ? "collected" : "kept", "\n";
function squares(int $n): Generator
{
    for ($i = 0; $i < $n; $i++) {
        yield $i => str_repeat((string)($i * $i), 3);
    }
}
$sum = 0;
foreach (squares(200000) as $i => $text) {
    $sum = ($sum * 31 + crc32($text) + $i) % 1000000007;
}
echo $sum, "\n";
echo md5(preg_replace_callback('/(\w)(\w+)/', fn($m) => $m[2] . $m[1] . 'ay', implode(' ', $words))), "\n";
$table = array_map(fn($i) => ['id' => $i, 'name' => "name " . ($i * 7919 % 10007), 'tags' => range(0, $i % 8)], range(0, 60000));
usort($table, fn($a, $b) => [$a['name'], $a['id']] <=> [$b['name'], $b['id']]);
echo md5(json_encode($table)), "\n";
echo strlen(serialize(unserialize(serialize($table)))), "\n";
echo md5(gzcompress(implode(',', $words), 6)), "\n";
