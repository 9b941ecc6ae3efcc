// A heap profile, or a range of a recording, as a flame graph and tables.
"use strict";

const at = id => document.getElementById(id);
const make = (tag, text, name) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  return element;
};
const profile = JSON.parse(at("data").textContent);
const recorded = profile.recorded; // of a recording: what was so at any moment

// Of each kind the place of blocks in a stack's figures; bytes follow. `signed`: more or less of it.
const KINDS = [
  { title: "in use", at: 0, nothing: "is in use" },
  { title: "allocated", at: 2, nothing: "was allocated" },
  { title: "peak", at: 4, nothing: "was in use at the peak" },
  { title: "growth", at: 6, nothing: "became more or less", signed: true },
].slice(0, recorded ? 4 : 3);
const UNITS = [["bytes", 1], ["blocks", 0]];
const WAYS = ["from main down", "from allocations up"];
const VIEWS = ["functions", "stacks"];
const ROW = 20, LEAST = 0.0008, ROWS = 200;
// A caller that is none of these says more than a function of the language's library.
const LIBRARY = /^<*(\w+ )?(\w+ as )?(std|__gnu_cxx|core|alloc|__rustc)::/;
const state = { kind: 0, unit: 0, way: 0, view: 0, search: "", zoom: [], range: null, around: null,
  sort: [["self", true], ["figure", true]] };
const column = () => KINDS[state.kind].at + UNITS[state.unit][1];
const signed = () => profile.difference || Boolean(KINDS[state.kind].signed);

// Of a difference, whether sampling does not explain it. A node is told if a stack through it is, or its
// function in sum.
const isSignificant = stack => !profile.difference || stack.significant[state.kind];
const isFunctionSignificant = line => !profile.difference || profile.functions[name(line)][state.kind];

// ---- what is shown of a figure and of a line ----

function shown(value, unit = state.unit) {
  const sign = signed() && value > 0 ? "+" : "";
  return sign + (UNITS[unit][0] === "blocks" ? Math.round(value).toLocaleString("en") : bytes(value));
}

function bytes(value) {
  for (const [name, least] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]])
    if (Math.abs(value) >= least) return (value / least).toFixed(1) + " " + name;
  return Math.round(value) + " B";
}

const percent = (part, all) => all > 0 && !signed() ? (100 * part / all).toFixed(1) : "";
const name = line => profile.lines[line][0];
const place = line => profile.lines[line][1];
const brief = line => profile.lines[line][2] || name(line);
const isWrapper = line => Boolean(profile.lines[line][3]);
let hits = []; // which lines match the search
const matches = line => hits[line];

function search(text) {
  const word = text.toLowerCase(), within = part => part.toLowerCase().includes(word);
  state.search = text;
  hits = profile.lines.map(([name, place]) => within(name) || within(place));
}

// ---- stacks ----

// The line that a stack is named by: the innermost that is no wrapper; of wrappers alone the innermost.
function ownOf(frames) {
  let at = frames.length - 1;
  while (at > 0 && isWrapper(frames[at])) at--;
  return at >= 0 && isWrapper(frames[at]) ? frames.length - 1 : at;
}

// Functions have numbers, so that they are compared fast; a line of each stands for it.
let lineOf = [], functionOf = [];

function number() {
  const numbers = new Map();
  functionOf = profile.lines.map((line, index) => {
    if (!numbers.has(line[0])) numbers.set(line[0], lineOf.push(index) - 1);
    return numbers.get(line[0]);
  });
  for (const stack of profile.stacks) {
    stack.functions = [...new Set(stack.frames.map(line => functionOf[line]))];
    stack.own = ownOf(stack.frames);
  }
}

// Stacks of a recording come as a tree: of each node the one that called it, and its line. Of each
// stack and process its node, the process, and for each moment of the process at which something
// changed: the moment, and how much more was allocated (blocks, bytes) and in use.
function unpack({ lines, nodes, paths }) {
  profile.lines = lines;
  const found = new Map();
  for (const [end, process, ...changes] of paths) {
    if (!found.has(end)) {
      const frames = [];
      for (let node = end; node >= 0; node = nodes[2 * node]) frames.push(nodes[2 * node + 1]);
      found.set(end, { frames: frames.reverse(), parts: [], figures: new Array(8).fill(0) });
    }
    found.get(end).parts.push([process, changes]);
  }
  profile.stacks = [...found.values()];
}

