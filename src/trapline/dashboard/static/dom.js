// Builds elements. Text becomes text nodes only, so that names from the web never become markup.

const SVG = "http://www.w3.org/2000/svg";
// Control characters and marks that change the direction of text. They are shown as codes.
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

const code = (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`;

export const visible = (text) => String(text).replace(INVISIBLE, code);

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined).map(
    (child) => (child instanceof Node ? child : visible(child))));
  return element;
}

// An attribute that is a function becomes the listener of the event with its name.
export const el = (name, attributes = {}, ...children) => filled(document.createElement(name), attributes, children);

export const svg = (name, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, name), attributes, children);

export const byId = (id) => document.getElementById(id);

// Text that comes from the web: isolated, so that its direction cannot change the words around it.
export const foreign = (text, attributes = {}) => el("bdi", attributes, text);

export function setText(element, text) {
  const shown = visible(text);
  if (element.textContent !== shown) element.textContent = shown;
}

export function setHidden(element, hidden) {
  if (element.hidden !== hidden) element.hidden = hidden;
}

export const heading = (text) => el("h2", { class: "view", tabindex: "-1" }, text);

export const hint = (...children) => el("p", { class: "hint" }, ...children);

// What a view says when it has nothing to show.
export const nothing = (title, text = "") =>
  el("div", { class: "nothing" }, el("b", {}, title), text ? el("p", {}, text) : null);

export const link = (href, ...children) => el("a", { href }, ...children);

// A tile with a large number: its parts are kept, so that only their text changes.
export function tile(label) {
  const value = el("b", {}, "–"), detail = el("small");
  const element = el("li", {}, value, label, detail);
  return {
    element,
    show(text, more = "", bad = false) {
      setText(value, text);
      setText(detail, more);
      element.classList.toggle("bad", bad);
    },
  };
}

// Rows of names and values.
export const facts = (rows, kind = "settings") =>
  el("dl", { class: kind }, rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));

// A table that scrolls sideways if it must. `columns`: {name, class?, cell(row) -> text or node, first?: a row's header}.
export function table(caption, columns, rows, kind = "rows") {
  const head = el("tr", {}, columns.map((one) => el("th", { scope: "col", class: one.class }, one.name)));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", { class: kind }, el("caption", { class: "unseen" }, caption),
      el("thead", {}, head), el("tbody", {}, rows.map((row) => tableRow(columns, row)))));
}

export const tableRow = (columns, row) => el("tr", {}, columns.map((one) => (one.first
  ? el("th", { scope: "row", class: one.class }, one.cell(row))
  : el("td", { class: one.class, "data-name": one.name }, one.cell(row)))));
