// Line charts as SVG, drawn at the size at which they are shown. Values can be read with the pointer, with the arrow keys,
// and from a table below the chart.

import { byId, el, setText, svg } from "./dom.js";
import { plainAxis, timeAxis, valueAt, valueAxis } from "./axis.js";
import { brief, duration } from "./units.js";

const HEIGHT = 232, TOP = 12, RIGHT = 14, BOTTOM = 30;
const TABLE_ROWS = 25, KEY_STEPS = 50;

const number = (value) => value.toFixed(1);

function path(line, place) {
  return line.x.length ? `M${line.x.map((x, at) => `${number(place.x(x))} ${number(place.y(line.y[at]))}`).join("L")}` : "";
}

function area(line, place) {
  if (line.x.length < 2) return "";
  const floor = number(place.y(0));
  return `${path(line, place)}L${number(place.x(line.x.at(-1)))} ${floor}L${number(place.x(line.x[0]))} ${floor}z`;
}

export const swatch = (look) => svg("svg", { class: `swatch ${look}`, viewBox: "0 0 44 14", "aria-hidden": "true" },
  svg("path", { class: "line", d: "M2 7H42" }));

// `names`: of the lines; `looks`: their classes; `over`: "time" or the name of the horizontal values; `text`: formats a value.
// `axis`: options of the vertical axis. The chart is drawn by `draw([{x, y}, ...], low, high)`.
export class LineChart {
  constructor({ title, about = "", names, looks = ["c0", "c1 d1", "c2 d2"], over = "time", text = brief, axis = {}, filled = true }) {
    Object.assign(this, { title, names, looks, over, text, axis, filled, lines: [], low: 0, high: 1, at: null });
    this.picture = svg("svg", { class: "plot", height: HEIGHT, "aria-hidden": "true" });
    this.slider = el("div", {
      class: "reader", tabindex: "0", role: "slider", "aria-label": `${title}. Arrow keys read the values`,
      "aria-valuemin": "0", "aria-valuemax": KEY_STEPS, "aria-valuenow": KEY_STEPS, "aria-valuetext": "no values yet",
      keydown: (event) => this.#key(event), blur: () => this.#hide(),
      pointermove: (event) => this.#point(event), pointerdown: (event) => this.#point(event),
      pointerleave: () => this.#hide(), pointercancel: () => this.#hide(),
    }, this.picture);
    this.empty = el("p", { class: "empty" }, "No values yet.");
    this.numbers = el("div");
    const details = el("details", { toggle: () => this.#fillTable(details.open) }, el("summary", {}, "Numbers"), this.numbers);
    this.latest = el("output", { class: "latest" });
    this.element = el("figure", { class: "live-chart" },
      el("figcaption", {}, el("span", {}, title, this.latest), el("span", { class: "about-line" }, el("small", {}, about), names.length > 1 ? this.#legend() : null)),
      el("div", { class: "canvas" }, this.slider, this.empty), details);
    new ResizeObserver(() => this.#render()).observe(this.slider);
  }

  draw(lines, low, high, latest = "") {
    Object.assign(this, { lines, low, high });
    setText(this.latest, latest);
    this.#render();
  }

  #legend() {
    return el("span", { class: "key" }, this.names.map((name, at) => el("span", {}, swatch(this.looks[at]), name)));
  }

  #render() {
    const width = this.slider.clientWidth;
    if (!width) return;
    const isEmpty = !this.lines.some((line) => line.x.length > 1);
    this.empty.hidden = !isEmpty;
    const largest = Math.max(0, ...this.lines.flatMap((line) => line.y));
    const y = valueAxis(largest, { text: this.text, ...this.axis });
    const left = Math.max(40, 14 + 7.6 * Math.max(...y.ticks.map((tick) => y.text(tick).length)));
    const most = Math.max(2, Math.floor((width - left) / 72));
    const x = this.over === "time" ? timeAxis(this.low, this.high, most) : plainAxis(this.high, most);
    this.place = {
      left, width, from: x.low, until: x.high,
      x: (value) => left + (width - left - RIGHT) * (value - x.low) / (x.high - x.low),
      y: (value) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * Math.min(value, y.high) / y.high,
    };
    this.cursor = svg("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
    this.picture.setAttribute("width", width);
    this.picture.replaceChildren(...this.#grid(x, y, isEmpty), ...(isEmpty ? [] : this.#curves()), this.cursor);
    if (this.at !== null) this.#read(this.at);
  }

  #grid(x, y, isEmpty) {
    const { left, width } = this.place, bottom = HEIGHT - BOTTOM, marks = [];
    for (const tick of y.ticks) {
      const at = number(this.place.y(tick));
      marks.push(svg("line", { class: tick ? "grid" : "grid floor", x1: left, x2: width - RIGHT, y1: at, y2: at }));
      if (!isEmpty) marks.push(svg("text", { class: "tick", x: left - 9, y: at, dy: ".35em", "text-anchor": "end" }, y.text(tick)));
    }
    for (const tick of isEmpty ? [] : x.ticks) {
      const at = this.place.x(tick);
      marks.push(svg("line", { class: "grid notch", x1: number(at), x2: number(at), y1: bottom, y2: bottom + 5 }));
      const anchor = at > width - 40 ? "end" : "middle";
      const shown = anchor === "end" ? width : at;
      marks.push(svg("text", { class: "tick", x: number(shown), y: bottom + 21, "text-anchor": anchor }, x.text(tick)));
    }
    return marks;
  }

  #curves() {
    return this.lines.flatMap((line, at) => [
      ...(this.filled && at === 0 ? [svg("path", { class: `area ${this.looks[at]}`, d: area(line, this.place) })] : []),
      svg("path", { class: `line ${this.looks[at]}`, d: path(line, this.place) }),
    ]).reverse();
  }

  // ---- Reading values.

  #point(event) {
    const { left, width, from, until } = this.place ?? {};
    const at = event.clientX - this.picture.getBoundingClientRect().left;
    if (!width || at < left || at > width - RIGHT) return this.#hide();
    this.#read(from + (until - from) * (at - left) / (width - left - RIGHT));
    this.#showAt(event.clientX, event.clientY);
  }

  #key(event) {
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -KEY_STEPS, End: KEY_STEPS };
    if (event.key === "Escape") return this.#hide();
    if (!(event.key in steps) || !this.place) return undefined;
    event.preventDefault();
    const now = Number(this.slider.getAttribute("aria-valuenow"));
    const next = Math.min(KEY_STEPS, Math.max(0, now + steps[event.key]));
    this.slider.setAttribute("aria-valuenow", next);
    const longest = this.lines.reduce((one, other) => (other.x.length > one.x.length ? other : one), { x: [0, 0] });
    const first = longest.x[0], last = longest.x.at(-1);
    const x = next === KEY_STEPS ? last : first + (last - first) * next / KEY_STEPS;
    this.#read(x);
    const box = this.picture.getBoundingClientRect();
    this.#showAt(box.left + this.place.x(x), box.top + HEIGHT / 2);
    return undefined;
  }

