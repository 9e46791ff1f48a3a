// From "hardly anything" to "as much as local DP", on a logarithmic scale; nothing at all and everything have colours of their own.
import { el } from "./dom.js";

const STOPS = ["#1d4e89", "#5fa8d3", "#f4ead5", "#ee9b6b", "#b3242a"].map(c => [1, 3, 5].map(i => parseInt(c.slice(i, i + 2), 16)));
export const NOTHING = "#ffffff", EVERYTHING = "#3d0812";
const FIXED = { "-1": [138, 138, 138], "-2": [255, 255, 255], "-3": [61, 8, 18] };

// ε for people, rounded up as everywhere in netdp.
export function say(e) {
  if (e === null || e === undefined) return "–";
  if (e === "inf" || e >= 1e300) return "∞";
  if (e === 0) return "0";
  if (e < 1e-4) return "<0.0001";
  if (e >= 1e6) { const p = 10 ** (Math.floor(Math.log10(e)) - 2); return (Math.ceil(e / p * (1 - 1e-12)) * p).toExponential(2); }
  const places = Math.max(0, 2 - Math.floor(Math.log10(e)));
  return (Math.ceil(e * 10 ** places * (1 - 1e-13)) / 10 ** places).toFixed(places);
}

export class Scale {
  constructor(answer) {
    const finite = answer.epsilon.filter(e => typeof e === "number" && e > 0);
    const largest = finite.reduce((a, b) => Math.max(a, b), 0) || 1;
    this.local = number(answer.local); this.curator = number(answer.curator);
    this.high = this.local > 0 && isFinite(this.local) ? this.local : largest;
    const low = this.curator > 0 && isFinite(this.curator) ? this.curator : this.high / 100;
    this.low = Math.min(low, this.high / 3);
  }
  bucket(e) {  // −1 unknown, −2 nothing, −3 without bound, else 0 … 63
    if (e === null || e === undefined) return -1;
    if (e === 0) return -2;
    if (e === "inf" || e >= 1e300) return -3;
    const x = Math.log(Math.max(e, this.low) / this.low) / Math.log(this.high / this.low);
    return Math.round(63 * Math.min(1, Math.max(0, x)));
  }
  rgb(bucket) {
    if (bucket < 0) return FIXED[bucket];
    const x = bucket / 63 * (STOPS.length - 1), i = Math.min(STOPS.length - 2, Math.floor(x)), f = x - i;
    return STOPS[i].map((a, k) => Math.round(a + f * (STOPS[i + 1][k] - a)));
  }
  colour(bucket) { return `rgb(${this.rgb(bucket).join(",")})`; }
  legend(element, answer) {
    const bar = el("div", { className: "bar" }), stops = [];
    for (let b = 0; b < 64; b += 7) stops.push(this.colour(b));
    bar.style.background = `linear-gradient(90deg,${stops.join(",")})`;
    const ticks = el("div", { className: "ticks", "aria-hidden": "true" });
    const span = Math.log(this.high / this.low);
    let last = -1;
    for (let power = Math.floor(Math.log10(this.low)); power <= Math.ceil(Math.log10(this.high)); power++) for (const digit of [1, 2, 5]) {
      const value = digit * 10 ** power, x = Math.log(value / this.low) / span;
      if (x < 0.06 || x > 0.94 || x < last + 0.13) continue;
      const tick = el("span", {}, value >= 1e4 || value < 1e-3 ? value.toExponential(0) : String(+value.toPrecision(1)));
      tick.style.left = `${100 * x}%`; ticks.append(tick); last = x;
    }
    const left = this.low === this.curator ? `ε ≤ ${say(this.low)}, ${answer.roles.length ? "trusted shuffler" : "trusted curator"}` : `ε ≤ ${say(this.low)}`;
    const right = this.high === this.local ? `${say(this.high)}, local DP` : say(this.high);
    const keys = el("div", { className: "keys" }), seen = new Set(answer.epsilon.map(e => this.bucket(e)));
    const key = (colour, words) => { const one = el("span", { className: "key" }, words); one.style.setProperty("--dot", colour); keys.append(one); };
    if (seen.has(-2)) key(NOTHING, "nothing at all (ε = 0)");
    if (seen.has(-3)) key(EVERYTHING, "without bound (ε = ∞)");
    if (answer.observers.length) keys.append(el("span", {}, "★ observer"));
    element.replaceChildren(el("span", {}, left), bar, el("span", {}, right), ticks, keys);
  }
}

export const number = e => e === "inf" ? Infinity : e === null || e === undefined ? NaN : e;
