// Reads a page of `hakmem trace`, and prints what its script finds in ranges of moments: for each the
// moment of the peak, and the figures of each stack by the name of its innermost function.
//
//     node measure.cjs PAGE profile_curve.js '[[FIRST, LAST], ...]'
"use strict";
const fs = require("node:fs");
const vm = require("node:vm");
const zlib = require("node:zlib");

const [page, script, ranges] = process.argv.slice(2);
const data = /<script type="application\/json" id="data">(.*?)<\/script>/s.exec(fs.readFileSync(page, "utf8"))[1];
const { recorded } = JSON.parse(data);
const { lines, nodes, paths } = JSON.parse(zlib.inflateSync(Buffer.from(recorded.packed, "base64")));
const context = vm.createContext({ recorded });
vm.runInContext(fs.readFileSync(script, "utf8"), context);
context.join();
console.log(JSON.stringify(JSON.parse(ranges).map(([first, last]) => {
  const peak = context.peakOf(first, last), found = {};
  for (const [node, process, ...changes] of paths) {
    const figures = found[lines[nodes[2 * node + 1]][0]] ||= new Array(8).fill(0);
    context.measure(changes, context.within(recorded.processes[process], first, last, peak), figures);
  }
  return [peak, found];
})));
