// Why the crawl is not faster: one sentence, one bar of all connections, and what would help.

import { ConnectionBar, StateCourse, StateTable } from "../bar.js";
import { el, heading, hint, nothing, setHidden, setText } from "../dom.js";
import { brief } from "../units.js";

const times = (factor) => (factor >= 1000 ? "over 1,000" : brief(Number(factor.toPrecision(3))));

function suggestion({ text, factor }) {
  const gain = factor > 1.005 ? `${times(factor)} times as fast` : factor === null || factor === undefined ? "" : "no faster by itself";
  return el("li", {}, el("span", {}, text), gain ? el("b", {}, gain) : null);
}

export function open({ progress }) {
  const bar = new ConnectionBar(), states = new StateTable(), course = new StateCourse();
  const sentence = el("p", { class: "sentence large" }), help = el("ul", { class: "help" });
  const helpless = hint("Nothing that you could change would make this crawl faster now.");
  const none = nothing("No connections to show.", "The crawl is not running, or has not reported yet.");
  const lately = el("div", {}, el("h3", {}, "The last minutes"), hint("Since this page was opened; from the bottom up in the order of the table."), course.element);
  const table = el("section", {}, el("h3", {}, "What the connections do"), states.element);
  const connections = el("div", {}, bar.element, el("div", { class: "two" },
    el("section", {}, el("h3", {}, "What would help"), help, helpless,
      lately), table));
  const element = el("section", {}, heading("Why not faster?"), sentence, none, connections);
  let shownHelp = "";

  const update = ({ speed, state }) => {
    const hasShares = Object.keys(speed?.shares ?? {}).length > 0;
    setText(sentence, speed?.sentence ?? "");
    setHidden(none, hasShares);
    setHidden(connections, !hasShares && !speed?.help?.length);
    for (const one of [bar.element, lately, table]) setHidden(one, !hasShares);
    setHidden(helpless, state !== "running" || speed?.help?.length > 0);
    bar.draw(speed?.shares);
    states.draw(speed?.shares);
    course.draw(progress.samples);
    const text = JSON.stringify(speed?.help);
    if (text !== shownHelp) help.replaceChildren(...(speed?.help ?? []).map(suggestion));
    shownHelp = text;
  };
  return { element, update };
}
