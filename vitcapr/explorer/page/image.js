"use strict";
// One image: its captions side by side, where the captioner looked, scores, claims, candidates, references, neighbours.

const CANVAS = 480;

explorer.image = { number: null };

explorer.image.show = (number) => {
  const { make, data, image, state } = explorer;
  const key = explorer.address({ reference: null, caption: "", space: "" });
  const same = image.key === key;
  image.key = key;
  image.number = number;
  if (!same) {
    const systems = explorer.shownSystems();
    const [width, height] = data.images.sizes[number];
    image.canvas = make("canvas", { width: CANVAS, height: Math.max(1, Math.round((CANVAS * height) / width)), "aria-hidden": "true" });
    image.said = make("p", { class: "said", "aria-live": "polite" }, "");
    const captions = make("div", { class: "captions" }, systems.map((system) => systemBlock(system, number)));
    image.references = make("div");
    image.neighbours = make("div", { class: "neighbours", id: "neighbours" });
    explorer.find("image").replaceChildren(
      heading(number),
      make(
        "div",
        { class: "beside" },
        make("div", { class: "large" }, make("div", { class: "stage" }, explorer.picture(number, explorer.altOf(number)), image.canvas), image.said),
        make("div", { class: "texts" }, captions, make("h3", {}, "References"), image.references),
      ),
      image.neighbours,
      scoreTable(systems, number) ?? "",
    );
  }
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

/** The next image of the selection, or the previous one; from an image that is not in it, the first. */
explorer.image.step = (by) => {
  const found = explorer.selection();
  const at = found.indexOf(explorer.image.number);
  const next = at < 0 ? found[0] : found[at + by];
  if (next !== undefined) explorer.go({ image: explorer.data.images.ids[next] });
};

const ownReference = (number, reference) => (explorer.referencesOf(number).includes(reference) ? reference : null);

const heading = (number) => {
  const { make, image, data } = explorer;
  const found = explorer.selection();
  const at = found.indexOf(number);
  const place = at < 0 ? "not among the filtered images" : `${explorer.shown(at + 1)} of ${explorer.shown(found.length)}`;
  return make(
    "div",
    { class: "bar" },
    make("a", { href: explorer.address({ image: null }), class: "button" }, "← all images"),
    make("h2", { tabindex: "-1", id: "image-title" }, data.images.ids[number]),
    make("span", { class: "note" }, place),
    make("button", { type: "button", disabled: at === 0, click: () => image.step(-1) }, "previous"),
    make("button", { type: "button", disabled: at === found.length - 1, click: () => image.step(1) }, "next"),
  );
};

const systemBlock = (system, number) => {
  const { make, data } = explorer;
  const title = make("h3", {}, make("span", { class: `mark system-${system.colour}` }), system.name, system.oracle ? make("small", {}, " upper bound, chosen with the references") : null);
  const caption = make("p", { class: "words" }, explorer.captionOf(system, number));
  const more = make("div");
  const ask = make("p", { class: "ask" });
  ask.system = system;
  const block = make("section", { class: `system system-${system.colour}`, "aria-label": system.name }, title, caption, ask, more);
  if (data.images.captions[system.place][number] !== null)
    explorer
      .load(detailsKey(system.place, number))
      .then(async (content) => {
        const details = content.images[number % data.overview.part];
        if (!details) return;
        if (details.attention_of !== undefined) {
          const other = await explorer.load(detailsKey(details.attention_of, number));
          details.attention = other.images[number % data.overview.part].attention;
        }
        if (details.tokens.length) caption.replaceWith(words(system, number, details));
        more.replaceChildren(...claims(details), ...candidates(details));
      })
      .catch(explorer.fail);
  return block;
};

const detailsKey = (place, number) => `details-${place}-${Math.floor(number / explorer.data.overview.part)}`;

/** The caption word by word. One word is in the order of the Tab key; arrows lead to the others. */
const words = (system, number, details) => {
  const { make, image, data } = explorer;
  const base = explorer.systems.find((other) => other.name === system.base);
  const before = base && data.images.captions[base.place][number];
  const added = base && before !== null ? explorer.newWords(before.split(" "), details.tokens) : new Set();
  const buttons = details.tokens.map((token, place) => {
    const look = () => {
      const { attention } = details;
      const probability = Math.exp(details.log_probs[place]);
      if (attention) explorer.attention.draw(image.canvas, attention, place);
      else explorer.attention.clear(image.canvas);
      const seen = attention ? `; ${explorer.attention.described(attention, place)}` : "; the experiment stored no attention for it";
      image.said.textContent = `“${token}”: probability ${explorer.shown(probability)}${seen}.`;
    };
    const button = make(
      "button",
      { type: "button", class: `word${details.attention ? " attended" : ""}${added.has(place) ? " added" : ""}`, tabindex: place ? -1 : 0, focus: look, pointerenter: look, pointerleave: leave },
      token,
    );
    return button;
  });
  const leave_ = (event) => {
    if (!line.contains(event.relatedTarget)) clear();
  };
  const line = make("p", { class: "words", role: "group", "aria-label": `Words of ${system.name}`, keydown: moveAmongWords, focusout: leave_ }, buttons.map((button) => [button, " "]));
  return line;
};

const clear = () => {
  explorer.attention.clear(explorer.image.canvas);
  explorer.image.said.textContent = "";
};

const leave = () => {
  if (document.activeElement?.classList.contains("word")) document.activeElement.dispatchEvent(new Event("focus"));
  else clear();
};

const moveAmongWords = (event) => {
  const buttons = [...event.currentTarget.querySelectorAll("button")];
  const at = buttons.indexOf(document.activeElement);
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: buttons.length - 1 }[event.key];
  if (to === undefined || !buttons[to]) return;
  event.preventDefault();
  event.stopPropagation();
  buttons[at].tabIndex = -1;
  buttons[to].tabIndex = 0;
  buttons[to].focus();
};

