"use strict";
// Files of the images that fit the filters, in their order. The browser makes them; nothing leaves this machine.

/** A menu of the files. */
explorer.exportMenu = () => {
  const { make } = explorer;
  const systems = explorer.shownSystems();
  const menu = make(
    "select",
    { "aria-label": "Export", change: () => exportFile(menu) },
    make("option", { value: "" }, "Export these images …"),
    make("option", { value: "csv" }, "ids, captions and the sorting number (CSV)"),
    systems.map(({ name }) => make("option", { value: name }, `captions of ${name} (JSON for vitcapr evaluate)`)),
  );
  return menu;
};

const exportFile = (menu) => {
  const system = explorer.systems.find(({ name }) => name === menu.value);
  const { title, split } = explorer.data.overview;
  const name = [title, split, system?.name ?? "images"].join(" ").replace(/[^\p{L}\p{N}.-]+/gu, "-");
  if (system) save(`${name}.json`, "application/json", JSON.stringify(cocoResults(system), null, 1));
  else save(`${name}.csv`, "text/csv", csv());
  menu.value = "";
};

/** COCO's format of results, without the images that the system did not caption. */
const cocoResults = (system) => {
  const { ids, captions } = explorer.data.images;
  return explorer
    .selection()
    .filter((number) => captions[system.place][number] !== null)
    .map((number) => ({ image_id: ids[number], caption: captions[system.place][number] }));
};

/** A row for each image: its id, the number that sorts, and the caption of each shown system. */
const csv = () => {
  const { ids, captions } = explorer.data.images;
  const column = explorer.column(explorer.state.sort);
  const systems = explorer.shownSystems();
  const head = ["image_id", ...(column ? [explorer.columnTitle(column)] : []), ...systems.map(({ name }) => name)];
  const rows = explorer
    .selection()
    .map((number) => [
      ids[number],
      ...(column ? [column.values[number]] : []),
      ...systems.map(({ place }) => captions[place][number]),
    ]);
  const field = (value) => (/[",\r\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : (value ?? ""));
  return [head, ...rows].map((row) => `${row.map(field).join(",")}\r\n`).join("");
};

const save = (name, type, content) => {
  const address = URL.createObjectURL(new Blob([content], { type }));
  explorer.make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
};
