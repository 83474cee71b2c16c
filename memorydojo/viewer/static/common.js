"use strict";

const data = JSON.parse(document.getElementById("data").textContent);

// Controls, format characters (bidi, zero width), line separators, private, unassigned and lone halves of pairs.
const HIDDEN = /[\p{C}\u2028\u2029]/u;
const HIDDEN_BUT_BREAKS = /(?![\n\t])[\p{C}\u2028\u2029]/u;

function escape(char) {
  const code = char.codePointAt(0);
  const digits = code.toString(16);
  if (code < 0x100) return "\\x" + digits.padStart(2, "0");
  return code < 0x10000 ? "\\u" + digits.padStart(4, "0") : "\\U" + digits.padStart(8, "0");
}

// Hostile text on one line, with every character that cannot be seen as an escape.
function line(text) {
  return Array.from(String(text), (char) => (HIDDEN.test(char) ? escape(char) : char)).join("");
}

// The same with line breaks kept, and the escapes set apart. Text goes to the screen through text nodes only.
function visible(text) {
  const fragment = document.createDocumentFragment();
  let plain = "";
  const flush = () => {
    if (plain) fragment.append(document.createTextNode(plain));
    plain = "";
  };
  if (!HIDDEN_BUT_BREAKS.test(text)) {
    fragment.append(document.createTextNode(text));
    return fragment;
  }
  for (const char of text) {
    if (!HIDDEN_BUT_BREAKS.test(char)) {
      plain += char;
      continue;
    }
    flush();
    fragment.append(el("span", { class: "hidden", title: "a character that cannot be seen" }, escape(char)));
  }
  flush();
  return fragment;
}

// An element. Attribute names are our own; hostile text may be in values and in children, which become text nodes.
function el(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "click") node.addEventListener("click", value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

function svg(name, attributes) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

function by(id) {
  return document.getElementById(id);
}

function plural(count, one, many) {
  return `${count} ${count === 1 ? one : many || one + "s"}`;
}

function percent(part, whole) {
  return whole ? `${((100 * part) / whole).toFixed(1)} %` : "-";
}

// The different values as choices; the prefix keeps them apart from the choices that are there already.
function choices(select, values, prefix) {
  for (const value of [...new Set(values)].sort()) select.append(el("option", { value: prefix + value }, line(value)));
}

function simulatedBanner() {
  return el(
    "p",
    { class: "banner", id: "simulated" },
    el("strong", {}, "SIMULATED "),
    "These results describe the offline simulator and the memory system, never a language model."
  );
}
