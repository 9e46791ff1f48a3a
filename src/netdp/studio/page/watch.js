// Watch: parties at work, as they are seen from the homes that the studio was given. `mount` fills an element with it.

import { el as h } from "./dom.js";
import { LOOKS, Network } from "./watch-network.js";
import { details, happened, kinds, ledger, listOf, summary } from "./watch-panels.js";
import { Story } from "./watch-story.js";

const DELAY = 0.7; // seconds behind the parties, so that what is drawn is known by then
const SPEEDS = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300];
const PLAYED = 20; // seconds that a recording lasts on the screen, if nothing else is chosen
const BARS = 160;
const SPOKEN = 6000; // milliseconds between two sentences of a screen reader

// element   is emptied and filled
// first     what the server said first
// subscribe called with a function that is then given every change
export function mount(element, { first, subscribe }) {
  let view = new View(element, first);
  subscribe((change) => {
    if (change.error || change.end) view.lost(change.error);
    else if (!change.first) view.add(change);
    else if (view.isNew(change.first)) {
      view.close();
      view = new View(element, change.first);
    }
  });
}

class View {
  constructor(element, first) {
    this.first = first;
    this.story = new Story(first);
    this.following = true; // the parties as they are now
    this.elsewhere = false; // whether somebody has chosen another moment
    this.playing = false;
    this.time = 0;
    this.speed = 1;
    this.chosen = null;
    this.calm = window.matchMedia("(prefers-reduced-motion: reduce)");
    this.#build(element);
    this.pace.value = this.speed;
    this.network = new Network(this.canvas, this.story);
    this.sized = new ResizeObserver(() => this.#resized());
    this.sized.observe(this.canvas);
    this.sized.observe(this.bars);
    this.themed = () => {
      this.barsDrawn = this.network.colours = this.picture = null;
    };
    document.addEventListener("theme", this.themed);
    this.ticking = requestAnimationFrame((moment) => this.#tick(moment));
    this.#panels();
  }

  isNew(first) {
    return first.next !== this.first.next || first.study.hash !== this.first.study.hash || !this.story.isEmpty;
  }

  close() {
    cancelAnimationFrame(this.ticking);
    this.sized.disconnect();
    document.removeEventListener("theme", this.themed);
    this.closed = true;
  }

  add(change) {
    this.story.add(change);
    this.barsDrawn = null;
    if (this.story.live && !this.elsewhere) this.following = true;
    if (!this.story.live && this.following && !this.story.isEmpty) {
      // what was live to its end stays at its end; it can be played from there
      this.following = false;
      this.#choosePace();
      this.time = this.#last;
    }
    this.stale = true;
  }

  lost(reason) {
    this.gone = `The studio tells nothing more${reason ? `: ${reason}` : "; is it still running?"}`;
    this.add({ now: Date.now() / 1000 + this.story.offset, live: false });
  }

  // ── what there is ────────────────────────────────────────────────────────────────────────────────────────────────

  #build(element) {
    const { study } = this.first;
    this.canvas = h("canvas", { class: "watch-canvas", role: "img", "aria-label": "The parties and their messages; the list of parties says the same in words" });
    this.tip = h("div", { class: "watch-tip", role: "presentation", hidden: true });
    this.badge = h("span", { class: "watch-badge" });
    this.said = h("p", { class: "watch-said" });
    this.spoken = h("p", { class: "watch-spoken", role: "status", "aria-live": "polite" });
    this.bars = h("canvas", { class: "watch-bars", "aria-hidden": "true" });
    this.slider = h("input", { type: "range", min: 0, max: 1000, value: 1000, step: 1, class: "watch-slider", "aria-label": "Moment that is shown" });
    this.play = h("button", { type: "button", class: "watch-play" }, "Play");
    this.follow = h("button", { type: "button" }, "Live");
    this.pace = h("select", { "aria-label": "How fast" }, ...SPEEDS.map((speed) => h("option", { value: speed }, paceWords(speed))));
    this.clock = h("span", { class: "watch-clock faint" });
    this.talk = h("input", { type: "checkbox", checked: true });
    this.list = h("ul", { class: "watch-parties" });
    this.detail = h("section", { class: "card watch-detail" });
    this.money = h("section", { class: "card" });
    this.traffic = h("section", { class: "card" });
    this.log = h("section", { class: "card" });
    const count = this.first.parties.length, links = this.first.links;
    element.replaceChildren(
      h("div", { class: "watch" },
        h("header", { class: "watch-head" },
          h("h2", {}, study.name, " ", this.badge),
          h("p", { class: "faint" }, `${study.question}; ${study.kind}, ${count} ${study.kind === "shuffle" ? "participants" : "parties"}, ${links.toLocaleString("en")} links${this.first.edges.length ? "" : " (too many to draw)"}`,
            study.hash ? h("span", { class: "watch-hash", title: study.hash }, ` · ${study.hash.slice(0, 16)}`) : ""),
          h("p", { class: "told" }, this.first.eyes),
          this.said, this.spoken),
        h("div", { class: "watch-main" },
          h("div", { class: "watch-column" }, h("section", { class: "card" },
            h("div", { class: "watch-frame" }, this.canvas, this.tip),
            h("div", { class: "watch-time" }, this.bars, this.slider),
            h("div", { class: "watch-controls" }, this.play, this.follow, this.pace, this.clock,
              h("label", {}, this.talk, " votes, greetings and other talk")),
            this.#legend()), this.log),
          h("div", { class: "watch-column" },
            h("section", { class: "card" }, h("h3", {}, "Parties"), this.list), this.detail, this.money, this.traffic))));
    this.#listen();
  }

  #legend() {
    const { kind, spread } = this.first.study;
    const moving = kind === "shuffle" ? ["▬", "bundle of sealed reports"] : kind.startsWith("walk") || kind.startsWith("ring")
      ? ["◆", "token, and where it came from"] : kind.includes("gossip") || spread === "average" ? ["●", "state on its way to the mean"]
      : kind === "masked-descent" ? ["●", "step of the training"] : ["●", "contribution, under noise and pads"];
    const signs = ["answered", "waiting", "ended", "failed", "killed"].map((state) =>
      h("li", { class: `watch-${LOOKS[state].colour}` }, h("b", { "aria-hidden": "true" }, LOOKS[state].sign), " ", LOOKS[state].words));
    return h("ul", { class: "watch-legend faint" },
      h("li", {}, h("b", { class: moving[0] === "◆" ? "watch-warn" : "watch-accent", "aria-hidden": "true" }, moving[0]), " ", moving[1]), ...signs);
  }

  #listen() {
    const place = (event) => {
      const box = this.canvas.getBoundingClientRect();
      return this.network.at(event.clientX - box.left, event.clientY - box.top);
    };
    this.canvas.addEventListener("pointermove", (event) => this.#hover(place(event)));
    this.canvas.addEventListener("pointerleave", () => this.#hover(null));
    this.canvas.addEventListener("click", (event) => this.#choose(place(event)));
    this.play.addEventListener("click", () => this.#togglePlay());
    this.follow.addEventListener("click", () => {
      [this.following, this.elsewhere, this.playing, this.stale] = [true, false, false, true];
    });
    this.slider.addEventListener("input", () => {
      const { began, ended } = this.story;
      [this.following, this.elsewhere, this.playing] = [false, true, false];
      this.time = this.slider.value >= 1000 ? this.#last : began + ((ended - began) * this.slider.value) / 1000;
      this.stale = true;
    });
    this.pace.addEventListener("change", () => {
      this.speed = Number(this.pace.value);
    });
    this.talk.addEventListener("change", () => {
      this.network.talk = this.talk.checked;
    });
  }

  #togglePlay() {
    this.playing = !this.playing;
    [this.following, this.elsewhere] = [false, true];
    if (this.playing && this.time >= this.#last) this.time = this.story.began;
    this.stale = true;
  }

  #choosePace() {
    const lasts = this.story.ended - this.story.began;
    this.speed = SPEEDS.findLast((speed) => lasts / speed >= PLAYED) || SPEEDS[0];
    this.pace.value = this.speed;
  }

  #hover(u) {
    if (this.network.hovered === u) return;
    this.network.hovered = u;
    this.canvas.classList.toggle("watch-over", u !== null);
    this.tip.hidden = u === null;
    if (u === null) return;
    this.tip.replaceChildren(...this.#tipLines(u));
    const [x, y] = this.network.points[u];
    const right = x > this.network.width * 0.6;
    this.tip.style.left = right ? "" : `${x + 18}px`;
    this.tip.style.right = right ? `${this.network.width - x + 18}px` : "";
    this.tip.style.top = `${Math.max(4, y - 20)}px`;
  }

  #tipLines(u) {
    const party = this.story.parties[u];
    const lines = [h("strong", {}, party.name), h("br"), this.#stateWords(u)];
    const waiting = this.story.states[party.name]?.waiting;
    if (this.#isNow && waiting?.length) lines.push(h("br"), `waits for ${listOf(waiting)}`);
    return lines;
  }

  #choose(u) {
    this.chosen = this.network.chosen = this.chosen === u ? null : u;
    this.stale = true;
    this.#panels();
  }

  // ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  get #isNow() {
    return this.following || (!this.story.live && this.time >= this.story.ended - 1e-6);
  }

  // when the last message has landed, too
  get #last() {
    return this.story.ended + this.speed;
  }

  #tick(moment) {
    if (this.closed) return;
    const passed = Math.min(0.25, (moment - (this.before ?? moment)) / 1000);
    this.before = moment;
    const pause = this.calm.matches ? 0.5 : 0;
    if (this.following) this.time = Date.now() / 1000 + this.story.offset - DELAY;
    else if (this.playing) {
      this.time = Math.min(this.#last, this.time + passed * this.speed);
      if (this.time >= this.#last) this.playing = false;
    }
    const { hovered, chosen, talk } = this.network;
    const picture = `${this.time} ${this.playing} ${this.following} ${this.story.version} ${hovered} ${chosen} ${talk}`; // the same again need not be drawn
    if (picture !== this.picture && (!pause || moment - (this.drawn ?? -Infinity) > 1000 * pause)) {
      [this.drawn, this.picture] = [moment, picture];
      this.network.still = this.calm.matches;
      this.network.draw(this.time, this.following ? 1 : this.speed, this.#isNow);
      this.#showTime();
    }
    if (this.stale || this.playing || this.following) {
      if (moment - (this.told ?? -Infinity) > 400) {
        this.told = moment;
        this.stale = false;
        this.#panels();
      }
    }
    this.ticking = requestAnimationFrame((next) => this.#tick(next));
  }

  #showTime() {
    const { story } = this;
    this.badge.textContent = story.isEmpty ? "nothing yet" : this.following ? "live" : story.live ? "live, looking back" : "recorded";
    this.badge.classList.toggle("watch-live", this.following && story.live);
    this.play.textContent = this.playing ? "Pause" : "Play";
    this.play.disabled = story.isEmpty || story.ended <= story.began;
    this.follow.hidden = !story.live;
    this.follow.setAttribute("aria-pressed", String(this.following));
    this.slider.disabled = this.play.disabled;
    if (story.isEmpty) return;
    const span = Math.max(story.ended - story.began, 1e-9);
    const share = Math.max(0, Math.min(1, (this.time - story.began) / span));
    if (document.activeElement !== this.slider || this.playing) this.slider.value = Math.round(share * 1000);
    const shown = Math.max(0, Math.min(this.time, story.ended) - story.began);
    const words = `${seconds(shown)} of ${seconds(span)}`;
    if (this.clock.textContent !== words) this.clock.textContent = words;
    this.slider.setAttribute("aria-valuetext", words);
    this.#drawBars(share);
  }

  // how many messages were sent when, and where something went wrong
  #drawBars(share) {
    const { story } = this;
    const key = `${story.version} ${Math.round(share * 2000)} ${this.bars.clientWidth}`;
    if (this.barsDrawn === key) return;
    this.barsDrawn = key;
    const scale = Math.min(window.devicePixelRatio || 1, 2), width = this.bars.clientWidth, height = this.bars.clientHeight;
    if (this.bars.width !== Math.round(width * scale)) [this.bars.width, this.bars.height] = [Math.round(width * scale), Math.round(height * scale)];
    const context = this.bars.getContext("2d"), style = getComputedStyle(this.bars);
    const of = (name) => style.getPropertyValue(`--${name}`).trim();
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    if (this.counted?.version !== story.version) this.counted = { version: story.version, ...counted(story) };
    const { payload, talk, most } = this.counted, step = width / BARS;
    for (let place = 0; place < BARS; place++) {
      const past = (place + 0.5) / BARS <= share;
      const low = (height - 4) * Math.sqrt(payload[place] / most), high = (height - 4) * Math.sqrt((payload[place] + talk[place]) / most);
      context.globalAlpha = past ? 0.5 : 0.22;
      context.fillStyle = of("faint");
      context.fillRect(place * step, height - high, Math.max(step - 1, 1), high - low);
      context.globalAlpha = past ? 1 : 0.4;
      context.fillStyle = of("accent");
      context.fillRect(place * step, height - low, Math.max(step - 1, 1), low);
    }
    context.globalAlpha = 1;
    context.fillStyle = of("bad");
    for (const event of story.troubles()) {
      const x = ((event.time - story.began) / Math.max(story.ended - story.began, 1e-9)) * width;
      context.beginPath();
      context.moveTo(x - 4, 0);
      context.lineTo(x + 4, 0);
      context.lineTo(x, 7);
      context.fill();
    }
    context.fillStyle = of("ink");
    context.fillRect(Math.min(share * width, width - 1.5), 0, 1.5, height);
  }

  #resized() {
    this.network.resize();
    this.barsDrawn = this.picture = null;
  }

  // ── in words ─────────────────────────────────────────────────────────────────────────────────────────────────────

  #state(u) {
    return this.#isNow ? this.story.stateNow(u) : this.story.stateAt(u, this.time);
  }

  #stateWords(u) {
    const state = this.#state(u), look = LOOKS[state] || LOOKS.absent;
    const done = this.story.progress(u, this.time), { of, say } = this.story.measure;
    if (!done || !look.hollow) return look.words;
    return state === "running" ? say(done.value, of) : `${look.words}, ${say(done.value, of)}`;
  }

