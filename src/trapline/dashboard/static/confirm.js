// The dialog in which every action is confirmed, and the actions that the dashboard offers.

import { byId, el, setText } from "./dom.js";
import { post } from "./api.js";
import { sentence } from "./units.js";

let asked = null; // the question that the dialog shows

const field = ({ name, label, about = "", ...attributes }) => el("label", { class: "field" }, el("span", {}, label),
  attributes.rows ? el("textarea", { name, ...attributes }) : el("input", { name, ...attributes }), about ? el("small", {}, about) : null);

function valuesOf(form) {
  return Object.fromEntries([...form.elements].filter((one) => one.name).map((one) => [one.name, one.value.trim()]));
}

// `request(values)` makes the body of the request from the fields, or throws an error with a sentence for the user.
export function ask({ crawl, title, text, button, danger = false, fields = [], request, done = () => {} }) {
  asked = { crawl, request, done };
  setText(byId("dialog-title"), title);
  setText(byId("dialog-text"), text);
  byId("dialog-fields").replaceChildren(...fields.map(field));
  setText(byId("dialog-error"), "");
  const confirm = byId("dialog-confirm");
  setText(confirm, button);
  confirm.className = danger ? "danger primary" : "primary";
  confirm.disabled = false;
  byId("dialog").showModal();
  (byId("dialog-fields").querySelector("input, textarea") ?? byId("dialog-cancel")).focus();
}

export function say(text) {
  setText(byId("answer"), text);
  byId("answer").hidden = !text;
}

async function send() {
  const { crawl, request, done } = asked, confirm = byId("dialog-confirm");
  try {
    const body = request(valuesOf(byId("dialog-form")));
    confirm.disabled = true;
    setText(byId("dialog-error"), "");
    const { answer } = await post(`/api/${crawl}/actions`, { ...body, confirm: true });
    byId("dialog").close();
    say(sentence(answer));
    done();
  } catch (error) {
    setText(byId("dialog-error"), error.message);
  } finally {
    confirm.disabled = false;
  }
}

export function prepareDialog() {
  byId("dialog-form").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  byId("dialog-cancel").addEventListener("click", () => byId("dialog").close());
}

// ---- The actions.

const siteField = (value) => ({ name: "site", label: "Site", value, required: true, placeholder: "example.org or *.example.org", spellcheck: "false" });

function seconds(text) {
  const found = /^(\d+(?:\.\d+)?)\s*(ms|s|min|h|)$/.exec(text);
  if (!found) throw new Error("Write the delay as a number with a unit, for example 5 s or 2 min.");
  return Number(found[1]) * { ms: 0.001, s: 1, min: 60, h: 3600, "": 1 }[found[2]];
}

function urls(text) {
  const found = text.split(/\s+/).filter(Boolean);
  if (!found.length) throw new Error("Write at least one URL.");
  return found;
}

export const ACTIONS = {
  pause: () => ({
    title: "Pause the crawl?", button: "Pause",
    text: "Visits end after their current page. Nothing more is requested until you continue. The clock of --max-time goes on.",
    request: () => ({ action: "pause" }),
  }),
  continue: () => ({
    title: "Continue the crawl?", button: "Continue",
    text: "The crawl requests pages again. It keeps the delays of all sites.",
    request: () => ({ action: "continue" }),
  }),
  stop: () => ({
    title: "Stop the crawl?", button: "Stop", danger: true,
    text: "The crawl ends after the pages that it is fetching now, and saves its state. To go on later: trapline crawl --resume DIR.",
    request: () => ({ action: "stop" }),
  }),
  block: (site = "") => ({
    title: "Block a site?", button: "Block", danger: true, fields: [siteField(site)],
    text: "The crawl requests nothing more from this site until you unblock it. Pages that it already has stay.",
    request: (values) => ({ action: "block", site: values.site }),
  }),
  unblock: (site = "") => ({
    title: "Unblock a site?", button: "Unblock", fields: [siteField(site)],
    text: "The crawl visits this site again, also if it had abandoned the site after failures.",
    request: (values) => ({ action: "unblock", site: values.site }),
  }),
  delay: (site = "", delay = "") => ({
    title: "Change the delay of a site?", button: "Change the delay",
    text: "The time between two visits to this site. A longer Crawl-delay in its robots.txt wins, and so does a longer --ip-delay.",
    fields: [siteField(site), { name: "delay", label: "Delay", value: delay, required: true, placeholder: "5 s" }],
    request: (values) => ({ action: "delay", site: values.site, delay_s: seconds(values.delay) }),
  }),
  add_seeds: () => ({
    title: "Add seeds?", button: "Add seeds",
    text: "The crawl fetches these pages as soon as it may, and their sites become part of its scope.",
    fields: [{ name: "urls", label: "URLs, one per line", rows: 5, required: true, placeholder: "https://example.org/", spellcheck: "false" }],
    request: (values) => ({ action: "add_seeds", urls: urls(values.urls) }),
  }),
};
