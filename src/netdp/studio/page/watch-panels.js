// What stands beside the picture: one line that sums up, one party, what was spent, kinds of messages, what happened.

import { el as h } from "./dom.js";
import { LOOKS } from "./watch-network.js";
import { KINDS, WORDS, upTo } from "./watch-story.js";

const SHOWN = 200; // events

// reasons as netdp writes them down, where the word alone says too little
const REASONS = {
  "ended-there": "the other end closed it", "closed-here": "closed here", replaced: "replaced by a newer one",
  unreachable: "cannot be reached", connection: "the connection broke", "given-up": "an attempt is given up",
  "two-things-said": "somebody said two things", "worse-than-promised": "worse than promised", "too-few": "too few take part",
  "attempts-used-up": "all attempts are used up", "left-out": "the others went on without it", policy: "its policy forbids it",
  "not-a-message": "no message at all", "wrong-link": "came over the wrong link", "other-study": "runs another study",
};

export function reasonWords(word) {
  return REASONS[word] || (word || "").replaceAll("-", " ");
}

// "a, b and 3 more"
export function listOf(names, most = 4) {
  if (names.length <= most) return names.join(", ");
  return `${names.slice(0, most).join(", ")} and ${names.length - most} more`;
}

function plural(number, one, many) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

// replaces what is in an element only if it would change
const shown = new WeakMap();
function renew(element, key, make) {
  if (shown.get(element) === key) return;
  shown.set(element, key);
  element.replaceChildren(...make());
}

// ── one line ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export function summary(story, stateOf, until) {
  if (story.isEmpty) {
    return story.live ? "Nothing has happened yet. Whatever the parties do will be shown here." : "Nothing has been recorded here yet.";
  }
  const counts = new Map();
  story.parties.forEach((party, u) => party.mine && counts.set(stateOf(u), (counts.get(stateOf(u)) || 0) + 1));
  const parts = Object.keys(LOOKS).filter((state) => counts.has(state))
    .map((state) => `${counts.get(state)} ${(counts.get(state) > 1 && LOOKS[state].many) || LOOKS[state].words}`);
  const all = `${plural(story.messages, "message", "messages")} in ${plural(story.frames, "frame", "frames")}`;
  const now = until === Infinity;
  parts.push(now ? all : `${(upTo(story.moves, until) + 1).toLocaleString("en")} of ${plural(story.moves.length, "frame", "frames")} sent`);
  const again = Object.values(story.states).reduce((sum, state) => sum + Math.max(0, (state.starts || 1) - 1), 0);
  if (again) parts.push(plural(again, "restart", "restarts"));
  if (now && story.live) {
    const wanted = new Map();
    for (const state of Object.values(story.states)) {
      if (state.state === "waiting") (state.waiting || []).forEach((name) => wanted.set(name, (wanted.get(name) || 0) + 1));
    }
    const names = [...wanted.keys()].sort((a, b) => wanted.get(b) - wanted.get(a));
    if (names.length) parts.push(`waited for: ${listOf(names)}`);
  }
  if (story.skipped) parts.push(`${plural(story.skipped, "line", "lines")} could not be read`);
  if (story.forgotten) parts.push(`${plural(story.forgotten, "frame is", "frames are")} no longer kept`);
  return `${parts.join(" · ")}.`;
}

// ── one party ────────────────────────────────────────────────────────────────────────────────────────────────────────

