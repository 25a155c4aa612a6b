"use strict";
// What lies next to an image or to a reference in the space of a retrieval model; the wrong first match beside the true
// one.

explorer.neighbours = {};

/** The retrieval model that is shown: its place and name. */
explorer.space = () => {
  const { spaces } = data.overview;
  const place = Math.max(0, spaces.findIndex(({ name }) => name === state.space));
  return spaces.length ? { ...spaces[place], place } : null;
};

explorer.spaceMenu = () => {
  const options = data.overview.spaces.map(({ name }) => [name, name]);
  return explorer.menu("Retrieval model", options, (space) => go({ space }, true), explorer.space().name);
};

/** The systems whose captions a retrieval model embedded. */
explorer.isWritten = (system) => explorer.space()?.written.includes(system.name);

/** The images most similar to an image in a space; none if the model did not embed it. */
explorer.similarImages = async (space, number) => {
  const { part } = data.overview;
  const content = await explorer.load(`neighbours-${space.place}-${Math.floor(number / part)}`);
  return content.images[number % part]?.images.map(([image]) => image) ?? null;
};

/** Fill `place` with the neighbours of an image, of one of its references, or of the caption of a system. */
explorer.neighbours.show = async (place, number, reference, system) => {
  const space = explorer.space();
  const part = Math.floor(number / data.overview.part);
  const content = await explorer.load(`neighbours-${space.place}-${part}`);
  const ofWritten =
    system && explorer.isWritten(system) ? await explorer.load(`written-${space.place}-${system.place}-${part}`) : null;
  const here = number % data.overview.part;
  const text = system
    ? data.images.captions[system.place][number]
    : reference === null
      ? null
      : data.images.references.text[reference];
  const subject = make("span", {}, text === null ? "the image" : `“${text}”`);
  const title = make("h3", { tabindex: "-1" }, "Neighbours of ", subject, " in the space of ", explorer.spaceMenu());
  const back = () => go({ reference: null, caption: "" }, true);
  if (text !== null) title.append(" ", make("button", { click: back }, "ask with the image"));
  place.replaceChildren(title);
  const found = system
    ? ofWritten?.images[here]
    : reference === null
      ? content.images[here]
      : content.references[reference];
  if (!found) place.append(make("p", { class: "note" }, "This model did not embed it."));
  else place.append(...(text === null ? ofImage(number, found) : ofText(found)));
};

/** The other references and images that are near to an image. */
const ofImage = (number, { captions, images, own, rank }) => {
  const owner = (reference) => data.images.references.image[reference];
  const wrong = captions.find(([reference]) => owner(reference) !== number);
  const facts = [];
  if (own) facts.push(match(owner(own[0]), own, rank, true, data.images.references.text[own[0]]));
  if (wrong)
    facts.push(match(owner(wrong[0]), wrong, rank === 1 ? null : 1, false, data.images.references.text[wrong[0]]));
  if (rank > 1) facts.reverse();
  const lines = captions.map(([reference, cosine]) => {
    const href = explorer.address({ image: data.images.ids[owner(reference)], reference });
    const verdict = owner(reference) === number ? "right" : "wrong";
    return make("li", { class: verdict }, make("a", { href }, data.images.references.text[reference]), cosineOf(cosine));
  });
  return [
    make("div", { class: "matches" }, facts),
    make("h4", {}, "Nearest captions"),
    make("ol", { class: "texts" }, lines),
    make("h4", {}, "Nearest images"),
    thumbnails(images, null),
  ];
};

/** The images that are near to a reference or a caption. */
const ofText = ({ images, own, rank }) => {
  const wrong = images.find(([image]) => image !== own[0]);
  const facts = [match(own[0], own, rank, true, null)];
  if (wrong) facts.push(match(wrong[0], wrong, rank === 1 ? null : 1, false, null));
  if (rank > 1) facts.reverse();
  return [make("div", { class: "matches" }, facts), make("h4", {}, "Nearest images"), thumbnails(images, own[0])];
};

/** The true match or a wrong one, large. `rank` is null for a wrong one behind the true one. */
const match = (image, [, cosine], rank, right, text) => {
  const title = right ? `true match, rank ${rank}` : rank === 1 ? "first match, wrong" : "nearest wrong match";
  const verdict = make("p", { class: "verdict" }, right ? "✓ " : "✗ ", title, cosineOf(cosine));
  const caption = text === null ? null : make("figcaption", {}, text);
  return make("figure", { class: `match ${right ? "right" : "wrong"}` }, verdict, openingPicture(image), caption);
};

const thumbnails = (images, own) => {
  const items = images.map(([image, cosine]) => {
    const [verdict, mark] = own === null ? ["", ""] : image === own ? ["right", "✓ "] : ["wrong", "✗ "];
    return make("li", { class: verdict }, openingPicture(image), cosineOf(cosine, mark));
  });
  return make("ol", { class: "thumbnails" }, items);
};

const cosineOf = (cosine, mark = "") => make("span", { class: "cosine" }, `${mark}cosine ${cosine.toFixed(3)}`);
