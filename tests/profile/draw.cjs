// Draws a page of `hakmem profile` without a browser, with as much of a document as its script uses,
// and prints what it shows: at first, after each button, after a search, and after clicks. What would
// be painted is in the script's list of boxes.
"use strict";
const fs = require("node:fs");
const vm = require("node:vm");

const WIDTH = 1000, ROW = 20;

class Element {
  constructor(tag) {
    Object.assign(this, { tag, children: [], style: {}, attributes: {}, own: "", className: "" });
    Object.assign(this, { clientWidth: WIDTH, clientHeight: 600, clientLeft: 0, clientTop: 0, scrollTop: 0 });
  }
  get textContent() {
    return this.own + this.children.map(one => one.textContent).join("");
  }
  set textContent(text) {
    this.own = String(text);
    this.children = [];
  }
  append(...items) {
    for (const item of items) this.children.push(...(item.tag === "fragment" ? item.children : [item]));
  }
  replaceChildren(...items) {
    this.children = [];
    this.append(...items);
  }
  getContext() {
    return new Proxy({}, { get: () => () => {} });
  }
  getBoundingClientRect() {
    return { left: 0, top: 0 };
  }
  scrollIntoView() {}
  setAttribute(name, value) {
    this.attributes[name] = value;
  }
  get firstButton() {
    return this.children.find(one => one.tag === "button");
  }
}

const page = fs.readFileSync(process.argv[2], "utf8");
const data = /<script type="application\/json" id="data">(.*?)<\/script>/s.exec(page)[1];
const script = /<script>\n(.*?)<\/script>/s.exec(page)[1];
const elements = new Map();
for (const [, id] of page.matchAll(/ id="([a-z]+)"/g)) elements.set(id, new Element(id));
elements.get("data").textContent = data;
const document = {
  getElementById: id => elements.get(id),
  createElement: tag => new Element(tag),
  createDocumentFragment: () => new Element("fragment"),
};
const window = { matchMedia: () => ({}) };
const context = vm.createContext({ document, window, getComputedStyle: () => ({ getPropertyValue: () => "" }) });
vm.runInContext(script, context);
const boxes = () => vm.runInContext("flame.boxes.map(box => ({ ...box, name: label(box), title: describe(box) }))", context);
const click = one => at("flame").onclick({ clientX: (one.x + one.width / 2) * WIDTH, clientY: one.depth * ROW + 1 });
const press = (id, text) => at(id).children.find(one => one.textContent === text).onclick();

const at = id => elements.get(id);
const seen = () => ({
  frames: boxes().map(({ name, title, width, found }) => ({ name, title, width: 100 * width, found })),
  rows: at("rows").children.map(row => row.children.map(cell => cell.textContent)),
  matched: at("matched").textContent,
  pressed: ["kinds", "units"].map(id => at(id).children.find(one => one.attributes["aria-pressed"] === "true").textContent),
});
const result = { title: at("title").textContent, about: at("about").textContent, notes: at("notes").textContent,
  functions: seen().rows, figures: {} };
press("views", "stacks");
result.first = seen();
press("ways", "from allocations up");
result.up = seen().frames;
press("ways", "from main down");
for (let kind = 0; kind < 3; kind++) {
  for (let unit = 0; unit < 2; unit++) {
    at("kinds").children[kind].onclick();
    at("units").children[unit].onclick();
    const now = seen();
    result.figures[now.pressed.join(", ")] = now;
  }
}
at("kinds").children[0].onclick();
at("units").children[0].onclick();
at("search").oninput({ target: { value: process.argv[3] } });
result.search = seen();
at("search").oninput({ target: { value: "" } });
const deep = boxes().find(one => one.name === process.argv[3]);
if (deep) click(deep);
result.zoomed = seen();
at("all").onclick();
result.back = seen();
for (const cell of [...at("head").children[0].children.keys()]) {
  at("head").children[0].children[cell].firstButton.onclick();
  at("head").children[0].children[cell].firstButton.onclick();
}
result.sorted = seen().rows.map(row => row[5]);
press("views", "functions");
const named = row => row.children[row.children.length - 1].firstButton;
const row = at("rows").children.find(one => named(one).textContent === process.argv[3]);
if (row) named(row).onclick();
result.around = at("around").children.map(one => one.textContent);
console.log(JSON.stringify(result));
