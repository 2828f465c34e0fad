// The connections by what they do: one stacked bar, the words for each state, and their course over the last minutes.

import { el, setText, svg } from "./dom.js";
import { count, duration, wholePercent } from "./units.js";

// In the order of the bar: at work, waiting for others, waiting by politeness, waiting for ourselves, and idle.
export const STATES = [
  ["fetching", "fetching", "A page is requested or being received."],
  ["connecting", "connecting", "The connection is being opened."],
  ["bandwidth", "bandwidth limit", "Reading pauses to stay below the bandwidth limit."],
  ["dns", "DNS", "The address of a site is being looked up."],
  ["robots", "robots.txt", "The robots.txt of a site is being fetched."],
  ["site_delay", "delay of a site", "The last page or visit of the site was too recent."],
  ["address_delay", "delay of an address", "The last visit to this address was too recent."],
  ["back_off", "back-off", "Visits failed, so their sites are left alone for a while."],
  ["store", "store", "The store must write pages to disk first."],
  ["handler", "your handler", "Your program must take pages first."],
  ["nothing_to_do", "nothing to do", "The waiting pages are on too few sites."],
  ["paused", "paused", "The crawl is paused or stopping."],
];

const SPANS_S = [60, 120, 300];
const total = (shares) => STATES.reduce((sum, [state]) => sum + (shares[state] ?? 0), 0);

export function sentenceOf(shares) {
  const all = total(shares);
  const parts = STATES.filter(([state]) => shares[state]).map(([state, name]) => `${name} ${shares[state]}`);
  return `${count(all)} connections: ${parts.join(", ")}`;
}

// A bar over the full width. `labelled`: with names over the wide parts.
export class ConnectionBar {
  constructor({ height = 34, labelled = true } = {}) {
    Object.assign(this, { height, labelled, shares: {} });
    this.picture = svg("svg", { class: "stack", role: "img", height: height + (labelled ? 44 : 0) });
    this.element = el("div", { class: "stack-frame" }, this.picture);
    new ResizeObserver(() => this.#render()).observe(this.element);
  }

  draw(shares) {
    this.shares = shares ?? {};
    this.#render();
  }

  #render() {
    const width = this.element.clientWidth, all = total(this.shares), top = this.labelled ? 44 : 0;
    if (!width) return;
    this.picture.setAttribute("width", width);
    this.picture.setAttribute("aria-label", all ? sentenceOf(this.shares) : "No connections yet");
    const parts = [svg("rect", { class: "track", y: top, width, height: this.height, rx: 4 })];
    let at = 0, labelled = 0;
    for (const [state, name] of STATES) {
      const share = this.shares[state] ?? 0;
      if (!share) continue;
      const wide = width * share / all;
      parts.push(svg("rect", { class: `s-${state}`, x: at.toFixed(1), y: top, width: Math.max(wide - 2, 1).toFixed(1), height: this.height, rx: 3 },
        svg("title", {}, `${name}: ${count(share)} of ${count(all)}`)));
      if (this.labelled && wide > 8 * name.length + 8 && at >= labelled) {
        parts.push(svg("text", { class: "label", x: at.toFixed(1), y: 16 }, count(share)), svg("text", { class: "name", x: at.toFixed(1), y: 35 }, name));
        labelled = at + 8 * name.length;
      }
      at += wide;
    }
    this.picture.replaceChildren(...parts);
  }
}

// The states that occur, in one line.
export class StateLegend {
  constructor() {
    this.element = el("p", { class: "legend-line" });
    this.shown = "";
  }

  draw(shares) {
    const found = STATES.filter(([state]) => shares?.[state]);
    const names = found.map(([state]) => state).join();
    if (names !== this.shown) {
      this.element.replaceChildren(...found.map(([state, name]) => el("span", {}, el("span", { class: `chip s-${state}` }), name, " ", el("b"))));
      this.shown = names;
    }
    found.forEach(([state], at) => setText(this.element.children[at].lastChild, count(shares[state])));
  }
}

// The states as a table: a row for each, so that nothing moves when numbers change.
export class StateTable {
  constructor() {
    this.rows = new Map();
    const row = ([state, name, about]) => {
      const number = el("td", { class: "number" }), share = el("td", { class: "share" });
      const line = el("tr", {}, el("th", { scope: "row" }, el("span", { class: `chip s-${state}` }), name), number, share, el("td", { class: "about" }, about));
      this.rows.set(state, { line, number, share });
      return line;
    };
    this.element = el("div", { class: "scroll" }, el("table", { class: "states" },
      el("caption", { class: "unseen" }, "Connections by what they do"),
      el("thead", {}, el("tr", {}, ["state", "connections", "share", "meaning"].map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, STATES.map(row))));
  }

  draw(shares) {
    const all = total(shares ?? {});
    for (const [state, { line, number, share }] of this.rows) {
      const value = shares?.[state] ?? 0;
      setText(number, count(value));
      setText(share, all ? wholePercent(value / all) : "–");
      line.classList.toggle("none", !value);
    }
  }
}

// Stacked areas of the states over the last minutes, from samples {at, shares}.
export class StateCourse {
  constructor() {
    this.picture = svg("svg", { class: "plot course", height: 150, role: "img", "aria-label": "Connections over the last minutes" });
    this.element = el("div", { class: "stack-frame" }, this.picture);
    this.samples = [];
    new ResizeObserver(() => this.#render()).observe(this.element);
  }

  draw(samples) {
    this.samples = samples.filter(({ shares }) => total(shares ?? {}));
    this.#render();
  }

  #render() {
    const width = this.element.clientWidth, height = 120;
    if (!width) return;
    this.picture.setAttribute("width", width);
    const now = this.samples.at(-1)?.at ?? 0, age = now - (this.samples[0]?.at ?? now);
    const span = SPANS_S.find((one) => one >= age) ?? SPANS_S.at(-1);
    const x = (at) => (width * (1 - (now - at) / span)).toFixed(1);
    const below = this.samples.map(() => 0), parts = [svg("rect", { class: "track", width, height, rx: 4 })];
    for (const [state] of this.samples.length > 1 ? STATES : []) {
      const lower = [...below];
      this.samples.forEach(({ shares }, at) => { below[at] += (shares[state] ?? 0) / total(shares); });
      if (below.every((value, at) => value === lower[at])) continue;
      const y = (share) => (height * (1 - share)).toFixed(1);
      const up = this.samples.map(({ at }, one) => `${x(at)} ${y(below[one])}`);
      const down = this.samples.map(({ at }, one) => `${x(at)} ${y(lower[one])}`).reverse();
      parts.push(svg("path", { class: `s-${state}`, d: `M${[...up, ...down].join("L")}z` }));
    }
    for (const [ago, anchor] of [[span, "start"], [span / 2, "middle"], [0, "end"]]) {
      parts.push(svg("text", { class: "tick", x: x(now - ago), y: height + 20, "text-anchor": anchor }, ago ? `${duration(ago)} ago` : "now"));
    }
    this.picture.replaceChildren(...parts);
  }
}
