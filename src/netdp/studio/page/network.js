// The network on a canvas: links once on a layer of their own, parties by colour; pan, zoom, hover, click, arrow keys.
// Thirty thousand parties and two hundred thousand links stay fluid: links are drawn anew only when the view changes, and while it
// moves only some of them are.
import { css } from "./dom.js";

const PAD = 18, NEAR = 14;
const MOVING = 20000;  // links that are drawn while the view moves
const BATCH = 150;  // links that are drawn in one stroke do not darken each other, so a stroke has few

export class Network {
  constructor(canvas, tip, handlers) {
    this.canvas = canvas; this.tip = tip; this.handlers = handlers;
    this.layer = document.createElement("canvas");
    this.n = 0; this.observers = new Set(); this.hover = null; this.cursor = null; this.buckets = null; this.scale = null;
    this.view = { zoom: 1, x: 0, y: 0 };
    this.frame = 0;
    new ResizeObserver(() => this.refit()).observe(canvas);
    canvas.addEventListener("pointermove", event => this.moved(event));
    canvas.addEventListener("pointerleave", () => this.point(null));
    canvas.addEventListener("pointerdown", event => { this.drag = { x: event.clientX, y: event.clientY, far: false }; });
    window.addEventListener("pointerup", () => { setTimeout(() => { this.drag = null; }); });
    canvas.addEventListener("click", event => { if (!this.drag?.far) { const u = this.nearest(event); if (u !== null) handlers.choose(u); } });
    canvas.addEventListener("wheel", event => { if (event.ctrlKey || event.metaKey || this.view.zoom > 1) { event.preventDefault(); this.zoom(Math.exp(-event.deltaY / 400), event); } }, { passive: false });
    canvas.addEventListener("keydown", event => this.key(event));
    canvas.addEventListener("blur", () => { this.cursor = null; this.point(null); });
  }

  show(positions, edges, labels) {
    this.positions = positions; this.edges = edges; this.labels = labels; this.n = positions.length / 2;
    this.view = { zoom: 1, x: 0, y: 0 }; this.hover = this.cursor = null; this.buckets = null; this.observers = new Set();
    this.radius = Math.max(1.6, Math.min(11, 100 / Math.sqrt(this.n)));
    this.cells = null;
    this.refit();
  }

  paint(epsilon, scale, observers) {
    this.scale = scale; this.observers = new Set(observers);
    this.buckets = Int16Array.from(epsilon, e => scale.bucket(e));
    this.redraw();
  }

  refit() {
    const ratio = window.devicePixelRatio || 1, side = this.canvas.clientWidth;
    if (!side) return;
    this.side = side; this.ratio = ratio;
    for (const canvas of [this.canvas, this.layer]) canvas.width = canvas.height = Math.round(side * ratio);
    this.links(); this.redraw();
  }

  at(u) {
    const room = this.side - 2 * PAD, { zoom, x, y } = this.view;
    return [PAD + (this.positions[2 * u] * zoom + x) * room, PAD + ((1 - this.positions[2 * u + 1]) * zoom + y) * room];
  }

