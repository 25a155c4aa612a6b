"use strict";
// The caption of a system in the view of an image: its words and where the captioner looked, claims and candidates.

explorer.INVITATION = "Point at a word of a caption: its probability, and where the captioner looked.";

/** A system's caption of an image, with everything about it. */
explorer.captionBlock = (system, number) => {
  const { make, data } = explorer;
  const title = make(
    "h3",
    {},
    make("span", { class: `mark system-${system.colour}` }),
    system.name,
    system.oracle ? make("small", {}, " upper bound, chosen with the references") : null,
  );
  const caption = make("p", { class: "words" }, explorer.captionOf(system, number));
  const more = make("div");
  const ask = make("p", { class: "ask" });
  ask.system = system;
  const block = make(
    "section",
    { class: `system system-${system.colour}`, "aria-label": system.name },
    title,
    caption,
    ask,
    more,
  );
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
  const { make, image } = explorer;
  const added = explorer.addedWords(system, number);
  const buttons = details.tokens.map((token, place) => {
    const look = () => {
      const { attention } = details;
      const probability = Math.exp(details.log_probs[place]);
      if (attention) explorer.attention.draw(image.canvas, attention, place);
      else explorer.attention.clear(image.canvas);
      const seen = attention
        ? `; ${explorer.attention.described(attention, place)}`
        : "; the experiment did not store its attention";
      image.said.textContent = `“${token}”: probability ${explorer.shown(probability)}${seen}.`;
    };
    return make(
      "button",
      {
        type: "button",
        class: `word${details.attention ? " attended" : ""}${added.has(place) ? " added" : ""}`,
        tabindex: place ? -1 : 0,
        focus: look,
        pointerenter: look,
        pointerleave: leave,
      },
      token,
    );
  });
  const leaveLine = (event) => {
    if (!line.contains(event.relatedTarget)) clear();
  };
  const line = make(
    "p",
    {
      class: "words",
      role: "group",
      "aria-label": `Words of ${system.name}`,
      keydown: moveAmongWords,
      focusout: leaveLine,
    },
    buttons.map((button) => [button, " "]),
  );
  return line;
};

const clear = () => {
  explorer.attention.clear(explorer.image.canvas);
  explorer.image.said.textContent = explorer.INVITATION;
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
  const right = make(
    "span",
    { class: "claim right" },
    `✓ ${made.length - wrong.length} of ${made.length} claims correct`,
  );
  const others = wrong.map(([kind, claimed, truth]) =>
    make(
      "span",
      { class: "claim wrong" },
      `✗ ${CLAIMS[kind] ?? kind}: ${claimed}`,
      truth === null ? ", which is not there" : `, in truth ${truth}`,
    ),
  );
  return [make("p", { class: "claims" }, right, others)];
};

const CLAIMS = {
  objects: "object",
  counts: "number",
  sizes: "size",
  textures: "texture",
  colors: "colour",
  relations: "relation",
  places: "place",
};

const candidates = ({ numbers, candidates: all }) => {
  const { make } = explorer;
  if (all.length < 2) return [];
  const rows = all.map(([caption, ...values]) =>
    make(
      "tr",
      {},
      make("td", {}, caption),
      values.map((value) => make("td", {}, explorer.shown(value))),
    ),
  );
  const head = make(
    "tr",
    {},
    make("th", { scope: "col" }, "caption"),
    numbers.map((name) => make("th", { scope: "col" }, name.replaceAll("_", " "))),
  );
  return [
    make(
      "details",
      { class: "candidates" },
      make("summary", {}, `${all.length} candidates`),
      make("div", { class: "wide" }, make("table", {}, make("thead", {}, head), make("tbody", {}, rows))),
    ),
  ];
};
