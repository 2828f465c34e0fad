// Axes with few round ticks, and rates from counts. Knows numbers only, and nothing of the picture.

import { brief, timeUnit } from "./units.js";

const STEPS = [1, 2, 2.5, 5, 10, 20];
const TIME_STEPS = { s: [1, 2, 5, 10, 15, 30, 60], min: [1, 2, 5, 10, 15, 20, 30, 60], h: [1, 2, 3, 4, 6, 12, 24] };
const NEARLY = 1e-9;

function roundStep(range, most) {
  const size = 10 ** Math.floor(Math.log10(range / most));
  return size * STEPS.find((one) => size * one * most >= range * (1 - NEARLY));
}

const multiples = (step, low, high) => {
  const first = Math.ceil(low / step - NEARLY), last = Math.floor(high / step + NEARLY);
  return Array.from({ length: last - first + 1 }, (_, at) => (first + at) * step);
};

// An axis from 0 to a round number that is at least `largest`.
export function valueAxis(largest, { most = 4, whole = false, text = brief, limit = Infinity } = {}) {
  const top = largest > 0 ? largest : 1;
  const step = whole ? Math.max(1, roundStep(top, most)) : roundStep(top, most);
  const high = Math.min(limit, step * Math.ceil(top / step * (1 - NEARLY)));
  return { low: 0, high, ticks: multiples(step, 0, high), text };
}

// An axis of time since the crawl began. Its ends are those of the data.
export function timeAxis(low, high, most) {
  const range = Math.max(high - low, 1);
  const [size, sign] = timeUnit(range);
  const steps = TIME_STEPS[sign] ?? [];
  const step = steps.find((one) => one * size * most >= range) ?? roundStep(range / size, most);
  return {
    low, high: low + range, ticks: multiples(step * size, low, low + range),
    text: (tick) => (tick ? `${brief(tick / size)} ${sign}` : "0"),
  };
}

export function plainAxis(high, most) {
  const range = high > 0 ? high : 1;
  return { low: 0, high: range, ticks: multiples(roundStep(range, most), 0, range), text: brief };
}

// The value of a line at x, between the two nearest points; none beyond the ends of the line.
export function valueAt({ x: xs, y: ys }, x) {
  if (!xs.length || x < xs[0] || x > xs.at(-1)) return null;
  let low = 0, high = xs.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) low = middle; else high = middle;
  }
  const width = xs[high] - xs[low];
  return width ? ys[low] + (ys[high] - ys[low]) * (x - xs[low]) / width : ys[high];
}

// The mean of a value over the same bins.
export function meanOf({ x, y }, low, high) {
  let sum = 0;
  const sums = y.map((value, at) => (sum += at ? (value + y[at - 1]) / 2 * (x[at] - x[at - 1]) : 0));
  return rateOf(x, sums, low, high);
}

// The line up to `high`, where it is cut.
export function cutAt(line, high) {
  const beyond = line.x.findIndex((x) => x > high);
  return beyond < 0 ? line : { x: [...line.x.slice(0, beyond), high], y: [...line.y.slice(0, beyond), valueAt(line, high) ?? 0] };
}

const BIN_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 604800];

// The rate of a growing count, as means over bins. Bins begin at round times, so that old points keep their places.
export function rateOf(seconds, counts, low, high, bins = 90) {
  const width = BIN_S.find((one) => one * bins >= high - low) ?? 2592000;
  const line = { x: seconds, y: counts }, x = [], y = [];
  for (let edge = Math.floor(low / width) * width; edge < high; edge += width) {
    const from = Math.max(edge, seconds[0]), until = Math.min(edge + width, high);
    if (until - from < width / 2) continue;
    x.push((from + until) / 2);
    y.push(Math.max(0, (valueAt(line, until) ?? 0) - (valueAt(line, from) ?? 0)) / (until - from));
  }
  return { x, y };
}
