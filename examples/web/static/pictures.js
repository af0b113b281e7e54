// What is drawn: bars, the network, and throughput over the number of keys.
import { pairsOf, passesOf } from "./network.js";

const SVG = "http://www.w3.org/2000/svg";
function made(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Bars that keep their numbers when they move, so that a move can be seen. */
export class Bars {
  constructor(svg, values) {
    const most = Math.max(...values);
    svg.setAttribute("viewBox", `0 0 ${values.length} 100`);
    this.bars = Array.from(values, (value) => {
      const height = 4 + (96 * value) / most;
      return made("rect", { x: 0.1, width: 0.8, y: 100 - height, height });
    });
    svg.replaceChildren(...this.bars);
    this.show(this.bars.keys(), new Set());
  }

  /** `order` says which bar stands at each place; those at the places in `moved` are marked. */
  show(order, moved) {
    [...order].forEach((bar, place) => {
      this.bars[bar].style.transform = `translateX(${place}px)`;
      this.bars[bar].classList.toggle("moved", moved.has(place));
    });
  }
}

/** The network of n elements: time goes to the right, and a launch that is clicked on is asked for. */
export class Network {
  constructor(svg, n, ask) {
    const wires = Array.from({ length: n }, (_, i) => made("line", { class: "wire", x1: 0, x2: 1, y1: i, y2: i }));
    let right = 0;
    this.passes = passesOf(n).map((pass, number) => {
      const left = right;
      const half = pass.pass ? pass.mask : (pass.mask + 1) / 2; // pairs that overlap stand side by side
      right += half + 1;
      const group = made("g", { class: "pass" }, made("rect", { x: left, width: right - left, y: -0.5, height: n }));
      for (const [lower, upper] of pairsOf(pass, n)) {
        const x = left + 1 + (lower & (half - 1));
        const ends = n > 32 ? [] : [lower, upper].map((y) => made("line", { class: "end", x1: x, x2: x, y1: y, y2: y }));
        const pair = made("g", {}, made("line", { x1: x, x2: x, y1: lower, y2: upper }), ...ends);
        pair.lower = lower;
        group.append(pair);
      }
      group.addEventListener("click", () => ask(number + 1));
      return group;
    });
    for (const wire of wires) wire.setAttribute("x2", right);
    svg.setAttribute("viewBox", `0 -0.5 ${Math.max(right, 1)} ${n}`);
    svg.replaceChildren(...wires, ...this.passes);
  }

  /** Marks a launch, if there is one, and the pairs that it has exchanged. */
  show(launch, moved) {
    this.passes.forEach((group, number) => {
      const isNow = number === launch - 1;
      group.classList.toggle("now", isNow);
      for (const pair of group.children) pair.classList.toggle("exchanged", isNow && moved.has(pair.lower));
    });
  }
}

const LINES = { gpu: "GPU", copied: "GPU, copied", array: "browser" };

/** Lines over the number of keys, both axes by factors; as wide as there is room. */
export function chartOf(rows, room) {
  const [width, height, left, right, top, bottom] = [Math.max(280, room), 260, 44, 84, 12, 28];
  const [low, high] = [rows[0].n, rows.at(-1).n].map(Math.log2);
  const speeds = rows.flatMap((row) => Object.keys(LINES).map((name) => row[name]));
  const [least, most] = [Math.floor(Math.log10(Math.min(...speeds))), Math.ceil(Math.log10(Math.max(...speeds)))];
  const x = (n) => left + ((Math.log2(n) - low) / Math.max(1, high - low)) * (width - left - right);
  const y = (speed) => top + ((most - Math.log10(speed)) / Math.max(1, most - least)) * (height - top - bottom);
  const svg = made("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Throughput, as in the table" });
  for (let power = least; power <= most; power++) {
    const at = y(10 ** power);
    svg.append(made("line", { class: "grid", x1: left, x2: width - right, y1: at, y2: at }));
    svg.append(made("text", { x: left - 8, y: at + 4, "text-anchor": "end" }, String(10 ** power)));
  }
  for (const { n } of rows)
    svg.append(made("text", { x: x(n), y: height - 6, "text-anchor": "middle" }, `2^${Math.log2(n)}`));
  const ends = Object.keys(LINES).map((name) => ({ name, at: y(rows.at(-1)[name]) }));
  ends.sort((one, other) => one.at - other.at);
  ends.forEach((end, i) => (end.at = Math.max(end.at, (ends[i - 1]?.at ?? -99) + 14)));
  for (const { name, at } of ends) {
    const points = rows.map((row) => `${x(row.n)},${y(row[name])}`);
    svg.append(made("path", { class: name, d: `M${points.join("L")}` }));
    svg.append(made("text", { class: name, x: width - right + 8, y: at + 4 }, LINES[name]));
  }
  return svg;
}

const WORDS = {
  python: /(?<i>"""[^]*?"""|#.*)|(?<b>\b(?:def|class|return|if|else|elif|for|in|match|case|while|not|and|or|import|from)\b|@\w+(?:\.\w+)?)/g,
  wgsl: /(?<i>\/\/.*)|(?<b>\b(?:fn|struct|return|if|else|for|loop|break|let|var|const|continuing|switch)\b|@\w+)/g,
}; // prettier-ignore

/** A program with its words and remarks marked. */
export function marked(text, language) {
  const parts = [];
  let end = 0;
  for (const { 0: found, index, groups } of text.matchAll(WORDS[language])) {
    const mark = document.createElement(groups.i ? "i" : "b");
    mark.textContent = found;
    parts.push(text.slice(end, index), mark);
    end = index + found.length;
  }
  return [...parts, text.slice(end)];
}
