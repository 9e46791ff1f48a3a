// Choosing: a network, a protocol with its settings, and who looks.
import { $, el } from "./dom.js";
import { upload } from "./api.js";
import { control } from "./controls.js";
import { facts } from "./answer.js";
import { asked, ensureObserver, entry, family, name, page, question, trouble, way } from "./state.js";

let changed;  // what to do after a choice: changed({graph: whether the network is another one})

// Settings to fall back on when a protocol that was just chosen refuses the network that is here.
export let instead = null;
export const forget = () => { const example = instead; instead = null; return example; };

// ── the network ───────────────────────────────────────────────────────────────────────────────────────────────────────
const isFamily = () => family() in page.catalogue.families && !page.settings.graph.includes("+");

function showGraphs() {
  const { catalogue, settings, uploads } = page;
  const listed = isFamily() || settings.graph.startsWith("@") || catalogue.datasets.some(one => one.name === settings.graph);
  const group = (label, options) => options.length ? [el("optgroup", { label }, ...options)] : [];
  $("family").replaceChildren(
    ...group("Families", Object.keys(catalogue.families).map(one => el("option", { value: one }, one.replaceAll("_", " ")))),
    ...group("Data", catalogue.datasets.map(one => el("option", { value: `=${one.name}`, title: one.facts }, one.name))),
    ...group("Given", [...uploads].map(([key, called]) => el("option", { value: `=${key}` }, called))),
    ...(listed ? [] : [el("option", { value: `=${settings.graph}` }, settings.graph)]));
  $("family").value = isFamily() ? family() : `=${settings.graph}`;
  showParameters();
}

function showParameters() {
  if (!isFamily()) { $("parameters").replaceChildren(); return; }
  const names = Object.entries(page.catalogue.families[family()].parameters);
  const given = page.settings.graph.split(":")[1].split(/[,x]/).map(part => part.split("=").pop());
  const boxes = names.map(([one, kind], i) => el("input", { type: "number", step: kind === "int" ? 1 : "any", value: given[i] ?? 0, id: `graph-${one}`, onchange: spelled }));
  function spelled() {
    const parts = boxes.map((box, i) => names[i][0] === "seed" ? `seed=${box.value.trim()}` : box.value.trim());
    chooseGraph(`${family()}:${parts.join(["grid", "torus"].includes(family()) ? "x" : ",")}`);
  }
  $("parameters").replaceChildren(...boxes.map((box, i) => el("div", { className: "row" }, el("label", { htmlFor: box.id }, names[i][0]), box)));
}

function chooseGraph(graph) {
  const before = way().class;
  page.settings.graph = graph;
  delete page.settings.observer;
  if (way().class !== before) fitSettings();
  showChoices();
  changed({ graph: true });
}

async function uploaded(event) {
  const [file] = event.target.files;
  if (!file) return;
  trouble(null);
  try {
    $("network-facts").textContent = `reading ${file.name} …`;
    const found = await upload(file);
    page.uploads.set(found.graph, found.called);
    chooseGraph(found.graph);
    $("network-facts").textContent = found.found;
  } catch (error) { trouble(error); if (page.drawn) facts(); }
  event.target.value = "";
}