  links(moving = false) {
    if (!this.positions || !this.side) return;
    clearTimeout(this.still);
    if (moving) this.still = setTimeout(() => { this.links(); this.redraw(); }, 150);
    const context = this.layer.getContext("2d"), all = this.edges.length / 2;
    const step = moving ? Math.max(1, Math.ceil(all / MOVING)) : 1, count = Math.ceil(all / step);
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.side, this.side);
    context.strokeStyle = css("--edge");
    context.lineWidth = all > 20000 ? 0.5 : 1;
    context.globalAlpha = this.thinness(all, context.lineWidth / step);
    context.beginPath();
    for (let i = 0; i < count; i++) {
      const [ax, ay] = this.at(this.edges[2 * i * step]), [bx, by] = this.at(this.edges[2 * i * step + 1]);
      context.moveTo(ax, ay); context.lineTo(bx, by);
      if (i % BATCH === BATCH - 1) { context.stroke(); context.beginPath(); }
    }
    context.stroke();
  }

  // As opaque as leaves a crowd of links half transparent: they cover the picture `layers` times over, by a sample of them.
  thinness(count, width) {
    if (!count) return 1;
    const step = Math.max(1, Math.floor(count / 1000));
    let length = 0, taken = 0;
    for (let i = 0; i < count; i += step, taken++) {
      const [ax, ay] = this.at(this.edges[2 * i]), [bx, by] = this.at(this.edges[2 * i + 1]);
      length += Math.hypot(ax - bx, ay - by);
    }
    const layers = length / taken * count * width / (this.side * this.view.zoom) ** 2;
    return Math.max(0.015, Math.min(0.6, 1 - 0.35 ** (1 / Math.max(layers, 0.1))));
  }

  redraw() { if (!this.frame) this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); }); }

  draw() {
    if (!this.positions || !this.side) return;
    const context = this.canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.layer, 0, 0);
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const r = this.radius * Math.min(2.5, Math.sqrt(this.view.zoom)), groups = new Map();
    for (let u = 0; u < this.n; u++) {
      const bucket = this.buckets ? this.buckets[u] : -1;
      if (!groups.has(bucket)) groups.set(bucket, []);
      groups.get(bucket).push(u);
    }
    const outline = css("--edge");
    for (const [bucket, members] of [...groups].sort((a, b) => a[0] - b[0])) {
      context.fillStyle = this.scale ? this.scale.colour(bucket) : "#8a8a8a";
      context.beginPath();
      for (const u of members) {
        const [x, y] = this.at(u);
        if (x < -20 || y < -20 || x > this.side + 20 || y > this.side + 20) continue;
        if (r < 2.2) context.rect(x - r, y - r, 2 * r, 2 * r);
        else { context.moveTo(x + r, y); context.arc(x, y, r, 0, 7); }
      }
      context.fill();
      if (r >= 2.2) { context.strokeStyle = outline; context.lineWidth = r > 4 ? 1 : 0.5; context.stroke(); }
    }
    for (const v of this.observers) this.star(context, v, Math.max(9, r * 1.7));
    if (this.labels && this.n <= 40) this.names(context, r);
    for (const u of [this.hover, this.cursor]) if (u !== null) {
      const [x, y] = this.at(u);
      context.strokeStyle = css("--ink"); context.lineWidth = 2.5; context.beginPath(); context.arc(x, y, Math.max(r, 4) + 4, 0, 7); context.stroke();
    }
  }

  star(context, v, size) {
    const [x, y] = this.at(v);
    context.beginPath();
    for (let k = 0; k < 10; k++) { const q = k % 2 ? size * .42 : size, a = Math.PI * (k / 5 - .5); context.lineTo(x + q * Math.cos(a), y + q * Math.sin(a)); }
    context.closePath();
    context.lineWidth = 3; context.strokeStyle = css("--card"); context.stroke(); context.fillStyle = css("--ink"); context.fill();
  }

  names(context, r) {
    context.font = "12.5px system-ui, sans-serif"; context.textBaseline = "middle"; context.lineWidth = 3.5; context.strokeStyle = css("--card"); context.fillStyle = css("--ink");
    for (let u = 0; u < this.n; u++) {
      const [x, y] = this.at(u), left = x > this.side * 0.8;
      context.textAlign = left ? "right" : "left";
      const place = [left ? x - r - 5 : x + r + 5, y];
      context.strokeText(this.labels[u], ...place); context.fillText(this.labels[u], ...place);
    }
  }

  nearest(event) {
    if (!this.positions) return null;
    const box = this.canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    let best = null, least = Math.max(NEAR, this.radius + 5) ** 2;
    for (let u = 0; u < this.n; u++) { const [x, y] = this.at(u), d = (x - px) ** 2 + (y - py) ** 2; if (d < least) { least = d; best = u; } }
    return best;
  }

  moved(event) {
    if (this.drag && event.buttons) {
      const dx = event.clientX - this.drag.x, dy = event.clientY - this.drag.y, room = this.side - 2 * PAD;
      if (Math.abs(dx) + Math.abs(dy) > 4 || this.drag.far) {
        this.drag = { x: event.clientX, y: event.clientY, far: true };
        this.view.x += dx / room; this.view.y += dy / room; this.links(true); this.redraw();
      }
      return;
    }
    this.point(this.nearest(event));
  }

  point(u) {
    if (u !== this.hover) { this.hover = u; this.redraw(); this.handlers.point(u); }
    this.tip.hidden = u === null;
    if (u !== null) {
      this.tip.textContent = this.handlers.words(u);
      const [x, y] = this.at(u);
      this.tip.style.left = `${Math.min(x + 14, this.side - 200)}px`; this.tip.style.top = `${Math.max(0, y - 34)}px`;
    }
  }

  zoom(factor, event) {
    const room = this.side - 2 * PAD, box = this.canvas.getBoundingClientRect();
    const fx = event ? (event.clientX - box.left - PAD) / room : 0.5, fy = event ? (event.clientY - box.top - PAD) / room : 0.5;
    const zoom = Math.min(40, Math.max(1, this.view.zoom * factor)), f = zoom / this.view.zoom;
    this.view = zoom === 1 ? { zoom: 1, x: 0, y: 0 } : { zoom, x: fx - (fx - this.view.x) * f, y: fy - (fy - this.view.y) * f };
    this.links(true); this.redraw();
  }

  key(event) {
    const ways = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key in ways) {
      event.preventDefault();
      if (this.cursor === null) this.cursor = [...this.observers][0] ?? 0;
      else {
        const [dx, dy] = ways[event.key], [cx, cy] = this.at(this.cursor);
        let best = null, least = Infinity;
        for (let u = 0; u < this.n; u++) {
          const [x, y] = this.at(u), along = (x - cx) * dx + (y - cy) * dy, aside = Math.abs((x - cx) * dy) + Math.abs((y - cy) * dx);
          if (u !== this.cursor && along > 0.5 && along + 2.5 * aside < least) { least = along + 2.5 * aside; best = u; }
        }
        if (best !== null) this.cursor = best;
      }
      this.point(this.cursor); this.redraw();
    } else if ((event.key === "Enter" || event.key === " ") && this.cursor !== null) { event.preventDefault(); this.handlers.choose(this.cursor); }
    else if (event.key === "+" || event.key === "-") this.zoom(event.key === "+" ? 1.4 : 1 / 1.4);
  }
}
