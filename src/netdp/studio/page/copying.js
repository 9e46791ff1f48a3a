// What is on the page as a command line, as Python and as a study file.
import { $, tabs } from "./dom.js";
import { asked, page, question } from "./state.js";

let form = "command", words = {};

export async function renew() {
  try { words = await question("words", { state: asked() }); }
  catch (error) { if (error.name === "AbortError") return; words = { command: error.message, python: error.message }; }
  await show();
}

async function show() {
  $("copied").setAttribute("aria-labelledby", `tab-${form}`);
  if (form !== "study") {
    $("copied").textContent = words[form] ?? "";
    $("copy-words").textContent = page.settings.graph.startsWith("@") ? "If the graph is not in a file of that name yet: Network, Save edges." : "";
    return;
  }
  const mine = words;
  if (!mine.study) {
    $("copied").textContent = "looking for the noise that keeps this promise …";
    $("copy-words").textContent = "";
    try { mine.study = (await question("study", { state: asked() })).study; }
    catch (error) { if (error.name === "AbortError") return; mine.study = `# ${error.message}`; }
  }
  if (form !== "study" || mine !== words) return;
  $("copied").textContent = mine.study;
  $("copy-words").textContent = "A draft with the least noise that keeps what is certified here, against any as many parties as look now. netdp study explain FILE says what it reveals; netdp up FILE tries it out.";
}

async function copy() {
  try { await navigator.clipboard.writeText($("copied").textContent); $("copy-words").textContent = "Copied."; }
  catch {
    const range = document.createRange();
    range.selectNodeContents($("copied"));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    $("copy-words").textContent = "Marked; copy it with the keyboard.";
  }
}

export function listenToCopies() {
  tabs($("copy").querySelector("[role=tablist]"), id => { form = id; show(); });
  $("copy-button").addEventListener("click", copy);
}
