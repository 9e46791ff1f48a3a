// Loss by distance, predicted errors, all pairs. Every number on a chart also stands in the table or in words.
import { el, prose, svg } from "./dom.js";
import { number, say } from "./colours.js";

const W = 560, H = 320, LEFT = 76, RIGHT = 14, TOP = 12, BOTTOM = 46;

export function byDistance(element, answer) {
  const rows = answer.by_distance;
  if (!rows.length) {
    const why = answer.distances === null && answer.observers.length ? "This protocol does not go along the links of a graph: what is learned about a party does not depend on where it is." : "Nobody in particular looks, so there is no distance.";
    element.replaceChildren(el("p", { className: "faint" }, why));
    return;
  }
  const kinds = [["published", "published formula (not a bound)", "5 4"], ["plain", "exact, plain gossip", ""], ["chosen", answer.by_distance.some(r => r.plain !== null) ? `${answer.claim}, as chosen` : answer.label, ""]];
  const same = rows.every(row => row.plain === row.chosen);
  const shown = kinds.filter(([key]) => rows.some(row => row[key] !== null) && !(key === "plain" && same));
  const levels = [["local", "local DP", number(answer.local)], ["curator", answer.roles.length ? "trusted shuffler" : "trusted curator", number(answer.curator)]].filter(l => l[2] > 0 && isFinite(l[2]));
  const values = [...rows.flatMap(row => shown.map(([key]) => number(row[key]))), ...levels.map(l => l[2])].filter(v => v > 0 && isFinite(v));
  if (!values.length) { element.replaceChildren(el("p", { className: "faint" }, "Nothing is learned about anybody, or everything.")); return; }
  const high = Math.max(...values) * 1.3, low = Math.max(Math.min(...values) / 1.6, high / 1e8);
  const zeros = rows.some(row => shown.some(([key]) => row[key] === 0));
  const floor = H - BOTTOM - (zeros ? 18 : 0), most = rows[rows.length - 1].hops, fewest = rows[0].hops;
  const x = hops => most === fewest ? (LEFT + W - RIGHT) / 2 : LEFT + 14 + (hops - fewest) / (most - fewest) * (W - LEFT - RIGHT - 28);
  const y = e => e === 0 ? H - BOTTOM : e === Infinity ? TOP - 4 : floor - Math.log(Math.max(e, low) / low) / Math.log(high / low) * (floor - TOP);
  const chart = svg("svg", { viewBox: `0 0 ${W} ${H}`, class: "chart", role: "img", "aria-label": "Worst ε by distance from the observers; the same numbers are in the table" });
  for (const value of ticks(low, high)) {
    const at = y(value);
    chart.append(svg("line", { x1: LEFT, x2: W - RIGHT, y1: at, y2: at, class: "grid" }), svg("text", { x: LEFT - 7, y: at + 4, "text-anchor": "end", class: "soft" }, value < 1e-3 ? value.toExponential(0) : String(+value.toPrecision(1))));
  }
  if (zeros) chart.append(svg("line", { x1: LEFT, x2: W - RIGHT, y1: H - BOTTOM, y2: H - BOTTOM, class: "grid" }), svg("text", { x: LEFT - 7, y: H - BOTTOM + 4, "text-anchor": "end", class: "soft" }, "0"));
  const step = Math.max(1, Math.ceil((most - fewest + 1) / 12));
  for (const row of rows) if ((row.hops - fewest) % step === 0) chart.append(svg("text", { x: x(row.hops), y: H - BOTTOM + 19, "text-anchor": "middle", class: "soft" }, String(row.hops)));
  chart.append(svg("text", { x: (LEFT + W - RIGHT) / 2, y: H - 4, "text-anchor": "middle", class: "soft" }, "hops away from the observers"), svg("text", { x: 12, y: (TOP + floor) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(TOP + floor) / 2})`, class: "soft" }, "worst ε"));
  for (const [name, , value] of levels) chart.append(svg("line", { x1: LEFT, x2: W - RIGHT, y1: y(value), y2: y(value), class: `curve ${name}`, "stroke-dasharray": "2 4" }));
  for (const [key, words, dash] of shown) {
    const points = rows.filter(row => row[key] !== null).map(row => [x(row.hops), y(number(row[key])), row]);
    chart.append(svg("path", { d: points.map(([px, py], i) => `${i ? "L" : "M"}${px} ${py}`).join(""), class: key, "stroke-dasharray": dash || "none" }));
    if (points.length <= 60) for (const [px, py, row] of points) chart.append(svg("circle", { cx: px, cy: py, r: key === "chosen" ? 4.5 : 3, class: key }, svg("title", {}, `${words}: ε = ${say(row[key])} at ${row.hops} hops, ${row.parties.toLocaleString("en")} parties`)));
  }
  const legend = el("ul", { className: "lines" }, ...[...shown, ...levels.map(([key, words, value]) => [key, `${words}, ${say(value)}`, "2 4"])].map(([key, words, dash]) =>
    el("li", {}, svg("svg", { viewBox: "0 0 26 10", class: "chart", "aria-hidden": "true" }, svg("line", { x1: 0, x2: 26, y1: 5, y2: 5, class: `curve ${key}`, "stroke-dasharray": dash || "none" })), words)));
  element.replaceChildren(chart, legend);
}

// Round numbers for a logarithmic axis: as many as can be read.
function ticks(low, high) {
  const decades = Math.log10(high / low), digits = decades < 1 ? [1, 2, 3, 5, 7] : decades < 2 ? [1, 2, 5] : [1], found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) for (const digit of digits) {
    const value = digit * 10 ** power;
    if (value >= low && value <= high) found.push(value);
  }
  return found.filter((_, i) => i % Math.ceil(found.length / 8) === 0);
}

export function errors(element, answer) {
  const same = answer.same_privacy;
  if (answer.study_errors?.rows.length) { studyErrors(element, answer); return; }
  element.replaceChildren(el("p", {}, ...prose(answer.error_words)));
  if (!same) return;
  const bars = [["local", "local DP", same.local], ["chosen", "as chosen", same.ours], ["curator", "trusted curator", same.curator]];
  const most = Math.max(...bars.map(bar => bar[2])), height = 34 * bars.length + 4;
  const chart = svg("svg", { viewBox: `0 0 ${W} ${height}`, class: "chart", role: "img", "aria-label": bars.map(bar => `${bar[1]}: ${say(bar[2])}`).join("; ") });
  bars.forEach(([key, words, value], i) => {
    const width = Math.max(2, value / most * (W - 350)), at = 34 * i;
    chart.append(svg("text", { x: 0, y: at + 22 }, words), svg("rect", { x: 130, y: at + 8, width, height: 18, rx: 4, class: key, stroke: "none" }), svg("text", { x: 138 + width, y: at + 22 }, `${say(value)}  (×${(value / same.curator).toPrecision(3)} curator)`));
  });
  element.append(chart, el("p", { className: "faint small" }, `Predicted errors (root mean square) of the three ways at the ε ${answer.certified ? "certified" : "estimated"} here: ε = ${answer.worst_words} at δ = ${answer.delta.toExponential()}.`));
}

// Of a study's own answer, in the units of its data.
function studyErrors(element, { study_errors: { rows, notes, epsilon, delta } }) {
  const cells = row => [row.way, row.law, row.error, `×${say(row.times)}`];
  element.replaceChildren(
    el("p", {}, `Predicted error of the study's answer, beside other ways to promise ε ≤ ${epsilon} at δ = ${delta.toExponential()}:`),
    el("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Errors" }, el("table", {},
      el("thead", {}, el("tr", {}, ...["way", "by", "error", "×curator"].map(cell => el("th", { scope: "col" }, cell)))),
      el("tbody", {}, ...rows.map(row => el("tr", { className: row.way === "this study" ? "worst" : "" }, ...cells(row).map((cell, i) => i ? el("td", {}, cell) : el("th", { scope: "row" }, cell))))))),
    ...notes.map(note => el("p", { className: "faint small" }, note)));
}

export function heat(canvas, pairs, scale) {
  const side = pairs.parties.length, context = canvas.getContext("2d");
  canvas.width = canvas.height = side;  // one pixel a pair; the page enlarges it without blurring
  const image = context.createImageData(side, side);
  for (let u = 0; u < side; u++) for (let v = 0; v < side; v++) image.data.set([...scale.rgb(scale.bucket(pairs.epsilon[u][v])), 255], 4 * (u * side + v));
  context.putImageData(image, 0, 0);
}
