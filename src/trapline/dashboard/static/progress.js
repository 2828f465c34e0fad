// What one crawl did so far: the curves since its beginning, and the states of its connections while this page is open.

const MOST_POINTS = 1200, MOST_SAMPLES = 300;
const COLUMNS = ["seconds", "pages", "errors", "bytes", "known", "waiting", "active", "quality"];

export class Progress {
  constructor() {
    this.curves = Object.fromEntries(COLUMNS.map((name) => [name, []]));
    this.samples = [];
    this.loads = 0; // how often the curves were loaded as a whole
  }

  load(history) {
    this.loads += 1;
    for (const name of COLUMNS) this.curves[name] = [...(history[name] ?? [])];
  }

  get end() {
    return this.curves.seconds.at(-1) ?? 0;
  }

  add(overview) {
    if (Object.keys(overview.speed?.shares ?? {}).length) this.samples.push({ at: overview.at, shares: overview.speed.shares });
    if (this.samples.length > MOST_SAMPLES) this.samples.shift();
    if (overview.state !== "running" || !(overview.seconds > this.end)) return;
    const now = { ...overview.totals, seconds: overview.seconds, active: overview.connections.active };
    for (const name of COLUMNS) this.curves[name].push(now[name] ?? null);
    if (this.curves.seconds.length > MOST_POINTS) this.#thin();
  }

  // Every second point goes, except among the newest, which the short time axes show.
  #thin() {
    const old = this.curves.seconds.length - MOST_POINTS / 3;
    for (const name of COLUMNS) this.curves[name] = this.curves[name].filter((_, at) => at >= old || at % 2 === 0);
  }

  // The part of a column from `low` on, as a line.
  line(name, low = 0) {
    const { seconds } = this.curves;
    const from = Math.max(0, seconds.findIndex((at) => at >= low) - 1);
    const kept = seconds.map((_, at) => at).slice(from).filter((at) => this.curves[name][at] !== null);
    return { x: kept.map((at) => seconds[at]), y: kept.map((at) => this.curves[name][at]) };
  }
}
