// Numbers for people: in a unit that fits their size, with few digits; as trapline/units.py writes them.

const NONE = "–";
const TIMES = [[86400, "days"], [3600, "h"], [60, "min"], [1, "s"]];
const BYTES = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];

const missing = (value) => value === null || value === undefined || !Number.isFinite(value);
const fixed = (value, digits) => value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

export const count = (value) => (missing(value) ? NONE : Math.round(value).toLocaleString("en"));

// Three digits, or a whole number from 100 on.
export function threeDigits(value) {
  if (missing(value)) return NONE;
  const size = Math.abs(value);
  return fixed(value, size === 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

// Few digits, without zeros at the end: for axes and settings.
export const brief = (value) =>
  (missing(value) ? NONE : value.toLocaleString("en", { maximumSignificantDigits: Math.abs(value) >= 1000 ? 12 : 4 }));

// A number of any magnitude, such as the value of a page to a policy.
export const smallNumber = (value) => (missing(value) || Math.abs(value) >= 1e-3 || value === 0 ? brief(value) : value.toExponential(1));

export const timeUnit = (seconds) => TIMES.find(([size]) => seconds >= 2 * size) ?? TIMES[3];

export function duration(seconds) {
  if (missing(seconds)) return NONE;
  const [size, sign] = timeUnit(seconds);
  const value = seconds / size;
  return `${value >= 10 || value < 0.0005 ? count(value) : brief(Number(value.toPrecision(2)))} ${sign}`;
}

export function bytes(amount) {
  if (missing(amount)) return NONE;
  const [size, unit] = BYTES.find(([least]) => amount >= least) ?? [1, "B"];
  return `${size === 1 ? count(amount) : threeDigits(amount / size)} ${unit}`;
}

export const percent = (share) => (missing(share) ? NONE
  : `${share > 0 && share < 0.0995 ? fixed(share * 100, 1) : fixed(share * 100, 0)} %`);

export const wholePercent = (share) => (share > 0 && share < 0.005 ? "< 1 %" : percent(Math.round(share * 100) / 100).replace(".0", ""));

// A short time, such as that of an answer.
export const shortTime = (seconds) => (missing(seconds) ? NONE : seconds < 1 ? `${count(seconds * 1000)} ms` : duration(seconds));

export const counted = (amount, what) => `${count(amount)} ${what}${amount === 1 ? "" : "s"}`;

export const clock = (at) => (missing(at) ? NONE : new Date(at * 1000).toLocaleTimeString("en-GB"));

export const moment = (at) => {
  if (missing(at)) return NONE;
  const day = new Date(at * 1000).toLocaleDateString("en-CA");
  return day === new Date().toLocaleDateString("en-CA") ? clock(at) : `${day} ${clock(at)}`;
};

export const utc = (at) => (missing(at) ? NONE : new Date(at * 1000).toISOString().replace("T", " ").replace(/\.\d+Z/, " UTC"));

// A sentence of the server with a full stop and, unless it begins with the name of a file, a capital letter.
export const sentence = (text) => {
  const whole = String(text ?? "").trim().replace(/^[a-z]+(?= )/, (word) => word[0].toUpperCase() + word.slice(1));
  return whole && `${whole}${/[.?!]$/.test(whole) ? "" : "."}`;
};

// Words of the server such as `site_delay` or `broken-off`, as people write them.
export const words = (name) => String(name ?? "").replace(/[_-]/g, " ");
