"use strict";
// The scores of the whole split, a table for each group.

explorer.scores = {};

explorer.scores.show = () => {
  const { make, data } = explorer;
  const rows = [...data.overview.systems, ...data.overview.spaces];
  const groups = [...new Set(rows.flatMap(({ scores }) => scores.map(({ group }) => group)))];
  const tables = groups.map((group) => {
    const here = rows.filter(({ scores }) => scores.some((score) => score.group === group));
    const scores = new Map(
      here.flatMap((row) =>
        row.scores.filter((score) => score.group === group).map(({ name, label }) => [name, label]),
      ),
    );
    const cell = (row, name) => {
      const score = row.scores.find((one) => one.name === name);
      return score ? [score.text, score.interval ? make("small", {}, score.interval) : null] : "";
    };
    return make(
      "div",
      { class: "wide" },
      make(
        "table",
        {},
        make("caption", {}, group),
        make(
          "thead",
          {},
          make(
            "tr",
            {},
            make("td"),
            [...scores.values()].map((label) => make("th", { scope: "col" }, label)),
          ),
        ),
        make(
          "tbody",
          {},
          here.map((row) =>
            make(
              "tr",
              {},
              make("th", { scope: "row" }, row.name),
              [...scores.keys()].map((name) => make("td", {}, cell(row, name))),
            ),
          ),
        ),
      ),
    );
  });
  const note = "Of the whole split; below each score, its 95 % interval over the images.";
  explorer
    .find("scores")
    .replaceChildren(
      make("p", { class: "note" }, groups.length ? note : "The experiments have no scores of this split."),
      ...tables,
    );
};
