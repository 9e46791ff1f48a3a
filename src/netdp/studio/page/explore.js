// Explore: every choice asks the server, and its answer is shown; then, behind it, all pairs and what can be copied.
import { $, numbers } from "./dom.js";
import { Network } from "./network.js";
import { facts, listenToPairs, noPairs, show, showPairs, tell, wordsOf } from "./answer.js";
import { forget, listenToChoices, lookThrough, showChoices, showObservers, toggle } from "./choosing.js";
import { listenToCopies, renew } from "./copying.js";
import { forgetPlan, listenToPlans } from "./planning.js";
import { asked, ensureObserver, isAsking, name, page, question, soon, trouble } from "./state.js";

let network;

function changed({ graph = false, planned = false } = {}) {
  trouble(null);
  if (!planned) forgetPlan();
  drawAnew ||= graph;
  soon("ask", refresh, graph ? 0 : 90);
}
let drawAnew = true;

async function refresh() {
  try {
    if (drawAnew) {
      page.drawn = await question("network", { state: page.settings });
      drawAnew = false;
      network.show(numbers(page.drawn.positions, Float32Array), numbers(page.drawn.edges, Int32Array), page.drawn.labels);
      page.pairs = null;
      facts();
      ensureObserver();
    }
    soon("waiting", () => { if (isAsking("account")) working(0); }, 250);
    page.answer = await question("account", { state: asked() }, share => { if (!$("progress").hidden) working(share); });
    forget();
    trouble(null);
    $("answer").classList.remove("stale");
    show(network);
    showObservers();
    soon("pairs", allPairs, 350);
    soon("words", renew, 150);
  } catch (error) { if (error.name !== "AbortError") await refused(error); }
  finally { if (!isAsking("account")) working(null); }
}

// A protocol that was just chosen, on a network that it refuses: its example is shown instead.
async function refused(error) {
  const example = forget();
  if (!example) { trouble(error); $("answer").classList.add("stale"); return; }
  page.settings = example;
  drawAnew = true;
  showChoices();
  await refresh();
  trouble(new Error(`${error.message}. Shown instead: ${example.protocol} on ${example.graph}.`));
}

async function allPairs() {
  try {
    $("heat-title").textContent = "All pairs …";
    $("heat").hidden = !page.pairs;
    if (!page.pairs) $("cell").textContent = "";
    page.pairs = await question("pairs", { state: asked() }, share => { $("heat-title").textContent = `All pairs … ${Math.round(100 * share)} %`; });
    showPairs();
  } catch (error) { if (error.name !== "AbortError") noPairs(error.message); }
}

function working(share) {
  const bar = $("progress");
  bar.hidden = share === null;
  if (share === null) return;
  bar.firstElementChild.style.width = `${Math.round(100 * share)}%`;
  bar.setAttribute("aria-valuenow", Math.round(100 * share));
}

export async function explore(given) {
  page.catalogue = given;
  page.settings = { ...given.state };
  if (given.study) {
    page.uploads.set("@study", `the study: ${given.study.name}`);
    $("any").value = Math.max(1, given.study.colluders);
    $("delta").value = page.settings.delta.toExponential();
  }
  network = new Network($("network"), $("tip"), { choose: u => toggle(name(u)), point: tell, words: wordsOf });
  for (const [id, factor] of [["zoom-in", 1.5], ["zoom-out", 1 / 1.5], ["zoom-fit", 1e-9]]) $(id).addEventListener("click", () => network.zoom(factor));
  listenToChoices(changed);
  listenToPlans(given.study);
  listenToPairs(party => lookThrough([party]));
  listenToCopies();
  showChoices();
  await refresh();
}

export const redraw = () => { network?.refit(); };
// For who drives the page: where a party is drawn, and the ε of every party as it is shown.
export const placeOf = u => network.at(u);
export const shown = () => page.answer.epsilon;