// ---- flame graph ----

// All stacks as a tree, from the outermost function on or, `up`, from the innermost. It is made once;
// `fill` gives each node the sum of its stacks, and their sum without signs, which is its width: where
// figures have signs, a function may have more in one place and less in another.
function tree(up) {
  const node = (caller, step) => ({ caller, step, lines: [], callees: [], sum: 0, width: 0, told: false });
  const nodes = [node(-1, -1)], ends = [], found = new Map();
  for (const { frames } of profile.stacks) {
    let at = 0;
    for (let i = 0; i < frames.length; i++) {
      const line = frames[up ? frames.length - 1 - i : i], step = functionOf[line], key = at * lineOf.length + step;
      let next = found.get(key);
      if (next === undefined) {
        next = nodes.push(node(at, step)) - 1;
        found.set(key, next);
        nodes[at].callees.push(nodes[next]);
      }
      at = next;
      if (!nodes[at].lines.includes(line) && nodes[at].lines.length < 100) nodes[at].lines.push(line);
    }
    ends.push(at);
  }
  return { nodes, ends };
}

function fill({ nodes, ends }, figure) {
  for (const node of nodes) {
    node.sum = node.width = 0;
    node.told = node.lines.length > 0 && isFunctionSignificant(node.lines[0]);
  }
  profile.stacks.forEach((stack, index) => {
    const { figures } = stack;
    nodes[ends[index]].sum += figures[figure];
    nodes[ends[index]].width += Math.abs(figures[figure]);
    nodes[ends[index]].told ||= isSignificant(stack);
  });
  for (let i = nodes.length - 1; i > 0; i--) { // callers come before their callees
    nodes[nodes[i].caller].sum += nodes[i].sum;
    nodes[nodes[i].caller].width += nodes[i].width;
    nodes[nodes[i].caller].told ||= nodes[i].told;
  }
  return nodes[0];
}

// Boxes that are wide enough to be seen. Those that lead to the enlarged one are as wide as it.
function layout(root, zoom) {
  const box = (node, caller, x, width) => {
    const made = { node, caller, callees: [], depth: caller ? caller.depth + 1 : 0, x, width };
    if (caller) caller.callees.push(made);
    boxes.push(made);
    return made;
  };
  const boxes = [];
  let top = box(root, null, 0, 1);
  for (const step of zoom) {
    const next = top.node.callees.find(one => one.step === step && one.width > 0);
    if (!next) break;
    top = box(next, top, 0, 1);
  }
  const left = [top]; // not by recursion: stacks may be deep
  while (left.length) {
    const caller = left.pop();
    let { x } = caller;
    for (const node of [...caller.node.callees].sort((a, b) => b.width - a.width)) {
      const width = caller.width * node.width / (caller.node.width || 1);
      if (width >= LEAST) left.push(box(node, caller, x, width));
      x += width;
    }
  }
  return { boxes, top };
}

const way = box => {
  const steps = [];
  for (; box.caller; box = box.caller) steps.push(box.node.step);
  return steps.reverse();
};
const label = box => box.node.lines.length ? brief(box.node.lines[0]) : "all stacks";

function describe(box, label = name) {
  const { node } = box, { sum } = flame.boxes[0].node;
  const share = percent(node.sum, sum);
  const places = [...new Set(node.lines.map(place).filter(Boolean))];
  return shown(node.sum) + (share ? ` (${share}%)` : "") + ": " + (node.lines.length ? label(node.lines[0]) : "all stacks")
    + (places.length ? ` — ${places[0]}` : "") + (places.length > 1 ? ` and ${places.length - 1} other lines` : "")
    + (profile.difference && !node.told ? " (not significant)" : "");
}

function color(node, light) {
  if (signed()) {
    const share = node.width ? Math.abs(node.sum) / node.width : 0;
    if (!node.told && profile.difference) return `hsl(0 0% ${light})`;
    return `hsl(${node.sum > 0 ? 8 : 212} ${Math.round(20 + 60 * share)}% ${light})`;
  }
  let hash = 0;
  for (const letter of name(node.lines[0])) hash = (hash * 31 + letter.codePointAt(0)) >>> 0;
  return `hsl(${18 + hash % 32} ${58 + (hash >> 8) % 24}% ${light})`;
}

