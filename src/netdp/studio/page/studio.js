// The frame: theme, tabs, and the two halves.
import { $, el, tabs } from "./dom.js";
import { ask, follow, running, start } from "./api.js";
import { explore, redraw } from "./explore.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
function theme(chosen) { document.documentElement.dataset.theme = chosen; redraw(); document.dispatchEvent(new CustomEvent("theme")); }
theme(dark.matches ? "dark" : "light");
dark.addEventListener("change", () => theme(dark.matches ? "dark" : "light"));
$("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));

const choose = tabs(document.querySelector(".top .tabs"), id => { $("explore").hidden = id !== "explore"; $("watch").hidden = id !== "watch"; if (id === "explore") redraw(); });

async function watch(first) {
  const { mount } = await import("./watch.js");
  $("watch").replaceChildren();
  mount($("watch"), { first, subscribe: callback => follow(callback).catch(error => callback({ error: error.message })) });
}

// Nothing is watched yet: which studies run here just now?
function offer() {
  const list = el("ul", {}), words = el("p", { className: "faint" });
  $("watch").replaceChildren(el("section", { className: "card" }, el("h2", {}, "Watch parties at work"), words, list, el("p", { className: "faint small" }, "A run that has ended, or one peer of your own: netdp studio --watch FOLDER, where FOLDER is that of netdp up STUDY --folder FOLDER, or the peer's home.")));
  let shown = null;
  const look = async () => {
    if (!list.isConnected) return;
    if (!$("watch").hidden) try {
      const studies = await running(), key = JSON.stringify(studies);
      if (key !== shown) {
        shown = key;
        words.textContent = studies.length ? "These studies run on this machine now:" : "No study runs on this machine now. Start one in another terminal: netdp up STUDY. It appears here by itself.";
        list.replaceChildren(...studies.map(one => el("li", {}, `${one.study} `, el("button", { type: "button", onclick: async event => {
          event.target.disabled = true;
          try { await watch(await ask("attach", { pid: one.pid })); } catch (error) { words.textContent = error.message; event.target.disabled = false; }
        } }, "Watch"))));
      }
    } catch (error) { words.textContent = error.message; }
    setTimeout(look, 700);
  };
  look();
}

try {
  const given = await start();
  $("about").textContent = `netdp ${given.version}, on this machine only${given.study ? ` · ${given.study.name}` : ""}`;
  if (given.watch) { await watch(given.watch); choose("watch"); } else offer();
  await explore(given);
} catch (error) {
  $("trouble").hidden = false; $("trouble").textContent = error.message;
}
