// The parties and what flies between them, drawn on a canvas at one moment of the story.

import { upTo } from "./watch-story.js";

// how a state looks: a sign and a colour, and for people who see neither, words
export const LOOKS = {
  absent: { sign: "", colour: "faint", words: "not there yet", dashed: true, hollow: true },
  starting: { sign: "", colour: "accent", words: "starting", hollow: true, dashed: true },
  running: { sign: "", colour: "accent", words: "at work", hollow: true },
  waiting: { sign: "…", colour: "warn", words: "waiting", hollow: true },
  silent: { sign: "?", colour: "warn", words: "runs, but is silent", many: "run, but are silent", hollow: true },
  answered: { sign: "✓", colour: "good", words: "holds the answer", many: "hold the answer", short: "answered" },
  ended: { sign: "–", colour: "warn", words: "ended without an answer", short: "no answer" },
  stopped: { sign: "■", colour: "faint", words: "stopped" },
  failed: { sign: "!", colour: "bad", words: "refused or failed" },
  killed: { sign: "✕", colour: "bad", words: "killed" },
  linked: { sign: "", colour: "accent", words: "linked", hollow: true },
  unlinked: { sign: "", colour: "warn", words: "no link", hollow: true, dashed: true },
  beyond: { sign: "", colour: "faint", words: "not seen from here", hollow: true, dashed: true },
};

const FLIGHT = 0.6; // seconds on the screen
const MOST = 700; // flights that are drawn one by one
const GLOW = 0.9; // seconds on the screen for which a used link stays bright
const NAMED = 40;

