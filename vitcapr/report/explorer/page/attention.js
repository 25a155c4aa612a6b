"use strict";
// Where the captioner looked: light falls on the patches of a word, and a frame marks the brightest.

const LEVELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const DARKEST = 0.82;

explorer.attention = {};

/** The weights of a word, from 0 to 1, row by row. */
explorer.attention.weights = (attention, word) =>
  Array.from(attention.weights[word], (character) => LEVELS.indexOf(character) / (LEVELS.length - 1));

/** Draw a word's attention on a canvas that lies over the picture. */
explorer.attention.draw = (canvas, attention, word) => {
  const [height, width] = attention.grid;
  const weights = explorer.attention.weights(attention, word);
  const small = new ImageData(width, height);
  weights.forEach((weight, patch) => (small.data[4 * patch + 3] = Math.round(255 * DARKEST * (1 - weight))));
  const patches = document.createElement("canvas");
  [patches.width, patches.height] = [width, height];
  patches.getContext("2d").putImageData(small, 0, 0);
  const brush = canvas.getContext("2d");
  brush.clearRect(0, 0, canvas.width, canvas.height);
  brush.imageSmoothingQuality = "high";
  brush.drawImage(patches, 0, 0, canvas.width, canvas.height);
  const most = weights.indexOf(Math.max(...weights));
  const [wide, high] = [canvas.width / width, canvas.height / height];
  const frame = [(most % width) * wide, Math.floor(most / width) * high, wide, high];
  for (const [colour, line] of [
    ["#000", 5],
    ["#fff", 2],
  ]) {
    brush.strokeStyle = colour;
    brush.lineWidth = line;
    brush.strokeRect(...frame);
  }
};

explorer.attention.clear = (canvas) => canvas.getContext("2d").clearRect(0, 0, canvas.width, canvas.height);

/** The same in words: how strongly, and in which part of the picture. */
explorer.attention.described = (attention, word) => {
  const [height, width] = attention.grid;
  const weights = explorer.attention.weights(attention, word);
  const most = weights.indexOf(Math.max(...weights));
  const part = (at, of, names) => names[Math.min(2, Math.floor((3 * (at + 0.5)) / of))];
  const up = part(Math.floor(most / width), height, ["top", "middle", "bottom"]);
  const across = part(most % width, width, ["left", "centre", "right"]);
  const where = up === "middle" && across === "centre" ? "the centre" : `the ${up} ${across}`;
  return `it looked most at ${where}, ${explorer.shown(attention.peaks[word])} times an even spread`;
};
