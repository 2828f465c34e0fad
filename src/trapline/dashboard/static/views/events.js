// The events of the crawl, newest first, with filters; new ones appear by themselves.

import { get, query } from "../api.js";
import { el, foreign, heading, nothing, setHidden, setText } from "../dom.js";
import { moment, utc, words } from "../units.js";

const PAGE = 100, MOST = 1000, TYPING_MS = 250, REFRESH_MS = 5000;
const LEVELS = ["error", "warning", "info", "debug"];
const SHOWN = new Set(["at", "level", "event", "text", "site", "url", "seconds", "wait_s"]);

const seconds = (at) => (typeof at === "number" ? at : Date.parse(at) / 1000);

function item(event) {
  const at = seconds(event.at);
  const isNews = (value) => ["string", "number"].includes(typeof value) && value !== "" && value !== 0 && !String(event.text).includes(value);
  const more = Object.entries(event).filter(([name, value]) => !SHOWN.has(name) && isNews(value));
  return el("li", { "data-level": event.level },
    el("time", { datetime: new Date(at * 1000).toISOString(), title: utc(at) }, moment(at)),
    el("span", { class: "level" }, event.level),
    el("span", { class: "what" }, words(event.event)),
    el("div", { class: "said" }, foreign(event.text ?? ""), event.url && !String(event.text).includes(event.url) ? el("small", {}, foreign(event.url)) : null,
      more.length ? el("small", {}, foreign(more.map(([name, value]) => `${words(name)} ${value}`).join("; "))) : null));
}

export function open(context, _words, { level = "info", kind = "", site = "" }) {
  const { api, keep } = context, wanted = { level, kind, site };
  const list = el("ol", { class: "events" }), status = el("p", { class: "hint", role: "status" });
  const none = nothing("No event matches.", "Choose a lower level, or remove a filter.");
  const more = el("button", { type: "button", click: () => load(next) }, "Older events");
  const select = (name, options) => {
    const element = el("select", { change: () => change({ [name]: element.value }) }, options.map(([value, text]) => el("option", { value }, text)));
    element.value = wanted[name];
    return element;
  };
  const levels = select("level", LEVELS.map((one, at) => [one, at ? `${one} and above` : "errors only"]));
  const kinds = select("kind", [["", "all events"], ...(kind ? [[kind, words(kind)]] : [])]);
  kinds.value = kind;
  const sites = el("input", { type: "search", value: site, placeholder: "part of a name", spellcheck: "false", input: () => {
    clearTimeout(typing);
    typing = setTimeout(() => change({ site: sites.value.trim() }), TYPING_MS);
  } });
  let next = null, abort = null, typing = null, timer = null;

  function change(values) {
    Object.assign(wanted, values);
    keep("events", wanted);
    load();
  }

  function showKinds(names) {
    const old = [...kinds.options].map((one) => one.value);
    kinds.append(...names.filter((name) => !old.includes(name)).map((name) => el("option", { value: name }, words(name))));
  }

  async function load(before = null) {
    abort?.abort();
    clearTimeout(timer);
    const mine = abort = new AbortController();
    try {
      const found = await get(api(`events?${query({ ...wanted, before, n: PAGE })}`), mine.signal);
      if (before === null) list.replaceChildren();
      list.append(...found.events.map(item));
      next = found.next;
      showKinds(found.kinds ?? []);
      setText(status, "");
    } catch (error) {
      if (error.name === "AbortError") return;
      setText(status, error.message);
    }
    setHidden(more, next === null);
    setHidden(none, list.children.length > 0);
    if (before === null) timer = setTimeout(refresh, REFRESH_MS);
  }

  // Failed fetches are not in the log. The list stays as it is while older events are shown or text is selected.
  function refresh() {
    if (context.overview?.state !== "running" || !getSelection().isCollapsed) timer = setTimeout(refresh, REFRESH_MS);
    else load();
  }

  const suits = (event) => LEVELS.indexOf(event.level) <= LEVELS.indexOf(wanted.level) && (!wanted.kind || event.event === wanted.kind)
    && (!wanted.site || Object.values(event).some((value) => String(value).toLowerCase().includes(wanted.site.toLowerCase())));

  function log(events) {
    const found = events.filter(suits);
    list.prepend(...found.map(item).reverse());
    while (list.children.length > MOST) list.lastChild.remove();
    if (found.length) setHidden(none, true);
    showKinds([...new Set(events.map((event) => event.event))]);
  }

  setHidden(more, true);
  setHidden(none, true);
  load();
  const element = el("section", {}, heading("Events"),
    el("div", { class: "filters" }, el("label", {}, "Level ", levels), el("label", {}, "Event ", kinds), el("label", {}, "Site ", sites)),
    status, list, none, el("div", { class: "pages" }, more));
  return { element, log, close: () => { abort?.abort(); clearTimeout(typing); clearTimeout(timer); } };
}
