// What happened among the parties, in order of time: messages, where tokens are, how far everybody is, how everybody was.
// It only keeps what the server told (see netdp/studio/watch/__init__.py); nothing here draws or asks.

// what a message does, from what moves numbers to mere talk; of a frame with several the first of these counts
export const KINDS = [
  "token", "bundle", "step", "state", "contribution", "total", "reveal", "dealing",
  "proof", "complaint", "defence", "answer", "commit", "prepare", "keys",
  "accept", "offer", "vote", "fallback", "through", "done", "hello", "announce", "pull", "remark",
];
const PAYLOAD = 8;
const RANK = new Map(KINDS.map((kind, place) => [kind, place]));

export const WORDS = {
  token: "tokens", bundle: "bundles of sealed reports", step: "steps of the training", state: "states",
  contribution: "contributions", total: "totals", reveal: "shares that open the sum", dealing: "sealed shares of secrets",
  proof: "proofs that somebody lied", complaint: "complaints of a share", defence: "shares shown after a complaint",
  answer: "signatures of the answer", commit: "commits of the ballot", prepare: "votes of the ballot", keys: "fresh keys",
  accept: "offers accepted", offer: "offers", vote: "votes",
  fallback: "calls for help", through: "“I am through”", done: "“I hold the answer”", hello: "greetings",
  announce: "announcements", pull: "requests", remark: "remarks",
};

const TROUBLE = new Set(["killed", "failed", "evidence", "refused"]);

// the last place in a list of {time} whose time is not after t
export function upTo(list, t, from = 0) {
  let low = from, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].time <= t) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

export class Story {
  constructor(first) {
    this.first = first;
    this.study = first.study;
    this.parties = first.parties;
    this.place = new Map(first.parties.map((party, u) => [party.name, u]));
    this.moves = [];
    this.events = [];
    this.states = {};
    this.spent = {};
    this.counts = new Map();
    this.frames = 0;
    this.skipped = 0;
    this.forgotten = 0;
    this.live = true;
    this.offset = 0;
    this.version = 0;
    this.#clear();
  }

