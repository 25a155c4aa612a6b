"use strict";

const find = (selector) => document.querySelector(selector);
let limits = null;
let latest = 0;
let pinned = null;

function say(text, bad = false) {
  find("#status").textContent = text;
  find("#status").classList.toggle("bad", bad);
}

function show(result) {
  const { words } = result;
  const canvas = find("#picture canvas");
  const explained = words.length > 0 && words[0].attention !== null;
  const attention = explained && attended.scaled(
    [words[0].attention.length, words[0].attention[0].length],
    words.map((word) => word.attention.flat().map((weight) => weight * word.attention.flat().length)),
  );
  const invitation = explained ? "Hover over a word, or tap it, to see where the captioner looked." : "This captioner does not say where it looked.";
  const look = (place) => {
    const { word, log_prob } = words[place] ?? {};
    find("#hint").textContent = word === undefined ? invitation : `“${word}”: probability ${(100 * Math.exp(log_prob)).toFixed(0)} %`;
    if (!explained) return;
    attended.draw(canvas, attention, place);
    if (place !== null) find("#hint").append(`; ${attended.described(attention, place)}. `, attended.legend(attention));
  };
  const pin = (place) => {
    pinned = place;
    buttons.forEach((button, other) => button.setAttribute("aria-pressed", String(other === place)));
    look(place);
  };
  const buttons = words.map(({ word }, place) =>
    make("button", { class: "word", click: () => pin(pinned === place ? null : place) }, word));
  attended.words(buttons, (place) => look(place ?? pinned));
  find("#caption").replaceChildren(...buttons.flatMap((button) => [button, " "]));
  if (words.length === 0) find("#caption").textContent = "(the captioner wrote no word)";
  find("#picture img").src = result.picture;
  find("#picture img").alt = `The photograph: ${result.caption}`;
  const { likeness } = result;
  find("#unlike").hidden = !likeness || likeness.cosine >= likeness.usual;
  find("#unlike").textContent = likeness
    ? `This photograph is unlike the training images: its cosine with the nearest is ${likeness.cosine.toFixed(2)}; of 99 % of them it is ${likeness.usual.toFixed(2)} or more. The caption may be a guess.`
    : "";
  list("#others", result.candidates.slice(1).map((one) => [one.caption, `score ${one.score.toFixed(2)}`]));
  list("#nearest", result.nearest.map((one) => [one.caption, `cosine ${one.cosine.toFixed(2)} · ${one.image}`, one.thumbnail]));
  find("#result").hidden = false;
  pin(null);
  find("#player").replaceChildren(explained ? attended.player(buttons, look) : "");
  find("#player .play")?.click();
}

function list(selector, rows) {
  find(selector).hidden = rows.length === 0;
  find(`${selector} ol`).replaceChildren(...rows.map(([text, number, thumbnail]) =>
    make("li", {}, thumbnail && make("img", { src: thumbnail, alt: "" }), `${text} `, make("span", { class: "number" }, number))));
}

function refuse(text) {
  find("#result").hidden = true;
  attended.pause?.();
  say(text, true);
}

async function caption(file, others = 0) {
  const mine = ++latest;
  if (limits !== null && file.size > limits.max_bytes)
    return refuse(`${file.name} has ${(file.size / 1e6).toFixed(0)} MB; the most is ${(limits.max_bytes / 1e6).toFixed(0)} MB.`);
  say(`Captioning ${file.name} …`);
  try {
    const response = await fetch("/caption", { method: "POST", body: file });
    const result = await response.json();
    if (mine !== latest) return;
    if (!response.ok) throw new Error(result.error);
    say(others ? `${file.name} is the first of ${others + 1} files; the page captions one at a time.` : "");
    show(result);
  } catch (error) {
    if (mine === latest) refuse(error instanceof TypeError ? "The program does not answer; is it still running?" : `${file.name}: ${error.message}`);
  }
}

function dropped(files) {
  if (files.length > 0) caption(files[0], files.length - 1);
}

async function trySample(number) {
  const file = await fetch(`/samples/${number}`).then((response) => response.blob());
  caption(Object.assign(file, { name: `Sample ${number + 1}` }));
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

find("#shell").textContent = `curl --data-binary @photo.jpg ${location.origin}/caption`;
find("#picture img").addEventListener("load", ({ target }) => {
  const canvas = find("#picture canvas");
  if (target.naturalWidth) canvas.height = (canvas.width * target.naturalHeight) / target.naturalWidth;
  find("#picture").style.width = `min(100%, 36rem, ${(75 * target.naturalWidth) / target.naturalHeight}vh)`;
});
/** What the program says of itself; while it loads, the page shows how far it is. */
async function loaded() {
  for (;;) {
    const about = await fetch("/about").then((response) => response.json());
    if (about.loading === undefined) return about;
    find("#models").textContent = `${about.loading} … A photograph waits for this.`;
    await new Promise((wake) => setTimeout(wake, 500));
  }
}
loaded().then((about) => {
  limits = about.limits;
  find("#samples").hidden = about.samples === 0;
  for (let number = 0; number < about.samples; number++) {
    const picture = make("img", { src: `/samples/${number}`, alt: `Caption sample ${number + 1}` });
    find("#samples").append(make("button", { click: () => trySample(number) }, picture));
  }
  find("#models").textContent = `Captioner ${about.captioner}, ${about.decoding}` + (about.retriever ? `; retriever ${about.retriever}` : "");
});
