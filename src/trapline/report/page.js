"use strict";
// The page is complete without this script, which adds sorting by a click, values under the pointer, and shorter time axes.
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
  const charts = JSON.parse(document.getElementById("data").textContent);

  // Sorting. The first click puts the better values on top; missing values go to the end.
  const key = (row, at) => row.children[at].dataset.value;
  const compare = (a, b, sign) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const difference = Number(a) - Number(b);
    return sign * (Number.isNaN(difference) ? a.localeCompare(b) : difference);
  };
  for (const table of document.querySelectorAll("table")) {
    const body = table.tBodies[0], heads = [...table.querySelectorAll("thead .names th")];
    heads.forEach((head, at) => head.querySelector("button").addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      const order = now ? (now === "ascending" ? "descending" : "ascending") : head.dataset.first;
      const sign = order === "ascending" ? 1 : -1;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      body.append(...[...body.rows].sort((a, b) => compare(key(a, at), key(b, at), sign)));
    }));
  }

  // Time axes. Ticks and lines are redrawn from the data.
  let zoom = 1;
  const plain = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });

  const ticksTo = (top) => {
    const size = 10 ** Math.floor(Math.log10(top / 6));
    const step = size * [1, 2, 2.5, 5, 10, 20].find((one) => size * one * 6 >= top * (1 - 1e-9));
    return Array.from({ length: Math.floor(top / step * (1 + 1e-9)) + 1 }, (_, number) => number * step);
  };

  const drawTicks = (svg, chart) => {
    const [left, , right] = chart.frame, top = chart.top[0] / zoom;
    const grid = svg.querySelector(".x-axis .grid").cloneNode(), tick = svg.querySelector(".x-axis .tick").cloneNode();
    svg.querySelectorAll(".x-axis .grid, .x-axis .tick").forEach((old) => old.remove());
    for (const value of ticksTo(top)) {
      const at = left + (right - left) * value / top;
      for (const [mark, names] of [[grid, ["x1", "x2"]], [tick, ["x"]]]) {
        const fresh = mark.cloneNode();
        for (const name of names) fresh.setAttribute(name, at);
        if (mark === tick) fresh.textContent = plain.format(value);
        svg.querySelector(".x-axis").append(fresh);
      }
    }
  };

  const drawLine = (group, line, chart) => {
    const [left, top, right, bottom] = chart.frame;
    const xs = line.x.map((x) => left + (right - left) * x * zoom / chart.top[0]);
    const ys = line.y.map((y) => bottom - (bottom - top) * y / chart.top[1]);
    const beyond = xs.findIndex((x) => x > right + 0.05);
    if (beyond > 0) { // the line ends at the frame
      const part = (right - xs[beyond - 1]) / (xs[beyond] - xs[beyond - 1]);
      ys[beyond] = ys[beyond - 1] + (ys[beyond] - ys[beyond - 1]) * part;
      xs[beyond] = right;
      xs.length = beyond + 1;
    }
    const path = group.querySelector(".line");
    path.setAttribute("d", "M" + xs.map((x, at) => `${x.toFixed(1)} ${ys[at].toFixed(1)}`).join("L"));
    const markers = [...group.querySelectorAll(".marker")], length = path.getTotalLength();
    markers.forEach((marker, at) => {
      const { x, y } = path.getPointAtLength(length * (at + 0.15 + 0.7 * ((line.index * 0.37) % 1)) / markers.length);
      marker.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
    });
  };

  const draw = (svg) => {
    const chart = charts[svg.dataset.name];
    if (!chart.overTime) return;
    drawTicks(svg, chart);
    for (const line of chart.lines) drawLine(svg.querySelector(`[data-index="${line.index}"]`), line, chart);
  };
  const select = document.getElementById("zoom");
  select.addEventListener("change", () => {
    zoom = Number(select.value);
    document.querySelectorAll("svg.chart").forEach(draw);
  });

  // Values under the pointer.
  const reading = document.getElementById("reading");
  const shown = (index) => index < 0 || (document.getElementById(`show${index}`)?.checked ?? true);
  const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
  const text = (value, unit) => digits.format(value) + (unit ? ` ${unit}` : "");

  // The value of a line at x; none beyond its ends. At a step, the later value counts.
  const valueAt = (line, x) => {
    const { x: xs, y: ys } = line;
    if (x < xs[0] || x > xs[xs.length - 1]) return null;
    let low = 0, high = xs.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (xs[middle] <= x) low = middle; else high = middle;
    }
    const width = xs[high] - xs[low];
    return width ? ys[low] + (ys[high] - ys[low]) * (x - xs[low]) / width : ys[high];
  };

  // The swatch of a line, from the key of the plot or from the legend of all plots; a single line needs none.
  const swatchOf = (svg, index) => {
    const found = `[data-index="${index}"] .swatch`;
    const swatch = svg.parentElement.querySelector(`.key ${found}`) ?? document.querySelector(`.legend ${found}`);
    return swatch?.cloneNode(true) ?? document.createElement("i");
  };

  const rowOf = (svg, { line, value }, unit) => {
    const row = document.createElement("div");
    const name = document.createElement("span");
    name.textContent = line.name;
    const number = document.createElement("em");
    number.textContent = text(value, unit);
    row.append(swatchOf(svg, line.index), name, number);
    return row;
  };

  const place = (event) => {
    const margin = 16, width = reading.offsetWidth, height = reading.offsetHeight;
    const right = event.clientX + margin + width < root.clientWidth;
    const left = right ? event.clientX + margin : Math.max(4, event.clientX - margin - width);
    const top = Math.min(Math.max(4, event.clientY - height / 2), Math.max(4, window.innerHeight - height - 4));
    reading.style.left = `${left + window.scrollX}px`;
    reading.style.top = `${top + window.scrollY}px`;
  };

  const hide = (svg) => {
    reading.hidden = true;
    svg.querySelector(".cursor").setAttribute("visibility", "hidden");
  };

  const read = (svg, chart, event) => {
    const box = svg.getBoundingClientRect();
    const [left, , right] = chart.frame;
    const at = (event.clientX - box.left) / box.width * chart.width;
    if (at < left || at > right) return hide(svg);
    const x = (at - left) / (right - left) * chart.top[0] / zoom;
    const cursor = svg.querySelector(".cursor");
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, at);
    cursor.setAttribute("visibility", "visible");
    const found = chart.lines.filter((line) => shown(line.index))
      .map((line) => ({ line, value: valueAt(line, x) })).filter((one) => one.value !== null)
      .sort((a, b) => b.value - a.value);
    const head = document.createElement("b");
    head.textContent = `${chart.xName}: ${text(x, chart.xUnit)}`;
    reading.replaceChildren(head, ...found.map((one) => rowOf(svg, one, chart.yUnit)));
    reading.hidden = false;
    place(event);
  };

  for (const svg of document.querySelectorAll("svg.chart")) {
    const chart = charts[svg.dataset.name];
    for (const kind of ["pointermove", "pointerdown"]) svg.addEventListener(kind, (event) => read(svg, chart, event));
    for (const kind of ["pointerleave", "pointercancel"]) svg.addEventListener(kind, () => hide(svg));
  }
})();
