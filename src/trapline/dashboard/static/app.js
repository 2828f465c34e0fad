// The page: which crawl and which view are shown, the stream of the crawl's numbers, and the token.
//
// Addresses: #/VIEW/WORD?QUERY, and #/NUMBER/VIEW/... if there are several crawls.

import { ApiError, get, post, query } from "./api.js";
import { byId, el, heading, nothing, setHidden, setText } from "./dom.js";
import { ACTIONS, ask, prepareDialog, say } from "./confirm.js";
import { Progress } from "./progress.js";
import { watch } from "./stream.js";
import { clock, counted, duration, sentence, threeDigits, words } from "./units.js";
import * as actions from "./views/actions.js";
import * as events from "./views/events.js";
import * as explain from "./views/explain.js";
import * as overview from "./views/overview.js";
import * as partitions from "./views/partitions.js";
import * as quality from "./views/quality.js";
import * as refresh from "./views/refresh.js";
import * as site from "./views/site.js";
import * as sites from "./views/sites.js";
import * as speed from "./views/speed.js";

const VIEWS = [
  ["overview", "Overview", overview], ["speed", "Why not faster?", speed], ["sites", "Sites", sites], ["explain", "Explain", explain],
  ["quality", "Quality", quality], ["refresh", "Refresh", refresh, (crawl) => crawl.refresh],
  ["partitions", "Partitions", partitions, (crawl) => crawl.partitions > 1], ["events", "Events", events], ["actions", "Actions", actions],
];

let crawls = [];
let shown = null; // {crawl, progress, overview, end()}: the crawl on the page
let view = null; // what the open view answers to: {element, update?, log?, close?}
let lostAt = null;

// ---- Addresses.

