"use strict";
// Where a captioner looked at a word: light falls on the photograph, and a line encloses half of it. One scale serves
// all words of a caption. A caption plays word by word. The explorer, the first page and the page of vitcapr serve share
// this script, and how it makes elements; report/attended.py draws the same light in figures.

/** An element with attributes, listeners (functions) and children. A text child is text, never HTML. */
const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  if (tag === "button") element.type = "button"; // None sends a form.
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
};

const attended = {};
const LEVELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const DUSK = 0.5; // of the light is lost where there is no attention
const LEAST_SCALE = 3;
const FINE = 8; // samples along a patch
const SECONDS = 0.8; // of a word
const CALM = window.matchMedia("(prefers-reduced-motion: reduce)");

/** The attention of a caption: its grid, multiples of the even share for each word, and the multiple that is fully lit. */
attended.scaled = (grid, multiples) => ({ grid, multiples, full: Math.max(LEAST_SCALE, ...multiples.flat()) });

/** The same from the text of a data file. */
attended.decoded = ({ grid, weights, peaks }) =>
  attended.scaled(grid, weights.map((text, place) =>
    Array.from(text, (character) => (peaks[place] * LEVELS.indexOf(character)) / (LEVELS.length - 1))));

/** For each sample along an axis the two nearest patches, and the share of the second. */
const between = (patches) =>
  Array.from({ length: FINE * patches }, (_, sample) => {
    const at = (sample + 0.5) / FINE - 0.5;
    const t = at - Math.floor(at);
    const inside = (place) => Math.min(Math.max(place, 0), patches - 1);
    return [inside(Math.floor(at)), inside(Math.floor(at) + 1), t * t * (3 - 2 * t)];
  });

/** Smooth light from the weights of a word, without overshoot: rows of samples. */
const smooth = ([height, width], weights) => {
  const across = between(width);
  return between(height).map(([up, down, share]) =>
    across.map(([left, right, part]) => {
      const row = (y) => (1 - part) * weights[y * width + left] + part * weights[y * width + right];
      return (1 - share) * row(up) + share * row(down);
    }));
};

/** The level whose brighter samples together have half of the light. */
const halfLevel = (light) => {
  const falling = light.flat().sort((a, b) => b - a);
  let left = falling.reduce((sum, value) => sum + value, 0) / 2;
  return falling.find((value) => (left -= value) <= 0) ?? 0;
};

/** Trace where light crosses a level, sample by sample. */
const trace = (light, level, brush) => {
  for (let y = 0; y + 1 < light.length; y++)
    for (let x = 0; x + 1 < light[0].length; x++) {
      const [a, b, c, d] = [light[y][x], light[y][x + 1], light[y + 1][x + 1], light[y + 1][x]];
      const sides = [[a, b, x, y, 1, 0], [b, c, x + 1, y, 0, 1], [d, c, x, y + 1, 1, 0], [a, d, x, y, 0, 1]];
      const points = sides
        .filter(([one, other]) => one >= level !== other >= level)
        .map(([one, other, left, top, right, down]) => {
          const t = (level - one) / (other - one);
          return [left + t * right + 0.5, top + t * down + 0.5];
        });
      points.forEach((point, place) => (place % 2 ? brush.lineTo(...point) : brush.moveTo(...point)));
    }
};

/** Draw the attention of a word on a canvas that lies over the picture, or of none. */
attended.draw = (canvas, { grid, multiples, full }, place) => {
  const brush = canvas.getContext("2d");
  brush.clearRect(0, 0, canvas.width, canvas.height);
  if (place === null) return;
  const light = smooth(grid, multiples[place]);
  const [width, height] = [light[0].length, light.length];
  const samples = new ImageData(width, height);
  light.flat().forEach((value, at) => (samples.data[4 * at + 3] = Math.round(255 * DUSK * (1 - Math.sqrt(Math.min(value / full, 1))))));
  const small = make("canvas", { width, height });
  small.getContext("2d").putImageData(samples, 0, 0);
  brush.drawImage(small, 0, 0, canvas.width, canvas.height);
  const line = new Path2D();
  trace(light, halfLevel(light), line);
  const drawn = new Path2D();
  drawn.addPath(line, new DOMMatrix([canvas.width / width, 0, 0, canvas.height / height, 0, 0]));
  const thin = Math.max(1, canvas.width / 200);
  for (const [strokeStyle, lineWidth] of [["#000", 3 * thin], ["#fff", thin]]) {
    Object.assign(brush, { strokeStyle, lineWidth });
    brush.stroke(drawn);
  }
};

/** The same in words: in which part of the picture, and how many times the even share. */
attended.described = ({ grid: [height, width], multiples }, place) => {
  const peak = Math.max(...multiples[place]);
  const most = multiples[place].indexOf(peak);
  const part = (at, of, names) => names[Math.min(2, Math.floor((3 * (at + 0.5)) / of))];
  const up = part(Math.floor(most / width), height, ["top", "middle", "bottom"]);
  const across = part(most % width, width, ["left", "centre", "right"]);
  const where = up === "middle" && across === "centre" ? "the centre" : `the ${up} ${across}`;
  return `it looked most at ${where}, ${peak.toFixed(1)} times the even share`;
};

/** The scale of a caption's light, in multiples of the even share; it is half lit at a quarter of the scale. */
attended.legend = ({ full }) =>
  make("span", { class: "light-scale" }, "0", make("i"), (full / 4).toFixed(1), make("i"), `${full.toFixed(1)} × the even share`);

/**
 * The words of a caption, buttons: `look(place)` shows the word that is pointed at or has the focus, `look(null)` none.
 * One word is in the order of the Tab key; arrows lead to the others.
 */
attended.words = (words, look) => {
  const focus = (place) => {
    words.forEach((word, other) => (word.tabIndex = other === place ? 0 : -1));
    words[place].focus();
  };
  words.forEach((word, place) => {
    word.tabIndex = place ? -1 : 0;
    word.addEventListener("pointerenter", () => look(place));
    word.addEventListener("focus", () => look(place));
    word.addEventListener("blur", () => look(null));
    word.addEventListener("pointerleave", () => {
      const focused = words.indexOf(document.activeElement);
      look(focused < 0 ? null : focused);
    });
    word.addEventListener("keydown", (event) => {
      const to = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: words.length - 1 }[event.key];
      if (!words[to]) return;
      event.preventDefault();
      event.stopPropagation();
      focus(to);
    });
  });
};

/**
 * A button that plays the words of a caption one after the other: `look(place)` shows a word, `look(null)` none. The key
 * "p" starts and pauses it as well. The button is hidden from who asks for reduced motion.
 */
attended.player = (words, look) => {
  let [at, timer] = [0, null];
  const label = (plays) => (button.textContent = plays ? "❚❚ pause" : "▶ play");
  const pause = () => (clearTimeout(timer), (timer = null), label(false));
  const step = () => {
    words.forEach((word, place) => word.classList.toggle("played", place === at && at < words.length));
    look(at < words.length ? at : null);
    if (at++ < words.length && button.isConnected) timer = setTimeout(step, 1000 * SECONDS);
    else [at] = [0, pause()];
  };
  const turn = () => {
    if (timer) return pause();
    if (CALM.matches || words.length === 0) return;
    if (attended.pause !== pause) attended.pause?.();
    [attended.pause, attended.turn] = [pause, turn];
    label(true);
    step();
  };
  const button = make("button", { class: "play", title: "p pauses", hidden: CALM.matches, click: turn });
  label(false);
  return button;
};
document.addEventListener("keydown", (event) => {
  if (event.key === "p" && !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.closest("input, select"))
    attended.turn?.();
});
