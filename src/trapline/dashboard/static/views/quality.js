// The quality of the fetched pages against pages and time, beside what the simulator predicts for breadth-first.

import { job } from "../api.js";
import { cutAt } from "../axis.js";
import { LineChart } from "../chart.js";
import { el, heading, hint, nothing } from "../dom.js";
import { count, moment, percent } from "../units.js";

const REFRESH_MS = 60000;
const LONGEST = 1.5; // the end of the axis, as a multiple of the end of this crawl
const LOOKS = ["c0", "c1 d1", "optimum", "random"];
const AXES = [["pages", "against pages", "pages"], ["seconds", "against time", "time"]];

function chart(curves, unit, title, over) {
  const lines = curves.filter((one) => one.x_unit === unit && one.x.length > 1);
  if (!lines.length) return null;
  const made = new LineChart({
    title: `Quality ${title}`, about: "Share of the quality of the graph so far", names: lines.map((one) => one.name), looks: LOOKS, over, text: percent,
    axis: { limit: 1 }, filled: false,
  });
  // The first line is this crawl. A simulated crawl that takes much longer is cut.
  const high = Math.min(Math.max(...lines.map((one) => one.x.at(-1))), LONGEST * lines[0].x.at(-1));
  made.draw(lines.map((line) => cutAt(line, high)), 0, high);
  return made.element;
}

export function open({ api }) {
  const abort = new AbortController();
  const body = el("div", { "aria-live": "polite" }, hint("The quality of the fetched pages is being computed. For a large crawl this takes some seconds."));
  let timer = null;

  function show({ curves, pages, at, note }) {
    const charts = AXES.map((axis) => chart(curves, ...axis)).filter(Boolean);
    const about = [note || (pages ? `The graph has ${count(pages)} pages.` : ""), at ? `As of ${moment(at)}.` : ""].filter(Boolean).join(" ");
    body.replaceChildren(...(charts.length ? [hint(about), el("div", { class: "charts" }, charts)] : [nothing("There is no quality to show yet.", note ?? "")]));
  }

  async function load() {
    try {
      show(await job(api("quality"), abort.signal));
      timer = setTimeout(load, REFRESH_MS);
    } catch (error) {
      if (error.name !== "AbortError") body.replaceChildren(nothing("There is no quality to show.", error.message));
    }
  }

  load();
  return { element: el("section", {}, heading("Quality"), body), close: () => { abort.abort(); clearTimeout(timer); } };
}