const trees = []; // of each way, once it was shown
let flame = null, current = null; // the boxes, and the one that keys start from

function grow() {
  trees[state.way] ||= tree(state.way === 1);
  flame = layout(fill(trees[state.way], column()), state.zoom);
  state.zoom = way(flame.top);
  current = flame.top;
  for (const box of flame.boxes) box.found = state.search !== "" && box.node.lines.some(matches);
  flame.depth = flame.boxes.reduce((most, box) => Math.max(most, box.depth + 1), 0);
  at("deep").style.height = `${flame.depth * ROW}px`;
  at("detail").textContent = describe(current, brief);
  at("all").disabled = state.zoom.length === 0;
  paint();
}

// The part of the graph that is scrolled into sight.
function paint() {
  const canvas = at("canvas"), shownPart = at("flame"), ratio = window.devicePixelRatio || 1;
  const width = shownPart.clientWidth, height = Math.min(shownPart.clientHeight, flame.depth * ROW), top = shownPart.scrollTop;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const draw = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
  const [light, text, field, found] = ["light", "text", "field", "found"].map(one => style.getPropertyValue(`--${one}`).trim());
  draw.scale(ratio, ratio);
  draw.font = "12px system-ui, sans-serif";
  draw.textBaseline = "middle";
  draw.lineWidth = 2;
  for (const box of flame.boxes) {
    const x = box.x * width, y = box.depth * ROW - top, wide = Math.max(box.width * width - 1, 0.5);
    if (y <= -ROW || y >= height) continue;
    draw.fillStyle = box.node.lines.length ? color(box.node, light) : field;
    draw.fillRect(x, y, wide, ROW - 1);
    if (box.found || box === current) {
      draw.strokeStyle = box === current ? text : found;
      draw.strokeRect(x + 1, y + 1, Math.max(wide - 2, 0), ROW - 3);
    }
    if (wide < 24) continue;
    draw.save();
    draw.beginPath();
    draw.rect(x, y, wide - 3, ROW);
    draw.clip();
    draw.fillStyle = text;
    draw.fillText(label(box).slice(0, Math.ceil(wide / 3)), x + 4, y + ROW / 2);
    draw.restore();
  }
}

function boxAt(event) {
  const edge = at("flame").getBoundingClientRect(), part = at("flame");
  const x = (event.clientX - edge.left - part.clientLeft) / part.clientWidth;
  const depth = Math.floor((event.clientY - edge.top - part.clientTop + part.scrollTop) / ROW);
  return flame.boxes.find(box => box.depth === depth && box.x <= x && x < box.x + box.width);
}

function point(box) {
  if (!box || box === current) return;
  current = box;
  at("detail").textContent = describe(box, brief);
  at("flame").title = describe(box);
  paint();
}

function bringIn(box) {
  const part = at("flame"), y = box.depth * ROW;
  part.scrollTop = Math.max(Math.min(part.scrollTop, y), y + ROW - part.clientHeight);
}

function enlarge(zoom) {
  state.zoom = zoom;
  grow();
}

function flameKey(event) {
  const beside = current.caller ? current.caller.callees : [current], index = beside.indexOf(current);
  const to = { ArrowUp: current.caller, ArrowDown: current.callees[0], ArrowLeft: beside[index - 1], ArrowRight: beside[index + 1] };
  if (event.key === "Escape") enlarge([]);
  else if (event.key === "Enter") enlarge(way(current));
  else if (event.key in to) {
    point(to[event.key]);
    bringIn(current);
  } else return;
  event.preventDefault();
}

// ---- tables ----

const sum = (stacks, figure) => stacks.reduce((all, stack) => all + stack.figures[figure], 0);
const size = value => signed() ? Math.abs(value) : value;

