"use strict";
// The images that fit, a page at a time: a browser stays fluent with some dozens of cards, not with thousands.

const CARDS = 48;

const list = { shown: null };

list.show = () => {
  const found = selection();
  const pages = Math.max(1, Math.ceil(found.length / CARDS));
  const page = Math.min(Math.max(state.page, 1), pages);
  const key = explorer.address({ image: null });
  if (list.shown === key) return;
  list.shown = key;
  const here = found.slice((page - 1) * CARDS, page * CARDS);
  const cards = make("ul", { class: "cards", keydown: moveAmongCards }, here.map(card));
  const focused = document.activeElement?.closest("#list .star, #list .picture");
  const focusedId = focused?.closest(".card").dataset.image;
  find("list").replaceChildren(bar(found.length), here.length ? cards : nothing(), pageButtons(page, pages));
  if (focused) list.cardOf(focusedId)?.querySelector(`.${focused.classList[0]}`).focus();
};

/** The card of an image on this page, if there is one. */
list.cardOf = (id) => document.querySelector(`.card[data-image="${CSS.escape(id)}"]`);

/** The page of the present state, `step` pages further. */
list.turn = (step) => {
  const pages = Math.max(1, Math.ceil(selection().length / CARDS));
  const page = Math.min(Math.max(state.page + step, 1), pages);
  go({ page });
  window.scrollTo(0, 0);
};

const bar = (count) => {
  const sortBy = (name) => refine({ sort: name, down: firstIsWorst(name) });
  const sort = columnMenu(state.sort, sortBy, "order of the data set", "Sort by");
  const turn = () => refine({ down: !state.down });
  const total = data.images.ids.length;
  return make(
    "div",
    { class: "bar" },
    make("p", { role: "status", class: "count" }, `${shown(count)} of ${shown(total)} images`),
    count ? explorer.exportMenu() : null,
    make("label", {}, "Sort by ", sort),
    minusMenu(state.sort, sortBy, "Minus"),
    state.sort && make("button", { click: turn }, state.down ? "↓ highest first" : "↑ lowest first"),
  );
};

/** People look for mistakes: the worst come first. */
const firstIsWorst = (name) => explorer.column(name)?.better === "low";

const nothing = () =>
  make("p", { class: "empty" }, "No image fits. ", make("button", { click: filters.reset }, "Reset the filters"));

const card = (number) => {
  const id = data.images.ids[number];
  const column = explorer.column(state.sort);
  const badge = column && [`${column.label} ${explorer.valueOf(column, number)}`, make("small", {}, ` ${column.group}`)];
  const captions = sameCaptions(number).map((systems) => {
    const names = systems.map((system) => [nameOf(system), " "]);
    const caption = make("span", { class: "words" }, captionOf(systems[0], number));
    return make("p", { class: "caption" }, make("span", { class: "system" }, names, wrongClaims(systems[0], number)), caption);
  });
  const first = referencesOf(number)[0];
  const reference =
    captions.length || first === undefined ? null : make("p", { class: "caption" }, data.images.references.text[first]);
  return make(
    "li",
    { class: `card ${id === state.at ? "pointed" : ""}`, "data-image": id },
    openingPicture(number),
    make("div", { class: "under" }, make("span", { class: "id" }, id), mapLink(id, -1), starButton(number)),
    badge ? make("p", { class: "badge" }, badge) : null,
    captions,
    reference,
  );
};

/** The shown systems, those together that wrote the same. */
const sameCaptions = (number) => {
  const groups = new Map();
  for (const system of shownSystems()) {
    const caption = data.images.captions[system.place][number];
    groups.set(caption, [...(groups.get(caption) ?? []), system]);
  }
  return [...groups.values()];
};

/** The name of a system behind its colour. */
const nameOf = ({ colour, name }) => make("span", { class: "who" }, make("span", { class: `mark system-${colour}` }), name);

const wrongClaims = (system, number) => {
  const wrong = explorer.column(`${system.name}:wrong_claims`)?.values[number];
  return wrong ? make("span", { class: "wrong" }, `✗ ${wrong} wrong`) : null;
};

const pageButtons = (page, pages) => {
  if (pages === 1) return "";
  return make(
    "nav",
    { class: "pages", "aria-label": "Pages" },
    make("button", { disabled: page === 1, click: () => list.turn(-1) }, "← previous"),
    make("span", {}, `page ${page} of ${pages}`),
    make("button", { disabled: page === pages, click: () => list.turn(1) }, "next →"),
  );
};

/** Arrows move among the pictures as they are laid out. */
const moveAmongCards = (event) => {
  const links = [...find("list").querySelectorAll(".card > .picture")];
  const at = links.indexOf(document.activeElement);
  if (at < 0) return;
  const across = links.filter((link) => link.offsetTop === links[0].offsetTop).length;
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across }[event.key];
  if (step === undefined || !links[at + step]) return;
  event.preventDefault();
  links[at + step].focus();
};
