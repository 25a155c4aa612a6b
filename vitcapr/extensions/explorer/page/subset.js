"use strict";
// The scores of the images that fit the filters: means with intervals, and the differences from the first system.

const MOST = 4; // systems side by side
const FEWEST = 10; // images from which the normal approximation holds roughly
const FAR = 1.96; // standard errors to each end of a 95 % interval

const subset = {};

/** The mean of numbers, and its 95 % interval by the normal approximation; no interval for few numbers. */
subset.mean = (values) => {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const error = Math.sqrt(squares / (values.length - 1) / values.length);
  return values.length < FEWEST ? { mean } : { mean, low: mean - FAR * error, high: mean + FAR * error };
};

/** The scores that are means over images, by their label: the numbers of each system or model by its name. */
const groups = () => {
  const shown = new Set(shownSystems().map(({ name }) => name));
  const found = new Map();
  for (const column of explorer.columns.filter(({ mean, group }) => mean && (mean === "rank" || shown.has(group)))) {
    const label = column.mean === "rank" ? "I→T R@1" : column.label;
    if (!found.has(label)) found.set(label, []);
    const values = column.mean === "rank" ? column.values.map((rank) => rank && 100 * (rank === 1)) : column.values;
    if (found.get(label).length < MOST) found.get(label).push({ ...column, values, places: column.mean === "rank" ? 1 : 2 });
  }
  return found;
};

const cell = (one, first, images) => {
  const known = images.filter((image) => one.values[image] !== null && first.values[image] !== null);
  if (!known.length) return "–";
  const text = ({ mean, low, high }, sign = "") => {
    const number = (value) => `${sign && value > 0 ? "+" : ""}${shown(Number(value.toFixed(one.places)) || 0, one.places)}`;
    return [number(mean), low === undefined ? "" : make("small", {}, ` ${number(low)} to ${number(high)}`)];
  };
  const own = text(subset.mean(known.map((image) => one.values[image])));
  if (one === first) return make("td", {}, own);
  const difference = subset.mean(known.map((image) => one.values[image] - first.values[image]));
  return make("td", {}, own, make("div", {}, "difference ", text(difference, "+")));
};

subset.show = () => {
  const [place, images] = [find("subset"), selection()];
  const summary = place.querySelector("summary") ?? make("summary");
  summary.textContent = `Scores of these ${shown(images.length)} images`;
  const details = place.querySelector("details") ?? make("details", { toggle: () => subset.show() }, summary);
  if (!details.parentNode) place.append(details);
  if (!details.open) return details.replaceChildren(summary);
  const kinds = new Map();
  for (const [label, several] of groups()) {
    const heads = several.map(({ group }) => group).join("\n");
    kinds.set(heads, [...(kinds.get(heads) ?? []), [label, several]]);
  }
  const tables = [...kinds.values()].map((rows) => {
    const lines = rows.map(([label, several]) => [label, ...several.map((one) => cell(one, several[0], images))]);
    return explorer.table(["", ...rows[0][1].map(({ group }) => group)], lines);
  });
  const note = `Means over the images, with 95 % intervals by the normal approximation, and paired differences from the first column; no interval below ${FEWEST} images. A filter by a score moves the mean of this score. At most ${MOST} systems: hide others among the filters.`;
  details.replaceChildren(summary, ...(images.length ? tables : []), make("p", { class: "note" }, note));
};