// Of each function what stacks have in which it is, each once, and those that are named by it.
function functions() {
  const { at } = KINDS[state.kind], found = new Map();
  for (const { frames, functions, figures, own } of profile.stacks) {
    if (!figures[at] && !figures[at + 1]) continue;
    for (const one of functions) {
      let sums = found.get(one);
      if (!sums) found.set(one, sums = { line: lineOf[one], function: one, total: [0, 0], self: [0, 0] });
      const last = functionOf[frames[own]] === one;
      for (let unit = 0; unit < 2; unit++) {
        sums.total[unit] += figures[at + unit];
        if (last) sums.self[unit] += figures[at + unit];
      }
    }
  }
  return [...found.values()];
}

// What calls a function, and what it calls; calls of itself in between count as one.
function neighbours(which) {
  const callers = new Map(), callees = new Map(), figure = column();
  for (const { frames, functions, figures } of profile.stacks) {
    const value = figures[figure];
    if (value === 0 || !functions.includes(which)) continue;
    const steps = frames.map(line => functionOf[line]), begin = steps.indexOf(which);
    const end = steps.lastIndexOf(which), caller = begin > 0 ? steps[begin - 1] : -1;
    const callee = end + 1 < steps.length ? steps[end + 1] : -1;
    callers.set(caller, (callers.get(caller) || 0) + value);
    callees.set(callee, (callees.get(callee) || 0) + value);
  }
  return [callers, callees];
}

function nameButton(which) {
  const button = make("button", brief(lineOf[which]), "name");
  button.type = "button";
  button.title = name(lineOf[which]);
  button.onclick = () => {
    state.around = which;
    around();
    at("around").scrollIntoView({ block: "nearest" });
  };
  return button;
}

function around() {
  const which = state.around, parts = [];
  if (which !== null) {
    const titles = ["Callers of ", "Callees of "], nobody = ["(nobody: it is the outermost)", "(itself)"];
    neighbours(which).forEach((sums, index) => {
      const part = make("div"), table = make("table"), body = make("tbody");
      const all = [...sums.values()].reduce((a, b) => a + b, 0);
      for (const [one, value] of [...sums].sort(([, a], [, b]) => size(b) - size(a)).slice(0, 20)) {
        const row = make("tr"), cell = make("td");
        cell.append(one < 0 ? make("small", nobody[index]) : nameButton(one));
        row.append(make("td", shown(value)), make("td", percent(value, all)), cell);
        body.append(row);
      }
      table.append(body);
      part.append(make("h2", titles[index] + brief(lineOf[which])), table);
      if (sums.size > 20) part.append(make("p", `20 of ${sums.size}.`));
      parts.push(part);
    });
    const close = make("button", "close");
    close.type = "button";
    close.onclick = () => {
      state.around = null;
      around();
    };
    parts.push(close);
  }
  at("around").replaceChildren(...parts);
}

// Columns of both tables: what they are sorted by, the title, what is sorted, and what is shown.
function columnsOf(view) {
  const kind = KINDS[state.kind].at, figure = column(), unit = UNITS[state.unit][1], total = sum(profile.stacks, figure);
  if (view === 0) return [
    ["total", "total", one => size(one.total[unit]), one => shown(one.total[unit])],
    ["part", "%", one => size(one.total[unit]), one => percent(one.total[unit], total)],
    ["self", "self", one => size(one.self[unit]), one => shown(one.self[unit])],
    ["own", "% self", one => size(one.self[unit]), one => percent(one.self[unit], total)],
    ["blocks", "blocks", one => size(one.total[0]), one => shown(one.total[0], 1)],
    ["name", "function", one => brief(one.line), functionCell],
  ].filter(([, title]) => !(title.startsWith("%") && signed()));
  const each = stack => stack.figures[kind] ? stack.figures[kind + 1] / stack.figures[kind] : 0;
  const columns = [
    ["bytes", KINDS[state.kind].title, stack => size(stack.figures[kind + 1]), stack => shown(stack.figures[kind + 1], 0)],
    ["error", "±", stack => stack.errors[kind + 1], stack => bytes(stack.errors[kind + 1])],
    ["figure", "%", stack => size(stack.figures[figure]), stack => percent(stack.figures[figure], total)],
    ["blocks", "blocks", stack => size(stack.figures[kind]), stack => shown(stack.figures[kind], 1)],
    ["mean", "bytes each", each, stack => stack.figures[kind] ? Math.round(each(stack)).toLocaleString("en") : ""],
    ["site", "function, and what called it", last, stackCell],
  ];
  return columns.filter(([key]) => key !== "error" || !recorded);
}