  #clear() {
    this.marks = this.parties.map(() => []); // how far a party was when
    this.phases = this.parties.map(() => []); // how it was when
    this.hops = new Map(); // of every token its hops
    this.hopped = new Set();
    this.seen = this.parties.map(() => new Set());
  }

  // a change as the server sent it
  add(change) {
    this.version += 1;
    this.live = change.live;
    this.offset = change.now - Date.now() / 1000;
    Object.assign(this.states, change.states || {});
    Object.assign(this.spent, change.spent || {});
    Object.assign(this.first, change.promise || {});
    if ("skipped" in change) [this.skipped, this.forgotten] = [change.skipped, change.forgotten];
    let late = false;
    for (const [time, from, to, items, more, words] of change.moves || []) {
      const move = { time, from, to, items, more, words, ...this.#gist(items, words) };
      this.#count(items, more, words);
      late = this.#insert(this.moves, move) || late;
      if (!late) this.#follow(move);
    }
    for (const event of change.events || []) {
      late = this.#insert(this.events, event) || late;
      if (!late) this.#phase(event);
    }
    if (late) this.#again();
    return (change.moves || []).length + (change.events || []).length;
  }

  // keeps the list in order; says whether it came so late that everything is to be followed anew
  #insert(list, one) {
    const last = list.length ? list[list.length - 1].time : -Infinity;
    if (one.time >= last) list.push(one);
    else list.splice(upTo(list, one.time) + 1, 0, one);
    return one.time < last - 0.5;
  }

  #again() {
    this.#clear();
    this.moves.forEach((move) => this.#follow(move));
    this.events.forEach((event) => this.#phase(event));
  }

  #gist(items, words) {
    let best = KINDS.length;
    for (const [kind] of items) best = Math.min(best, RANK.get(kind));
    for (const kind of Object.keys(words)) best = Math.min(best, RANK.get(kind));
    return { kind: KINDS[best] || "remark", payload: best < PAYLOAD };
  }

  #count(items, more, words) {
    this.frames += 1;
    const add = (kind, number) => this.counts.set(kind, (this.counts.get(kind) || 0) + number);
    items.forEach(([kind]) => add(kind, 1));
    Object.entries(words).forEach(([kind, number]) => add(kind, number));
    if (more) add("more", more);
  }

  get messages() {
    return [...this.counts.values()].reduce((sum, number) => sum + number, 0);
  }

  // ── how far everybody is ─────────────────────────────────────────────────────────────────────────────────────────

  // what is counted for this protocol, up to where (0: nobody knows), and how to say it
  get measure() {
    const { kind, spread, n, rounds, steps } = this.study;
    const round = (value, of) => (of ? `round ${value} of ${of}` : `round ${value}`);
    if (kind === "masked-descent") return { kind: "step", of: steps, say: (value, of) => `iteration ${value} of ${of}` };
    if (kind === "shuffle") return { kind: "bundle", of: rounds, say: round };
    if (kind === "gossip") return { kind: "state", of: rounds, first: 1, say: round };
    if (spread === "average") return { kind: "state", of: 0, say: round };
    if (kind === "randomized-gossip") return { kind: "state", of: 0, say: (value) => (value === 1 ? "1 exchange" : `${value} exchanges`) };
    if (kind === "masked-sum") return { kind: "contribution", of: n, say: (value, of) => `holds ${value} of ${of}` };
    return { kind: "token", of: 0, say: (value) => (value === 1 ? "1 visit" : `${value} visits`) };
  }

  #follow(move) {
    const { kind: wanted, first = 0 } = this.measure;
    for (const [kind, attempt, author, index] of move.items) {
      if (kind === "token") this.#hop(move, attempt, index);
      if (kind !== wanted) continue;
      if (kind === "contribution") {
        for (const u of [move.from, move.to]) {
          const held = this.seen[u];
          if (!this.parties[u].mine) continue; // what others hold besides is not seen from here
          if (held.has(`${attempt} ${author}`)) continue;
          held.add(`${attempt} ${author}`);
          const last = this.marks[u].at(-1);
          if (last && last.attempt > attempt) continue;
          this.#mark(u, move.time, last && last.attempt === attempt ? last.value + 1 : 1, attempt);
        }
      } else if (kind === "token") {
        this.#mark(move.to, move.time, (this.marks[move.to].at(-1)?.value || 0) + 1, attempt);
      } else {
        const last = this.marks[move.from].at(-1), value = index + first;
        if (!last || value > last.value || attempt > last.attempt) this.#mark(move.from, move.time, value, attempt);
      }
    }
  }

  #mark(u, time, value, attempt) {
    const last = this.marks[u].at(-1);
    this.marks[u].push({ time: Math.max(time, last ? last.time : time), value, attempt });
  }

  #hop(move, attempt, index) {
    const { visits } = this.study;
    const token = `${attempt} ${visits ? Math.floor(index / visits) : 0}`;
    const hops = this.hops.get(token) || [];
    this.hops.set(token, hops);
    const step = visits ? index % visits : index, hop = `${token} ${step} ${move.to}`;
    if (this.hopped.has(hop)) return; // said again on a new link
    this.hopped.add(hop);
    hops.push({ time: Math.max(move.time, hops.at(-1)?.time ?? move.time), from: move.from, to: move.to, step });
  }

  // {value, attempt} of a party at a time
  progress(u, t) {
    const marks = this.marks[u], place = upTo(marks, t);
    return place < 0 ? null : marks[place];
  }

  // where every token was at a time: [{number, from, to, step, time, before: […]}]
  tokens(t, trail = 8) {
    const found = [];
    let number = 0;
    for (const hops of this.hops.values()) {
      const place = upTo(hops, t);
      number += 1;
      if (place < 0) continue;
      found.push({ number, ...hops[place], next: hops[place + 1]?.time, before: hops.slice(Math.max(0, place - trail), place) });
    }
    return found;
  }

  // ── how everybody was ────────────────────────────────────────────────────────────────────────────────────────────

  #phase(event) {
    const u = this.place.get(event.party), v = this.place.get(event.peer);
    if (u === undefined) return;
    if (v !== undefined && !this.parties[v].mine && (event.event === "linked" || event.event === "lost")) {
      this.phases[v].push({ time: event.time, state: event.event === "linked" ? "linked" : "unlinked" });
    }
    const before = this.phases[u].at(-1)?.state;
    const settled = before === "answered" || before === "ended";
    let state = null;
    if (event.event === "starting") state = "starting";
    else if (event.event === "linked" && (before === "starting" || !before)) state = "running";
    else if (event.event === "outcome") state = event.ok ? "answered" : "ended";
    else if (event.event === "killed" && !settled) state = "killed";
    else if (event.event === "failed" && !settled) state = "failed";
    else if (event.event === "refused" && !event.peer && before !== "running" && !settled) state = "failed";
    else if (event.event === "stopped" && !settled && before !== "failed") state = "stopped";
    if (state) this.phases[u].push({ time: event.time, state });
  }

  // how a party was at a time that is past; of one whose home is not watched, whether there was a link to it
  stateAt(u, t) {
    const place = upTo(this.phases[u], t);
    if (place >= 0) return this.phases[u][place].state;
    return this.parties[u].mine ? "absent" : this.stateNow(u) === "beyond" ? "beyond" : "unlinked";
  }

  stateNow(u) {
    return this.states[this.parties[u].name]?.state || "absent";
  }

  // ── all of it ────────────────────────────────────────────────────────────────────────────────────────────────────

  get began() {
    return Math.min(this.moves[0]?.time ?? Infinity, this.events[0]?.time ?? Infinity);
  }

  get ended() {
    return Math.max(this.moves.at(-1)?.time ?? -Infinity, this.events.at(-1)?.time ?? -Infinity);
  }

  get isEmpty() {
    return !this.moves.length && !this.events.length;
  }

  // times at which something went wrong
  troubles() {
    const again = (event) => event.event === "starting" && event.starts > 1;
    return this.events.filter((event) => TROUBLE.has(event.event) || again(event) || (event.event === "outcome" && !event.ok));
  }
}
