"use strict";
// The numbers of each image, and menus to choose one of them.

const columns = data.overview.columns.map((column, place) => ({
  ...column,
  values: data.images.values[place],
}));
const columnOf = new Map(columns.map((column) => [column.name, column]));

/** The images that the reader starred, as numbers like any others. */
const stars = { name: "starred", label: "starred", group: "yours", better: "", places: 0, values: [] };
columns.push(stars);
columnOf.set(stars.name, stars);
explorer.readStars = () => {
  const chosen = new Set(state.stars);
  stars.values = data.images.ids.map((id) => Number(chosen.has(id)));
};
explorer.turnStar = (number) => {
  const id = data.images.ids[number];
  const others = state.stars.filter((other) => other !== id);
  go({ stars: others.length < state.stars.length ? others : [...others, id] }, true);
};
const starButton = (number) => {
  const on = state.stars.includes(data.images.ids[number]);
  const turn = () => explorer.turnStar(number);
  const name = `Star ${data.images.ids[number]}`;
  const attributes = { class: "star", "aria-pressed": String(on), "aria-label": name, title: "Star (s)", click: turn };
  return make("button", attributes, on ? "★" : "☆");
};

explorer.columns = columns;
explorer.column = (name) => columnOf.get(name) ?? differenceOf(name);

/** "A:cider − B:cider": the score of system A minus that of system B. */
const MINUS = " − ";
explorer.MINUS = MINUS;
const differenceOf = (name) => {
  const [one, other] = name.split(MINUS).map((part) => columnOf.get(part));
  if (!one || !other) return undefined;
  const values = one.values.map((value, image) =>
    value === null || other.values[image] === null ? null : Number((value - other.values[image]).toFixed(6)),
  );
  const column = { ...one, name, group: one.group + MINUS + other.group, values };
  columnOf.set(name, column);
  return column;
};

/** A menu of what is subtracted from a column: the same score of another system; null where there is none. */
const minusMenu = (chosen, change, label) => {
  const [first, second = ""] = chosen.split(MINUS);
  const column = columnOf.get(first);
  if (!column) return null;
  const key = (one) => one.name.slice(one.group.length);
  const others = columns.filter((other) => other.group !== column.group && key(other) === key(column));
  if (!others.length) return null;
  const options = [["", "minus nothing"], ...others.map(({ name, group }) => [name, `minus ${group}`])];
  return explorer.menu(label, options, (other) => change(other ? first + MINUS + other : first), second);
};

/** Images' numbers by their ids, and their references. */
const numberOf = new Map(data.images.ids.map((id, number) => [id, number]));
explorer.numberOf = (id) => numberOf.get(id);
const references = data.images.ids.map(() => []);
data.images.references.image.forEach((image, reference) => references[image].push(reference));
const referencesOf = (number) => references[number];

/** The systems that are shown, with their places and colours. */
explorer.systems = data.overview.systems.map((system, place) => ({ ...system, place, colour: place % 7 }));
const shownSystems = () => explorer.systems.filter((system) => !state.hidden.includes(system.name));

/** A menu of all columns; of a difference, it shows the first. */
const columnMenu = (chosen, change, none, label) => {
  const options = [["", none], ...columns.map((column) => [column.name, columnTitle(column)])];
  return explorer.menu(label, options, change, chosen.split(MINUS)[0]);
};

/** "CIDEr · attention, beam". */
const columnTitle = (column) => `${column.label} · ${column.group}`;
explorer.valueOf = (column, number) => shown(column.values[number], column.places);