export class Network {
  constructor(canvas, story) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.story = story;
    this.hovered = this.chosen = null;
    this.talk = true;
    this.still = false;
    this.resize();
  }

  // ── places ───────────────────────────────────────────────────────────────────────────────────────────────────────

  resize() {
    const scale = Math.min(window.devicePixelRatio || 1, 2);
    const { width, height } = this.canvas.getBoundingClientRect();
    [this.width, this.height, this.scale] = [Math.max(width, 50), Math.max(height, 50), scale];
    this.canvas.width = Math.round(this.width * scale);
    this.canvas.height = Math.round(this.height * scale);
    const parties = this.story.parties;
    const n = parties.length;
    this.radius = Math.max(4, Math.min(15, Math.min(this.width, this.height) / (Math.sqrt(n) * 8)));
    const room = this.radius + (n <= NAMED ? 24 : 8);
    const xs = parties.map((party) => party.x), ys = parties.map((party) => party.y);
    const [left, right] = [Math.min(...xs), Math.max(...xs)], [top, bottom] = [Math.min(...ys), Math.max(...ys)];
    const across = (this.width - 2 * room) / Math.max(right - left, 1e-9);
    const down = (this.height - 2 * room) / Math.max(bottom - top, 1e-9);
    // stretched to the room there is, but not out of shape
    const [fx, fy] = [Math.min(across, 1.7 * down), Math.min(down, 1.7 * across)];
    this.points = parties.map((party) => [
      this.width / 2 + (party.x - (left + right) / 2) * fx,
      this.height / 2 + ((top + bottom) / 2 - party.y) * fy,
    ]);
    this.colours = null;
  }

  // which party is at a place of the canvas
  at(x, y) {
    let best = null, near = (this.radius + 8) ** 2;
    this.points.forEach(([px, py], u) => {
      const apart = (px - x) ** 2 + (py - y) ** 2;
      if (apart < near) [best, near] = [u, apart];
    });
    return best;
  }

  #palette() {
    if (this.colours && performance.now() < this.colours.until) return this.colours;
    const style = getComputedStyle(this.canvas);
    const of = (name, fallback) => style.getPropertyValue(`--${name}`).trim() || fallback;
    this.colours = {
      ink: of("ink", "#1b1f24"), paper: of("paper", "#ffffff"), faint: of("faint", "#6b7280"), line: of("line", "#d6dae0"),
      card: of("card", "#ffffff"), accent: of("accent", "#1d4e89"), good: of("good", "#2e7d4f"), warn: of("warn", "#b26a00"),
      bad: of("bad", "#b3242a"), font: style.fontFamily || "sans-serif", until: performance.now() + 1000,
    };
    return this.colours;
  }

  // ── one moment ───────────────────────────────────────────────────────────────────────────────────────────────────

  // speed: seconds of the story in a second on the screen; now: whether the last known states count
  draw(t, speed, now) {
    const { context } = this, colours = this.#palette();
    context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    const recent = this.#recent(t, Math.max(FLIGHT, GLOW) * speed);
    this.#edges(colours, recent, t, speed);
    this.#trails(colours, t, speed);
    this.story.parties.forEach((_, u) => this.#node(colours, u, t, now));
    if (!this.still) this.#flights(colours, recent, t, speed);
    this.#tokens(colours, t, speed);
    this.#names(colours);
  }

  #recent(t, span) {
    const moves = this.story.moves, last = upTo(moves, t), found = [];
    const mine = this.chosen;
    for (let place = last; place >= 0 && moves[place].time > t - span && found.length < 20000; place--) {
      const move = moves[place];
      if (!move.payload && !this.talk) continue;
      if (mine !== null && move.from !== mine && move.to !== mine) continue;
      found.push(move);
    }
    return found.reverse();
  }

  #edges(colours, recent, t, speed) {
    const { context, points } = this;
    const edges = this.story.first.edges;
    context.lineWidth = 1;
    context.strokeStyle = colours.line;
    context.globalAlpha = edges.length > 400 ? 0.35 : edges.length > 100 ? 0.6 : 1;
    context.beginPath();
    for (const [u, v] of edges) {
      context.moveTo(...points[u]);
      context.lineTo(...points[v]);
    }
    context.stroke();
    const bright = new Map();
    for (const move of recent) {
      if (!move.payload) continue;
      const left = 1 - (t - move.time) / (GLOW * speed);
      const key = move.from < move.to ? `${move.from} ${move.to}` : `${move.to} ${move.from}`;
      if (left > (bright.get(key) || 0)) bright.set(key, left);
    }
    context.strokeStyle = colours.accent;
    context.lineWidth = 1.6;
    for (const [key, left] of bright) {
      const [u, v] = key.split(" ").map(Number);
      context.globalAlpha = 0.55 * left;
      context.beginPath();
      context.moveTo(...points[u]);
      context.lineTo(...points[v]);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  #node(colours, u, t, now) {
    const { context, radius } = this;
    const [x, y] = this.points[u];
    const party = this.story.parties[u];
    const state = now ? this.story.stateNow(u) : this.story.stateAt(u, t);
    const look = LOOKS[state] || LOOKS.absent;
    const colour = colours[look.colour];
    const r = state === "beyond" ? radius * 0.6 : radius;
    const outline = (size) => {
      context.beginPath();
      if (party.curator) context.rect(x - size, y - size, 2 * size, 2 * size);
      else context.arc(x, y, size, 0, 2 * Math.PI);
    };
    if (u === this.chosen || u === this.hovered) {
      outline(r + 5);
      context.fillStyle = colours.accent;
      context.globalAlpha = 0.22;
      context.fill();
      context.globalAlpha = 1;
    }
    outline(r);
    context.fillStyle = look.hollow ? colours.card : colour;
    context.fill();
    context.lineWidth = 1.8;
    context.strokeStyle = colour;
    context.setLineDash(look.dashed ? [3, 3] : []);
    context.stroke();
    context.setLineDash([]);
    const { of } = this.story.measure;
    const done = this.story.progress(u, t);
    if (look.hollow && of && done) {
      context.beginPath();
      context.moveTo(x, y);
      context.arc(x, y, r - 2.2, -Math.PI / 2, -Math.PI / 2 + 2 * Math.PI * Math.min(1, done.value / of));
      context.closePath();
      context.fillStyle = colours.accent;
      context.globalAlpha = 0.35;
      context.fill();
      context.globalAlpha = 1;
    }
    const sign = look.sign || (look.hollow && !of && done && r > 8 ? String(done.value) : "");
    if (sign && r >= 6) {
      context.fillStyle = look.hollow ? colour : colours.paper;
      context.font = `600 ${Math.round(r * 1.05)}px ${colours.font}`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillText(sign, x, y + 0.5);
    }
  }

  // each message as a small thing on its way; very many of them as one thing per link
  #flights(colours, recent, t, speed) {
    const flying = recent.filter((move) => move.kind !== "token" && t - move.time < FLIGHT * speed);
    if (flying.length <= MOST) {
      flying.forEach((move) => this.#flight(colours, move, (t - move.time) / (FLIGHT * speed), 1));
      return;
    }
    const grouped = new Map();
    for (const move of flying) {
      const key = `${move.from} ${move.to} ${move.payload}`;
      const group = grouped.get(key) || { move, number: 0 };
      group.number += 1;
      grouped.set(key, group);
    }
    const groups = [...grouped.values()].slice(-MOST);
    groups.forEach(({ move, number }) => this.#flight(colours, move, (t - move.time) / (FLIGHT * speed), number));
  }

  #flight(colours, move, share, number) {
    const { context } = this;
    const [x, y] = this.#between(move.from, move.to, share);
    const grown = 1 + Math.log2(number) / 3;
    context.fillStyle = move.payload ? colours.accent : colours.faint;
    context.globalAlpha = (move.payload ? 0.95 : 0.55) * (share > 0.85 ? (1 - share) / 0.15 : 1);
    const size = (move.payload ? Math.max(2.6, this.radius * 0.32) : Math.max(1.4, this.radius * 0.14)) * grown;
    context.beginPath();
    if (move.kind === "bundle") context.rect(x - size, y - size * 0.75, 2 * size, size * 1.5);
    else context.arc(x, y, size, 0, 2 * Math.PI);
    context.fill();
    context.globalAlpha = 1;
  }

  // a little beside the line, so that the two directions do not meet
  #between(from, to, share) {
    const [[ax, ay], [bx, by]] = [this.points[from], this.points[to]];
    const length = Math.hypot(bx - ax, by - ay) || 1;
    const aside = Math.min(5, length * 0.06) * Math.sin(Math.PI * share);
    return [ax + (bx - ax) * share - ((by - ay) / length) * aside, ay + (by - ay) * share + ((bx - ax) / length) * aside];
  }

  #trails(colours, t) {
    const { context, points } = this;
    context.strokeStyle = colours.warn;
    for (const token of this.story.tokens(t)) {
      [...token.before, token].forEach((hop, place, all) => {
        context.globalAlpha = 0.65 * ((place + 1) / all.length);
        context.lineWidth = 2.2;
        context.beginPath();
        context.moveTo(...points[hop.from]);
        context.lineTo(...points[hop.to]);
        context.stroke();
      });
    }
    context.globalAlpha = 1;
  }

  #tokens(colours, t, speed) {
    const { context } = this;
    const tokens = this.story.tokens(t, 0);
    for (const token of tokens) {
      const lasts = Math.min(FLIGHT * speed, token.next ? (token.next - token.time) * 0.85 : Infinity);
      const share = this.still || lasts <= 0 ? 1 : Math.min(1, (t - token.time) / lasts);
      let [x, y] = this.#between(token.from, token.to, share);
      if (share === 1) [x, y] = [x + this.radius * 0.95, y - this.radius * 0.95];
      const size = Math.max(6, this.radius * 0.75);
      context.beginPath();
      context.moveTo(x, y - size);
      context.lineTo(x + size, y);
      context.lineTo(x, y + size);
      context.lineTo(x - size, y);
      context.closePath();
      context.fillStyle = colours.warn;
      context.fill();
      context.lineWidth = 1.5;
      context.strokeStyle = colours.paper;
      context.stroke();
      if (tokens.length > 1) {
        context.fillStyle = colours.paper;
        context.font = `600 ${Math.round(size)}px ${colours.font}`;
        context.textAlign = "center";
        context.textBaseline = "middle";
        context.fillText(String(token.number), x, y + 0.5);
      }
    }
  }

  #names(colours) {
    const { context } = this, parties = this.story.parties, all = parties.length <= NAMED;
    context.textAlign = "center";
    context.textBaseline = "top";
    parties.forEach((party, u) => {
      const marked = u === this.chosen || u === this.hovered;
      if (!all && !marked) return;
      const [x, y] = this.points[u];
      context.font = `${marked ? 600 : 400} 12px ${colours.font}`;
      context.lineWidth = 3;
      context.strokeStyle = colours.card;
      context.lineJoin = "round";
      context.strokeText(party.name, x, y + this.radius + 4);
      context.fillStyle = marked ? colours.ink : colours.faint;
      context.fillText(party.name, x, y + this.radius + 4);
    });
  }
}
