"use strict";
// What lies next to an image or to a reference in the space of a retrieval model; the wrong first match beside the true
// one.

explorer.neighbours = {};

/** The retrieval model that is shown: its place and name. */
explorer.space = () => {
  const { spaces } = explorer.data.overview;
  const place = Math.max(
    0,
    spaces.findIndex(({ name }) => name === explorer.state.space),
  );
  return spaces.length ? { ...spaces[place], place } : null;
};

explorer.spaceMenu = () => {
  const { make } = explorer;
  const { spaces } = explorer.data.overview;
  const menu = make(
    "select",
    { "aria-label": "Retrieval model", change: () => explorer.go({ space: menu.value }, true) },
    spaces.map(({ name }) => make("option", { value: name }, name)),
  );
  menu.value = explorer.space().name;
  return menu;
};

/** The systems whose captions a retrieval model embedded. */
explorer.isWritten = (system) => explorer.space()?.written.includes(system.name);

/** Fill `place` with the neighbours of an image, of one of its references, or of the caption of a system. */
explorer.neighbours.show = async (place, number, reference, system) => {
  const { make, data } = explorer;
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
  const back =
    text === null
      ? null
      : [
          " ",
          make(
            "button",
            { type: "button", click: () => explorer.go({ reference: null, caption: "" }, true) },
            "ask with the image",
          ),
        ];
  place.replaceChildren(
    make(
      "h3",
      { tabindex: "-1" },
      "Neighbours of ",
      make("span", {}, text === null ? "the image" : `“${text}”`),
      " in the space of ",
      explorer.spaceMenu(),
      back,
    ),
  );
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
  const { make, data } = explorer;
  const owner = (reference) => data.images.references.image[reference];
  const wrong = captions.find(([reference]) => owner(reference) !== number);
  const facts = [];
  if (own) facts.push(match(owner(own[0]), own, rank, true, data.images.references.text[own[0]]));
  if (wrong)
    facts.push(match(owner(wrong[0]), wrong, rank === 1 ? null : 1, false, data.images.references.text[wrong[0]]));
  if (rank > 1) facts.reverse();
  const lines = captions.map(([reference, cosine]) =>
    make(
      "li",
      { class: owner(reference) === number ? "right" : "wrong" },
      make("a", { href: addressOf(owner(reference), reference) }, data.images.references.text[reference]),
      make("span", { class: "cosine" }, shownCosine(cosine)),
    ),
  );
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
  const { make } = explorer;
  const wrong = images.find(([image]) => image !== own[0]);
  const facts = [match(own[0], own, rank, true, null)];
  if (wrong) facts.push(match(wrong[0], wrong, rank === 1 ? null : 1, false, null));
  if (rank > 1) facts.reverse();
  return [make("div", { class: "matches" }, facts), make("h4", {}, "Nearest images"), thumbnails(images, own[0])];
};

/** The true match or a wrong one, large. `rank` is null for a wrong one behind the true one. */
const match = (image, [, cosine], rank, right, text) => {
  const { make, data } = explorer;
  const title = right ? `true match, rank ${rank}` : rank === 1 ? "first match, wrong" : "nearest wrong match";
  return make(
    "figure",
    { class: `match ${right ? "right" : "wrong"}` },
    make("p", { class: "verdict" }, right ? "✓ " : "✗ ", title, make("span", { class: "cosine" }, shownCosine(cosine))),
    make(
      "a",
      { href: addressOf(image, null), "aria-label": `Open image ${data.images.ids[image]}` },
      explorer.picture(image, explorer.altOf(image)),
    ),
    text === null ? null : make("figcaption", {}, text),
  );
};

const thumbnails = (images, own) => {
  const { make, data } = explorer;
  return make(
    "ol",
    { class: "thumbnails" },
    images.map(([image, cosine]) =>
      make(
        "li",
        { class: own === null ? "" : image === own ? "right" : "wrong" },
        make(
          "a",
          { href: addressOf(image, null), "aria-label": `Open image ${data.images.ids[image]}` },
          explorer.picture(image, explorer.altOf(image)),
        ),
        make("span", { class: "cosine" }, own === null ? "" : image === own ? "✓ " : "✗ ", shownCosine(cosine)),
      ),
    ),
  );
};

const shownCosine = (cosine) => `cosine ${cosine.toFixed(3)}`;
const addressOf = (image, reference) => explorer.address({ image: explorer.data.images.ids[image], reference });
