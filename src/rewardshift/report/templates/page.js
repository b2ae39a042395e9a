// The script of report.html: filters the claims and draws each figure when it comes into view.
"use strict";

const WIDTH = 380, HEIGHT = 250, LEFT = 46, RIGHT = 12, TOP = 8, BOTTOM = 36;
const RESAMPLES = 400, MOST_ROWS = 21, MOST_BANDS = 4, BESIDE = 6;
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const exact = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const whole = new Intl.NumberFormat("en");

function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Filters.

function setUpFilters(form) {
  const rows = [...document.querySelectorAll("tr[data-verdict]")];
  const tables = [...document.querySelectorAll("details.all")];
  const apply = (event) => {
    const wanted = new FormData(form);
    const scenario = wanted.get("scenario"), verdicts = wanted.getAll("verdict");
    const asked = rows.filter((row) => !scenario || row.dataset.scenario === scenario);
    const shown = asked.filter((row) => verdicts.includes(row.dataset.verdict));
    for (const row of rows) row.hidden = !shown.includes(row);
    for (const table of tables) {
      table.hidden = !shown.some((row) => table.contains(row));
      table.open ||= event !== undefined;
    }
    form.querySelector("[role=status]").textContent = `${shown.length} of ${rows.length} claims shown`
      + (shown.length < asked.length ? `; ${asked.length - shown.length} hidden by their verdict` : "");
  };
  form.addEventListener("change", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  apply();
}

// Statistics: the same definitions as in the report's Python.

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const sorted = (values) => [...values].sort((a, b) => a - b);

function quantile(ordered, share) {
  const place = share * (ordered.length - 1), below = Math.floor(place);
  const above = Math.min(below + 1, ordered.length - 1);
  return ordered[below] + (place - below) * (ordered[above] - ordered[below]);
}

const CENTRES = {
  "mean": mean,
  "median": (values) => quantile(sorted(values), 0.5),
  "interquartile mean": (values) => {
    const cut = Math.floor(values.length / 4);
    return mean(sorted(values).slice(cut, values.length - cut));
  },
};

function draws(seeds) {
  let state = 1; // a fixed start: the same results give the same band
  const next = () => (state = (state * 48271) % 2147483647);
  return Array.from({ length: RESAMPLES }, () => Array.from({ length: seeds }, () => next() % seeds));
}

const BANDS = {
  "95% bootstrap interval": (columns, centre) => {
    let samples;
    return columns.map((values, i) => {
      samples = values.length === columns[i - 1]?.length ? samples : draws(values.length);
      const centres = sorted(samples.map((sample) => centre(sample.map((i) => values[i]))));
      return [quantile(centres, 0.025), quantile(centres, 0.975)];
    });
  },
  "quartiles of the seeds": (columns) => columns.map(sorted).map((values) => [0.25, 0.75].map((share) => quantile(values, share))),
  "none": null,
};

function summarise(panel, name, state) {
  panel.known ??= {};
  return panel.known[[name, state.centre, state.band]] ??= (() => {
    const columns = panel.steps.map((_, i) => panel.seeds[name].map((values) => values[i]));
    const centre = CENTRES[state.centre], band = BANDS[state.band];
    return { middle: columns.map(centre), band: band && band(columns, centre) };
  })();
}

// Axes.

function linearTicks(low, high) {
  const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough);
  const first = Math.ceil(low / step), count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: count }, (_, i) => (first + i) * step);
}

function logTicks(low, high) {
  const powers = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++) powers.push(power);
  const factors = high / low < 100 ? [1, 2, 5] : [1];
  const ticks = powers.flatMap((power) => factors.map((factor) => factor * 10 ** power));
  return ticks.filter((tick) => tick >= low && tick <= high);
}

function scales(panel, lines, state) {
  const steps = panel.steps.filter((step) => !state.log || step > 0);
  const [first, last] = [steps[0], steps.at(-1)];
  const warp = state.log ? Math.log : (step) => step;
  const long = warp(last) - warp(first) || 1;
  const values = lines.flatMap((line) => [...line.middle, ...(line.band ?? []).flat(),
    ...(state.single ? panel.seeds[line.method.name].flat() : [])]);
  let [low, high] = panel.range ?? [Infinity, -Infinity]; // a curve may leave the range
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  if (!(low < high)) [low, high] = Number.isFinite(low) ? [low - 0.5, low + 0.5] : [0, 1];
  const room = 0.03 * (high - low), down = HEIGHT - TOP - BOTTOM;
  const beside = lines.length > MOST_BANDS ? BESIDE * lines.length : 0; // bars instead of bands
  const across = WIDTH - LEFT - RIGHT - beside;
  return {
    x: (step) => LEFT + across * (warp(step) - warp(first)) / long,
    y: (value) => TOP + down * (high + room - value) / (high - low + 2 * room),
    xTicks: state.log ? logTicks(first, last) : linearTicks(first, last === first ? first + 1 : last),
    yTicks: linearTicks(low, high),
  };
}

