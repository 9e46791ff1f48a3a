// What was answered, on the page: headline, network, charts, table, all pairs.
import { $, el, prose } from "./dom.js";
import { Scale, number, say } from "./colours.js";
import { byDistance, errors, heat } from "./charts.js";
import { name, page } from "./state.js";

let scale = null;

export function facts() {
  const { drawn } = page, links = drawn.m ? `, ${drawn.m.toLocaleString("en")} links` : ", no links: everybody may talk to everybody";
  $("network-facts").textContent = `${drawn.name}: ${drawn.n.toLocaleString("en")} parties${links}`;
  $("names").replaceChildren(...(drawn.n <= 2000 ? [...Array(drawn.n).keys()].map(u => el("option", { value: name(u) })) : []));
  $("add").placeholder = drawn.labels ? drawn.labels[0] : `0 … ${drawn.n - 1}`;
}

export function show(network) {
  const { answer } = page;
  scale = new Scale(answer);
  network.paint(answer.epsilon, scale, answer.observers);
  scale.legend($("legend"), answer);
  headline(answer);
  byDistance($("distance"), answer);
  errors($("errors"), answer);
  table(answer);
  tell(null);
  for (const id of ["assumptions", "references"]) $(id).replaceChildren(...answer[id].map(line => el("li", {}, line)));
  $("reasons").replaceChildren(...Object.entries(answer.reasons ?? {}).map(([what, why]) => el("li", {}, `${what}: `, ...prose(why))));
  $("warning").hidden = !answer.warning;
  $("warning").textContent = answer.warning ?? "";
  if (page.pairs) showPairs();
  document.body.dataset.answered = String(Number(document.body.dataset.answered ?? 0) + 1);
}

function headline(answer) {
  const who = answer.against.charAt(0).toUpperCase() + answer.against.slice(1);
  $("headline").replaceChildren(
    `${who} can learn ${answer.certified ? "at most" : "about"} `, el("b", { id: "worst" }, `ε = ${answer.worst_words}`), " about anyone ",
    el("span", { className: "faint" }, `(δ = ${answer.delta.toExponential()})`), " ",
    el("span", { className: `badge ${answer.claim}`, title: answer.meaning }, answer.claim));
  $("claim").textContent = [answer.certified ? "" : answer.meaning, answer.about, answer.found].filter(Boolean).join(" · ");
  $("picture-title").textContent = `What ${answer.against}${answer.observers.length ? " (★)" : ""} can learn`;
  $("table-title").textContent = answer.question;
}

function table({ table: { header, rows } }) {
  const line = row => el("tr", { className: { worst: "worst", "mean factor": "mean" }[row[0]] ?? "" },
    ...row.map((cell, i) => i ? el("td", { className: header[i] === "" ? "reason" : "" }, cell) : el("th", { scope: "row" }, cell)));
  $("table").replaceChildren(
    el("thead", {}, el("tr", {}, ...header.map(cell => cell === "" ? el("td", {}) : el("th", { scope: "col" }, cell)))),
    el("tbody", {}, ...rows.map(line)));
}

export function wordsOf(u) {
  const { answer, drawn } = page;
  if (!answer || drawn.n !== answer.epsilon.length) return `party ${name(u)}`;
  if (answer.observers.includes(u)) return `party ${name(u)}, an observer`;
  const hops = answer.distances ? `, ${answer.distances[u]} hop${answer.distances[u] === 1 ? "" : "s"} away` : "";
  return `party ${name(u)}${hops}: ε = ${say(answer.epsilon[u])}`;
}

export function tell(u) {
  const { answer } = page;
  if (!answer) return;
  const factor = answer.factor ? ` As a multiple of the local-DP loss: ×${say(answer.factor.worst)} at worst, ×${say(answer.factor.mean)} on average.` : "";
  $("told").textContent = u === null ? `Click parties to make them observers, or look with the arrow keys.${factor}` : `About ${wordsOf(u)}.`;
}

export function showPairs() {
  const { pairs, drawn } = page, side = pairs.parties.length;
  $("heat").hidden = false;
  heat($("heat"), pairs, scale);
  $("heat-title").textContent = pairs.complete ? "What v alone learns about u, all pairs" : `What v alone learns about u: ${side} of ${drawn.n.toLocaleString("en")} parties`;
  let most = -1, at = [0, 0];
  pairs.epsilon.forEach((row, u) => row.forEach((e, v) => { if (number(e) > most) { most = number(e); at = [u, v]; } }));
  $("cell").dataset.rest = `Column: the observer. Row: the party whose privacy is at stake. Most: party ${name(pairs.parties[at[1]])} learns ε = ${say(most)} about party ${name(pairs.parties[at[0]])}.`;
  $("cell").textContent = $("cell").dataset.rest;
}

export function noPairs(reason) {
  page.pairs = null;
  $("heat-title").textContent = "All pairs";
  $("cell").replaceChildren(...prose(reason));
  $("heat").hidden = true;
}

// Which pair lies under the pointer: [party, observer], by their place in the picture.
function cellAt(event) {
  if (!page.pairs) return null;
  const box = $("heat").getBoundingClientRect(), side = page.pairs.parties.length;
  const v = Math.floor((event.clientX - box.left) / box.width * side), u = Math.floor((event.clientY - box.top) / box.height * side);
  return u >= 0 && v >= 0 && u < side && v < side ? [u, v] : null;
}

export function listenToPairs(onchoose) {
  $("heat").addEventListener("pointermove", event => {
    const at = cellAt(event);
    if (!at) return;
    const [u, v] = at, who = i => name(page.pairs.parties[i]);
    $("cell").textContent = u === v ? `Party ${who(u)} itself.` : `Party ${who(v)} learns ε = ${say(page.pairs.epsilon[u][v])} about party ${who(u)}.`;
  });
  $("heat").addEventListener("pointerleave", () => { $("cell").textContent = $("cell").dataset.rest ?? ""; });
  $("heat").addEventListener("click", event => { const at = cellAt(event); if (at) onchoose(name(page.pairs.parties[at[1]])); });
}
