"use strict";
const narrows = (() => {
// The timeline of what is drawn; of it nothing is shown that comes after `now`.
let end, warmup, events, now = Infinity;
const root = document.documentElement;
const FONT = '12px system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif';
const SMALL = 640, LANE = 20, HEADING = 24;

// Colours of the style sheet, asked for once per theme.
let known = {};
const colour = name => known[name] ||= getComputedStyle(root).getPropertyValue("--" + name).trim();
// Of few curves bands may be stronger.
const faint = (name, curves) => colour(name) + (curves > 3 ? "20" : "38");
const narrow = () => innerWidth <= SMALL;

const make = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};
const number = value => {
  if (value == null) return "";
  const size = Math.abs(value);
  return value.toFixed(size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2);
};
const time = value => value.toFixed(range[1] - range[0] < 3 ? 2 : 1);

// ---- The time that all plots over it show.
let range = [0, 0];
let shown = []; // What is drawn: { u, over, fill(), head }.
const timed = () => shown.filter(one => one.over);

function show(from, to) {
  const least = Math.min(end, 0.5);
  let width = Math.min(end, Math.max(least, to - from));
  const middle = (from + to) / 2;
  from = Math.min(Math.max(0, middle - width / 2), end - width);
  range = [from, from + width];
  timed().forEach(one => one.fill());
  const output = document.getElementById("range");
  if (output) output.textContent = `${number(range[0])} to ${number(range[1])} s`;
}

const STEPS = {
  in: (a, b) => [a + (b - a) / 4, b - (b - a) / 4],
  out: (a, b) => [a - (b - a) / 2, b + (b - a) / 2],
  left: (a, b) => [a - (b - a) / 4, b - (b - a) / 4],
  right: (a, b) => [a + (b - a) / 4, b + (b - a) / 4],
  all: () => [0, end],
};
const step = name => show(...STEPS[name](...range));

// Shows what was so until `time`, and the values then; at the end all of it.
function until(time) {
  now = time < end ? time : Infinity;
  timed().forEach(one => {
    one.fill();
    const left = now < end ? one.u.valToPos(now, "x") : -10;
    one.u.setCursor({ left: left > one.u.over.clientWidth ? -10 : left, top: 20 });
  });
}

// ---- As much of a plot as can be told apart: the mean of neighbours between their extremes.
function level(plot, from, to, buckets) {
  const { x, curves } = plot;
  let first = 0, last = x.length;
  if (plot.over_time) {
    while (first < x.length - 1 && x[first + 1] < from) first++;
    while (last > 1 && x[last - 2] > to) last--;
  }
  const each = plot.smooth ? Math.max(1, Math.ceil((last - first) / buckets)) : 1;
  first -= first % each;
  const xs = [], ys = curves.map(() => [[], [], []]);
  for (let i = first; i < last; i += each) {
    const until = Math.min(i + each, x.length);
    if (plot.over_time && x[until - 1] > now) break;
    xs.push(each > 1 ? (x[i] + x[until - 1]) / 2 : x[i]);
    curves.forEach((curve, at) => {
      let sum = 0, count = 0, low = Infinity, high = -Infinity;
      for (let j = i; j < until; j++) {
        const y = curve.y[j];
        if (y == null) continue;
        sum += y;
        count++;
        low = Math.min(low, curve.low.length ? curve.low[j] : y);
        high = Math.max(high, curve.high.length ? curve.high[j] : y);
      }
      const wide = count && (each > 1 || curve.low.length);
      ys[at][0].push(count ? sum / count : null);
      ys[at][1].push(wide ? low : null);
      ys[at][2].push(wide ? high : null);
    });
  }
  return { xs, ys, each };
}

// ---- What is behind the curves: the warm-up and the events.
function behind(u, over) {
  const { ctx, bbox } = u, ratio = devicePixelRatio;
  const at = value => Math.min(Math.max(u.valToPos(value, "x", true), bbox.left), bbox.left + bbox.width);
  ctx.save();
  if (warmup > range[0]) {
    ctx.fillStyle = colour("shade");
    ctx.fillRect(bbox.left, bbox.top, at(warmup) - bbox.left, bbox.height);
  }
  ctx.restore();
  if (!over) marks(u);
}
function marks(u) {
  const { ctx, bbox } = u, ratio = devicePixelRatio;
  ctx.save();
  ctx.font = `${11 * ratio}px system-ui,sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  // Numbers of events that stand close share a place.
  let label = { x: -Infinity, text: "" };
  const write = () => ctx.fillText(label.text, label.x, bbox.top + ratio);
  events.forEach((event, i) => {
    if (event.at < range[0] || event.at > range[1]) return;
    const x = Math.round(u.valToPos(event.at, "x", true)) + 0.5;
    ctx.strokeStyle = ctx.fillStyle = colour("muted");
    ctx.lineWidth = ratio;
    ctx.setLineDash([2 * ratio, 3 * ratio]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    if (events.length > 30) return;
    if (x - label.x < 12 * ratio) {
      label.text += `, ${i + 1}`;
      return;
    }
    if (label.text) write();
    label = { x: x + 3 * ratio, text: `${i + 1}` };
  });
  if (label.text) write();
  ctx.restore();
}

const axis = more => ({
  stroke: () => colour("muted"), font: FONT, labelFont: FONT,
  grid: { stroke: () => colour("grid"), width: 1 },
  ticks: { stroke: () => colour("rule"), width: 1, size: 4 },
  ...more,
});
const left = () => narrow() ? 56 : 92;

// Options that curves and lanes have in common.
function options(box, height, over, label, more) {
  return {
    width: box.clientWidth, height, legend: { show: false }, padding: [8, 18, 0, 0],
    cursor: {
      y: false, drag: { x: true, y: false, setScale: !over },
      ...(over && { sync: { key: "time", filters: { pub: type => type == "mousemove" || type == "mouseleave" } } }),
      ...(over && { bind: { dblclick: () => () => { step("all"); return null; } } }),
      points: { size: 7 },
    },
    ...more,
    axes: [axis({ label, labelSize: 20, size: 34, space: 60 }), more.side],
    scales: { x: { time: false, ...(over && { range: () => range }) }, y: more.y },
    hooks: {
      ...more.hooks,
      drawClear: over ? [u => behind(u, more.marksOver)] : [],
      setSelect: over ? [u => {
        const { left, width } = u.select;
        if (width > 4) show(u.posToVal(left, "x"), u.posToVal(left + width, "x"));
        u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      }] : [],
    },
  };
}

const quoted = text => {
  text = String(text ?? "");
  // What a spreadsheet would take for a formula.
  if (/^[=+@\t]/.test(text)) text = "'" + text;
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
function download(title, lines) {
  const text = lines.map(line => line.map(quoted).join(",")).join("\n") + "\n";
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = make("a", { href: url, download: title.toLowerCase().replace(/[^a-z0-9]+/g, "-") + ".csv" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
function fill(scroll, heads, lines) {
  const row = (tag, cells) => make("tr", {}, ...cells.map((cell, i) => make(tag, i ? { class: "number" } : {}, cell)));
  scroll.replaceChildren(make("table", {}, make("thead", {}, row("th", heads)), make("tbody", {}, ...lines.map(line => row("td", line)))));
}

const DASHES = { solid: undefined, dashed: [6, 4], dotted: [2, 3] };
const sample = (name, line) => {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("width", 20);
  svg.setAttribute("height", 10);
  svg.innerHTML = `<path d="M0 5h20" stroke-width="2.5" stroke-dasharray="${{ solid: "none", dashed: "5 3", dotted: "2 2.5" }[line]}"/>`;
  svg.firstChild.style.stroke = `var(--${name})`;
  return svg;
};
const swatch = kind => {
  const canvas = make("canvas", { width: 36, height: 24, style: "width:18px;height:12px" });
  canvas.paint = () => {
    const ctx = canvas.getContext("2d");
    ctx.clearRect(0, 0, 36, 24);
    paint(ctx, kind, 0, 0, 36, 24, 2);
  };
  canvas.paint();
  return canvas;
};

// ---- A plot of curves.
function plot(figure, of) {
  const box = figure.querySelector(".canvas"), legend = figure.querySelector(".legend");
  const buckets = () => Math.max(60, Math.round(box.clientWidth / (of.curves.length > 3 ? 8 : 4)));
  let drawn;
  const data = () => {
    drawn = level(of, ...range, buckets());
    // The first curve is drawn last, over the others.
    return [drawn.xs, ...drawn.ys.reverse().flat()];
  };
  const steps = uPlot.paths.stepped({ align: 1 });
  const series = [{}], bands = [];
  const place = i => 3 * (of.curves.length - 1 - i) + 1;
  [...of.curves].reverse().forEach((curve, i) => {
    const paths = curve.steps ? { paths: steps } : {};
    const base = { show: !curve.hidden, points: { show: false }, spanGaps: false };
    series.push(
      { ...base, ...paths, label: curve.name, stroke: () => colour(curve.colour), width: curve.line == "solid" ? 1.75 : 1.25, dash: DASHES[curve.line] },
      { ...base, label: "", stroke: null, width: 0 }, { ...base, label: "", stroke: null, width: 0 });
    bands.push({ series: [3 * i + 3, 3 * i + 2], fill: () => faint(curve.colour, of.curves.length) });
  });
  const values = [];
  of.curves.forEach((curve, i) => {
    const value = make("span", { class: "value" });
    const key = make("button", { type: "button", class: "key", "aria-pressed": !curve.hidden }, sample(curve.colour, curve.line), make("span", {}, curve.name), value);
    key.onclick = () => {
      const on = key.getAttribute("aria-pressed") == "false";
      key.setAttribute("aria-pressed", on);
      for (let part = 0; part < 3; part++) one.u.setSeries(place(i) + part, { show: on });
    };
    values.push(value);
    legend.append(key);
  });
  const at = figure.querySelector(".at");
  const cursor = u => {
    const { idx } = u.cursor;
    values.forEach((value, i) => value.textContent = idx == null ? "" : number(u.data[place(i)][idx]));
    const x = idx == null ? null : u.data[0][idx];
    at.textContent = x == null ? "" : of.over_time ? `at ${time(x)} s${drawn.each > 1 ? `, mean of ${number(drawn.each * (of.x[1] - of.x[0]))} s` : ""}` : `at ${number(x)}`;
  };
  const side = axis({
    label: of.unit || of.y_label, labelSize: 18, size: left() - 18, space: 34,
    values: (u, splits) => splits.map(value => Math.abs(value) >= 1e4 ? `${value / 1e3}k` : String(Math.round(value * 1e6) / 1e6)),
  });
  // While time goes on the axis stays.
  const peaks = of.curves.map(curve => [...curve.y, ...curve.high].reduce((most, value) => Math.max(most, value), 0));
  const most = (u, there) => now < end && of.over_time ? Math.max(...peaks.filter((_, i) => u.series[place(i)].show)) : there;
  const top = value => value > 0 ? value * 1.08 : 1;
  const y = { range: (u, least, greatest) => [Math.min(0, least ?? 0), of.top ?? top(most(u, greatest))] };
  const one = { over: of.over_time, head: of.title };
  one.height = () => narrow() ? 200 : 240;
  one.u = new uPlot(options(box, one.height(), of.over_time, of.x_label, { series, bands, side, y, hooks: { setCursor: [cursor] } }), data(), box);
  one.fill = () => {
    one.u.setData(data());
    table();
  };
  const unit = of.unit ? `, ${of.unit}` : "";
  const scroll = figure.querySelector(".scroll"), details = figure.querySelector("details");
  const table = () => {
    if (!details.open) return;
    const { xs, ys } = level({ ...of, smooth: true }, ...range, 100);
    const cell = ([mean, low, high], i) => number(mean[i]) + (low[i] != null && low[i] != high[i] ? ` (${number(low[i])} to ${number(high[i])})` : "");
    fill(scroll, [of.x_label, ...of.curves.map(curve => curve.name + unit)], xs.map((x, i) => [of.over_time ? time(x) : number(x), ...ys.map(y => cell(y, i))]));
  };
  details.ontoggle = table;
  figure.querySelector(".csv").onclick = () => {
    const thin = of.curves.map(curve => curve.low.length > 0);
    const heads = of.curves.flatMap((curve, i) => [curve.name + unit, ...(thin[i] ? [`${curve.name} least`, `${curve.name} greatest`] : [])]);
    download(of.title, [[of.x_label, ...heads], ...of.x.map((x, j) => [x, ...of.curves.flatMap((curve, i) => [curve.y[j], ...(thin[i] ? [curve.low[j], curve.high[j]] : [])])])]);
  };
  return one;
}

// ---- Lanes.
let patterns = {};
function hatch(ctx, name, ratio, both) {
  const key = name + both + ratio;
  if (patterns[key]) return patterns[key];
  const size = Math.round(7 * ratio), tile = make("canvas", { width: size, height: size }), to = tile.getContext("2d");
  to.fillStyle = colour(name);
  to.globalAlpha = both ? 1 : 0.35;
  to.fillRect(0, 0, size, size);
  to.globalAlpha = 1;
  to.strokeStyle = both ? colour("bg") : colour(name);
  to.lineWidth = 1.5 * ratio;
  to.beginPath();
  for (const shift of [-size, 0, size]) {
    to.moveTo(shift, size);
    to.lineTo(shift + size, 0);
  }
  to.stroke();
  return patterns[key] = ctx.createPattern(tile, "repeat");
}
const kind = of => typeof of == "string" ? of : Object.keys(of)[0];
function paint(ctx, of, x, y, width, height, ratio) {
  switch (kind(of)) {
    case "group": ctx.fillStyle = colour("c" + (1 + of.group % 6)); break;
    case "right": ctx.fillStyle = colour("right"); break;
    case "wrong": ctx.fillStyle = hatch(ctx, "wrong", ratio, true); break;
    case "undecided": ctx.fillStyle = hatch(ctx, "undecided", ratio, false); break;
    case "alone":
      ctx.fillStyle = colour("clear");
      ctx.fillRect(x, y, width, height);
      ctx.fillStyle = colour("muted");
      ctx.fillRect(x, y + height - 3 * ratio, width, 3 * ratio);
      return;
    case "clear": ctx.fillStyle = colour("clear"); break;
    case "lost": ctx.fillStyle = colour(of.colour ?? "muted"); break;
    default:
      ctx.strokeStyle = colour("muted");
      ctx.lineWidth = ratio;
      ctx.setLineDash([3 * ratio, 3 * ratio]);
      ctx.strokeRect(x + ratio / 2, y + height / 2, width - ratio, 0);
      ctx.setLineDash([]);
      return;
  }
  ctx.fillRect(x, y, width, height);
}
const MEANING = { alone: "alone", right: "right", wrong: "wrong", undecided: "undecided", clear: "not congested", absent: "not there" };

function lanes(figure, of) {
  const box = figure.querySelector(".canvas"), legend = figure.querySelector(".legend");
  // Above all the numbers of events.
  let y = events.length ? 14 : 0;
  const rows = of.lanes.map(lane => {
    if (lane.heading) y += HEADING;
    const row = { lane, top: y };
    y += LANE + 3;
    return row;
  });
  const kinds = new Map();
  of.lanes.forEach(lane => lane.spans.forEach(span => kinds.set(kind(span.kind), span.kind)));
  if (kinds.has("group")) legend.append(make("span", { class: "key" }, swatch({ group: 0 }), swatch({ group: 1 }), "one colour: one group"));
  for (const name of Object.keys(MEANING)) {
    if (kinds.has(name)) legend.append(make("span", { class: "key" }, swatch(kinds.get(name)), MEANING[name]));
  }
  const draw = u => {
    const { ctx, bbox } = u, ratio = devicePixelRatio;
    ctx.save();
    ctx.textBaseline = "middle";
    const right = bbox.left + bbox.width;
    for (const { lane, top } of rows) {
      const at = bbox.top + top * ratio;
      ctx.fillStyle = colour("ink");
      if (lane.heading) {
        ctx.font = `600 ${12 * ratio}px system-ui,sans-serif`;
        ctx.textAlign = "left";
        ctx.fillText(lane.heading, bbox.left, at - 10 * ratio);
      }
      ctx.font = `${12 * ratio}px system-ui,sans-serif`;
      ctx.textAlign = "right";
      // Without its middle, as names differ at their ends.
      const letters = [...lane.name], room = bbox.left - 12 * ratio;
      let name = lane.name;
      for (let keep = letters.length - 1; keep > 2 && ctx.measureText(name).width > room; keep--) {
        name = letters.slice(0, Math.ceil(keep / 2)).join("") + "…" + letters.slice(-Math.floor(keep / 2)).join("");
      }
      ctx.fillText(name, bbox.left - 8 * ratio, at + LANE * ratio / 2);
      ctx.fillStyle = colour("grid");
      ctx.fillRect(bbox.left, at + LANE * ratio, bbox.width, ratio);
      const most = lane.spans.reduce((most, span) => Math.max(most, span.kind.lost ?? 0), 1);
      for (const span of lane.spans) {
        if (span.to < range[0] || span.from > Math.min(range[1], now)) continue;
        const from = Math.max(bbox.left, u.valToPos(span.from, "x", true)), to = Math.min(right, u.valToPos(Math.min(span.to, now), "x", true));
        // The more were lost, the higher.
        const height = LANE * (span.kind.lost ? 0.25 + 0.75 * span.kind.lost / most : 1) * ratio;
        paint(ctx, span.kind.lost ? { ...span.kind, colour: lane.colour } : span.kind, from, at + LANE * ratio - height, Math.max(span.kind.lost ? 1.5 * ratio : 0.5, to - from), height, ratio);
      }
    }
    ctx.restore();
    marks(u);
  };
  const at = figure.querySelector(".at");
  const there = (lane, x) => lane.spans.find(span => span.from <= x && x < span.to);
  const cursor = u => {
    const x = u.cursor.left >= 0 ? u.posToVal(u.cursor.left, "x") : null;
    const said = x == null ? [] : of.lanes.map(lane => [lane, there(lane, x)]).filter(([, span]) => span && span.what);
    at.textContent = x == null ? "" : [`at ${time(x)} s`, ...said.slice(0, narrow() ? 1 : 3).map(([lane, span]) => `${lane.name}: ${span.what}`)].join("; ");
  };
  const one = { over: true, head: of.title };
  const side = axis({ size: left(), values: () => [], grid: { show: false }, ticks: { show: false } });
  one.height = () => y + 8 + 34 + 20 + 4;
  const series = [{}, { stroke: "transparent", points: { show: false } }];
  one.u = new uPlot(options(box, one.height(), true, "time, s", { series, side, marksOver: true, y: { range: [0, 1] }, hooks: { draw: [draw], setCursor: [cursor] } }), [[0, end], [0, 0]], box);
  one.u.cursor.points.show = false;
  one.fill = () => one.u.setData([[0, end], [0, 0]]);
  one.theme = () => legend.querySelectorAll("canvas").forEach(canvas => canvas.paint());
  const lines = () => of.lanes.flatMap(lane => lane.spans.map(span => [lane.heading_of ?? "", lane.name, span.from, span.to, span.what || kind(span.kind)]));
  let heading = "";
  of.lanes.forEach(lane => lane.heading_of = heading = lane.heading ?? heading);
  const heads = ["part", "lane", "from, s", "to, s", "what"], details = figure.querySelector("details");
  details.ontoggle = () => details.open && fill(figure.querySelector(".scroll"), heads, lines());
  figure.querySelector(".csv").onclick = () => download(of.title, [heads, ...lines()]);
  return one;
}

// ---- All of the page: draws the data into its figures.
function draw(data) {
  shown.forEach(one => one.u.destroy());
  shown = [];
  ({ end, warmup, events } = data.timeline);
  range = [0, end];
  now = Infinity;
  data.lanes.forEach(of => of.lanes.forEach(lane => lane.spans = lane.spans.map(([from, to, kind, what]) => ({ from, to, kind, what: what ?? (kind.lost ? `${kind.lost}` : "") }))));
  document.querySelectorAll("figure").forEach(figure => attach(figure, data));
  document.querySelectorAll(".block .csv").forEach(button => button.onclick = () => {
    const block = button.closest(".block"), rows = [...block.querySelectorAll("tr")];
    download(block.querySelector("h3")?.textContent || document.title, rows.map(row => [...row.cells].map(cell => cell.textContent)));
  });
  if (timed().length) show(0, end);
}
function attach(figure, data) {
  const { kind, number } = figure.dataset;
  const one = kind == "plot" ? plot(figure, data.plots[number]) : lanes(figure, data.lanes[number]);
  shown.push(one);
  const box = figure.querySelector(".canvas");
  box.onkeydown = event => {
    const by = (event.shiftKey ? 40 : 8) * (event.key == "ArrowLeft" ? -1 : 1);
    const width = one.u.over.clientWidth;
    switch (event.key) {
      case "ArrowLeft": case "ArrowRight": {
        const left = Math.min(Math.max(0, (one.u.cursor.left >= 0 ? one.u.cursor.left : width / 2) + by), width - 1);
        (one.over ? timed() : [one]).forEach(other => other.u.setCursor({ left, top: 20 }));
        break;
      }
      case "+": case "=": if (one.over) step("in"); break;
      case "-": if (one.over) step("out"); break;
      case "0": case "Escape": if (one.over) step("all"); break;
      default: return;
    }
    event.preventDefault();
  };
}
document.querySelectorAll("[data-zoom]").forEach(button => button.onclick = () => step(button.dataset.zoom));

function repaint() {
  known = {};
  patterns = {};
  shown.forEach(one => {
    one.u.redraw(false, true);
    one.theme?.();
  });
}
const dark = matchMedia("(prefers-color-scheme:dark)");
dark.addEventListener("change", repaint);
document.getElementById("theme").onclick = () => {
  const now = root.dataset.theme ?? (dark.matches ? "dark" : "light");
  root.dataset.theme = now == "dark" ? "light" : "dark";
  repaint();
};
const fit = width => shown.forEach(one => {
  const { axes } = one.u;
  axes[1].size = (() => left() - (axes[1].label ? 18 : 0));
  one.u.setSize({ width: width ?? one.u.root.parentNode.clientWidth, height: one.height() });
  one.fill?.();
});
let last = innerWidth;
addEventListener("resize", () => {
  if (innerWidth == last) return;
  last = innerWidth;
  fit();
});
let before;
addEventListener("beforeprint", () => {
  before = root.dataset.theme;
  root.dataset.theme = "light";
  repaint();
  fit(680);
});
addEventListener("afterprint", () => {
  if (before) root.dataset.theme = before;
  else delete root.dataset.theme;
  repaint();
  fit();
});
const data = document.getElementById("data");
if (data) draw(JSON.parse(data.textContent));
return { draw, until };
})();