function axes(panel, data, { x, y, xTicks, yTicks }) {
  const bottom = HEIGHT - BOTTOM, right = WIDTH - RIGHT;
  return draw("g", { class: "axes" },
    ...yTicks.flatMap((tick) => [
      draw("path", { d: `M${LEFT} ${y(tick)}H${right}` }),
      draw("text", { x: LEFT - 5, y: y(tick) + 4, "text-anchor": "end" }, compact.format(tick))]),
    ...xTicks.flatMap((tick) => [
      draw("path", { d: `M${x(tick)} ${bottom}v4` }),
      draw("text", { x: x(tick), y: bottom + 16, "text-anchor": "middle" }, compact.format(tick))]),
    draw("text", { x: (LEFT + right) / 2, y: HEIGHT - 4, "text-anchor": "middle" }, data.x),
    draw("text", { transform: `translate(11 ${(TOP + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" },
      panel.y));
}

// One panel: its curves, and what they are at one step.

function shownLines(panel, data, state) {
  const methods = data.methods.filter(({ name }) => panel.seeds[name] && !state.off.has(name));
  return methods.map((method) => ({ method, ...summarise(panel, method.name, state) }));
}

function coloured(element, method) {
  element.style.setProperty("--color", method.color);
  return element;
}

function sample(method) {
  const line = draw("path", { d: "M0 5H26", "stroke-dasharray": method.dash });
  return coloured(draw("svg", { viewBox: "0 0 26 10", "aria-hidden": "true" }, line), method);
}

function drawPanel(plot, panel, data, state) {
  const lines = shownLines(panel, data, state), scale = scales(panel, lines, state);
  const points = panel.steps.map((step, i) => [step, i]).filter(([step]) => !state.log || step > 0);
  const path = (values, order = points) =>
    "M" + order.map(([step, i]) => `${scale.x(step).toFixed(1)} ${scale.y(values[i]).toFixed(1)}`).join("L");
  const svg = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" },
    axes(panel, data, scale));
  for (const [place, { method, middle, band }] of lines.entries()) {
    const group = coloured(draw("g", { class: "curve", "data-method": method.name }), method);
    if (band && lines.length > MOST_BANDS) {
      const [low, high] = band.at(-1).map(scale.y), x = WIDTH - RIGHT - BESIDE * (lines.length - place - 1);
      group.append(draw("path", { class: "bar", d: `M${x} ${low}V${high}` }));
    } else if (band) {
      const edges = [0, 1].map((side) => band.map((pair) => pair[side]));
      const back = path(edges[0], [...points].reverse()).replace("M", "L");
      group.append(draw("path", { class: "band", d: `${path(edges[1])}${back}Z` }));
    }
    const seeds = state.single ? panel.seeds[method.name] : [];
    group.append(...seeds.map((values) => draw("path", { class: "seed", d: path(values) })),
      draw("path", { class: "middle", d: path(middle), "stroke-dasharray": method.dash }));
    svg.append(group);
  }
  const guide = draw("path", { class: "guide" });
  svg.append(guide);
  plot.replaceChildren(svg, plot.reading);
  plot.reading.hidden = true;
  plot.read = (at) => {
    if (at === null || !lines.length) return void (plot.reading.hidden = true, guide.removeAttribute("d"));
    plot.at = Math.max(points[0][1], Math.min(at, panel.steps.length - 1));
    const place = scale.x(panel.steps[plot.at]);
    guide.setAttribute("d", `M${place} ${TOP}V${HEIGHT - BOTTOM}`);
    plot.reading.hidden = false;
    plot.reading.replaceChildren(make("b", {}, `${data.x}: ${whole.format(panel.steps[plot.at])}`),
      ...lines.map((line) => make("span", {}, sample(line.method), `${line.method.label}: `
        + `${reading(line, plot.at)}, ${panel.seeds[line.method.name].length} seeds`)));
  };
  plot.nearest = (share) => {
    const place = share * WIDTH, distance = ([step]) => Math.abs(scale.x(step) - place);
    return points.reduce((best, point) => (distance(point) < distance(best) ? point : best))[1];
  };
}

function reading({ middle, band }, at) {
  const interval = band ? ` [${band[at].map((value) => exact.format(value)).join(", ")}]` : "";
  return exact.format(middle[at]) + interval;
}

function makePlot(panel, data) {
  const plot = make("div", { class: "plot", tabindex: "0", role: "group",
    "aria-label": `${panel.title}: ${panel.y} over ${data.x}. The arrow keys read the curves.` });
  plot.reading = make("div", { class: "reading", role: "status", hidden: "" });
  plot.at = -1;
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    plot.read(plot.nearest((event.clientX - box.left) / box.width));
  });
  plot.addEventListener("pointerleave", () => plot.read(null));
  plot.addEventListener("blur", () => plot.read(null));
  plot.addEventListener("keydown", (event) => {
    const last = panel.steps.length - 1;
    const to = { ArrowRight: plot.at + 1, ArrowLeft: plot.at - 1, Home: 0, End: last, Escape: null }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    plot.read(to);
  });
  return plot;
}

// One figure: its controls, its panels and the table behind them.

function choice(name, options, state, key, redraw) {
  const select = make("select", {}, ...Object.keys(options).map((option) => make("option", {}, option)));
  select.addEventListener("change", () => { state[key] = select.value; redraw(); });
  return make("label", {}, `${name} `, select);
}

function box(name, state, key, redraw) {
  const input = make("input", { type: "checkbox" });
  input.addEventListener("change", () => { state[key] = input.checked; redraw(); });
  return make("label", {}, input, ` ${name}`);
}

function toggle(method, state, redraw) {
  const button = make("button", { type: "button", "aria-pressed": "true", "data-method": method.name }, sample(method), method.label);
  button.addEventListener("click", () => {
    const on = state.off.delete(method.name) || !state.off.add(method.name);
    button.setAttribute("aria-pressed", on);
    redraw();
  });
  return button;
}

function numbers(panel, data, state) {
  const lines = shownLines(panel, data, state), every = Math.ceil(panel.steps.length / MOST_ROWS);
  const last = panel.steps.length - 1, kept = panel.steps.map((_, i) => i).filter((i) => (last - i) % every === 0);
  const names = [data.x, ...lines.map(({ method }) => method.label)];
  const row = (i) => make("tr", {}, make("th", { scope: "row" }, whole.format(panel.steps[i])),
    ...lines.map((line) => make("td", {}, reading(line, i))));
  return make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": `Numbers of ${panel.title}` },
    make("table", {}, make("caption", {}, `${panel.title}: ${panel.y}`),
      make("thead", {}, make("tr", {}, ...names.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...kept.map(row))));
}

function setUpChart(chart) {
  const data = JSON.parse(chart.nextElementSibling.textContent);
  const state = { centre: "mean", band: "95% bootstrap interval", log: false, single: false, off: new Set() };
  const used = data.methods.filter(({ name }) => data.panels.some((panel) => panel.seeds[name]));
  const plots = data.panels.map((panel) => makePlot(panel, data));
  const table = make("details", {}, make("summary", {}, "The numbers behind the curves"));
  const redraw = () => {
    data.panels.forEach((panel, i) => drawPanel(plots[i], panel, data, state));
    const tables = table.open ? data.panels.map((panel) => numbers(panel, data, state)) : [];
    table.replaceChildren(table.firstChild, ...tables);
  };
  table.addEventListener("toggle", redraw);
  const panels = make("div", { class: "panels" }, ...data.panels.map((panel, i) =>
    make("div", { class: "panel" }, make("h4", {}, panel.title), plots[i])));
  panels.style.setProperty("--columns", data.columns);
  chart.replaceChildren(
    make("div", { class: "methods", role: "group", "aria-label": "Methods shown" },
      ...used.map((method) => toggle(method, state, redraw))),
    panels,
    make("div", { class: "controls", role: "group", "aria-label": "How the curves are drawn" },
      choice("Line", CENTRES, state, "centre", redraw), choice("Band", BANDS, state, "band", redraw),
      box("logarithmic steps", state, "log", redraw), box("single seeds", state, "single", redraw)),
    table);
  redraw();
}

// The contents: open beside the page, folded above a narrow one, and with the present figure marked.

function setUpContents(contents) {
  const fold = contents.querySelector("details"), wide = matchMedia("(min-width: 70rem)");
  const fit = () => { fold.open = wide.matches; };
  wide.addEventListener("change", fit);
  contents.addEventListener("click", (event) => event.target.closest("a") && fit());
  fit();
  const links = new Map([...contents.querySelectorAll("a")].map((link) => [link.hash.slice(1), link]));
  const mark = ({ isIntersecting, target }) => {
    const link = links.get(target.id);
    if (!isIntersecting) return void link?.removeAttribute("aria-current");
    link?.setAttribute("aria-current", "true");
    link?.scrollIntoView({ block: "nearest" });
  };
  const seen = new IntersectionObserver((entries) => entries.forEach(mark), { rootMargin: "-20% 0px -79%" });
  for (const section of document.querySelectorAll("section.figure")) seen.observe(section);
}

for (const contents of document.querySelectorAll(".contents")) setUpContents(contents);
for (const form of document.querySelectorAll("form.filters")) setUpFilters(form);
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((fold) => { fold.open = true; }));
const observer = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    observer.unobserve(target);
    setUpChart(target);
  }
}, { rootMargin: "400px" });
for (const chart of document.querySelectorAll(".chart")) observer.observe(chart);
