"use strict";
// Which images fit the filters, and in which order.

let texts = null;

/** The captions and the references of each image in lower case. */
const searched = () => {
  if (texts) return texts;
  const { captions, references, ids } = data.images;
  const systems = shownSystems();
  const searchable = (lines) => lines.join("\n").toLowerCase();
  texts = {
    captions: ids.map((_, number) => searchable(systems.map(({ place }) => captions[place][number] ?? ""))),
    references: ids.map((_, number) => searchable(referencesOf(number).map((one) => references.text[one]))),
  };
  return texts;
};

let hidden = "";
let last = { key: null, found: [] };

/** The numbers of the images that fit, sorted. Images without a value of the sorting column come last. */
const selection = () => {
  const { words, where, conditions, sort, down, lasso, stars } = state;
  if (hidden !== String(state.hidden)) {
    hidden = String(state.hidden);
    texts = null;
  }
  const key = JSON.stringify([words, where, conditions, sort, down, lasso, stars, hidden]);
  if (key === last.key) return last.found;
  const found = fitting();
  const column = explorer.column(sort);
  if (column) {
    const { values } = column;
    const sign = down ? -1 : 1;
    found.sort((one, other) => {
      if (values[one] === null || values[other] === null) return (values[one] === null) - (values[other] === null);
      return sign * (values[one] - values[other]) || one - other;
    });
  }
  last = { key, found };
  return found;
};

/** The numbers of the images that fit all filters but the condition at a place. */
const fitting = (but = -1) => {
  const { words, where, conditions } = state;
  const [terms, others] = [explorer.terms(words), conditions.filter((_, place) => place !== but)];
  const fits = (number) => explorer.lasso.has(number) && others.every((one) => meets(one, number)) && hasTerms(terms, where, number);
  return [...data.images.ids.keys()].filter(fits);
};
explorer.fitting = fitting;

const meets = ({ name, low, high }, number) => {
  const column = explorer.column(name);
  if (!column || (low === null && high === null)) return true;
  const value = column.values[number];
  return value !== null && (low === null || value >= low) && (high === null || value <= high);
};

const hasTerms = (terms, where, number) => {
  if (!terms.length) return true;
  const { captions, references } = searched();
  const in_ = { captions: captions[number], references: references[number] }[where];
  const text = in_ ?? `${captions[number]}\n${references[number]}`;
  return terms.every((term) => explorer.hasTerm(text, term.text) !== term.without);
};
