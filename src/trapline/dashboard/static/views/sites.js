// All sites, searched and sorted by the server, page by page.

import { get, query } from "../api.js";
import { el, foreign, heading, hint, nothing, setHidden, setText, tableRow } from "../dom.js";
import { count, duration, moment, shortTime, words } from "../units.js";

const PAGE = 100, REFRESH_MS = 5000, TYPING_MS = 50;
const FILTERS = [["", "all sites"], ["waiting", "with waiting pages"], ["visiting", "being visited"], ["delayed", "waiting for a delay"],
  ["failing", "with failures"], ["robots", "robots.txt unreachable"], ["idle", "without waiting pages"], ["abandoned", "abandoned"], ["blocked", "blocked"]];

const NAMES = { back_off: "back-off", dns: "DNS", budget: "budget used up" };

// `begins`: the order after the first click.
const columnsFor = (href, now) => [
  { key: "origin", name: "Site", first: true, begins: "asc", class: "origin", cell: (row) => el("a", { href: href("sites", {}, row.id) }, foreign(row.origin)) },
  { key: "waiting", name: "Waiting", cell: (row) => count(row.waiting) },
  { key: "fetched", name: "Fetched", cell: (row) => count(row.fetched) },
  { key: "known", name: "Known", cell: (row) => count(row.known) },
  { key: "state", name: "State", begins: "asc", class: "left", cell: (row) => state(row) },
  { key: "next_visit_at", name: "Next visit", begins: "asc", cell: (row) => nextVisit(row, now()) },
  { key: "delay_s", name: "Delay", cell: (row) => duration(row.delay_s) },
  { key: "response_s", name: "Answer", cell: (row) => shortTime(row.response_s) },
  { key: "connection_s", name: "Connect", cell: (row) => shortTime(row.connection_s) },
  { key: "requests", name: "Requests", cell: (row) => count(row.requests) },
  { key: "failures", name: "Failures", cell: (row) => el("span", { class: row.failures ? "warns" : null }, count(row.failures)) },
  { key: "robots", name: "robots.txt", begins: "asc", cell: (row) => row.robots || "–" },
  { key: "budget", name: "Budget", cell: (row) => (row.budget === null ? "–" : count(row.budget)) },
];

export const state = (row) => el("span", { class: "state", "data-state": row.state, title: row.reason || null }, NAMES[row.state] ?? words(row.state));

export function nextVisit({ next_visit_at: at, state: now }, clock) {
  if (now === "visiting") return "now";
  if (now === "ready") return "due";
  if (at === null || at === undefined) return "–";
  return at <= clock ? "due" : at - clock < 1 ? "in < 1 s" : at - clock > 86400 ? moment(at) : `in ${duration(at - clock)}`;
}

export function open({ api, href, keep }, _words, { q = "", sort = "waiting", dir = "desc", from = "0", filter = "" }) {
  const wanted = { q, sort, dir, from: Number(from), filter };
  let answer = null, abort = null, timer = null, typing = null;
  const columns = columnsFor(href, () => Date.now() / 1000);

  const search = el("input", { type: "search", value: q, placeholder: "part of a name", spellcheck: "false", input: () => {
    clearTimeout(typing);
    typing = setTimeout(() => load({ q: search.value.trim(), from: 0 }), TYPING_MS);
  } });
  const filters = el("select", { change: () => load({ filter: filters.value, from: 0 }) }, FILTERS.map(([value, name]) => el("option", { value }, name)));
  filters.value = filter;
  const order = el("select", { change: () => sortBy(columns.find((one) => one.key === order.value)) }, columns.map(({ key, name }) => el("option", { value: key }, name)));
  const heads = new Map(columns.map((one) => [one.key, el("th", { scope: "col", class: one.class }, el("button", { type: "button", click: () => sortBy(one) }, one.name))]));
  const body = el("tbody"), total = el("p", { class: "hint", role: "status" });
  const before = el("button", { type: "button", click: () => load({ from: Math.max(0, wanted.from - PAGE) }) }, "Previous");
  const after = el("button", { type: "button", click: () => load({ from: wanted.from + PAGE }) }, "Next");
  const where = el("span", { class: "where" });
  const none = nothing("No site matches.", "Change the search or the filter.");
  const frame = el("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Table of sites" },
    el("table", { class: "rows sites" }, el("caption", { class: "unseen" }, "Sites of the crawl"), el("thead", {}, el("tr", {}, ...heads.values())), body));
  const pages = el("div", { class: "pages" }, before, where, after);

  function sortBy({ key, begins = "desc" }) {
    load({ sort: key, dir: wanted.sort !== key ? begins : wanted.dir === "asc" ? "desc" : "asc", from: 0 });
  }

  async function load(changed = {}) {
    Object.assign(wanted, changed);
    if (Object.keys(changed).length) keep("sites", { ...wanted, from: wanted.from || "" });
    abort?.abort();
    clearTimeout(timer);
    const mine = abort = new AbortController();
    try {
      answer = await get(api(`sites?${query({ ...wanted, n: PAGE })}`), mine.signal);
      show();
    } catch (error) {
      if (error.name !== "AbortError") setText(total, error.message);
    }
    if (abort === mine && !mine.signal.aborted) timer = setTimeout(load, REFRESH_MS);
  }

  function show() {
    const { matching, total: all, rows, source, at } = answer, last = wanted.from + rows.length;
    for (const [key, head] of heads) {
      if (key === wanted.sort) head.setAttribute("aria-sort", wanted.dir === "asc" ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
    order.value = wanted.sort;
    const focused = body.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    body.replaceChildren(...rows.map((row) => tableRow(columns, row)));
    if (focused) body.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    const age = { snapshot: ` State of ${moment(at)}, when the crawl last saved it.`, none: " The crawl has not saved their numbers yet." }[source] ?? "";
    const found = matching === all ? `${count(all)} sites.` : `${count(matching)} of ${count(all)} sites.`;
    setText(total, all ? `${found}${age}` : "The crawl knows no site yet.");
    setHidden(none, matching > 0 || all === 0);
    setHidden(frame, matching === 0);
    setHidden(pages, matching <= PAGE);
    setText(where, rows.length ? `${count(wanted.from + 1)} to ${count(last)} of ${count(matching)}` : "");
    before.disabled = wanted.from === 0;
    after.disabled = last >= matching;
  }

  load();
  const element = el("section", {}, heading("Sites"),
    el("div", { class: "filters", role: "search" }, el("label", {}, "Search ", search), el("label", {}, "Show ", filters), el("label", { class: "narrow" }, "Sort by ", order)),
    total, frame, none, pages, hint("Answer: expected time until the first byte. Connect: expected time to open a connection. Requests: most requests on one connection, as seen. Due: as soon as a connection is free."));
  const close = () => {
    abort?.abort();
    clearTimeout(timer);
    clearTimeout(typing);
  };
  return { element, close };
}
