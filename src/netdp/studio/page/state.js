// What the page holds: the settings (the very flags of `netdp account`), what was answered, and questions under way.
import { $, prose } from "./dom.js";
import { ask } from "./api.js";

export const page = {
  catalogue: null,  // graphs and protocols that can be chosen
  settings: null,   // {graph, protocol, rounds, sigma, …, observer: [names], colluders, delta}
  drawn: null,      // the network as the server placed it
  answer: null,     // what the observers learn
  pairs: null,      // what everybody alone learns about everybody
  uploads: new Map(),  // name on the server → what the file was called
};

export const name = u => page.drawn?.labels ? page.drawn.labels[u] : String(u);
export const family = () => page.settings.graph.includes("+rings:") ? "" : page.settings.graph.split(":")[0];
export const entry = () => page.catalogue.protocols[page.settings.protocol];
export const way = () => entry().ways[family()] ?? entry().ways[""];
export const hasCurator = () => /shuffle/.test(page.settings.protocol);

// Somebody has to look: the first party, unless there is a curator.
export function ensureObserver() {
  if (page.settings.observer?.length) return;
  if (hasCurator() || !page.drawn) delete page.settings.observer; else page.settings.observer = [name(0)];
}

// The settings as they are asked about: any so many parties, or those that are named.
export function asked() {
  const kept = { ...page.settings };
  if (kept.colluders) delete kept.observer;
  return kept;
}

// Of each kind of question the newest wins: an older one is given up, here and on the server.
const underWay = {};
export const isAsking = kind => kind in underWay;
export async function question(kind, content, onprogress) {
  underWay[kind]?.abort();
  const mine = underWay[kind] = new AbortController();
  try { return await ask(kind, content, { signal: mine.signal, onprogress }); }
  finally { if (underWay[kind] === mine) delete underWay[kind]; }
}

export const giveUp = kind => underWay[kind]?.abort();

const waits = {};
export function soon(what, action, milliseconds) { notNow(what); waits[what] = setTimeout(action, milliseconds); }
export const notNow = what => clearTimeout(waits[what]);

export function trouble(error) {
  if (error?.name === "AbortError") return;
  $("trouble").hidden = !error;
  $("trouble").replaceChildren(...(error ? prose(error.message) : []));
}