function place() {
  const [path, search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  const number = /^\d+$/.test(parts[0] ?? "") ? Number(parts.shift()) : 0;
  const [name = "overview", ...rest] = parts;
  return { number, name, words: rest, query: Object.fromEntries(new URLSearchParams(search)) };
}

function href(number, name, values = {}, ...rest) {
  const path = [...(crawls.length > 1 ? [number] : []), name, ...rest].map(encodeURIComponent).join("/");
  const search = query(values);
  return `#/${path}${search ? `?${search}` : ""}`;
}

// ---- Views.

function context() {
  const { crawl, progress } = shown;
  return {
    crawl, progress,
    get overview() { return shown.overview; },
    api: (path) => `/api/${crawl.id}/${path}`,
    href: (name, values, ...rest) => href(crawl.id, name, values, ...rest),
    keep: (name, values, ...rest) => history.replaceState(null, "", href(crawl.id, name, values, ...rest)),
    ask: (action) => ask({ crawl: crawl.id, ...action }),
  };
}

function openView({ name, words: rest, query: values }, focus) {
  const found = VIEWS.find(([one]) => one === name);
  const module = name === "sites" && rest.length ? site : found?.[2];
  view?.close?.();
  byId("reading").hidden = true;
  view = module ? module.open(context(), rest, values)
    : { element: el("section", {}, heading("No such view"), nothing("This address leads nowhere.", "Choose a view above.")) };
  byId("main").replaceChildren(view.element);
  showNav(name);
  if (shown.overview) view.update?.(shown.overview);
  if (focus) {
    say("");
    window.scrollTo(0, 0);
    byId("main").querySelector("h2")?.focus({ preventScroll: true });
  }
}

function showNav(name) {
  const { crawl } = shown;
  const items = VIEWS.filter(([, , , suits]) => !suits || suits(crawl));
  byId("nav").replaceChildren(...items.map(([one, title]) =>
    el("li", {}, el("a", { href: href(crawl.id, one), "aria-current": one === name ? "page" : null, "data-name": title }, title))));
}

async function route(focus = true) {
  const where = place();
  if (!crawls.length) return;
  const crawl = crawls[where.number] ?? crawls[0];
  if (shown?.crawl.id !== crawl.id) showCrawl(crawl);
  openView(where, focus);
}

// ---- The crawl on the page.

function showCrawl(crawl) {
  shown?.end();
  shown = { crawl, progress: new Progress(), overview: null, end: () => {} };
  setHidden(byId("top"), false);
  setText(byId("crawl-name"), crawl.name);
  byId("crawl-name").title = crawl.folder;
  byId("crawls").value = String(crawl.id);
  follow();
}

async function follow() {
  const mine = shown, { crawl } = mine;
  mine.end();
  mine.end = watch(crawl.id, { status: takeStatus, log: (found) => view?.log?.(found), crawl: reload, lost, found });
  try {
    mine.progress.load(await get(`/api/${crawl.id}/history?points=400`));
    if (mine === shown && mine.overview) view?.update?.(mine.overview);
  } catch (error) {
    failed(error);
  }
}

// A hidden page needs no numbers. A browser has few connections to one server, and several pages may be open.
function rest() {
  shown?.end();
  if (shown) document.title = `${shown.crawl.name} · Trapline`;
}

function resume() {
  if (shown) follow();
}

function takeStatus(now) {
  shown.overview = now;
  shown.progress.add(now);
  showHead(now);
  view?.update?.(now);
}

function showHead(now) {
  const state = now.state === "running" && now.paused ? "paused" : now.state;
  setText(byId("state"), state);
  byId("state").dataset.state = state;
  setText(byId("subtitle"), subtitle(now));
  announce(now.speed ?? {});
  const rate = now.state === "running" ? `${threeDigits(now.rates.pages_per_s)} pages/s` : state;
  document.title = `${rate} · ${shown.crawl.name} · Trapline`;
  const canAct = shown.crawl.can_act && now.state === "running";
  setHidden(byId("pause"), !canAct);
  setHidden(byId("stop"), !canAct);
  setText(byId("pause"), now.paused ? "Continue" : "Pause");
}

// A screen reader hears the sentence when its reason changes, not at every new number.
function announce({ limit = "", sentence: text = "" }) {
  if (byId("sentence").dataset.limit === limit) return;
  byId("sentence").dataset.limit = limit;
  setText(byId("sentence"), text);
}

function subtitle(now) {
  if (now.state === "unreadable") return sentence(now.error);
  if (now.state === "new") return "The crawl has not begun yet.";
  const took = now.state === "running" ? `running for ${duration(now.seconds)}` : `took ${duration(now.seconds)}`;
  const why = now.stopped_by ? `stopped by: ${words(now.stopped_by)}` : now.doing;
  const silent = now.state === "running" && !now.live ? `last commit ${duration(now.age_s)} ago` : "";
  return [`strategy ${now.strategy}`, took, counted(now.totals.pages, "page"), why, silent].filter(Boolean).join("; ");
}

// ---- The connection to the dashboard.

function lost() {
  lostAt ??= Date.now() / 1000;
  setText(byId("lost"), `The connection to the dashboard is lost since ${clock(lostAt)}. Trying again every 2 seconds.`);
  setHidden(byId("lost"), false);
  document.body.classList.add("stale");
  get("/api/crawls").catch((error) => error.status === 401 && failed(error));
}

async function found() {
  setHidden(byId("lost"), true);
  document.body.classList.remove("stale");
  if (lostAt === null) return;
  lostAt = null;
  const { crawl, progress } = shown;
  progress.load(await get(`/api/${crawl.id}/history?points=400`).catch(() => progress.curves));
}

async function reload() {
  crawls = await get("/api/crawls").catch(() => crawls);
  const crawl = crawls.find((one) => one.id === shown.crawl.id);
  if (crawl) Object.assign(shown.crawl, crawl);
  showChooser();
  showNav(place().name);
}

function failed(error) {
  if (!(error instanceof ApiError)) throw error;
  if (error.status === 401) return showLogin(error.message);
  return undefined;
}

// ---- The beginning, and the token.

function showChooser() {
  setHidden(byId("chooser"), crawls.length < 2);
  byId("crawls").replaceChildren(...crawls.map((one) => el("option", { value: one.id }, `${one.name} (${one.state})`)));
  if (shown) byId("crawls").value = String(shown.crawl.id);
}

async function begin() {
  try {
    crawls = await get("/api/crawls");
  } catch (error) {
    if (error.status === 401) return showLogin("");
    byId("main").replaceChildren(nothing(error.message, "This page tries again every 2 seconds."));
    return setTimeout(begin, 2000);
  }
  showChooser();
  if (!crawls.length) return byId("main").replaceChildren(nothing("There is no crawl to show."));
  return route(false);
}

function showLogin(why) {
  shown?.end();
  shown = null;
  setHidden(byId("top"), true);
  const error = el("p", { class: "bad", role: "alert" }, why);
  const token = el("input", { id: "token", type: "password", required: true, autocomplete: "current-password" });
  const login = async (event) => {
    event.preventDefault();
    await send(token.value.trim()).then(begin, (failure) => setText(error, failure.message));
  };
  byId("main").replaceChildren(el("form", { class: "login", submit: login },
    heading("This dashboard needs a token"),
    el("p", {}, "The command that started the dashboard printed an address with the token. Open that address, or copy the token from it."),
    el("label", { class: "field" }, el("span", {}, "Token"), token), error, el("div", { class: "buttons" }, el("button", { class: "primary" }, "Log in"))));
  token.focus();
}

const send = (token) => post("/api/login", { token });

async function takeToken() {
  const token = /^#token=(.+)$/.exec(location.hash)?.[1];
  if (!token) return;
  history.replaceState(null, "", "#/overview");
  await send(decodeURIComponent(token)).catch(() => {});
}

function prepare() {
  document.documentElement.classList.add("scripted");
  prepareDialog();
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("main").focus();
  });
  byId("crawls").addEventListener("change", (event) => {
    location.hash = href(Number(event.target.value), "overview");
  });
  byId("pause").addEventListener("click", () => ask({ crawl: shown.crawl.id, ...ACTIONS[shown.overview.paused ? "continue" : "pause"]() }));
  byId("stop").addEventListener("click", () => ask({ crawl: shown.crawl.id, ...ACTIONS.stop() }));
  document.addEventListener("visibilitychange", () => (document.hidden ? rest() : resume()));
  window.addEventListener("hashchange", async () => {
    if (location.hash.startsWith("#token=")) return takeToken().then(begin);
    return route();
  });
}

prepare();
takeToken().then(begin);
