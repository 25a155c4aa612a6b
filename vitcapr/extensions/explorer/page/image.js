"use strict";
// One image: the picture, the captions of the systems, its references, its neighbours and its scores.

const CANVAS = 480;
const LANGUAGES = new Intl.DisplayNames("en", { type: "language" });

explorer.image = { number: null };

explorer.image.show = (number) => {
  const { image } = explorer;
  const key = explorer.address({ reference: null, caption: "", space: "", stars: [] });
  const same = image.key === key;
  image.key = key;
  image.number = number;
  if (!same) {
    const systems = shownSystems();
    const [width, height] = data.images.sizes[number];
    const rows = Math.max(1, Math.round((CANVAS * height) / width));
    image.canvas = make("canvas", { width: CANVAS, height: rows, "aria-hidden": "true" });
    image.said = make("p", { class: "said", "aria-live": "polite" }, systems.length ? explorer.INVITATION : "");
    const captions = make("div", { class: "captions" }, systems.map((system) => explorer.captionBlock(system, number)));
    image.references = make("div");
    image.neighbours = make("div", { class: "neighbours", id: "neighbours" });
    const stage = make("div", { class: "stage" }, explorer.picture(number, explorer.altOf(number)), image.canvas);
    const large = make("div", { class: "large" }, stage, image.said);
    const texts = make("div", { class: "texts" }, captions, make("h3", {}, "References"), image.references);
    const beside = make("div", { class: "beside" }, large, texts);
    find("image").replaceChildren(heading(number), beside, image.neighbours, scoreTable(systems, number) ?? "");
  } else refreshStar(number);
  showReferences(number);
  showAsked(number);
  if (explorer.space()) {
    const system = explorer.systems.find(({ name }) => name === state.caption);
    const asked = state.reference !== null || system;
    const shown = explorer.neighbours.show(image.neighbours, number, ownReference(number, state.reference), system);
    // The button that was pressed is far from the neighbours.
    shown.then(() => same && asked && image.neighbours.scrollIntoView({ block: "nearest" })).catch(explorer.fail);
  }
  return !same;
};

const refreshStar = (number) => {
  const [old, star] = [find("image").querySelector(".star"), starButton(number)];
  const focused = old === document.activeElement;
  old.replaceWith(star);
  if (focused) star.focus();
};

/** The next image of the selection, or the previous one; from an image that is not in it, the first. */
explorer.image.step = (by) => {
  const found = selection();
  const at = found.indexOf(explorer.image.number);
  const next = at < 0 ? found[0] : found[at + by];
  if (next !== undefined) go({ image: data.images.ids[next] });
};

const ownReference = (number, reference) => (referencesOf(number).includes(reference) ? reference : null);

const heading = (number) => {
  const { image } = explorer;
  const found = selection();
  const at = found.indexOf(number);
  const place =
    at < 0 ? "not among the filtered images" : `${shown(at + 1)} of ${shown(found.length)}`;
  return make(
    "div",
    { class: "bar" },
    make("a", { href: explorer.address({ image: null }), class: "button" }, "← all images"),
    make("h2", { tabindex: "-1", id: "image-title" }, data.images.ids[number]),
    make("span", { class: "note" }, place),
    mapLink(data.images.ids[number]),
    starButton(number),
    make("button", { disabled: at === 0, click: () => image.step(-1) }, "previous"),
    make("button", { disabled: at === found.length - 1, click: () => image.step(1) }, "next"),
  );
};

/** The columns of the systems side by side; the best of a row is marked. */
const scoreTable = (systems, number) => {
  const { columns } = explorer;
  const known = columns.filter(({ name }) => !/:(changed|wrong_(?!claims)|rank@)/.test(name));
  const own = known.filter(({ group }) => systems.some(({ name }) => name === group));
  const rows = [...new Set(own.map(({ label }) => label))].map((label) => {
    const cells = systems.map(({ name }) => own.find((column) => column.group === name && column.label === label));
    const values = cells.map((column) => column?.values[number] ?? null);
    const { better, places } = cells.find(Boolean);
    const present = values.filter((value) => value !== null);
    const best = !better || new Set(present).size < 2 ? NaN : Math[better === "high" ? "max" : "min"](...present);
    return [label, ...values.map((value) => make("td", { class: value === best ? "best" : "" }, shown(value, places)))];
  });
  if (!rows.length) return null;
  const table = explorer.table(["", ...systems.map(({ name }) => name)], rows);
  return make("details", { class: "scores", open: true }, make("summary", {}, "Scores of this image"), table);
};

/** Under each caption that the retrieval model embedded: the rank of the image for it, and a button for its neighbours. */
const showAsked = (number) => {
  for (const place of find("image").querySelectorAll(".ask")) {
    const { system } = place;
    const focused = place.contains(document.activeElement);
    const rank = explorer.space() && explorer.column(`${system.name}:rank@${explorer.space().name}`)?.values[number];
    const chosen = state.caption === system.name;
    const ask = () => go({ caption: chosen ? "" : system.name, reference: null }, true);
    place.replaceChildren();
    if (explorer.isWritten(system) && rank !== null) {
      const title = `rank of the image for this caption in ${explorer.space().name}`;
      const text = `rank ${shown(rank)} · neighbours`;
      place.append(make("button", { "aria-pressed": String(chosen), title, click: ask }, text));
    }
    if (focused) place.querySelector("button")?.focus();
  }
};

/** The references; those in further languages are folded. */
const showReferences = (number) => {
  const { image } = explorer;
  const { language } = data.images.references;
  const groups = new Map();
  for (const reference of referencesOf(number)) {
    const tongue = language ? language[reference] : "";
    groups.set(tongue, [...(groups.get(tongue) ?? []), reference]);
  }
  const focused = [...image.references.querySelectorAll("button")].indexOf(document.activeElement);
  const lists = [...groups].map(([tongue, references], place) => {
    const items = references.map((reference) => make("li", {}, referenceButton(reference)));
    const list = make("ol", { class: "references", lang: tongue || null }, items);
    if (!place) return list;
    const summary = make("summary", {}, `${references.length} in ${LANGUAGES.of(tongue)}`);
    return make("details", { open: references.includes(state.reference) }, summary, list);
  });
  image.references.replaceChildren(...lists);
  if (focused >= 0) image.references.querySelectorAll("button")[focused]?.focus();
};

/** A reference; pressed, its neighbours are shown. */
const referenceButton = (reference) => {
  const text = data.images.references.text[reference];
  if (!explorer.space()) return text;
  const chosen = reference === state.reference;
  const ask = () => go({ reference: chosen ? null : reference, caption: "" }, true);
  const attributes = { class: "reference", "aria-pressed": String(chosen), title: "show its neighbours", click: ask };
  return make("button", attributes, text);
};
