// Buffers beyond V8's own heap, packed and unpacked, beside objects in it.
"use strict";
const zlib = require("node:zlib");

const turns = Number(process.argv[2]);
let seed = 42;
function random(n) {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return (seed >>> 8) % n;
}

// A table in which random buffers of 5 to 100 KiB are replaced; each goes as its successor comes.
function buffers(count) {
  const kept = new Array(300);
  let sum = 0;
  for (let n = 0; n < count; n++) {
    const at = random(kept.length);
    if (kept[at]) sum = (sum * 33 + kept[at][random(5000)]) >>> 0;
    kept[at] = Buffer.alloc(5000 + random(95_000), n & 255);
  }
  return sum;
}

function packing(count) {
  let sum = 0;
  for (let n = 0; n < count; n++) {
    const text = Array.from({ length: 300 }, () => `word${random(1000)}`).join(" ");
    const packed = zlib.deflateSync(text, { level: 1 });
    sum = (sum * 33 + zlib.crc(packed, zlib.inflateSync(packed))) >>> 0;
  }
  return sum;
}
zlib.crc = (packed, back) => packed.length + back[back.length >> 1];

function objects(count) {
  const table = new Map();
  for (let n = 0; n < count; n++) {
    const key = `k${random(5000)}`;
    const entry = table.get(key) ?? { list: [] };
    entry.list.push("v".repeat(random(50)) + n);
    table.set(key, entry);
    if (n % 3 === 0) table.delete(`k${random(5000)}`);
  }
  return JSON.stringify([...table].sort()).length;
}

for (let turn = 0; turn < turns; turn++) {
  console.log(turn, buffers(4000), packing(600), objects(40_000));
}
