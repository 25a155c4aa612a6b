"use strict";
// The numbers of each image, and menus to choose one of them.

const columns = explorer.data.overview.columns.map((column, place) => ({
  ...column,
  values: explorer.data.images.values[place],
}));
const columnOf = new Map(columns.map((column) => [column.name, column]));

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
explorer.minusMenu = (chosen, change, label) => {
  const { make } = explorer;
  const [first, second = ""] = chosen.split(MINUS);
  const column = columnOf.get(first);
  if (!column) return null;
  const key = (one) => one.name.slice(one.group.length);
  const others = columns.filter((other) => other.group !== column.group && key(other) === key(column));
  if (!others.length) return null;
  const menu = make(
    "select",
    { "aria-label": label, change: () => change(menu.value ? first + MINUS + menu.value : first) },
    make("option", { value: "" }, "minus nothing"),
    others.map((other) => make("option", { value: other.name }, `minus ${other.group}`)),
  );
  menu.value = second;
  return menu;
};

/** Images' numbers by their ids, and their references. */
const numberOf = new Map(explorer.data.images.ids.map((id, number) => [id, number]));
explorer.numberOf = (id) => numberOf.get(id);
const references = explorer.data.images.ids.map(() => []);
explorer.data.images.references.image.forEach((image, reference) => references[image].push(reference));
explorer.referencesOf = (number) => references[number];

/** The systems that are shown, with their places and colours. */
explorer.systems = explorer.data.overview.systems.map((system, place) => ({ ...system, place, colour: place % 7 }));
explorer.shownSystems = () => explorer.systems.filter((system) => !explorer.state.hidden.includes(system.name));

/** A menu of all columns, grouped by system; of a difference, it shows the first. */
explorer.columnMenu = (chosen, change, none, label) => {
  const { make } = explorer;
  const groups = new Map();
  for (const column of columns) {
    if (!groups.has(column.group)) groups.set(column.group, []);
    groups.get(column.group).push(make("option", { value: column.name }, column.label));
  }
  const menu = make(
    "select",
    { "aria-label": label, change: () => change(menu.value) },
    none === null ? null : make("option", { value: "" }, none),
    [...groups].map(([name, options]) => make("optgroup", { label: name }, options)),
  );
  [menu.value] = chosen.split(MINUS);
  return menu;
};

/** "CIDEr of attention/beam". */
explorer.columnTitle = (column) => `${column.label} · ${column.group}`;
