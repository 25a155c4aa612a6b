"use strict";
// Words: searching in them, and marking what a reranking changed.

const LETTER = /[\p{L}\p{N}]/u;
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;

/** Terms of a query: words, "several words", and -words that must not be there. Curly quotation marks are straightened. */
explorer.terms = (query) =>
  [...query.toLowerCase().replace(/[“”„‟«»]/g, '"').matchAll(/(-?)(?:"([^"]+)"|([^\s"]+))/g)].map(([, minus, quoted, word]) => ({
    without: minus === "-",
    text: quoted ?? word,
  }));

/** Whether a text in lower case has a term at the beginning of a word. */
explorer.hasTerm = (text, term) => {
  for (let at = text.indexOf(term); at >= 0; at = text.indexOf(term, at + 1))
    if (at === 0 || !LETTER.test(text[at - 1]) || UNSPACED.test(term[0])) return true;
  return false;
};

/** The places of the words that a reranking added to the caption of its base. */
explorer.addedWords = (system, number) => new Set(data.images.added[system.place]?.[number]);

/** The words of a caption that claim something wrong: by their places, what is true. */
explorer.wrongWords = (system, number) => new Map(data.images.wrong[system.place]?.[number] ?? []);

/** A wrong word; pointed at or reached with the Tab key, it says what is true. */
const wrongWord = (word, truth) =>
  make("span", { class: "false", tabindex: 0, role: "note", "aria-label": `${word}: ${truth}`, "data-truth": truth }, word);

/** The caption of a system in elements; words that its reranking added are marked, and wrong ones. */
const captionOf = (system, number) => {
  const caption = data.images.captions[system.place][number];
  if (caption === null) return [make("span", { class: "faint" }, "no caption")];
  if (caption === "") return [make("span", { class: "faint" }, "an empty caption")];
  const [added, wrong] = [explorer.addedWords(system, number), explorer.wrongWords(system, number)];
  return caption.split(" ").map((word, place) => {
    const shown = wrong.has(place) ? wrongWord(word, wrong.get(place)) : word;
    return [place ? " " : "", added.has(place) ? make("ins", {}, shown) : shown];
  });
};
