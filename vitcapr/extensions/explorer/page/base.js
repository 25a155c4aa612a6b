"use strict";
// What every other script uses. The scripts are plain ones that share their names, common words as parts of `explorer`: a
// page that is opened as a file may load neither modules nor data, but it may add scripts.

const explorer = {};
const data = {};

/** Called by the scripts of data. */
explorer.receive = (key, content) => {
  data[key] = content;
};

const loading = new Map();

/** Data that is not read at once, as a promise. */
explorer.load = (key) => {
  const read = (resolve, reject) => {
    const fail = () => (loading.delete(key), reject(new Error(`data/${key}.js cannot be read`)));
    document.head.append(make("script", { src: `data/${key}.js`, load: () => resolve(data[key]), error: fail }));
  };
  if (!loading.has(key)) loading.set(key, new Promise(read));
  return loading.get(key);
};

const find = (id) => document.getElementById(id);

/** A number as people read it, with so many decimals; without, with two at most. */
const shown = (value, places) =>
  value === null || value === undefined
    ? "–"
    : value.toLocaleString("en", { minimumFractionDigits: places ?? 0, maximumFractionDigits: places ?? 2 });

/** A table. The first cell of a row is its heading; a cell that is an element stands as it is. */
explorer.table = (head, rows, caption) => {
  const names = head.map((name) => (name ? make("th", { scope: "col" }, name) : make("td")));
  const lines = rows.map(([name, ...cells]) =>
    make("tr", {}, make("th", { scope: "row" }, name), cells.map((cell) => (cell instanceof Element ? cell : make("td", {}, cell)))));
  const title = caption ? make("caption", {}, caption) : null;
  const scrolls = { class: "wide", role: "region", tabindex: 0, "aria-label": caption ?? head.filter(Boolean).join(", ") };
  return make("div", scrolls, make("table", {}, title, make("thead", {}, make("tr", {}, names)), make("tbody", {}, lines)));
};

/** The picture of an image, or words where it could not be read. */
explorer.picture = (number, alt) => {
  const { images } = data;
  if (!images.pictures[number]) return make("span", { class: "no-picture" }, "no picture");
  const [width, height] = images.sizes[number];
  const src = `pictures/${number}.webp`;
  return make("img", { src, alt, width, height, loading: "lazy", decoding: "async" });
};

/** The picture of an image, as a link that opens the image. */
const openingPicture = (number) => {
  const id = data.images.ids[number];
  const label = `Open image ${id}: ${explorer.altOf(number)}`;
  const attributes = { href: explorer.address({ image: id, reference: null }), class: "picture", "aria-label": label };
  return make("a", attributes, explorer.picture(number, ""));
};

/** A menu of [value, text]; `change` takes the chosen value. */
explorer.menu = (label, options, change, chosen = "") => {
  const entries = options.map(([value, text]) => make("option", { value }, text));
  const menu = make("select", { "aria-label": label, change: () => change(menu.value) }, entries);
  menu.value = chosen;
  return menu;
};

/** What an image shows in words: its first reference, or its id. */
explorer.altOf = (number) => {
  const first = referencesOf(number)[0];
  return first === undefined ? `image ${data.images.ids[number]}` : data.images.references.text[first];
};
