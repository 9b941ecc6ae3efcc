// Text cut into buffers, packed, joined and compared: what node takes from malloc.
const fs = require("fs");
const zlib = require("zlib");
const text = fs.readFileSync(process.argv[2]);
let total = 0;
for (let turn = 0; turn < 3; turn++) {
  const kept = [];
  for (let at = 0; at < text.length; at += 3000 + (at % 9) * 2500) {
    const part = Buffer.from(text.subarray(at, at + 20000));
    const packed = at % 2 ? zlib.gzipSync(part, { level: 1 }) : Buffer.concat([part, part]);
    kept.push(packed);
    if (kept.length > 400) total += kept.splice((at * 7) % 300, 50).reduce((sum, b) => sum + b.length, 0);
  }
  total += Buffer.concat(kept).length;
}
console.log(total);
