// The partitions of a parallel crawl: their shares, their exchange of URLs, and their restarts.

import { ConnectionBar, STATES, StateLegend } from "../bar.js";
import { get } from "../api.js";
import { el, heading, hint, nothing, setHidden, setText, table } from "../dom.js";
import { bytes, count, counted, duration, percent, threeDigits, words } from "../units.js";

const REFRESH_MS = 2000;

const COLUMNS = [
  { name: "Partition", first: true, class: "left", cell: (one) => `partition ${one.partition}` },
  { name: "State", class: "left", cell: (one) => el("span", { class: "state", "data-state": one.state }, words(one.state)) },
  { name: "Pages", cell: (one) => count(one.pages) },
  { name: "Share", cell: (one) => percent(one.share) },
  { name: "Pages/s", cell: (one) => threeDigits(one.pages_per_s) },
  { name: "Waiting", cell: (one) => count(one.waiting) },
  { name: "Known", cell: (one) => count(one.known) },
  { name: "Sites", cell: (one) => count(one.sites) },
  { name: "Errors", cell: (one) => count(one.errors) },
  { name: "Received", cell: (one) => bytes(one.bytes) },
  { name: "Connections", cell: (one) => count(one.active) },
  { name: "URLs sent", cell: (one) => count(one.urls_sent) },
  { name: "Batches sent", cell: (one) => count(one.batches_sent) },
  { name: "Batches received", cell: (one) => count(one.batches_received) },
  { name: "Restarts", cell: (one) => (one.restarts === null ? "–" : el("span", { class: one.restarts ? "warns" : null }, count(one.restarts))) },
  { name: "Machine", class: "left", cell: (one) => one.machine || "–" },
  { name: "Last report", cell: (one) => (one.age_s === null || one.age_s === undefined ? "–" : one.age_s < 2 ? "now" : `${duration(one.age_s)} ago`) },
];

export function open({ api }) {
  const abort = new AbortController(), about = hint(""), rows = el("div"), bars = el("div", { class: "partition-bars" });
  const kept = new Map(), legend = new StateLegend();
  const connections = el("section", {}, el("h3", {}, "Connections"), bars, legend.element);
  let timer = null;

  function showBars(partitions) {
    const found = partitions.filter((one) => one.connections && one.state === "running");
    for (const { partition, connections } of found) {
      if (!kept.has(partition)) {
        const bar = new ConnectionBar({ height: 18, labelled: false });
        kept.set(partition, bar);
        bars.append(el("div", {}, el("span", {}, `partition ${partition}`), bar.element));
      }
      kept.get(partition).draw(connections);
    }
    const sum = (state) => found.reduce((total, one) => total + (one.connections[state] ?? 0), 0);
    legend.draw(Object.fromEntries(STATES.map(([state]) => [state, sum(state)])));
    setHidden(connections, !found.length);
  }

  function show({ mode, partitions }) {
    setText(about, `${counted(partitions.length, "partition")}${mode ? `; mode: ${mode}` : ""}.`);
    const scrolled = rows.querySelector(".scroll")?.scrollLeft ?? 0;
    rows.replaceChildren(partitions.length ? table("Partitions", COLUMNS, partitions) : nothing("No partition has reported yet."));
    if (scrolled) rows.querySelector(".scroll").scrollLeft = scrolled;
    showBars(partitions);
  }

  async function load() {
    try {
      show(await get(api("partitions"), abort.signal));
    } catch (error) {
      if (error.name === "AbortError") return;
      setText(about, error.message);
    }
    timer = setTimeout(load, REFRESH_MS);
  }

  load();
  const element = el("section", {}, heading("Partitions"), about, rows, connections);
  return { element, close: () => { abort.abort(); clearTimeout(timer); } };
}