export function details(element, story, u, words, now) {
  if (u === null) {
    renew(element, "none", () => [h("h3", {}, "One party"), h("p", { class: "faint" }, "Choose a party, in the picture or in the list, to see its links, for whom it waits, and what its ledger holds.")]);
    return;
  }
  const party = story.parties[u], state = story.states[party.name] || {};
  renew(element, `${u} ${words} ${now} ${JSON.stringify(state)}`, () => {
    const rows = [["is", words]];
    if (party.curator) rows.push(["role", "curator: collects the reports; no party"]);
    if (state.reason) rows.push(["because", reasonWords(state.reason)]);
    if (party.mine && now) {
      const linked = state.linked || [], unlinked = Object.keys(state.unlinked || {});
      if (state.running) rows.push(["links", `${linked.length} of ${linked.length + unlinked.length}`]);
      if (state.running && unlinked.length) rows.push(["without", listOf(unlinked)]);
      if (state.waiting?.length) rows.push(["waits for", listOf(state.waiting) + (state.waiting_more ? ` and ${state.waiting_more} more` : "")]);
      if (state.attempt) rows.push(["attempt", String(state.attempt)]);
      if (state.contributed !== undefined) rows.push(["published", state.contributed === 1 ? "once" : state.contributed ? `${state.contributed} times` : "nothing so far"]);
      if (state.of) rows.push(["training", `iteration ${state.iteration} of ${state.of}`]);
      if ((state.starts || 1) > 1) rows.push(["started", `${state.starts} times`]);
      for (const [title, counts] of [["refused", state.refused], ["ignored", state.notes]]) {
        const said = Object.entries(counts || {}).map(([word, number]) => `${reasonWords(word)} ×${number}`);
        if (said.length) rows.push([title, said.join(", ")]);
      }
    }
    if (!party.mine) rows.push(["its own", "is not seen from here: neither its messages to others nor its ledger"]);
    return [h("h3", {}, party.name), h("dl", {}, ...rows.flatMap(([title, value]) => [h("dt", {}, title), h("dd", {}, value)]))];
  });
}

// ── what was spent ───────────────────────────────────────────────────────────────────────────────────────────────────

export function ledger(element, story, chosen, now) {
  const party = chosen === null ? null : story.parties[chosen];
  const held = Object.entries(story.spent).filter(([name]) => !party || name === party.name);
  renew(element, JSON.stringify([party?.name, held, now]), () => {
    const { study } = story.first;
    const whose = party ? `by ${party.name}` : story.first.me ? `by ${story.first.me}` : "at most, by any party";
    const head = [h("h3", {}, `ε spent ${whose}`)];
    const broken = held.filter(([, one]) => one.problem);
    if (broken.length) head.push(h("p", { class: "watch-bad" }, `${broken[0][0]}: ${broken[0][1].problem}`));
    const sound = held.filter(([, one]) => !one.problem && one.study.length);
    if (!sound.length) {
      const why = party && !party.mine ? "Its ledger is its own." : "No ledger holds anything so far.";
      return [...head, h("p", { class: "faint" }, why)];
    }
    const promised = new Map(story.first.promised.map((one) => [one.against, one]));
    const most = (key) => sound[0][1][key].map((_, place) => largest(sound.map(([, one]) => one[key][place])));
    const [own, all] = [most("study"), most("all")];
    const before = JSON.stringify(own.map((one) => one.text)) !== JSON.stringify(all.map((one) => one.text));
    const scale = scaleOf([...own, ...(before ? all : []), ...promised.values()]);
    const rows = own.map((one) => bar(one, promised.get(one.against), scale, one.who));
    if (before) rows.push(h("h4", {}, "all studies in the ledger together"), ...all.map((one) => bar(one, null, scale, one.who)));
    const named = party || story.first.me ? sound[0][1].named : [];
    if (named.length) {
      const first = promised.get(1);
      rows.push(h("h4", {}, "by name, from this study"), h("div", { class: "watch-named", tabindex: "0", role: "group", "aria-label": "ε by observer" }, ...named.map((one) => bar(one, first, scale, one.name))));
    }
    const unit = study.unit === "record" ? "one record" : "all data of a party";
    const claim = story.first.claim ? `claim: ${story.first.claim}` : "upper bounds";
    const note = `${claim}; δ = ${study.delta.toExponential()}; about ${unit}. From ${plural(sound.length, "ledger", "ledgers")}${now ? "" : ", as they stand now"}; the mark is what was promised. If all had been fixed beforehand; netdp ledger show has the number that holds whatever was chosen.`;
    return [...head, ...rows, h("p", { class: "faint watch-note" }, note), assumptions(story)];
  });
}

function assumptions(story) {
  if (!story.first.assumptions.length) return "";
  return h("details", {}, h("summary", {}, "What the promise rests on"), h("ul", {}, ...story.first.assumptions.map((line) => h("li", {}, line))));
}

function largest(list) {
  return list.reduce((worst, one) => (order(one) > order(worst) ? one : worst));
}

function order(one) {
  return one.epsilon === null ? Infinity : one.epsilon;
}

function scaleOf(list) {
  return 1.06 * Math.max(1e-9, ...list.map((one) => one.epsilon || 0));
}

