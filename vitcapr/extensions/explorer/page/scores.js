"use strict";
// The scores of the whole split, a table for each group.

const scores = {};

scores.show = () => {
  const rows = [...data.overview.systems, ...data.overview.spaces];
  const groups = [...new Set(rows.flatMap(({ scores }) => scores.map(({ group }) => group)))];
  const tables = groups.map((group) => {
    const here = rows.filter(({ scores }) => scores.some((score) => score.group === group));
    const own = here.flatMap((row) => row.scores.filter((score) => score.group === group));
    const labels = new Map(own.map(({ name, label }) => [name, label]));
    const cell = (row, name) => {
      const score = row.scores.find((one) => one.name === name);
      const interval = score?.interval ? make("small", {}, score.interval) : null;
      return make("td", {}, score ? [make(score.best ? "b" : "span", {}, score.text), interval] : null);
    };
    const lines = here.map((row) => [row.name, ...[...labels.keys()].map((name) => cell(row, name))]);
    return explorer.table(["", ...labels.values()], lines, group);
  });
  const note = "Of the whole split; below each score, its 95 % interval over the images. The best of a column is bold, oracles left out.";
  const text = groups.length ? note : "The experiments have no scores of this split.";
  find("scores").replaceChildren(make("p", { class: "note" }, text), ...tables);
};
