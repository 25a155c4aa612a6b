"use strict";
// The caption of a system in the view of an image: its words and where the captioner looked, claims and candidates.

explorer.INVITATION = "Point at a word of a caption: its probability, and where the captioner looked.";

/** A system's caption of an image, with everything about it. */
explorer.captionBlock = (system, number) => {
  const oracle = system.oracle && make("small", {}, " upper bound, chosen with the references");
  const title = make("h3", {}, nameOf(system), oracle);
  const caption = make("p", { class: "words" }, captionOf(system, number));
  const more = make("div");
  const ask = make("p", { class: "ask" });
  ask.system = system;
  const attributes = { class: `system system-${system.colour}`, "aria-label": system.name };
  const block = make("section", attributes, title, caption, ask, more);
  if (data.images.captions[system.place][number] !== null)
    explorer.load(detailsKey(system.place, number))
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

const detailsKey = (place, number) => `details-${place}-${Math.floor(number / data.overview.part)}`;

/** The caption word by word. One word is in the order of the Tab key; arrows lead to the others. */
const words = (system, number, details) => {
  const { image } = explorer;
  const [added, wrong] = [explorer.addedWords(system, number), explorer.wrongWords(system, number)];
  const attention = details.attention && attended.decoded(details.attention);
  const look = (place) => {
    if (attention) attended.draw(image.canvas, attention, place);
    if (place === null) return (image.said.textContent = explorer.INVITATION);
    const truth = wrong.has(place) ? `${wrong.get(place)}; ` : "";
    const seen = attention
      ? attended.described(attention, place)
      : "the experiment did not store its attention";
    const probability = shown(Math.exp(details.log_probs[place]), 2);
    image.said.textContent = `“${details.tokens[place]}”: ${truth}probability ${probability}; ${seen}. `;
    if (attention) image.said.append(attended.legend(attention));
  };
  const buttons = details.tokens.map((token, place) => {
    const marks = [attention && "attended", added.has(place) && "added", wrong.has(place) && "false"];
    return make("button", { class: ["word", ...marks.filter(Boolean)].join(" "), "data-truth": wrong.get(place) }, token);
  });
  attended.words(buttons, look);
  return make(
    "p",
    { class: "words", role: "group", "aria-label": `Words of ${system.name}` },
    buttons.map((button) => [button, " "]),
    attention && attended.player(buttons, look),
  );
};

const claims = ({ claims: made }) => {
  if (!made) return [];
  const wrong = made.filter(([, , , right]) => !right);
  const correct = `✓ ${made.length - wrong.length} of ${made.length} claims correct`;
  const others = wrong.map(([kind, claimed, truth]) => {
    const true_ = truth === null ? ", which is not there" : `, in truth ${truth}`;
    return make("span", { class: "claim wrong" }, `✗ ${CLAIMS[kind] ?? kind}: ${claimed}`, true_);
  });
  return [make("p", { class: "claims" }, make("span", { class: "claim right" }, correct), others)];
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
  if (all.length < 2) return [];
  const rows = all.map(([caption, ...values]) => [caption, ...values.map((value) => shown(value, 3))]);
  const table = explorer.table(["caption", ...numbers.map((name) => name.replaceAll("_", " "))], rows);
  return [make("details", { class: "candidates" }, make("summary", {}, `${all.length} candidates`), table)];
};