const last = stack => stack.frames.length ? brief(stack.frames[stack.own]) : "(no stack)";

function functionCell(one) {
  const cell = make("td");
  cell.append(nameButton(one.function), make("small", " " + place(one.line).replace(/:\d+$/, "")));
  return cell;
}

function stackCell(stack) {
  const cell = make("td"), details = make("details"), summary = make("summary", last(stack));
  details.append(summary);
  const every = [...stack.frames].reverse(), callers = every.slice(every.length - 1 - stack.own);
  const own = callers.find(line => !LIBRARY.test(name(line)));
  if (own !== undefined && own !== callers[0]) summary.append(make("small", ` in ${brief(own)} ${place(own)}`));
  else if (callers.length) summary.append(make("small", ` ${place(callers[0])}`));
  for (const line of every) {
    const item = make("div", name(line) + " ");
    item.append(make("small", place(line)));
    details.append(item);
  }
  cell.append(details);
  return cell;
}

// What matches the search, and has anything.
function selected() {
  const { at } = KINDS[state.kind];
  const some = profile.stacks.filter(({ figures }) => figures[at] !== 0 || figures[at + 1] !== 0);
  return state.search ? some.filter(stack => stack.frames.some(matches)) : some;
}

function rows() {
  const { view } = state, stacks = selected();
  const items = view === 1 ? stacks : functions().filter(one => !state.search || matches(one.line));
  const columns = columnsOf(view), [by, down] = state.sort[view];
  const key = (columns.find(one => one[0] === by) || columns[0])[2];
  const told = view === 1 ? isSignificant : one => isFunctionSignificant(one.line);
  items.sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    if (told(a) !== told(b)) return told(a) ? -1 : 1;
    const order = typeof x === "string" ? x.localeCompare(y) : x - y;
    return (down ? -order : order) || columns[0][2](b) - columns[0][2](a);
  });
  const head = make("tr");
  columns.forEach(([id, title], index) => {
    const cell = make("th"), button = make("button", title + (by === id ? (down ? " ▾" : " ▴") : ""));
    button.type = "button";
    button.onclick = () => {
      state.sort[view] = [id, by === id ? !down : index < columns.length - 1];
      rows();
    };
    cell.setAttribute("aria-sort", by !== id ? "none" : down ? "descending" : "ascending");
    cell.append(button);
    head.append(cell);
  });
  at("head").replaceChildren(head);
  const body = document.createDocumentFragment();
  for (const item of items.slice(0, ROWS)) {
    const row = make("tr", undefined, told(item) ? "" : "faint");
    columns.forEach(([, title, , cellOf], index) => {
      const made = cellOf(item), cell = typeof made === "string" ? make("td", made) : made;
      if (index > 0 && index < columns.length - 1) cell.setAttribute("data-title", title);
      row.append(cell);
    });
    body.append(row);
  }
  at("rows").replaceChildren(body);
  at("more").textContent = items.length > ROWS ? `${ROWS} of ${items.length} ${VIEWS[view]}; search to see others.`
    : items.length ? "" : state.search ? `No ${VIEWS[view].slice(0, -1)} matches.` : profile.stacks.length ? `Nothing ${KINDS[state.kind].nothing}.`
    : profile.difference ? "Nothing changed." : "No block was sampled. A smaller profile_rate samples more.";
  const matched = sum(stacks, column()), share = percent(matched, sum(profile.stacks, column()));
  at("matched").textContent = state.search ? `${stacks.length} stacks match: ${shown(matched)}` + (share ? ` (${share}%)` : "") : "";
}

// ---- the page ----

