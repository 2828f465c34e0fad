// Refetched pages: how fresh the copies are, what was refetched, how far each channel is trusted, and what is due.

import { job } from "../api.js";
import { LineChart } from "../chart.js";
import { el, facts, foreign, heading, hint, nothing, table } from "../dom.js";
import { count, duration, percent, smallNumber, threeDigits } from "../units.js";

const REFRESH_MS = 30000;

const TRUST = [
  { name: "Site", first: true, class: "origin", cell: (one) => foreign(one.origin) },
  { name: "Channel", class: "left", cell: (one) => `${one.channel}${one.verified ? "" : ", unverified"}` },
  { name: "Signals", cell: (one) => count(one.signals) },
  { name: "Judged by", cell: (one) => threeDigits(one.judged_by) },
  { name: "Right", cell: (one) => threeDigits(one.confirmed) },
  { name: "Precision", cell: (one) => (one.judged_by ? percent(one.precision) : "not judged") },
  { name: "Recall", cell: (one) => (one.judged_by ? percent(one.recall) : "not judged") },
  { name: "Used", class: "left", cell: (one) => (one.struck_out ? el("span", { class: "warns" }, "ignored") : "yes") },
];
const SIGNALS = [
  { name: "Channel", first: true, class: "left", cell: (one) => one.channel },
  { name: "Outcome", class: "left", cell: (one) => one.outcome },
  { name: "Signals", cell: (one) => count(one.signals) },
];

function charts({ freshness, fetches }) {
  const fresh = new LineChart({ title: "Freshness, as seen", about: "Share of the copies", names: ["fresh", "refetched later"], text: percent, axis: { limit: 1 }, filled: false });
  const end = freshness.seconds.at(-1) ?? 0;
  fresh.draw([{ x: freshness.seconds, y: freshness.fresh }, { x: freshness.seconds, y: freshness.looked_at }], 0, end);
  const { edges } = fetches, middle = edges.slice(1).map((edge, at) => (edge + edges[at]) / 2);
  const rate = (values) => ({ x: middle, y: values.map((value, at) => value / (edges[at + 1] - edges[at]) * 60) });
  const pages = new LineChart({ title: "New and refetched pages", about: "Pages per minute", names: ["new", "refetched"], filled: false });
  pages.draw([rate(fetches.new), rate(fetches.refetches)], 0, edges.at(-1) ?? 0);
  const some = middle.map((_, at) => at).filter((at) => fetches.refetches[at] > 0);
  const changed = new LineChart({ title: "Changes found", about: "Share of the refetched pages that had changed", names: ["changed"], text: percent, axis: { limit: 1 }, looks: ["c2"] });
  changed.draw([{ x: some.map((at) => middle[at]), y: some.map((at) => fetches.changed[at] / fetches.refetches[at]) }], 0, edges.at(-1) ?? 0);
  return [fresh, pages, changed].map((one) => one.element);
}

function due({ pages, due, signalled, failed, by_time: byTime, best }) {
  const now = Date.now() / 1000;
  const columns = [
    { name: "Page", first: true, class: "origin", cell: (one) => foreign(one.url) },
    { name: "Copy", cell: (one) => `${duration(Math.max(0, now - one.copied_at))} old` },
    { name: "Signals since", cell: (one) => count(one.signals) },
    byTime ? { name: "Due", cell: (one) => (one.value < 0 ? `in ${duration(-one.value)}` : `for ${duration(one.value)}`) } : { name: "Value", cell: (one) => smallNumber(one.value) },
  ];
  const what = byTime ? "" : "A page is due if it is worth as much to the policy as the pages that were refetched lately. ";
  const numbers = [["Due now", count(due)], ["Of all refetched pages", count(pages)], ["With signals since their last fetch", count(signalled)], ["Waiting after a failure", count(failed)]];
  return [el("h3", {}, "What is due"), hint(what, "As of the last commit; sites may have to wait for their delays."), facts(numbers),
    best.length ? table("The pages that are refetched next", columns, best) : nothing("No page waits to be refetched.")];
}

function signalTable(title, rows) {
  return rows?.length ? [el("h3", {}, title), table(title, SIGNALS, rows)] : [];
}

export function open(context) {
  const { api } = context;
  const abort = new AbortController();
  const body = el("div", {}, hint("The state of the refetched pages is being read. For a large crawl this takes some seconds."));
  let timer = null;

  function show(record) {
    const trust = record.trust.length ? table("Trust in sites and channels", TRUST, record.trust) : nothing("No site has sent a signal yet.");
    const signals = [...signalTable("Signals by outcome", record.signals), ...signalTable("Access counts by outcome", record.access_counts)];
    const policy = record.policy ? `Policy: ${record.policy}. ` : "";
    body.replaceChildren(hint(policy, "Freshness is inferred from the next fetch of a page. Copies that were not fetched again count as fresh."),
      el("div", { class: "charts" }, charts(record)), ...due(record.due), el("h3", {}, "Trust in sites and channels"), trust, ...signals);
  }

  async function load() {
    try {
      show(await job(api("refresh"), abort.signal));
      timer = setTimeout(load, REFRESH_MS);
    } catch (error) {
      if (error.name !== "AbortError") body.replaceChildren(nothing("There is nothing about refetched pages.", error.message));
    }
  }

  load();
  return { element: el("section", {}, heading("Refresh"), body), close: () => { abort.abort(); clearTimeout(timer); } };
}
