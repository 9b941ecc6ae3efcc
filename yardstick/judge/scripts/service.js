// A service whose life the judge looks at: commands arrive on a socket file. node service.js SIZE
const fs = require("fs");
const net = require("net");
const zlib = require("zlib");
const size = Number(process.argv[2]);
let kept = [];
let made = 0;
function record() {
  made++;
  const part = Buffer.allocUnsafeSlow(2000 + (made * 7919) % 90000);
  part.fill(made % 250);
  return made % 8 ? part : zlib.deflateSync(part);
}
const words = {
  load() { for (let i = 0; i < size; i++) kept.push(record()); },
  free() { kept = []; if (global.gc) global.gc(); },
  light() { for (let i = 0; i < 40; i++) record(); },
};
process.on("SIGTERM", () => process.exit(0));
net.createServer((client) => client.on("data", (word) => {
  const act = words[word.toString().trim()];
  if (act) act();
  client.end("done\n");
})).listen("socket", () => fs.writeFileSync("pid", process.pid + "\n"));
