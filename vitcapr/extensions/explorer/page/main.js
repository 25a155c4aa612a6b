"use strict";
// Starts the page, shows what the address asks for, and listens to keys.

const VIEWS = { images: "Images", map: "Map", scores: "Scores" };

/** A part of the folder is missing: say so in the page. */
explorer.fail = (error) => {
  find("content").prepend(make("p", { class: "failure", role: "alert" }, error.message));
};

const render = async () => {
  explorer.readState();
  explorer.readStars();
  const asked = state;
  if (state.lasso) await explorer.lasso.load().catch(explorer.fail);
  if (state !== asked) return; // The address has changed while the map was read.
  const number = state.image === null ? undefined : explorer.numberOf(state.image);
  const view = number === undefined ? (VIEWS[state.view] ? state.view : "images") : "image";
  const sections = { images: "list", map: "map", scores: "scores", image: "image" };
  for (const [name, id] of Object.entries(sections)) find(id).hidden = name !== view;
  find("filters").hidden = view === "scores"; // They are of the whole split.
  for (const link of find("views").children) {
    link.href = explorer.address({ view: link.view, image: null });
    if (link.view === state.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  filters.update();
  find("subset").hidden = view !== "images" && view !== "map";
  if (!find("subset").hidden) subset.show();
  if (view === "image") {
    if (explorer.image.show(number)) {
      window.scrollTo(0, 0);
      find("image-title").focus({ preventScroll: true });
    }
  } else if (view === "map") map.show().catch(explorer.fail);
  else if (view === "scores") scores.show();
  else {
    const from = explorer.image.number;
    list.show();
    if (from !== null) returnTo(from);
  }
  if (view !== "image") explorer.image.number = null;
  if (state.image !== null && number === undefined && view === "images")
    find("list").prepend(make("p", { class: "failure", role: "alert" }, `There is no image ${state.image} here.`));
  document.title = `${number === undefined ? "" : `${state.image} · `}${data.overview.title} · vitcapr explorer`;
};

/** Back from an image: its card has the focus again. */
const returnTo = (number) => {
  const link = list.cardOf(data.images.ids[number])?.querySelector(".picture");
  link?.focus({ preventScroll: true });
  link?.scrollIntoView({ block: "nearest" });
};

const press = (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || find("help").open) return;
  const typing = event.target.closest?.("input, select, textarea");
  if (event.key === "Escape") {
    if (typing) typing.blur();
    else if (state.image !== null) go({ image: null });
    return;
  }
  if (typing) return;
  const inImage = state.image !== null;
  const card = document.activeElement?.closest(".card, #map canvas");
  const here = inImage ? state.image : (card?.dataset.image ?? map.image());
  const act = {
    "/": () => {
      find("filters").open = true;
      find("words").focus();
    },
    "?": () => find("help").showModal(),
    j: () => (inImage ? explorer.image.step(1) : list.turn(1)),
    k: () => (inImage ? explorer.image.step(-1) : list.turn(-1)),
    s: here === undefined ? null : () => explorer.turnStar(explorer.numberOf(here)),
    m: here === undefined ? null : () => go({ view: "map", image: null, at: here }),
    ArrowRight: inImage ? () => explorer.image.step(1) : null,
    ArrowLeft: inImage ? () => explorer.image.step(-1) : null,
  }[event.key];
  if (!act || event.defaultPrevented) return;
  event.preventDefault();
  act();
};

const start = () => {
  find("title").replaceChildren(
    data.overview.title,
    make("small", {}, ` ${data.overview.data}, ${data.overview.split}`),
  );
  if (data.overview.page) find("views").before(make("a", { href: data.overview.page }, "first page"));
  for (const [view, label] of Object.entries(VIEWS)) {
    const link = make("a", { href: "#" }, label);
    link.view = view;
    find("views").append(link);
  }
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    find("content").focus();
  });
  find("keys").addEventListener("click", () => find("help").showModal());
  filters.make();
  window.addEventListener("hashchange", render);
  document.addEventListener("keydown", press);
  render().then(() => (document.documentElement.dataset.ready = Math.round(performance.now())));
};

start();