const claims = ({ claims: made }) => {
  const { make } = explorer;
  if (!made) return [];
  const wrong = made.filter(([, , , right]) => !right);
  const right = make("span", { class: "claim right" }, `✓ ${made.length - wrong.length} of ${made.length} claims right`);
  const others = wrong.map(([kind, claimed, truth]) =>
    make("span", { class: "claim wrong" }, `✗ ${CLAIMS[kind] ?? kind}: ${claimed}`, truth === null ? ", which is not there" : `, in truth ${truth}`),
  );
  return [make("p", { class: "claims" }, right, others)];
};

const CLAIMS = { objects: "object", counts: "number", sizes: "size", textures: "texture", colors: "colour", relations: "relation", places: "place" };

const candidates = ({ numbers, candidates: all }) => {
  const { make } = explorer;
  if (all.length < 2) return [];
  const rows = all.map(([caption, ...values]) => make("tr", {}, make("td", {}, caption), values.map((value) => make("td", {}, explorer.shown(value)))));
  const head = make("tr", {}, make("th", { scope: "col" }, "caption"), numbers.map((name) => make("th", { scope: "col" }, name.replaceAll("_", " "))));
  return [make("details", { class: "candidates" }, make("summary", {}, `${all.length} candidates`), make("div", { class: "wide" }, make("table", {}, make("thead", {}, head), make("tbody", {}, rows))))];
};

/** The columns of the systems side by side; the best of a row is marked. */
const scoreTable = (systems, number) => {
  const { make } = explorer;
  const labels = [...new Set(explorer.columns.filter(({ name }) => !/:(changed|wrong_(?!claims)|rank@)/.test(name)).filter(({ group }) => systems.some(({ name }) => name === group)).map(({ label }) => label))];
  const rows = labels.map((label) => {
    const cells = systems.map(({ name }) => explorer.columns.find((column) => column.group === name && column.label === label));
    const values = cells.map((column) => column?.values[number] ?? null);
    const better = cells.find(Boolean).better;
    const known = values.filter((value) => value !== null);
    const best = !better || new Set(known).size < 2 ? null : better === "high" ? Math.max(...known) : Math.min(...known);
    return make("tr", {}, make("th", { scope: "row" }, label), values.map((value) => make("td", { class: value !== null && value === best ? "best" : "" }, explorer.shown(value))));
  });
  if (!rows.length) return null;
  return make(
    "details",
    { class: "scores", open: true },
    make("summary", {}, "Scores of this image"),
    make("div", { class: "wide" }, make("table", {}, make("thead", {}, make("tr", {}, make("td"), systems.map(({ name }) => make("th", { scope: "col" }, name)))), make("tbody", {}, rows))),
  );
};

/** Under each caption that the retrieval model embedded: the rank of the image for it, and a button for its neighbours. */
const showAsked = (number) => {
  const { make, state } = explorer;
  for (const place of explorer.find("image").querySelectorAll(".ask")) {
    const { system } = place;
    const focused = place.contains(document.activeElement);
    const rank = explorer.space() && explorer.column(`${system.name}:rank@${explorer.space().name}`)?.values[number];
    const chosen = state.caption === system.name;
    const ask = () => explorer.go({ caption: chosen ? "" : system.name, reference: null }, true);
    if (explorer.isWritten(system) && rank !== null)
      place.replaceChildren(make("button", { type: "button", "aria-pressed": String(chosen), title: `rank of the image for this caption in ${explorer.space().name}`, click: ask }, `rank ${explorer.shown(rank)} · neighbours`));
    else place.replaceChildren();
    if (focused) place.querySelector("button")?.focus();
  }
};

/** The references; those in further languages are folded. */
const showReferences = (number) => {
  const { make, data, image, state } = explorer;
  const { language } = data.images.references;
  const groups = new Map();
  for (const reference of explorer.referencesOf(number)) {
    const tongue = language ? language[reference] : "";
    groups.set(tongue, [...(groups.get(tongue) ?? []), reference]);
  }
  const focused = [...image.references.querySelectorAll("button")].indexOf(document.activeElement);
  const lists = [...groups].map(([tongue, references], place) => {
    const list = make("ol", { class: "references", lang: tongue || null }, references.map((reference) => make("li", {}, referenceButton(reference))));
    if (!place) return list;
    return make("details", { open: references.includes(state.reference) }, make("summary", {}, `${references.length} in ${tongue}`), list);
  });
  image.references.replaceChildren(...lists);
  if (focused >= 0) image.references.querySelectorAll("button")[focused]?.focus();
};

/** A reference; pressed, its neighbours are shown. */
const referenceButton = (reference) => {
  const { make, data, state } = explorer;
  const text = data.images.references.text[reference];
  if (!explorer.space()) return text;
  const chosen = reference === state.reference;
  const ask = () => explorer.go({ reference: chosen ? null : reference, caption: "" }, true);
  return make("button", { type: "button", class: "reference", "aria-pressed": String(chosen), title: "show its neighbours", click: ask }, text);
};
