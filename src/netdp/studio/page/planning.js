// A target turns the sliders: the planner's settings, and the ways it compared.
import { $, el } from "./dom.js";
import { take } from "./choosing.js";
import { STEPS, fromSlider, toSlider } from "./controls.js";
import { asked, giveUp, notNow, question, soon, trouble } from "./state.js";

const RANGE = { slider: "factor", low: 0.01, high: 20 };
let onlyNoise = false;  // which of the two buttons was pressed last

async function plan() {
  const buttons = [$("plan"), $("only-noise")];
  for (const button of buttons) button.disabled = true;
  $("plan-words").textContent = "planning …";
  $("plan-options").replaceChildren();
  try {
    const content = { state: asked(), epsilon: Number($("target").value), only_noise: onlyNoise };
    const found = await question("plan", content, share => { $("plan-words").textContent = `planning … ${Math.round(100 * share)} %`; });
    take(found.settings);
    $("plan-words").textContent = [found.holds, ...found.notes].join("; ");
    if (found.options.length) $("plan-options").replaceChildren(compared(found));
  } catch (error) { $("plan-words").textContent = ""; trouble(error); }
  finally { for (const button of buttons) button.disabled = false; }
}

function compared(found) {
  const row = (cells, chosen = false) => el("tr", { className: chosen ? "chosen" : "" }, ...cells.map(cell => el("td", {}, cell)));
  const way = one => one.settings ? el("button", { type: "button", onclick: () => take(one.settings) }, one.name) : one.name;
  return el("table", {},
    el("thead", {}, el("tr", {}, ...["way", "ε", "error", "×curator"].map(cell => el("th", { scope: "col" }, cell)))),
    el("tbody", {}, ...found.options.map(one => row([way(one), one.epsilon, one.error, one.curators], one.chosen)),
      row(["local DP", "", found.local, ""]), row(["trusted curator", "", found.curator, "1.00"])));
}

// What was planned holds for the settings that were found: it goes when others are chosen.
export function forgetPlan() {
  notNow("plan");
  giveUp("plan");
  $("plan-words").textContent = "";
  $("plan-options").replaceChildren();
}

export function listenToPlans(study) {
  const box = $("target"), slider = $("target-slider");
  if (study) box.value = study.epsilon;
  slider.max = STEPS;
  slider.value = toSlider(box.value, RANGE);
  // a moment later, so that a button that is pressed next decides how
  box.addEventListener("change", () => { slider.value = toSlider(box.value, RANGE); soon("plan", plan, 400); });
  slider.addEventListener("input", () => { box.value = fromSlider(+slider.value, RANGE); soon("plan", plan, 400); });
  const press = noise => { onlyNoise = noise; soon("plan", plan, 0); };
  $("plan").addEventListener("click", () => press(false));
  $("only-noise").addEventListener("click", () => press(true));
}
