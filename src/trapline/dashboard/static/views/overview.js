// The numbers of a crawl at a glance: tiles, why it is not faster, goals, and curves.

import { ConnectionBar, StateLegend } from "../bar.js";
import { meanOf, rateOf } from "../axis.js";
import { LineChart } from "../chart.js";
import { el, heading, nothing, setHidden, setText, table, tile } from "../dom.js";
import { brief, bytes, count, counted, duration, percent, threeDigits, words } from "../units.js";

const SPANS = [["the whole crawl", Infinity], ["the last 5 minutes", 300], ["the last hour", 3600], ["the last day", 86400]];
const GOALS = { "max-pages": ["--max-pages", count], "max-time": ["--max-time", duration], "max-bytes": ["--max-bytes", bytes], "waiting-pages": ["all waiting pages", count] };
const MOST_ROWS = 8;
const DRAW_S = 2; // curves change slowly, and drawing them costs processor time beside the crawl

// ---- Tiles.

function tiles() {
  const parts = {
    speed: tile("pages a second"), pages: tile("pages"), received: tile("received"), connections: tile("connections"),
    waiting: tile("pages waiting"), errors: tile("errors"), processor: tile("processor"), disk: tile("free on disk"),
  };
  const element = el("ul", { class: "headlines steady" }, Object.values(parts).map((one) => one.element));
  return { element, show: (now) => showTiles(parts, now) };
}

function showTiles(parts, { state, seconds, totals, rates, connections, processor, disk }) {
  const isRunning = state === "running", tries = totals.pages + totals.errors;
  const average = rates.pages_per_s_average ?? (seconds ? totals.pages / seconds : null);
  parts.speed.show(threeDigits(isRunning ? rates.pages_per_s : average), isRunning ? `${threeDigits(average)} on average` : "on average");
  parts.pages.show(count(totals.pages), `of ${count(totals.known)} known`);
  parts.received.show(bytes(totals.bytes), isRunning ? `${bytes(rates.bytes_per_s)}/s` : "");
  parts.connections.show(isRunning ? count(connections.active) : "–", connections.limit ? `at work, of ${count(connections.limit)}` : "");
  parts.waiting.show(count(totals.waiting), `on ${counted(totals.sites, "site")}`);
  parts.errors.show(count(totals.errors), tries ? `${percent(totals.errors / tries)} of the fetches` : "");
  parts.processor.show(percent(processor?.loop), `loop; store ${percent(processor?.store)}`);
  parts.disk.show(bytes(disk?.free), `crawl: ${bytes((disk?.crawl_db ?? 0) + (disk?.warc ?? 0))}`, disk?.free < 1e9);
}

// ---- Goals.

function goalRow({ goal }) {
  const bar = el("progress", { max: 1 }), done = el("td"), left = el("td"), basis = el("td", { class: "about" });
  const [name] = GOALS[goal] ?? [words(goal)];
  return { goal, element: el("tr", {}, el("th", { scope: "row" }, name), el("td", { class: "wide" }, bar), done, left, basis), bar, done, left, basis };
}

function goals() {
  const body = el("tbody");
  let rows = [];
  const frame = el("div", { class: "scroll" }, el("table", { class: "goals" }, el("caption", { class: "unseen" }, "Goals and time left"),
    el("thead", {}, el("tr", {}, ["goal", "", "done", "time left", "estimated from"].map((name) => el("th", { scope: "col" }, name)))), body));
  const section = el("section", {}, el("h3", {}, "Goals"), frame);
  const place = ({ goal }) => Object.keys(GOALS).indexOf(goal);
  const show = (given, isRunning) => {
    const found = [...given].sort((one, other) => place(one) - place(other));
    setHidden(section, !found.length);
    if (rows.map((row) => row.goal).join() !== found.map((one) => one.goal).join()) {
      rows = found.map(goalRow);
      body.replaceChildren(...rows.map((row) => row.element));
    }
    found.forEach((one, at) => showGoal(rows[at], one, isRunning));
  };
  return { element: section, show };
}

function showGoal(row, { goal, done, of, seconds_left: left, basis }, isRunning) {
  const [name, format] = GOALS[goal] ?? [goal, brief];
  row.bar.value = of ? Math.min(1, done / of) : 0;
  row.bar.setAttribute("aria-label", `${name}: ${percent(row.bar.value)}`);
  setText(row.done, `${format(done)} of ${format(of)}`);
  setText(row.left, !isRunning ? "–" : left === null ? "unknown" : left <= 0 ? "reached" : duration(left));
  setText(row.basis, basis ?? "");
}

// ---- Curves.

