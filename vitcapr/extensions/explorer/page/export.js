"use strict";
// Files of the images that fit the filters, in their order. The browser makes them; nothing leaves this machine.

/** A list of the files, to be opened. */
explorer.exportMenu = () => {
  const files = [
    ["ids, captions, stars and the sorting number (CSV)", null],
    ...shownSystems().map((system) => [`captions of ${system.name} (JSON for vitcapr evaluate)`, system]),
  ];
  const entries = files.map(([text, system]) => make("button", { click: () => exportFile(system) }, text));
  return make("details", { class: "menu" }, make("summary", { class: "button" }, "Export"), make("div", {}, entries));
};

const exportFile = (system) => {
  const { title, split } = data.overview;
  const name = [title, split, system?.name ?? "images"].join(" ").replace(/[^\p{L}\p{N}.-]+/gu, "-");
  if (system) save(`${name}.json`, "application/json", JSON.stringify(cocoResults(system), null, 1));
  else save(`${name}.csv`, "text/csv", csv());
};

/** COCO's format of results, without the images that the system did not caption. */
const cocoResults = (system) => {
  const { ids, captions } = data.images;
  return selection()
    .filter((number) => captions[system.place][number] !== null)
    .map((number) => ({ image_id: ids[number], caption: captions[system.place][number] }));
};

/** A row for each image: its id, whether it has a star, the number that sorts, and the caption of each shown system. */
const csv = () => {
  const { ids, captions } = data.images;
  const columns = [explorer.column("starred"), explorer.column(state.sort)].filter(Boolean);
  const systems = shownSystems();
  const head = ["image_id", ...columns.map(columnTitle), ...systems.map(({ name }) => name)];
  const cells = (number) => [...columns.map(({ values }) => values[number]), ...systems.map(({ place }) => captions[place][number])];
  const rows = selection().map((number) => [ids[number], ...cells(number)]);
  // A spreadsheet computes a text that begins like a formula.
  const text = (value) => (typeof value === "string" ? value.replace(/^[=+\-@\t\r]/, "'$&") : value);
  const field = (value) => (/[",\r\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : (value ?? ""));
  return [head, ...rows].map((row) => `${row.map(text).map(field).join(",")}\r\n`).join("");
};

const save = (name, type, content) => {
  const address = URL.createObjectURL(new Blob([content], { type }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
};
