// Small helpers to build the page. Text is always text: nothing that comes from a file or a name is ever read as markup.
export const $ = id => document.getElementById(id);

export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && !name.startsWith("aria") && name !== "list" && name !== "role") made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

// Words with `code` between backticks.
export const prose = text => text.split("`").map((part, i) => i % 2 ? el("code", {}, part) : part);

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Tabs that arrow keys move between.
export function tabs(list, onchoose) {
  const all = [...list.querySelectorAll("[role=tab]")];
  const choose = tab => {
    for (const one of all) { one.setAttribute("aria-selected", String(one === tab)); one.tabIndex = one === tab ? 0 : -1; }
    onchoose(tab.id.replace("tab-", ""));
  };
  for (const [i, tab] of all.entries()) {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", event => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = all[(i + step + all.length) % all.length];
      next.focus(); choose(next);
    });
  }
  return id => choose(all.find(tab => tab.id === `tab-${id}`));
}

export const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function numbers(text, kind) {
  const bytes = Uint8Array.from(atob(text), sign => sign.charCodeAt(0));
  return new kind(bytes.buffer);
}
