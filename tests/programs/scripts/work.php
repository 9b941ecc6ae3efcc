<?php
// Arrays, strings, objects in cycles, generators, sorting, regular expressions, JSON; with
// USE_ZEND_ALLOC=0 each of them is a block of malloc.
class Node
{
    public array $kids = [];
    public ?Node $up = null;
    public function __construct(public string $name) {}
    public function add(Node $kid): void
    {
        $kid->up = $this;
        $this->kids[] = $kid;
    }
}

function tree(int $depth): Node
{
    $node = new Node(str_repeat('n', $depth * 7 + 1));
    for ($i = 0; $depth && $i < 4; $i++) {
        $node->add(tree($depth - 1));
    }
    return $node;
}

function total(Node $node): int
{
    return strlen($node->name) + array_sum(array_map('total', $node->kids));
}

function lines(int $count): Generator
{
    for ($i = 0; $i < $count; $i++) {
        yield $i => "line $i " . ($i * 7919 % 1009) . ' ' . md5((string)$i);
    }
}

mt_srand(5);
$kept = [];
for ($n = 0; $n < 800000; $n++) {
    $slot = mt_rand(0, 4000);
    $kept[$slot] = [$n, str_repeat('s', mt_rand(0, 300)), ['k' . $slot => $n]];
    if ($n % 3 == 0) {
        unset($kept[mt_rand(0, 4000)]);
    }
}
ksort($kept);
echo 'kept ', count($kept), ' ', md5(serialize($kept)), "\n";
echo 'json ', md5(json_encode(json_decode(json_encode($kept), true))), "\n";
for ($n = 0; $n < 12; $n++) {
    echo 'tree ', total(tree(6)), "\n";
}
echo 'cycles ', gc_collect_cycles() >= 0 ? 'collected' : 'failed', "\n";
$rows = iterator_to_array(lines(100000));
usort($rows, fn ($a, $b) => strcmp(substr($a, -6), substr($b, -6)) ?: strcmp($a, $b));
$text = implode("\n", $rows);
echo 'sorted ', md5($text), "\n";
echo 'matches ', preg_match_all('/line (\d+) (\d+)/', $text, $found), ' ', array_sum($found[2]), "\n";
echo 'replaced ', md5(preg_replace_callback('/[a-f]+/', fn ($m) => strtoupper($m[0]), $text)), "\n";
echo 'split ', count(array_count_values(preg_split('/\W+/', $text))), "\n";
echo 'sorted words ', md5(implode(',', array_unique(str_split($text, 5)))), "\n";
$list = new SplPriorityQueue();
foreach ($rows as $n => $row) {
    $list->insert($row, crc32($row) * 100000 + $n);
}
$digest = '';
while (!$list->isEmpty()) {
    $digest = md5($digest . $list->extract());
}
echo 'queue ', $digest, "\n";
