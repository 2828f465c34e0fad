// One site: its state, what was fetched from it lately, its settings, its robots.txt, and the actions for it.

import { get } from "../api.js";
import { ACTIONS } from "../confirm.js";
import { el, facts, foreign, heading, hint, nothing, setText, table, tile } from "../dom.js";
import { bytes, count, counted, duration, moment, shortTime, utc, words } from "../units.js";
import { nextVisit, state } from "./sites.js";

const REFRESH_MS = 5000;

const RECENT = [
  { name: "Time", first: true, class: "left", cell: (one) => el("time", { datetime: new Date(one.at * 1000).toISOString(), title: utc(one.at) }, moment(one.at)) },
  { name: "URL", class: "left url", cell: (one) => foreign(one.url) },
  { name: "Answer", class: "left", cell: (one) => el("span", { class: one.error || one.status >= 400 ? "warns" : null }, one.status ? String(one.status) : words(one.error)) },
  { name: "Size", cell: (one) => bytes(one.bytes) },
  { name: "First byte", cell: (one) => shortTime(one.first_byte_s) },
  { name: "Whole", cell: (one) => shortTime(one.total_s) },
  { name: "Type", class: "left", cell: (one) => foreign(one.mime ?? "") },
  { name: "Result", class: "left", cell: (one) => one.result },
];

const host = (origin) => {
  try {
    return new URL(origin).hostname;
  } catch {
    return origin;
  }
};

function robots(file) {
  if (!file) return nothing("The robots.txt of this site has not been fetched.");
  const answer = file.error ? `failed: ${words(file.error)}` : `status ${file.status}`;
  const delay = file.crawl_delay_s === null ? "" : `; Crawl-delay ${duration(file.crawl_delay_s)}`;
  const body = file.body ? el("pre", { class: "file", tabindex: "0", "aria-label": "Text of robots.txt" }, foreign(file.body)) : hint("It is empty.");
  return [hint(`Fetched ${moment(file.at)}, ${answer}${delay}.`), body, file.is_cut ? hint("The rest of the file is not shown.") : null];
}

function setting(name, value) {
  if (name.endsWith("_s")) return duration(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "number" ? count(value) : String(value);
}

function actionsFor(site, { crawl, overview, ask }, reload) {
  if (!crawl.can_act || overview?.state !== "running") return null;
  const name = host(site.origin), isOut = ["blocked", "abandoned"].includes(site.state);
  const button = (text, action, danger = false) => el("button", { type: "button", class: danger ? "danger" : null, click: () => ask({ ...action, done: reload }) }, text);
  return el("div", { class: "buttons left" },
    isOut ? button("Unblock", ACTIONS.unblock(name)) : button("Block", ACTIONS.block(name), true),
    button("Change the delay", ACTIONS.delay(name, site.delay_s === null ? "" : `${site.delay_s} s`)));
}

function lists(site) {
  const answers = Object.entries(site.by_status ?? {}).sort(([, one], [, other]) => other - one);
  const settings = Object.entries(site.settings ?? {});
  return el("div", { class: "two" },
    el("section", {}, el("h3", {}, "Settings of this site"),
      settings.length ? facts(settings.map(([name, value]) => [words(name.replace(/_s$/, "")), setting(name, value)])) : hint("None: the options of the crawl hold."),
      el("h3", {}, "Answers"), hint(site.is_complete ? "Of all fetches." : `Of the fetches since ${moment(site.since)}.`),
      answers.length ? facts(answers.map(([status, number]) => [/^\d+$/.test(status) ? `status ${status}` : words(status), count(number)])) : hint("None yet.")),
    el("section", {}, el("h3", {}, "robots.txt"), robots(site.robots_file)));
}

function tiles() {
  const parts = [tile("pages waiting"), tile("pages fetched"), tile("next visit"), tile("delay"), tile("time to answer"), tile("failures in a row")];
  const show = (site) => {
    const now = Date.now() / 1000;
    [[count(site.waiting), `of ${count(site.known)} known`], [count(site.fetched), site.budget === null ? "no budget" : `budget ${count(site.budget)}`],
      [nextVisit(site, now), site.address || "address unknown"], [duration(site.delay_s), site.per_connection ? `at most ${counted(site.per_connection, "page")} a visit` : ""],
      [shortTime(site.response_s), `connect ${shortTime(site.connection_s)}`], [count(site.failures), site.requests ? `${count(site.requests)} per connection` : ""],
    ].forEach((texts, at) => parts[at].show(...texts));
  };
  return { element: el("ul", { class: "headlines steady six" }, parts.map((one) => one.element)), show };
}

export function open(context, [id]) {
  const { api, href } = context;
  const title = heading("Site"), about = el("p", { class: "subtitle" }), head = tiles();
  const buttons = el("div"), rest = el("div"), recent = el("section");
  const element = el("section", {}, el("p", { class: "back" }, el("a", { href: href("sites") }, "All sites")), title, about, buttons, head.element, rest, recent);
  const abort = new AbortController();
  let timer = null, last = "";

  function show(site) {
    title.replaceChildren(foreign(site.origin));
    const why = site.abandoned ? ` since ${moment(site.abandoned.at)}: ${site.abandoned.why}` : site.reason ? `: ${site.reason}` : "";
    about.replaceChildren(state(site), why, " · ", el("a", { href: href("explain", { url: site.origin }) }, "explain"), " · ", el("a", { href: href("events", { site: host(site.origin), level: "info" }) }, "events"));
    head.show(site);
    const text = JSON.stringify([site.recent, site.robots_file, site.settings, site.by_status, site.state, context.overview?.state]);
    if (text === last) return;
    last = text;
    buttons.replaceChildren(...[actionsFor(site, context, load)].filter(Boolean));
    rest.replaceChildren(lists(site));
    recent.replaceChildren(el("h3", {}, "Last fetches"), site.recent.length ? table("Last fetches", RECENT, site.recent) : nothing("Nothing was fetched from this site yet."));
  }

  async function load() {
    clearTimeout(timer);
    try {
      show(await get(api(`sites/${encodeURIComponent(id)}`), abort.signal));
      timer = setTimeout(load, REFRESH_MS);
    } catch (error) {
      if (error.name !== "AbortError") setText(about, error.message);
    }
  }

  load();
  return { element, close: () => { abort.abort(); clearTimeout(timer); } };
}
