<?php // Arrays of arrays from a text, sorted, packed and unpacked. USE_ZEND_ALLOC=0 makes them malloc's.
$index = [];
foreach (file($argv[1]) as $number => $line) {
    foreach (explode(' ', trim($line)) as $at => $word) {
        $index[$word][] = ['line' => $number, 'at' => $at, 'text' => strrev($word) . $number];
    }
}
ksort($index);
foreach ($index as $word => $list) {
    usort($list, fn($a, $b) => strcmp($a['text'], $b['text']));
    echo $word, ' ', count($list), ' ', $list[0]['text'], "\n";
}
echo strlen(serialize(unserialize(serialize($index)))), "\n";