function section(one) {
  const part = make("section");
  part.append(make("h2", one.title));
  if (one.note) part.append(...one.note.split("\n").map(text => make("p", text)));
  if (one.rows.length) {
    const table = make("table", undefined, "plain");
    // Columns of numbers are on the right, also the last one; in a narrow window each has its title.
    const numbers = one.head.map((_, index) => one.rows.every(cells => /^[\d.,]*( |$)/.test(cells[index])));
    const line = (cells, tag) => {
      const row = make("tr");
      row.append(...cells.map((cell, index) => {
        const made = make(tag, cell, numbers[index] ? "number" : undefined);
        if (tag === "td" && numbers[index] && (index > 0 || /^\d+$/.test(cell))) made.setAttribute("data-title", one.head[index]);
        return made;
      }));
      return row;
    };
    const head = make("thead"), body = make("tbody");
    head.append(line(one.head, "th"));
    body.append(...one.rows.map(cells => line(cells, "td")));
    table.append(head, body);
    part.append(table);
  }
  return part;
}

function draw() {
  const choices = [["kinds", KINDS.map(one => one.title), "kind"], ["units", UNITS.map(one => one[0]), "unit"],
    ["ways", WAYS, "way"], ["views", VIEWS, "view"]];
  for (const [id, titles, one] of choices) {
    at(id).replaceChildren(...titles.map((title, index) => {
      const button = make("button", title);
      button.type = "button";
      button.setAttribute("aria-pressed", String(state[one] === index));
      button.onclick = () => {
        if (one === "way") state.zoom = [];
        state[one] = index;
        draw();
      };
      return button;
    }));
  }
  grow();
  around();
  rows();
}

// A switch for each process. The last one that is on can't be switched off.
function switches(processes, changed) {
  at("processes").hidden = processes.length < 2;
  at("processes").append(...processes.map(one => {
    const label = make("label"), box = make("input");
    Object.assign(box, { type: "checkbox", checked: true });
    box.onchange = () => {
      one.off = !box.checked;
      if (processes.every(other => other.off)) {
        one.off = false;
        box.checked = true;
      }
      changed();
    };
    label.append(box, ` ${one.name}`);
    return label;
  }));
}

// The sums of the profiles that are on; errors add up as their squares do.
function add() {
  for (const stack of profile.stacks) {
    stack.figures = stack.figures.map(() => 0);
    stack.errors = stack.errors.map(() => 0);
    for (const [which, figures, errors] of stack.parts) {
      if (profile.processes[which].off) continue;
      figures.forEach((figure, i) => { stack.figures[i] += figure; });
      errors.forEach((error, i) => { stack.errors[i] = Math.hypot(stack.errors[i], error); });
    }
  }
  draw();
}

function start() {
  number();
  at("title").textContent = profile.title;
  at("about").textContent = profile.about || `One sample for each ${profile.rate} on average. All figures are estimates; the true value is within twice ± in 95 of 100 cases.`
    + (profile.difference ? " Red became more, blue less; what is grey is not significant: the choice of samples explains it. A frame is as wide as all changes in it." : "");
  at("sections").replaceChildren(...(profile.sections || []).map(section));
  at("notes").replaceChildren(...profile.notes.map(note => make("p", note)));
  // A program that frees all at its end has nothing in use then.
  const kinds = [0, 2, 1].filter(kind => profile.stacks.some(stack => stack.figures[KINDS[kind].at + 1] !== 0));
  if (recorded) state.kind = 2;
  else if (kinds.length && kinds[0] !== 0) {
    state.kind = kinds[0];
    at("notes").append(make("p", `Nothing ${profile.difference ? "in use changed" : "is in use"}. This is what ${KINDS[state.kind].nothing}.`));
  }
  const box = at("flame");
  box.onkeydown = flameKey;
  box.onpointermove = event => point(boxAt(event));
  box.onclick = event => {
    const one = boxAt(event);
    if (one) enlarge(way(one));
  };
  box.onscroll = paint;
  window.onresize = paint;
  window.matchMedia("(prefers-color-scheme: dark)").onchange = paint;
  at("search").oninput = event => {
    search(event.target.value.trim());
    grow();
    rows();
  };
  at("all").onclick = () => enlarge([]);
  if (!recorded) {
    if (profile.processes) switches(profile.processes, add);
    draw();
    return;
  }
  const begin = () => {
    join();
    curve();
    choose(recorded.before, recorded.times.length - 1);
  };
  switches(recorded.processes, begin);
  listen();
  begin();
}

async function inflated(text) {
  const packed = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

if (recorded) inflated(recorded.packed).then(made => {
  unpack(made);
  start();
});
else start();
