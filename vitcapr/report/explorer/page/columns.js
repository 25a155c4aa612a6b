"use strict";
// The numbers of each image, and menus to choose one of them.

const columns = explorer.data.overview.columns.map((column, place) => ({
  ...column,
  values: explorer.data.images.values[place],
}));
const columnOf = new Map(columns.map((column) => [column.name, column]));

explorer.columns = columns;
explorer.column = (name) => columnOf.get(name);

/** Images' numbers by their ids, and their references. */
const numberOf = new Map(explorer.data.images.ids.map((id, number) => [id, number]));
explorer.numberOf = (id) => numberOf.get(id);
const references = explorer.data.images.ids.map(() => []);
explorer.data.images.references.image.forEach((image, reference) => references[image].push(reference));
explorer.referencesOf = (number) => references[number];

/** The systems that are shown, with their places and colours. */
explorer.systems = explorer.data.overview.systems.map((system, place) => ({ ...system, place, colour: place % 7 }));
explorer.shownSystems = () => explorer.systems.filter((system) => !explorer.state.hidden.includes(system.name));

/** A menu of all columns, grouped by system. */
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
  menu.value = chosen;
  return menu;
};

/** "CIDEr of attention/beam". */
explorer.columnTitle = (column) => `${column.label} · ${column.group}`;
