// The curve of a recording, and a range of it. profile.js has the other parts of the page.
"use strict";

// Makes the moments of all processes that are switched on one row: for each moment of the row and each
// process which of its own came last. A process that has ended while others go on has nothing in use.
function join() {
  const some = recorded.processes.filter(one => !one.off), steps = [];
  const latest = Math.max(...some.map(one => one.times[one.times.length - 1]));
  for (const one of some) {
    one.times.forEach((time, own) => steps.push({ time, one, own }));
    if (one.ended < latest) steps.push({ time: one.ended, one, own: -1 });
  }
  steps.sort((a, b) => a.time - b.time);
  recorded.times = steps.map(step => step.time);
  recorded.sizes = [];
  for (const one of some) Object.assign(one, { past: new Int32Array(steps.length), present: new Int32Array(steps.length), size: 0 });
  // Of a part of a recording, what was in use at its begin is a moment, too.
  recorded.before = recorded.part ? recorded.times.filter(time => time <= recorded.begin).length - 1 : -1;
  let size = 0;
  const own = new Map(some.map(one => [one, [-1, -1]]));
  steps.forEach(({ one, own: now }, moment) => {
    own.set(one, [now < 0 ? own.get(one)[0] : now, now]);
    size -= one.size;
    size += one.size = now < 0 ? 0 : one.sizes[now];
    recorded.sizes.push(size);
    for (const [other, [past, present]] of own) {
      other.past[moment] = past;
      other.present[moment] = present;
    }
  });
}

// A range of moments as a process sees it, by its own moments: those between which it allocated, and
// those whose blocks in use count at the begin, at the end and at the peak. -1: none.
function within(one, first, last, peak) {
  const [past, present] = [one.past, one.present].map(row => moment => moment < 0 ? -1 : row[moment]);
  return { first: past(first), last: past(last), before: present(first), left: present(last), peak: present(peak) };
}

// Adds what was so in the range.
function measure(changes, range, figures) {
  for (let i = 0; i < changes.length && changes[i] <= range.last; i += 5) {
    for (let unit = 0; unit < 2; unit++) {
      const allocated = changes[i + 1 + unit], more = changes[i + 3 + unit];
      if (changes[i] > range.first) figures[2 + unit] += allocated;
      if (changes[i] <= range.peak) figures[4 + unit] += more;
      if (changes[i] <= range.before) figures[6 + unit] -= more;
      if (changes[i] <= range.left) {
        figures[unit] += more;
        figures[6 + unit] += more;
      }
    }
  }
}

function peakOf(first, last) {
  let peak = Math.max(first, 0);
  for (let i = peak; i <= last; i++) if (recorded.sizes[i] > recorded.sizes[peak]) peak = i;
  return peak;
}

const seconds = value => value.toFixed(recorded.end - recorded.begin < 10 ? 3 : 2);
const timeOf = moment => moment < 0 ? recorded.begin : recorded.times[moment];

function nearest(second) {
  let found = recorded.before;
  for (let i = found + 1; i < recorded.times.length; i++)
    if (Math.abs(recorded.times[i] - second) <= Math.abs(timeOf(found) - second)) found = i;
  return found;
}

// The last moment that is not after it.
const before = second => recorded.times.reduce((found, time, i) => time <= second ? i : found, -1);

const across = second => 1000 * (second - recorded.begin) / (recorded.end - recorded.begin || 1);

function curve() {
  const most = Math.max(1, ...recorded.sizes);
  const points = recorded.times.map((second, i) => `${across(second).toFixed(1)} ${(158 - 154 * recorded.sizes[i] / most).toFixed(1)}`);
  at("line").setAttribute("d", `M0 160L${["0 158", ...points].join("L")}L1000 160Z`);
  at("marks").setAttribute("d", recorded.marks.map(([second]) => `M${across(second).toFixed(1)} 0V160`).join(""));
  at("named").replaceChildren(...recorded.marks.slice(0, 100).map(([second, mark]) => {
    const button = make("button", `${mark} ${seconds(second)} s`);
    button.type = "button";
    button.onclick = () => {
      state.kind = 0;
      choose(-1, Math.max(before(second), 0));
    };
    return button;
  }));
  at("top").textContent = `memory in use, at most ${bytes(most)}`;
  if (recorded.part) at("always").textContent = "all of this part";
  at("time").hidden = false;
}

// Makes all figures those of a range. While it is dragged only the graph follows.
function choose(first, last, dragged = false) {
  state.range = [Math.min(first, last), Math.max(first, last)];
  [first, last] = state.range;
  const peak = peakOf(first, last);
  const ranges = recorded.processes.map(one => one.off ? null : within(one, first, last, peak));
  for (const { parts, figures } of profile.stacks) {
    figures.fill(0);
    for (const [process, changes] of parts) if (ranges[process]) measure(changes, ranges[process], figures);
  }
  const whole = first <= recorded.before && last === recorded.times.length - 1;
  at("range").setAttribute("x", across(timeOf(first)));
  at("range").setAttribute("width", whole ? 0 : across(timeOf(last)) - across(timeOf(first)));
  at("always").disabled = whole;
  at("since").value = seconds(timeOf(first));
  at("until").value = seconds(timeOf(last));
  const before = first < 0 ? 0 : recorded.sizes[first];
  at("spanned").textContent = `Allocated ${bytes(sum(profile.stacks, 3))} in ${sum(profile.stacks, 2).toLocaleString("en")} blocks. `
    + `In use ${bytes(before)} at ${seconds(timeOf(first))} s, ${bytes(recorded.sizes[last])} at ${seconds(timeOf(last))} s, `
    + `at most ${bytes(recorded.sizes[peak])} at ${seconds(recorded.times[peak])} s.`;
  if (dragged) grow();
  else draw();
}

function listen() {
  const svg = at("curve");
  let from = null, moved = false, due = 0;
  const momentAt = event => {
    const edge = svg.getBoundingClientRect();
    return nearest(recorded.begin + (recorded.end - recorded.begin) * (event.clientX - edge.left) / edge.width);
  };
  svg.onpointerdown = event => {
    from = momentAt(event);
    moved = false;
    svg.setPointerCapture(event.pointerId);
  };
  svg.onpointermove = event => {
    const moment = momentAt(event);
    if (moment >= 0) at("pointed").textContent = `${bytes(recorded.sizes[moment])} at ${seconds(timeOf(moment))} s`;
    if (from === null || (!moved && moment === from)) return;
    moved = true;
    if (!due) due = requestAnimationFrame(() => {
      due = 0;
      if (from !== null) choose(from, moment, true);
    });
  };
  svg.onpointerup = event => {
    if (from === null) return;
    const moment = momentAt(event), first = moved ? from : recorded.before;
    from = null;
    if (!moved) state.kind = 0;
    choose(first, Math.max(moment, 0));
  };
  svg.onpointercancel = () => { from = null; };
  svg.onkeydown = event => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const [first, last] = state.range, end = recorded.times.length - 1;
    if (event.key === "Escape") choose(recorded.before, end);
    else if (!step) return;
    else if (event.shiftKey) choose(Math.min(Math.max(first + step, recorded.before), last), last);
    else choose(first, Math.min(Math.max(last + step, first, 0), end));
    event.preventDefault();
  };
  at("since").onchange = event => choose(Math.min(nearest(Number(event.target.value)), state.range[1]), state.range[1]);
  at("until").onchange = event => choose(state.range[0], Math.max(nearest(Number(event.target.value)), state.range[0], 0));
  at("always").onclick = () => choose(recorded.before, recorded.times.length - 1);
}