function bar(one, promised, scale, title) {
  const over = promised && order(one) > order(promised) * (1 + 1e-9);
  const fill = h("span", { class: over || one.epsilon === null ? "watch-fill watch-over-it" : "watch-fill" });
  fill.style.width = `${one.epsilon === null ? 100 : (100 * one.epsilon) / scale}%`;
  const track = h("span", { class: "watch-track", "aria-hidden": "true" }, fill);
  if (promised && promised.epsilon !== null) {
    const mark = h("span", { class: "watch-mark" });
    mark.style.left = `${(100 * promised.epsilon) / scale}%`;
    track.append(mark);
  }
  const beside = promised ? h("span", { class: "faint" }, over ? ` MORE than promised: ${promised.text}` : ` of ${promised.text} promised`) : "";
  return h("div", { class: "watch-bar" }, h("span", { class: "watch-who" }, title), h("span", { class: "watch-value" }, h("b", {}, one.text), beside), track);
}

// ── messages, and what happened ──────────────────────────────────────────────────────────────────────────────────────

export function kinds(element, story) {
  const found = [...KINDS, "more"].filter((kind) => story.counts.has(kind));
  renew(element, JSON.stringify([...story.counts]), () => [
    h("h3", {}, "Messages"),
    found.length
      ? h("table", {}, h("tbody", {}, ...found.map((kind) => h("tr", {}, h("th", { scope: "row" }, WORDS[kind] || "not listed one by one"), h("td", {}, story.counts.get(kind).toLocaleString("en"))))))
      : h("p", { class: "faint" }, "None so far."),
    h("p", { class: "faint watch-note" }, "Who sent what kind of message to whom, and when. What they hold is not recorded."),
  ]);
}

const SAID = {
  starting: (event) => (event.starts > 1 ? ["started again", `start ${event.starts}; it says the same as before`] : ["started", ""]),
  linked: (event) => ["linked", `to ${event.peer}`],
  lost: (event) => ["link ended", `to ${event.peer}: ${reasonWords(event.reason)}`],
  refused: (event) => ["refused", `${event.peer || ""} ${reasonWords(event.reason)}`.trim()],
  note: (event) => ["note", `${reasonWords(event.reason)}${event.peer ? ` (${event.peer})` : ""}`],
  evidence: (event) => ["proof of cheating", `${event.peer} signed two things in attempt ${event.attempt}`],
  outcome: (event) => (event.ok ? ["holds the answer", `attempt ${event.attempt}, ${event.parties} parties`] : ["ended without an answer", reasonWords(event.reason)]),
  stopping: () => ["stopping", "asked to by a signal"],
  stopped: (event) => ["left", event.exit ? `with status ${event.exit}` : "in order"],
  failed: (event) => ["failed", reasonWords(event.reason)],
  killed: () => ["killed", "its process is gone"],
};
const BAD = new Set(["killed", "failed", "evidence", "refused"]);
const DULL = new Set(["linked", "stopped"]);

// links that are made, and those that end when their party has its answer, are no news, but for those who look at one party
function isNews(event, story) {
  if (story.first.me) return true;
  if (DULL.has(event.event) || (event.event === "starting" && !(event.starts > 1))) return false;
  return event.event !== "lost" || !["answered", "ended"].includes(story.stateAt(story.place.get(event.party), event.time));
}

export function happened(element, story, until) {
  const news = story.events.filter((event) => event.time <= until && isNews(event, story));
  renew(element, `${news.length} ${story.events.length}`, () => {
    const began = story.began;
    const items = news.slice(-SHOWN).reverse().map((event) => {
      const [what, more] = (SAID[event.event] || (() => [event.event, ""]))(event);
      const bad = BAD.has(event.event) || (event.event === "outcome" && !event.ok) || (event.event === "starting" && event.starts > 1);
      return h("li", { class: bad ? "watch-bad" : "" }, h("span", { class: "watch-when faint" }, `${(event.time - began).toFixed(2)} s`), h("b", {}, event.party), ` ${what}`, more ? h("span", { class: "faint" }, ` ${more}`) : "");
    });
    const title = story.first.me ? `What ${story.first.me} noted` : "What happened";
    return [h("h3", {}, title), items.length ? h("ol", { class: "watch-log", tabindex: "0", "aria-label": title }, ...items) : h("p", { class: "faint" }, "Nothing out of the ordinary.")];
  });
}
