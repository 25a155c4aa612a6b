"use strict";
// What is shown is in the address behind '#', so that every view has a link and the browser's "back" works.

const START = {
  image: null,
  view: "images",
  words: "",
  where: "all",
  sort: "",
  down: false,
  page: 1,
  conditions: [],
  hidden: [],
  space: "",
  reference: null,
  caption: "",
  colour: "",
  lasso: "",
  at: null,
  stars: [],
};

/** The parts of the state that the address repeats, by their names there. */
const LISTS = { conditions: "if", hidden: "without", stars: "star" };

let state = { ...START };

/** Read the state from the address. */
explorer.readState = () => {
  const given = new URLSearchParams(location.hash.slice(1));
  const number = (name, otherwise) => (/^\d+$/.test(given.get(name) ?? "") ? Number(given.get(name)) : otherwise);
  state = {
    image: given.get("image"),
    view: given.get("view") ?? START.view,
    words: given.get("words") ?? "",
    where: given.get("where") ?? START.where,
    sort: given.get("sort") ?? "",
    down: given.has("down"),
    page: number("page", 1),
    conditions: given.getAll("if").map(readCondition),
    hidden: given.getAll("without"),
    space: given.get("space") ?? "",
    reference: number("reference", null),
    caption: given.get("caption") ?? "",
    colour: given.get("colour") ?? "",
    lasso: given.get("lasso") ?? "",
    at: given.get("at"),
    stars: given.getAll("star"),
  };
};

/** A bound that is not there is null. */
const readCondition = (text) => {
  const [low, high, ...name] = text.split("~");
  const bound = (given) => (given === "" || !Number.isFinite(Number(given)) ? null : Number(given));
  return { low: bound(low), high: bound(high), name: name.join("~") };
};

/** The address of the present state with some changes. What was asked of an image ends with it. */
explorer.address = (changes) => {
  const asked = "image" in changes ? { reference: null, caption: "" } : {};
  const next = { ...state, ...asked, ...changes };
  const given = new URLSearchParams();
  for (const name of Object.keys(START))
    if (name !== "down" && !LISTS[name] && next[name] !== START[name] && next[name] !== null)
      given.set(name, next[name]);
  if (next.down) given.set("down", "");
  const written = { ...next, conditions: next.conditions.map((one) => `${one.low ?? ""}~${one.high ?? ""}~${one.name}`) };
  for (const [list, name] of Object.entries(LISTS)) for (const one of written[list]) given.append(name, one);
  return `#${given}`;
};

/** Show another state. Filters replace the entry of the browser's history; views and images add one. */
const go = (changes, replace = false) => {
  const address = explorer.address(changes);
  if (address === (location.hash || "#")) return;
  if (replace) location.replace(address);
  else location.hash = address;
};

/** Filter or sort otherwise: back on the first page. */
const refine = (changes) => go({ page: 1, ...changes }, true);
