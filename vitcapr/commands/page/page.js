"use strict";

const find = (selector) => document.querySelector(selector);
// The colour map "inferno" of matplotlib at equal distances, as in the figures of attention.
const INFERNO = [
  [0, 0, 4], [31, 12, 72], [85, 15, 109], [136, 34, 106], [186, 54, 85], [227, 89, 51], [249, 140, 10], [249, 201, 50], [252, 255, 164],
];
const LEAST_SCALE = 3; // multiples of an even spread, so that a captioner that looks everywhere does not seem to look somewhere

let limits = null;
let latest = 0;
let pinned = null;

function colour(value) {
  const place = Math.min(Math.max(value, 0), 1) * (INFERNO.length - 1);
  const below = Math.min(Math.floor(place), INFERNO.length - 2);
  return INFERNO[below].map((from, channel) => from + (place - below) * (INFERNO[below + 1][channel] - from));
}

function paint(canvas, rows, most) {
  canvas.height = rows.length;
  canvas.width = rows[0].length;
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  rows.flat().forEach((weight, place) => image.data.set([...colour(weight / most), 255], 4 * place));
  context.putImageData(image, 0, 0);
}

// The weight that the strongest colour stands for: one for all words of a caption.
function scaleOf(words) {
  const all = words.flatMap((word) => word.attention.flat()).sort((a, b) => a - b);
  const patches = words[0].attention.flat().length;
  return Math.max(all[Math.floor(0.995 * (all.length - 1))], LEAST_SCALE / patches);
}

function say(text, bad = false) {
  find("#status").textContent = text;
  find("#status").classList.toggle("bad", bad);
}

function element(name, text, className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  made.className = className;
  return made;
}

function likelihood(word) {
  return `“${word.word}”: probability ${(100 * Math.exp(word.log_prob)).toFixed(0)} %`;
}

function show(result) {
  const picture = find("#picture");
  const hint = find("#hint");
  const explained = result.words.length > 0 && result.words[0].attention !== null;
  const most = explained ? scaleOf(result.words) : 0;
  const invitation = explained ? "Hover over a word, or tap it, to see where the captioner looked." : "This captioner does not say where it looked.";
  const buttons = [];
  const look = (word) => {
    picture.classList.toggle("explained", explained && word !== null);
    hint.textContent = word === null ? invitation : likelihood(word);
    if (explained && word !== null) paint(find("#picture canvas"), word.attention, most);
  };
  const pin = (place) => {
    pinned = place;
    buttons.forEach((button, other) => button.setAttribute("aria-pressed", String(other === place)));
    look(place === null ? null : result.words[place]);
  };
  const caption = find("#caption");
  caption.replaceChildren();
  result.words.forEach((word, place) => {
    const button = element("button", word.word);
    button.type = "button";
    button.addEventListener("mouseenter", () => look(word));
    button.addEventListener("focus", () => look(word));
    for (const left of ["mouseleave", "blur"]) button.addEventListener(left, () => look(pinned === null ? null : result.words[pinned]));
    button.addEventListener("click", () => pin(pinned === place ? null : place));
    buttons.push(button);
    caption.append(button, " ");
  });
  if (result.words.length === 0) caption.textContent = "(the captioner wrote no word)";
  pin(null);
  find("#picture img").src = result.picture;
  find("#picture img").alt = `The photograph: ${result.caption}`;
  find("#scale").hidden = !explained;
  list("#others", result.candidates.slice(1).map((one) => [one.caption, `score ${one.score.toFixed(2)}`]));
  list("#nearest", result.nearest.map((one) => [one.caption, `cosine ${one.cosine.toFixed(2)} · ${one.image}`]));
  find("#result").hidden = false;
}

function list(selector, rows) {
  find(selector).hidden = rows.length === 0;
  find(`${selector} ol`).replaceChildren(...rows.map(([text, number]) => {
    const item = element("li", `${text} `);
    item.append(element("span", number, "number"));
    return item;
  }));
}

async function caption(file) {
  if (limits !== null && file.size > limits.max_bytes) {
    say(`${file.name} has ${(file.size / 1e6).toFixed(0)} MB; the most is ${(limits.max_bytes / 1e6).toFixed(0)} MB.`, true);
    return;
  }
  const mine = ++latest;
  say(`Captioning ${file.name} …`);
  try {
    const response = await fetch("/caption", { method: "POST", body: file });
    const result = await response.json();
    if (mine !== latest) return;
    if (!response.ok) throw new Error(result.error);
    say("");
    show(result);
  } catch (error) {
    if (mine !== latest) return;
    find("#result").hidden = true;
    say(error instanceof TypeError ? "The program does not answer; is it still running?" : `${file.name}: ${error.message}`, true);
  }
}

function dropped(files) {
  if (files.length > 0) caption(files[0]);
}

const drop = find("#drop");
for (const kind of ["dragover", "drop", "dragleave"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    drop.classList.toggle("over", kind === "dragover");
    if (kind === "drop") dropped(event.dataTransfer.files);
  });
}
document.addEventListener("paste", (event) => dropped(event.clipboardData.files));
find("#file").addEventListener("change", (event) => {
  dropped(event.target.files);
  event.target.value = ""; // the same file may be chosen again
});

paint(find("#scale canvas"), [Array.from({ length: 64 }, (_, place) => place)], 63);
find("#shell").textContent = `curl --data-binary @photo.jpg ${location.origin}/caption`;
find("#picture img").addEventListener("load", ({ target }) => {
  find("#picture").style.width = `min(100%, 36rem, ${(75 * target.naturalWidth) / target.naturalHeight}vh)`;
});
fetch("/about").then((response) => response.json()).then((about) => {
  limits = about.limits;
  find("#models").textContent = `Captioner ${about.captioner}, ${about.decoding}` + (about.retriever ? `; retriever ${about.retriever}` : "");
});
