// Explains any URL or site, in the words of `trapline explain`.

import { job, query } from "../api.js";
import { el, foreign, heading, hint, nothing, setHidden } from "../dom.js";

// "  name: text" becomes a row with a name. Other lines stay whole.
function row(line) {
  const found = /^\s+([^:]{1,60}): (.*)$/.exec(line);
  return found ? el("div", {}, el("dt", {}, foreign(found[1])), el("dd", {}, foreign(found[2])))
    : el("div", { class: "whole" }, el("dt", { class: "unseen" }, "also"), el("dd", {}, foreign(line.trim())));
}

export function open({ api, keep }, _words, { url = "" }) {
  const input = el("input", { type: "text", name: "url", value: url, required: true, placeholder: "https://example.org/page or example.org", spellcheck: "false", inputmode: "url", autocapitalize: "off" });
  const button = el("button", { class: "primary" }, "Explain");
  const answer = el("div", { class: "explanation", "aria-live": "polite" });
  const waiting = el("p", { class: "hint" }, "The crawl's state is being read. For a large crawl this takes some seconds.");
  let abort = null;

  async function explain() {
    const what = input.value.trim();
    keep("explain", { url: what });
    abort?.abort();
    abort = new AbortController();
    const mine = abort;
    answer.replaceChildren();
    setHidden(waiting, false);
    try {
      const { lines: [first, ...lines] } = await job(api(`explain?${query({ url: what })}`), mine.signal);
      answer.replaceChildren(el("h3", {}, foreign(first)), el("dl", { class: "meanings" }, lines.map(row)));
    } catch (error) {
      if (error.name === "AbortError") return;
      answer.replaceChildren(nothing("There is no explanation.", error.message));
    }
    setHidden(waiting, true);
  }

  const submit = (event) => {
    event.preventDefault();
    explain();
  };
  setHidden(waiting, true);
  const element = el("section", {}, heading("Explain a URL or a site"),
    hint("Why was this page fetched when it was, or why is it still waiting? The answer describes the last commit of the crawl."),
    el("form", { class: "ask", submit }, el("label", { class: "field" }, el("span", {}, "URL or site"), input), button), waiting, answer);
  if (url) explain();
  return { element, close: () => abort?.abort() };
}
