// All actions in one place. Each is confirmed in a dialog, and written to the log of the crawl.

import { ACTIONS } from "../confirm.js";
import { el, heading, hint, nothing, setHidden, setText } from "../dom.js";

const CARDS = [
  ["Pause or continue", "Stop requesting pages for a while. Delays are kept.", [["pause", "Pause"], ["continue", "Continue"]]],
  ["Stop", "End the crawl cleanly. It can be resumed later.", [["stop", "Stop", "danger"]]],
  ["Block a site", "Request nothing more from a site, for example after a complaint.", [["block", "Block", "danger"], ["unblock", "Unblock"]]],
  ["Change a delay", "Set the time between two visits to one site.", [["delay", "Change the delay"]]],
  ["Add seeds", "Give the crawl more pages to begin with.", [["add_seeds", "Add seeds"]]],
];

export function open({ crawl, ask }) {
  const buttons = new Map();
  const button = ([action, text, kind]) => {
    const made = el("button", { type: "button", class: kind, click: () => ask(ACTIONS[action]()) }, text);
    buttons.set(action, made);
    return made;
  };
  const cards = el("div", { class: "cards" }, CARDS.map(([title, about, actions]) =>
    el("section", {}, el("h3", {}, title), hint(about), el("div", { class: "buttons left" }, actions.map(button)))));
  const why = el("p"), refused = nothing("Actions are not possible now.");
  refused.append(why);

  const update = ({ state, paused }) => {
    const reason = !crawl.can_act ? "This dashboard was started with --read-only." : state !== "running" ? "The crawl is not running." : "";
    setText(why, reason);
    setHidden(refused, !reason);
    for (const [action, one] of buttons) one.disabled = Boolean(reason) || (action === "pause" && paused) || (action === "continue" && !paused);
  };
  setHidden(refused, crawl.can_act);
  const element = el("section", {}, heading("Actions"),
    hint("Every action is confirmed first and written to crawl.log. The command trapline control does the same."),
    refused, cards);
  return { element, update };
}
