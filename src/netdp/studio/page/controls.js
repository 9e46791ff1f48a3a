// Sliders, boxes, switches and choices for the settings of a protocol.
import { el } from "./dom.js";

export const STEPS = 400;

export function control(spec, value, onchange) {
  const id = `set-${spec.name}`, help = el("p", { className: "help", id: `${id}-help` }, spec.words);
  const label = el("label", { htmlFor: id, title: spec.words }, spec.name.replaceAll("-", " "));
  const line = el("div", { className: "line" }, label);
  const made = el("div", { className: "control" }, line);
  const shown = value ?? spec.default;
  if (spec.kind === "switch") {
    line.append(el("input", { type: "checkbox", id, checked: Boolean(shown), "aria-describedby": help.id, onchange: event => onchange(event.target.checked) }));
  } else if (spec.kind === "choice") {
    const select = el("select", { id, "aria-describedby": help.id, onchange: event => onchange(event.target.value || null) }, ...(spec.default === null ? [el("option", { value: "" }, "as usual")] : []), ...spec.choices.map(one => el("option", { value: one }, one)));
    select.value = shown ?? "";
    line.append(select);
  } else if (spec.kind === "text") {
    line.append(el("input", { type: "text", id, value: shown ?? "", "aria-describedby": help.id, onchange: event => onchange(typed(event.target.value)) }));
  } else {
    const box = el("input", { type: "number", id, step: "any", value: shown ?? "", "aria-describedby": help.id });
    line.append(box);
    box.addEventListener("change", () => { const chosen = read(box.value); if (slider) slider.value = toSlider(chosen, spec); onchange(chosen); });
    let slider = null;
    if (spec.slider) {
      slider = el("input", { type: "range", min: 0, max: STEPS, step: 1, value: toSlider(shown, spec), "aria-label": `${spec.name.replaceAll("-", " ")}, slider` });
      slider.addEventListener("input", () => { const chosen = fromSlider(+slider.value, spec); box.value = chosen; onchange(chosen); });
      made.append(slider);
    }
  }
  made.append(help);
  return made;
}

const read = text => text.trim() === "" ? null : Number(text);

const typed = text => text.trim() === "" ? null : text.trim();

export function toSlider(value, spec) {
  if (value === null || value === undefined || Number.isNaN(+value)) return 0;
  if (spec.slider === "even") return Math.round(STEPS * (value - spec.low) / (spec.high - spec.low));
  if (value <= 0) return 0;
  const x = Math.log(value / spec.low) / Math.log(spec.high / spec.low), from = spec.zero ? 1 : 0;
  return Math.min(STEPS, Math.max(from, Math.round(from + x * (STEPS - from))));
}

export function fromSlider(step, spec) {
  if (spec.slider === "even") return +(spec.low + step / STEPS * (spec.high - spec.low)).toPrecision(3);
  const from = spec.zero ? 1 : 0;
  if (step < from) return 0;
  const value = spec.low * Math.exp((step - from) / (STEPS - from) * Math.log(spec.high / spec.low));
  return spec.whole ? Math.round(value) : +value.toPrecision(3);
}
