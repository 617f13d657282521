"use strict";
(() => {
const byId = id => document.getElementById(id);
const make = (tag, attributes, ...children) => {
  const node = document.createElement(tag);
  Object.assign(node, attributes);
  node.append(...children);
  return node;
};

// ---- The simulator, each time in a worker of its own, which is ended when its answer is no longer wanted.
async function unpacked() {
  const packed = Uint8Array.from(atob(byId("wasm").textContent), letter => letter.charCodeAt(0));
  const bytes = new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip")));
  return WebAssembly.compile(await bytes.arrayBuffer());
}
const module = unpacked().catch(error => {
  throw Error(`this browser cannot run the simulator: ${error.message}`);
});
module.catch(() => {});
const code = URL.createObjectURL(new Blob([byId("worker").textContent], { type: "text/javascript" }));
async function ask(question, wanted) {
  const worker = new Worker(code);
  try {
    return await new Promise((answered, failed) => {
      worker.onmessage = event => event.data.error ? failed(Error(event.data.error)) : answered(event.data);
      worker.onerror = event => failed(Error(event.message || "the simulator could not be started"));
      wanted?.addEventListener("abort", () => failed(wanted.reason));
      module.then(module => worker.postMessage({ module, question }), failed);
    });
  } finally {
    worker.terminate();
  }
}

// ---- What is chosen: in the address after #, and as the simulator takes it.
let choice, controls = [];
// What the scenario itself says: its values by field.
let own = new Map();

function fromAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  choice = {
    scenario: words.get("scenario") || "sbd/sb-2",
    // A + that was not escaped is read as a space, which no control has.
    cc: (words.get("cc") || "gcubic+xcorr").replaceAll(" ", "+"),
    seed: words.get("seed") || "1",
    set: words.getAll("set").map(set => set.split("=")).map(([field, ...value]) => [field, value.join("=")]),
  };
  const known = ["scenario", "cc", "seed", "set"], unknown = [...words.keys()].find(word => !known.includes(word));
  if (unknown != null) throw Error(`the address: unknown word '${unknown}'; expected ${known.join(", ")}`);
}
function toAddress() {
  const { scenario, cc, seed, set } = choice;
  const words = new URLSearchParams({ scenario, cc, seed });
  set.forEach(([field, value]) => words.append("set", `${field}=${value}`));
  history.replaceState(null, "", "#" + words);
}
// The last counts, as in a command.
const valueOf = field => choice.set.findLast(set => set[0] == field)?.[1];
function setTo(field, value) {
  choice.set = choice.set.filter(set => set[0] != field);
  if (value != own.get(field)?.value) choice.set.push([field, value]);
}

// ---- The form.
const option = (value, text = value) => make("option", { value, textContent: text });
function fillControls() {
  const groups = new Map();
  for (const { law, group } of controls) groups.set(group, (groups.get(group) ?? new Set()).add(law));
  byId("law").replaceChildren(...[...groups].map(([label, laws]) => make("optgroup", { label }, ...[...laws].map(law => option(law)))));
}
function showChoice() {
  const { scenario, cc, seed } = choice;
  if (![...byId("scenario").options].some(({ value }) => value == scenario)) byId("scenario").append(option(scenario));
  byId("scenario").value = scenario;
  let control = controls.find(({ name }) => name == cc);
  if (!control) {
    control = { name: cc, law: cc, detector: "", about: ["", ""], group: "of the address" };
    controls.push(control);
    fillControls();
  }
  byId("law").value = control.law;
  const detectors = controls.filter(({ law }) => law == control.law).map(({ detector }) => detector);
  const offered = [...byId("detector").options].map(({ value }) => value);
  if (offered.join() != detectors.join()) byId("detector").replaceChildren(...detectors.map(detector => option(detector)));
  byId("detector").value = control.detector;
  byId("detector").disabled = detectors.length < 2;
  if (byId("seed").value != seed) byId("seed").value = seed;
  return control;
}
function fromForm() {
  const law = byId("law").value, of = controls.filter(control => control.law == law);
  const { name } = of.find(({ detector }) => detector == byId("detector").value) ?? of[0];
  choice.cc = name;
  choice.seed = byId("seed").value;
}

function showKnobs(described) {
  const box = byId("knobs"), fields = described.knobs.map(({ field }) => field).join();
  if (box.dataset.of != `${choice.scenario} ${fields}`) {
    box.dataset.of = `${choice.scenario} ${fields}`;
    box.replaceChildren(...described.knobs.map(({ field, label }) => {
      const range = make("input", { type: "range", min: 0, step: 1, name: field });
      const shown = make("span", { className: "value" });
      range.oninput = () => {
        const value = range.stops[range.value];
        shown.textContent = value;
        range.setAttribute("aria-valuetext", value);
        setTo(field, value);
        range.parentNode.classList.toggle("changed", valueOf(field) != null);
        soon();
      };
      return make("label", { className: "knob" }, make("span", { textContent: label }), shown, range);
    }));
  }
  for (const { field, stops, at } of described.knobs) {
    const range = box.querySelector(`[name="${CSS.escape(field)}"]`);
    if (!range) continue;
    // What the address says may be none of the usual values.
    const known = own.get(field), value = valueOf(field) ?? stops[at];
    range.stops = known?.stops.includes(value) ? known.stops : stops;
    const place = range.stops == stops ? at : range.stops.indexOf(value);
    range.max = range.stops.length - 1;
    range.value = place;
    range.setAttribute("aria-valuetext", range.stops[place]);
    range.previousSibling.textContent = range.stops[place];
    range.parentNode.classList.toggle("changed", valueOf(field) != null);
  }
}

function say(text, wrong = false) {
  byId("status").textContent = text;
  byId("status").classList.toggle("wrong", wrong);
}

// ---- A run, and one after a change.
let running, waiting;
function soon() {
  stop("");
  waiting = setTimeout(run, 350);
}
// Nothing of another choice stands beside what was wrong.
function fail(error) {
  for (const id of ["results", "files", "command", "meaning", "knobs", "time"]) byId(id).replaceChildren();
  delete byId("knobs").dataset.of;
  document.title = "Narrows: the simulator in a page";
  byId("clock").max = end = 0;
  say(error.message, true);
}
function stop(why) {
  clearTimeout(waiting);
  running?.abort();
  running = null;
  byId("run").textContent = "Run";
  say(why);
}
async function run() {
  clearTimeout(waiting);
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  pause();
  byId("run").textContent = "Stop";
  byId("results").classList.add("old");
  byId("results").setAttribute("aria-busy", "true");
  say("simulating ..");
  try {
    const control = showChoice();
    if (own.of != choice.scenario) {
      const { knobs } = await ask({ describe: { ...choice, cc: null, seed: "1", set: [] } }, signal);
      own = new Map(knobs.map(({ field, stops, at }) => [field, { stops, value: stops[at] }]));
      own.of = choice.scenario;
    }
    toAddress();
    const described = await ask({ describe: choice }, signal);
    showKnobs(described);
    byId("command").textContent = described.command;
    byId("files").replaceChildren();
    const about = [["network", described.title], ["law", control.about[0]], ["detector", control.about[1]]];
    byId("meaning").replaceChildren(...about.filter(([, text]) => text).flatMap(([name, text]) => [make("dt", { textContent: name }), make("dd", { textContent: text })]));
    const began = performance.now();
    if (described.estimate_s > 1) say(`simulating .. the command takes at most about ${described.estimate_s.toFixed(0)} s`);
    const ran = await ask({ run: choice }, signal);
    const took = (performance.now() - began) / 1000;
    show(ran, described);
    say([`${ran.end_s} s simulated in ${took.toFixed(1)} s.`, ...described.warnings].join(" "));
  } catch (error) {
    if (signal.aborted) return;
    fail(error);
  }
  running = null;
  byId("run").textContent = "Run";
}

// ---- Results, and the time up to which they are shown.
let end = 0, clock = 0, last = 0, playing = false;
function show(ran, described) {
  const main = byId("results");
  // What is below stays where it is.
  main.style.minHeight = `${main.offsetHeight}px`;
  main.innerHTML = ran.html;
  main.classList.remove("old");
  main.removeAttribute("aria-busy");
  document.title = `${choice.scenario} under ${described.cc}: Narrows`;
  narrows.draw(JSON.parse(ran.data));
  main.style.minHeight = "";
  files(ran.files);
  end = ran.end_s;
  byId("clock").max = end;
  const still = matchMedia("(prefers-reduced-motion:reduce)").matches || byId("speed").value == "Infinity";
  go(still ? end : 0);
  if (!still) play();
}
let urls = [];
function files(all) {
  urls.forEach(url => URL.revokeObjectURL(url));
  urls = all.map(([, text]) => URL.createObjectURL(new Blob([text])));
  const links = all.map(([name], at) => make("a", { href: urls[at], download: name, textContent: name }));
  byId("files").replaceChildren("Files of this run, the same as the command writes with --out DIR: ", ...links.flatMap((link, at) => at ? [", ", link] : [link]));
}
function go(time) {
  clock = Math.min(time, end);
  byId("clock").value = clock;
  byId("clock").setAttribute("aria-valuetext", `${clock.toFixed(1)} s of ${end} s`);
  byId("time").textContent = `${clock.toFixed(1)} s`;
  narrows.until(clock);
}
function pause() {
  playing = false;
  byId("play").textContent = "Play";
}
function play() {
  if (clock >= end) clock = 0;
  playing = true;
  last = performance.now();
  byId("play").textContent = "Pause";
  requestAnimationFrame(tick);
}
function tick(now) {
  if (!playing) return;
  // Plots are drawn at most so often.
  if (now - last > 40) {
    const time = clock + (now - last) / 1000 * Number(byId("speed").value);
    last = now;
    go(time);
    if (clock >= end) return pause();
  }
  requestAnimationFrame(tick);
}

// ---- What is done to it.
byId("scenario").onchange = () => {
  choice.scenario = byId("scenario").value;
  choice.set = [];
  soon();
};
for (const id of ["law", "detector", "seed"]) {
  byId(id).onchange = () => {
    fromForm();
    showChoice();
    soon();
  };
}
byId("reset").onclick = () => {
  choice.set = [];
  soon();
};
byId("choice").onsubmit = event => {
  event.preventDefault();
  if (running) stop("stopped; what is below is of the run before"); else run();
};
byId("play").onclick = () => playing ? pause() : play();
byId("clock").oninput = () => {
  pause();
  go(Number(byId("clock").value));
};
// A link within the page is no choice.
document.querySelector(".skip").onclick = event => {
  event.preventDefault();
  byId("results").focus();
};
async function begin() {
  stop("");
  let wrong;
  try {
    fromAddress();
  } catch (error) {
    wrong = error;
  }
  try {
    if (!controls.length) {
      controls = await ask("controls");
      fillControls();
    }
    // The form has the choice, whatever is wrong of it.
    showChoice();
    if (wrong) throw wrong;
  } catch (error) {
    return fail(error);
  }
  await run();
}
addEventListener("hashchange", begin);
begin();
})();