async function saveEdges() {
  try {
    const { name: called, text } = await question("edges", { state: asked() });
    const link = el("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: called });
    link.click();
    URL.revokeObjectURL(link.href);
  } catch (error) { trouble(error); }
}

// ── the protocol ──────────────────────────────────────────────────────────────────────────────────────────────────────
function showControls() {
  const build = spec => control(spec, page.settings[spec.name], value => {
    if (value === null || value === spec.default) delete page.settings[spec.name]; else page.settings[spec.name] = value;
    changed();
  });
  const all = way().controls, more = all.filter(one => !one.first);
  $("controls").replaceChildren(...all.filter(one => one.first).map(build));
  $("more-controls").replaceChildren(...more.map(build));
  $("more").hidden = !more.length;
  $("does").textContent = `${entry().does}. Claim: ${entry().claims}.`;
}

// Keep the settings that the protocol has, too, and take what it lacks from its example.
function fitSettings() {
  const known = new Map(way().controls.map(one => [one.name, one])), { example } = entry();
  const fits = { number: "number", switch: "boolean", text: "string", choice: "string" };  // masks are a number here and a word there
  const kept = Object.fromEntries(Object.entries(page.settings).filter(([key, value]) => known.has(key) && typeof value === fits[known.get(key).kind]));
  const lacking = [...known.values()].filter(one => !(one.name in kept) && (one.required || one.name in example));
  const taken = Object.fromEntries(lacking.map(one => [one.name, example[one.name] ?? one.low ?? 1]));
  const { graph, protocol, delta, observer } = page.settings;
  page.settings = { graph, protocol, ...(delta ? { delta } : {}), ...kept, ...taken, ...(observer ? { observer } : {}) };
}

function chooseProtocol(protocol) {
  page.settings.protocol = protocol;
  const { example, ways } = entry(), onlyUsers = Object.values(ways).every(one => one.first === "users");
  const inTurns = /[+](?!rings:)/.test(page.settings.graph);
  if ((onlyUsers && !/^(complete|ring):/.test(page.settings.graph)) || way().first === "graphs" || inTurns) page.settings.graph = example.graph;
  delete page.settings.observer;
  fitSettings();
  lookBy("these");
  instead = { ...example, protocol };
  delete instead.colluders;
  showChoices();
  changed({ graph: true });
}

// Settings that a planner found, in the place of those that are there.
export function take(settings) {
  for (const spec of way().controls) delete page.settings[spec.name];
  Object.assign(page.settings, settings);
  showControls();
  changed({ planned: true });
}

// ── who looks ─────────────────────────────────────────────────────────────────────────────────────────────────────────
function lookBy(which) {
  document.querySelector(`[name=who][value=${which}]`).checked = true;
  if (which === "any") page.settings.colluders = Math.max(1, Math.round(Number($("any").value) || 1));
  else { delete page.settings.colluders; ensureObserver(); }
}

export function showObservers() {
  const list = page.settings.colluders ? [] : page.settings.observer ?? [], roles = page.answer?.roles ?? [];
  $("observers").replaceChildren(
    ...(roles.length ? [el("li", {}, el("span", { className: "badge" }, roles.join(", ")))] : []),
    ...list.map(party => el("li", {}, el("button", { type: "button", "aria-label": `${party}: no observer any more`, onclick: () => toggle(party) }, `${party} ×`))));
}

export function toggle(party) {
  const list = new Set((page.settings.observer ?? []).map(String));
  if (!list.delete(String(party))) list.add(String(party));
  if (!list.size && !page.answer?.roles.length) return;  // somebody has to look
  lookThrough([...list]);
}

export function lookThrough(parties) {
  page.settings.observer = parties;
  if (!parties.length) delete page.settings.observer;
  lookBy("these");
  showObservers();
  changed();
}

function addObserver() {
  const party = $("add").value.trim(), { labels, n } = page.drawn;
  if (party === "") return;
  if (!(labels ? labels.includes(party) : /^\d+$/.test(party) && +party < n)) {
    trouble(new Error(`there is no party ${party}; ${labels ? `names are such as ${labels[0]}` : `parties are 0 to ${n - 1}`}`));
    return;
  }
  $("add").value = "";
  trouble(null);
  if (!(page.settings.observer ?? []).map(String).includes(party)) toggle(party);
}

function chooseDelta(event) {
  const delta = Number(event.target.value);
  if (delta > 0 && delta < 1) { page.settings.delta = delta; changed(); }
  else trouble(new Error(`δ must lie between 0 and 1, got ${event.target.value}; 1e-6 is a usual choice`));
}

// ── all of it ─────────────────────────────────────────────────────────────────────────────────────────────────────────
export function showChoices() {
  $("protocol").value = page.settings.protocol;
  showGraphs();
  showControls();
  showObservers();
}

export function listenToChoices(onchange) {
  changed = onchange;
  $("settings").addEventListener("submit", event => event.preventDefault());
  $("protocol").replaceChildren(...Object.keys(page.catalogue.protocols).map(one => el("option", { value: one }, one)));
  $("protocol").addEventListener("change", event => chooseProtocol(event.target.value));
  $("family").addEventListener("change", event => { const one = event.target.value; chooseGraph(one.startsWith("=") ? one.slice(1) : page.catalogue.families[one].example); });
  $("upload").addEventListener("change", uploaded);
  $("save-edges").addEventListener("click", saveEdges);
  const who = which => { lookBy(which); showObservers(); changed(); };
  for (const radio of document.querySelectorAll("[name=who]")) radio.addEventListener("change", () => who(radio.value));
  $("any").addEventListener("change", () => who("any"));
  $("delta").addEventListener("change", chooseDelta);
  $("add-button").addEventListener("click", addObserver);
  $("add").addEventListener("keydown", event => { if (event.key === "Enter") { event.preventDefault(); addObserver(); } });
}
