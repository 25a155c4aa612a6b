"use strict";
// Where a captioner looked at a word: light falls on the patches, and a frame marks the brightest. A caption plays word
// by word. The explorer, the first page and the page of vitcapr serve share this script.

const attended = {};
const LEVELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const DARKEST = 0.82;
const SECONDS = 0.8; // of a word
const CALM = window.matchMedia("(prefers-reduced-motion: reduce)");

/** The weights of a word, from 0 to 1, row by row, from the text of a data file. */
attended.decoded = (text) => Array.from(text, (character) => LEVELS.indexOf(character) / (LEVELS.length - 1));

attended.clear = (canvas) => canvas.getContext("2d").clearRect(0, 0, canvas.width, canvas.height);

/** Draw a word's attention on a canvas that lies over the picture. */
attended.draw = (canvas, [height, width], weights) => {
  const small = new ImageData(width, height);
  weights.forEach((weight, patch) => (small.data[4 * patch + 3] = Math.round(255 * DARKEST * (1 - weight))));
  const patches = Object.assign(document.createElement("canvas"), { width, height });
  patches.getContext("2d").putImageData(small, 0, 0);
  const brush = canvas.getContext("2d");
  attended.clear(canvas);
  brush.imageSmoothingQuality = "high";
  brush.drawImage(patches, 0, 0, canvas.width, canvas.height);
  const most = weights.indexOf(Math.max(...weights));
  const [wide, high] = [canvas.width / width, canvas.height / height];
  for (const [strokeStyle, lineWidth] of [["#000", 5], ["#fff", 2]]) {
    Object.assign(brush, { strokeStyle, lineWidth });
    brush.strokeRect((most % width) * wide, Math.floor(most / width) * high, wide, high);
  }
};

/** The same in words: in which part of the picture, and how many times an even spread. */
attended.described = ([height, width], weights, peak) => {
  const most = weights.indexOf(Math.max(...weights));
  const part = (at, of, names) => names[Math.min(2, Math.floor((3 * (at + 0.5)) / of))];
  const up = part(Math.floor(most / width), height, ["top", "middle", "bottom"]);
  const across = part(most % width, width, ["left", "centre", "right"]);
  const where = up === "middle" && across === "centre" ? "the centre" : `the ${up} ${across}`;
  return `it looked most at ${where}, ${peak.toFixed(1)} times an even spread`;
};

/**
 * The words of a caption, buttons, play one after the other: `look(place)` shows a word, `look(null)` none. The button
 * and the key "p" start and pause it. There is no button for who asks for reduced motion. Returns how to play.
 */
attended.player = (button, words, look) => {
  let [at, timer] = [0, null];
  const label = (plays) => (button.textContent = plays ? "❚❚ pause" : "▶ play");
  const pause = () => (clearTimeout(timer), (timer = null), label(false));
  const step = () => {
    words.forEach((word, place) => word.classList.toggle("played", place === at && at < words.length));
    look(at < words.length ? at : null);
    if (at++ < words.length && button.isConnected) timer = setTimeout(step, 1000 * SECONDS);
    else [at] = [0, pause()];
  };
  const play = () => {
    if (CALM.matches || words.length === 0) return;
    if (attended.pause !== pause) attended.pause?.();
    [attended.pause, attended.turn] = [pause, () => (timer ? pause() : play())];
    label(true);
    step();
  };
  button.hidden = CALM.matches;
  label(false);
  button.addEventListener("click", () => (timer ? pause() : play()));
  return play;
};
document.addEventListener("keydown", (event) => {
  if (event.key === "p" && !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.closest("input, select"))
    attended.turn?.();
});