function curves(progress) {
  const charts = {
    speed: new LineChart({ title: "Speed", about: "Pages per second", names: ["pages/s"] }),
    frontier: new LineChart({ title: "Frontier", about: "Known pages, and those of them that wait", names: ["waiting", "known"], text: brief, axis: { whole: true } }),
    errors: new LineChart({ title: "Errors", about: "Failed fetches per minute", names: ["errors/min"], looks: ["c1"] }),
    connections: new LineChart({ title: "Connections at work", about: "Connections with a visit under way", names: ["connections"], looks: ["c2"], axis: { whole: true } }),
  };
  const span = el("select", { change: () => draw() }, SPANS.map(([name, seconds]) => el("option", { value: seconds }, name)));
  const draw = (now = null) => {
    const { end } = progress, low = Math.max(0, end - Number(span.value)), { seconds, pages, errors } = progress.curves;
    const per = (factor, line) => ({ x: line.x, y: line.y.map((value) => value * factor) });
    charts.speed.draw(seconds.length ? [rateOf(seconds, pages, low, end)] : [], low, end, now ? `${threeDigits(now.rates.pages_per_s)} now` : "");
    charts.frontier.draw([progress.line("waiting", low), progress.line("known", low)], low, end);
    charts.errors.draw(seconds.length ? [per(60, rateOf(seconds, errors, low, end))] : [], low, end);
    charts.connections.draw([meanOf(progress.line("active", low), low, end)], low, end);
  };
  const element = el("section", {}, el("h3", {}, "Over time"),
    el("label", { class: "zoom" }, "time axes show ", span),
    el("div", { class: "charts" }, Object.values(charts).map((chart) => chart.element)));
  return { element, draw };
}

// ---- Lists.

const LISTS = [["errors", "Errors by kind", "kind"], ["abandoned", "Abandoned sites", "reason"], ["rejected", "Rejected links", "reason"]];

function lists() {
  const element = el("div", { class: "counts" });
  let last = "";
  const show = (now) => {
    const text = JSON.stringify([...LISTS.map(([name]) => now[name]), now.busiest]);
    if (text === last) return;
    last = text;
    const tables = LISTS.map(([name, title, what]) => countList(title, what, "number", Object.entries(now[name] ?? {})));
    element.replaceChildren(...[...tables, countList("Busiest sites now", "site", "pages lately", now.busiest ?? [])].filter(Boolean));
  };
  return { element, show };
}

function countList(title, what, unit, entries) {
  const rows = entries.sort(([, one], [, other]) => other - one).slice(0, MOST_ROWS);
  if (!rows.length) return null;
  const columns = [{ name: what, first: true, class: "left", cell: ([name]) => words(name) }, { name: unit, cell: ([, number]) => count(number) }];
  return el("section", { class: "list" }, el("h3", {}, title), table(title, what === "site" ? [{ ...columns[0], cell: ([name]) => name }, columns[1]] : columns, rows, "pairs"));
}

// ---- The view.

export function open({ progress, href }) {
  const parts = { tiles: tiles(), goals: goals(), curves: curves(progress), lists: lists() };
  const bar = new ConnectionBar({ height: 26, labelled: false }), legend = new StateLegend();
  const sentence = el("p", { class: "sentence" }), notes = el("div", { class: "notes" });
  const why = el("section", { class: "why-card" }, el("h3", {}, "Why not faster?"), sentence, bar.element, legend.element,
    el("a", { href: href("speed") }, "All connections, and what would help"));
  const title = heading("Overview"), empty = nothing("The crawl has not fetched a page yet.", "Curves begin with its first page.");
  const element = el("section", { class: "overview" }, title, notes, parts.tiles.element, why, parts.goals.element, empty, parts.curves.element, parts.lists.element);
  title.classList.add("unseen");
  let drawnAt = -Infinity, loads = 0;

  const update = (now) => {
    const clock = performance.now() / 1000;
    parts.tiles.show(now);
    setText(sentence, now.speed?.sentence ?? "");
    setHidden(why, !now.speed?.sentence);
    setHidden(bar.element, !Object.keys(now.speed?.shares ?? {}).length);
    bar.draw(now.speed?.shares);
    legend.draw(now.speed?.shares);
    parts.goals.show(now.goals ?? [], now.state === "running");
    parts.lists.show(now);
    setHidden(empty, now.totals.pages > 0);
    setHidden(parts.curves.element, now.totals.pages === 0);
    notes.replaceChildren(...(now.notes ?? []).map((note) => el("p", { class: "note" }, note)));
    if (clock - drawnAt >= DRAW_S || loads !== progress.loads) {
      [drawnAt, loads] = [clock, progress.loads];
      parts.curves.draw(now.state === "running" ? now : null);
    }
  };
  return { element, update };
}
