"use strict";
// What every other script uses. The scripts are plain ones that share the name `explorer`: a page that is opened as a
// file may load neither modules nor data, but it may add scripts.

const explorer = { data: {} };

/** Called by the scripts of data. */
explorer.receive = (key, content) => {
  explorer.data[key] = content;
};

const loading = new Map();

/** Data that is not read at once, as a promise. */
explorer.load = (key) => {
  if (!loading.has(key)) {
    const loaded = new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = `data/${key}.js`;
      script.onload = () => resolve(explorer.data[key]);
      script.onerror = () => {
        loading.delete(key);
        reject(new Error(`data/${key}.js cannot be read`));
      };
      document.head.append(script);
    });
    loading.set(key, loaded);
  }
  return loading.get(key);
};

/** An element with attributes, listeners (functions) and children. A text child is text, never HTML. */
explorer.make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  if (tag === "button") element.type = "button"; // None sends a form.
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
};

explorer.find = (id) => document.getElementById(id);

/** A number as people read it, with so many decimals; without, with two at most. */
explorer.shown = (value, places) =>
  value === null || value === undefined
    ? "–"
    : value.toLocaleString("en", { minimumFractionDigits: places ?? 0, maximumFractionDigits: places ?? 2 });

/** A table. The first cell of a row is its heading; a cell that is an element stands as it is. */
explorer.table = (head, rows, caption) => {
  const { make } = explorer;
  const names = head.map((name) => (name ? make("th", { scope: "col" }, name) : make("td")));
  const lines = rows.map(([name, ...cells]) => [
    make("th", { scope: "row" }, name),
    cells.map((cell) => (cell instanceof Element ? cell : make("td", {}, cell))),
  ]);
  const body = lines.map((line) => make("tr", {}, line));
  const title = caption ? make("caption", {}, caption) : null;
  return make(
    "div",
    { class: "wide" },
    make("table", {}, title, make("thead", {}, make("tr", {}, names)), make("tbody", {}, body)),
  );
};

/** The picture of an image, or words where it could not be read. */
explorer.picture = (number, alt) => {
  const { images } = explorer.data;
  if (!images.pictures[number]) return explorer.make("span", { class: "no-picture" }, "no picture");
  const [width, height] = images.sizes[number];
  const src = `pictures/${number}.webp`;
  return explorer.make("img", { src, alt, width, height, loading: "lazy", decoding: "async" });
};

/** The picture of an image, as a link that opens the image. */
explorer.openingPicture = (number) => {
  const id = explorer.data.images.ids[number];
  const label = `Open image ${id}: ${explorer.altOf(number)}`;
  const attributes = { href: explorer.address({ image: id, reference: null }), class: "picture", "aria-label": label };
  return explorer.make("a", attributes, explorer.picture(number, ""));
};

/** A menu of [value, text]; `change` takes the chosen value. */
explorer.menu = (label, options, change, chosen = "") => {
  const entries = options.map(([value, text]) => explorer.make("option", { value }, text));
  const menu = explorer.make("select", { "aria-label": label, change: () => change(menu.value) }, entries);
  menu.value = chosen;
  return menu;
};

/** What an image shows in words: its first reference, or its id. */
explorer.altOf = (number) => {
  const first = explorer.referencesOf(number)[0];
  return first === undefined
    ? `image ${explorer.data.images.ids[number]}`
    : explorer.data.images.references.text[first];
};