  #panels() {
    const { story } = this;
    const text = [this.gone, summary(story, (u) => this.#state(u), this.#isNow ? Infinity : this.time)].filter(Boolean).join(" ");
    if (this.said.textContent !== text) this.said.textContent = text;
    this.#speak(text);
    if (this.network.hovered !== null) this.tip.replaceChildren(...this.#tipLines(this.network.hovered));
    this.#parties();
    details(this.detail, story, this.chosen, this.chosen === null ? "" : this.#stateWords(this.chosen), this.#isNow);
    ledger(this.money, story, this.chosen, this.#isNow);
    kinds(this.traffic, story);
    happened(this.log, story, this.#isNow ? Infinity : this.time);
  }

  // the same for those who listen: not more often than one can follow
  #speak(text) {
    const moment = performance.now();
    if (this.spoken.textContent === text || moment < (this.spokeAt ?? -Infinity) + SPOKEN) return;
    this.spokeAt = moment;
    this.spoken.textContent = text;
  }

  #parties() {
    const { story } = this;
    if (!this.rows) {
      this.rows = story.parties.map((party, u) => {
        const sign = h("span", { class: "watch-sign", "aria-hidden": "true" }), words = h("span", { class: "watch-words faint" });
        const button = h("button", { type: "button", class: "watch-party" }, sign, h("span", { class: "watch-name" }, party.name), words);
        button.addEventListener("click", () => this.#choose(u));
        button.addEventListener("focus", () => { this.network.hovered = u; });
        button.addEventListener("blur", () => { this.network.hovered = null; });
        return { button, sign, words, said: "" };
      });
      this.list.replaceChildren(...this.rows.map((row) => h("li", {}, row.button)));
    }
    this.rows.forEach((row, u) => {
      const look = LOOKS[this.#state(u)] || LOOKS.absent, words = look.short || this.#stateWords(u), pressed = String(u === this.chosen);
      const said = `${look.colour} ${look.sign} ${words} ${pressed}`;
      if (row.said === said) return;
      row.said = said;
      row.sign.textContent = look.sign || (look.hollow ? "○" : "●");
      row.sign.className = `watch-sign watch-${look.colour}`;
      row.words.textContent = words;
      row.button.setAttribute("aria-pressed", pressed);
    });
  }
}

// how many messages in each of BARS spans
function counted(story) {
  const payload = new Float64Array(BARS), talk = new Float64Array(BARS);
  const span = Math.max(story.ended - story.began, 1e-9);
  for (const move of story.moves) {
    const place = Math.min(BARS - 1, Math.floor((BARS * (move.time - story.began)) / span));
    (move.payload ? payload : talk)[place] += Math.max(1, move.items.length);
  }
  return { payload, talk, most: Math.max(1, ...payload.map((number, place) => number + talk[place])) };
}

function seconds(value) {
  return value < 10 ? `${value.toFixed(2)} s` : value < 120 ? `${value.toFixed(1)} s` : `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

function paceWords(speed) {
  return speed === 1 ? "real time" : speed < 1 ? `${Math.round(1 / speed)} × slower` : `${speed} × faster`;
}