  #read(x) {
    this.at = x;
    const at = this.place.x(x);
    for (const end of ["x1", "x2"]) this.cursor.setAttribute(end, number(at));
    this.cursor.setAttribute("visibility", "visible");
    const values = this.lines.map((line) => valueAt(line, x)).map((value) => (value === null ? "–" : this.text(value)));
    const where = this.over === "time" ? `after ${duration(x)}` : `${brief(Math.round(x))} ${this.over}`;
    this.slider.setAttribute("aria-valuetext", `${where}: ${values.map((value, one) => `${this.names[one]} ${value}`).join(", ")}`);
    byId("reading").replaceChildren(el("b", {}, where), ...values.map((value, one) => el("div", {},
      swatch(this.looks[one]), el("span", {}, this.names[one]), el("em", {}, value))));
  }

  #showAt(x, y) {
    const reading = byId("reading"), gap = 16;
    reading.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = reading;
    const left = x + gap + width < document.documentElement.clientWidth ? x + gap : Math.max(4, x - gap - width);
    reading.style.left = `${left + window.scrollX}px`;
    reading.style.top = `${Math.max(4, Math.min(y - height / 2, window.innerHeight - height - 4)) + window.scrollY}px`;
  }

  #hide() {
    this.at = null;
    byId("reading").hidden = true;
    this.cursor?.setAttribute("visibility", "hidden");
  }

  // ---- The table.

  #fillTable(isOpen) {
    const longest = this.lines.reduce((one, other) => (other.x.length > one.x.length ? other : one), { x: [] });
    const step = Math.max(1, Math.ceil(longest.x.length / TABLE_ROWS));
    const xs = longest.x.filter((_, at) => at % step === 0 || at === longest.x.length - 1);
    const where = (x) => (this.over === "time" ? duration(x) : brief(Math.round(x)));
    const row = (x) => el("tr", {}, el("th", { scope: "row" }, where(x)),
      this.lines.map((line) => valueAt(line, x)).map((value) => el("td", {}, value === null ? "–" : this.text(value))));
    const head = [this.over === "time" ? "time since the beginning" : this.over, ...this.names];
    this.numbers.replaceChildren(...(isOpen ? [el("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": `${this.title}: numbers` },
      el("table", { class: "numbers" }, el("caption", { class: "unseen" }, this.title),
        el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, xs.map(row))))] : []));
  }
}
