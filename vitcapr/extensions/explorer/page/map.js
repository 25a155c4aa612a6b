"use strict";
// The images as points on a map of the embedding space. Filters grey out; a column colours.

const NEAR = 14;
const STEP = 6; // pixels between two corners of a lasso
const STRIP = 24; // images below the map
// Two parts of plasma, each with a contrast of at least 3 to its background: lighter is more, for all eyes.
const SCALE = ["#0d0887", "#4b03a1", "#7d03a8", "#a82296", "#ca457a", "#e56a5d"];
const DARK_SCALE = ["#bf3984", "#d9586a", "#ed7a52", "#fb9f3a", "#fdca26", "#f0f921"];

const map = { zoom: 1, x: 0.5, y: 0.5, at: null, line: null, near: [] };

map.show = async () => {
  const space = explorer.space();
  const place = find("map");
  if (!space) return place.replaceChildren(make("p", { class: "empty" }, "No embeddings of this split were stored."));
  const content = await explorer.load(`map-${space.place}`);
  if (!content.places) return place.replaceChildren(make("p", { class: "empty" }, "There are too few images for a map."));
  if (map.space !== space.name) {
    map.space = space.name;
    map.content = content;
    const label = `Map of ${content.images.length} images; arrows move among them, Enter opens one`;
    map.canvas = make("canvas", { tabindex: "0", role: "application", "aria-label": label });
    map.over = make("canvas", { class: "over", "aria-hidden": "true" });
    map.tip = make("div", { class: "tip", "aria-live": "polite", hidden: true });
    map.legend = make("p", { class: "legend" });
    map.count = make("p", { role: "status", class: "count" });
    map.strip = make("ul", { class: "thumbnails" });
    map.minus = make("span");
    map.draws = make("button", { "aria-pressed": "false", click: () => drawNext(true) }, "lasso");
    const colourBy = (name) => go({ colour: name || "none" }, true);
    const button = (label, title, act) => make("button", { "aria-label": title, click: act }, label);
    const controls = [
      data.overview.spaces.length > 1 ? explorer.spaceMenu() : make("b", {}, space.name),
      make("label", {}, "Colour ", columnMenu("", colourBy, "none", "Colour")),
      map.minus,
      button("+", "Enlarge", () => zoomBy(1.5)),
      button("−", "Reduce", () => zoomBy(1 / 1.5)),
      button("all", "Show all", zoomOut),
      map.draws,
      map.count,
    ];
    const note = [
      `t-SNE of the image embeddings of ${space.name}: near points are near in the space, far distances mean nothing. `,
      "Each colour has the same number of images, if their values differ. Images that the filters leave out are pale. ",
      "A click shows the most similar images, a second one opens the image. The words are more frequent in the captions ",
      "around them than elsewhere. Shift and drag, or “lasso” and drag: only the enclosed images stay.",
    ];
    const sheet = make("div", { class: "sheet" }, map.canvas, map.over, map.tip);
    place.replaceChildren(make("div", { class: "bar" }, controls), map.legend, sheet, map.strip, make("p", { class: "note" }, note));
    listen(map.canvas);
  }
  const coloured = colouring()?.name ?? "";
  for (const [label, value] of [["Colour", coloured], ["Retrieval model", space.name]]) {
    const menu = place.querySelector(`select[aria-label="${label}"]`);
    if (menu) [menu.value] = value.split(explorer.MINUS);
  }
  map.minus.replaceChildren(minusMenu(coloured, (name) => go({ colour: name }, true), "Minus") ?? "");
  await report(space);
  drawMap();
};

/** A link to the map that marks an image there; nothing without a map. */
const mapLink = (id, tabindex = 0) =>
  explorer.space() &&
  make("a", { href: explorer.address({ view: "map", image: null, at: id }), tabindex }, "on the map");

/** Whether the next drag draws a lasso, rather than moves the map. */
const drawNext = (draws) => map.draws.setAttribute("aria-pressed", String(draws));

/** Pixels of the side of the whole map. */
const sideOf = () => Math.min(map.canvas.clientWidth, map.canvas.clientHeight) * 0.94 * map.zoom;

const toScreen = ([x, y]) => {
  const { clientWidth, clientHeight } = map.canvas;
  return [clientWidth / 2 + (x - map.x) * sideOf(), clientHeight / 2 + (y - map.y) * sideOf()];
};

const fromScreen = ([across, up]) => {
  const { clientWidth, clientHeight } = map.canvas;
  return [map.x + (across - clientWidth / 2) / sideOf(), map.y + (up - clientHeight / 2) / sideOf()];
};

const drawMap = () => {
  const { canvas, content } = map;
  const dense = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = [canvas.clientWidth * dense, canvas.clientHeight * dense];
  const brush = canvas.getContext("2d");
  brush.scale(dense, dense);
  const chosen = new Set(selection());
  const style = getComputedStyle(document.documentElement);
  const column = colouring();
  const scale = window.matchMedia("(prefers-color-scheme: dark)").matches ? DARK_SCALE : SCALE;
  const cuts = column ? cutsOf(column.values, scale.length) : null;
  const size = content.images.length > 2000 ? 2.5 : 4;
  for (const wanted of [false, true])
    content.images.forEach((image, place) => {
      if (chosen.has(image) !== wanted) return;
      const value = column?.values[image];
      const plain = !wanted ? "--pale" : !column ? "--good" : value === null ? "--faint" : null;
      brush.fillStyle = plain ? style.getPropertyValue(plain) : scale[partOf(value, cuts)];
      brush.beginPath();
      brush.arc(...toScreen(content.places[place]), wanted ? size : size - 1, 0, 2 * Math.PI);
      brush.fill();
    });
  brush.strokeStyle = style.getPropertyValue("--ink");
  brush.lineWidth = 2;
  const corners = map.line ?? explorer.lasso.corners(map.space);
  if (corners.length) {
    brush.beginPath();
    for (const corner of corners) brush.lineTo(...toScreen(corner));
    if (!map.line) brush.closePath();
    brush.stroke();
  }
  brush.font = "600 13px system-ui, sans-serif";
  brush.textAlign = "center";
  [brush.strokeStyle, brush.fillStyle] = ["--paper", "--ink"].map((name) => style.getPropertyValue(name));
  brush.lineWidth = 4;
  for (const [x, y, words] of content.labels)
    for (const write of ["strokeText", "fillText"]) brush[write](words, ...toScreen([x, y]));
  drawPoint();
  map.legend.replaceChildren(...(column ? legend(column, cuts, scale) : []));
};

/** Mark the image that is pointed at and the similar ones, on a canvas of its own: the points are not drawn again. */
const drawPoint = () => {
  const dense = window.devicePixelRatio || 1;
  [map.over.width, map.over.height] = [map.canvas.clientWidth * dense, map.canvas.clientHeight * dense];
  for (const link of map.strip.children) link.classList.toggle("pointed", map.at !== null && link.place === map.at);
  const brush = map.over.getContext("2d");
  brush.scale(dense, dense);
  brush.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--ink");
  for (const place of map.at === null ? map.near : [map.at, ...map.near]) {
    brush.lineWidth = place === map.at ? 3 : 1.5;
    brush.beginPath();
    brush.arc(...toScreen(map.content.places[place]), 8, 0, 2 * Math.PI);
    brush.stroke();
  }
};

/** The values that cut the images into as many equal parts as there are colours; equal values have one colour. */
const cutsOf = (values, colours) => {
  const known = values.filter((value) => value !== null).sort((one, other) => one - other);
  return Array.from({ length: colours - 1 }, (_, cut) => known[Math.ceil(((cut + 1) * known.length) / colours) - 1]);
};

const partOf = (value, cuts) => cuts.filter((cut) => cut < value).length;

const legend = (column, cuts, scale) => {
  const known = column.values.filter((value) => value !== null);
  const parts = scale.map((colour, part) => {
    const own = known.filter((value) => partOf(value, cuts) === part);
    if (!own.length) return null;
    const [low, high] = own.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [own[0], own[0]]);
    const swatch = make("span", { class: "swatch" });
    swatch.style.background = colour;
    const range = low === high ? "" : ` to ${shown(high, column.places)}`;
    return make("span", { class: "who" }, swatch, `${shown(low, column.places)}${range}`);
  });
  return [make("b", {}, columnTitle(column)), ...parts.filter(Boolean)];
};

/** The column that colours: the chosen one, none, or at first a score of the last system that is not an oracle. */
const colouring = () => {
  const last = explorer.systems.filter(({ oracle }) => !oracle).at(-1)?.name;
  const { colour } = state;
  return colour === "none" ? undefined : explorer.column(colour || `${last}:cider`) ?? explorer.columns[0];
};

/** How many images the filters and the lasso leave; the chosen image and those most similar to it, or the first. */
const report = async (space) => {
  const chosen = new Set(selection());
  const here = map.content.images.filter((image) => chosen.has(image));
  const from = state.at === null ? undefined : explorer.numberOf(state.at);
  const similar = from === undefined ? null : await explorer.similarImages(space, from);
  map.near = similar ? [from, ...similar].map((image) => map.content.images.indexOf(image)) : [];
  const few = here.length < map.content.images.length;
  const how = state.lasso ? "enclosed" : "left by the filters";
  map.count.textContent = `${shown(here.length)} of ${shown(map.content.images.length)} images${few ? ` ${how}` : ""}`;
  map.strip.replaceChildren(
    ...(similar ? [from, ...similar] : few ? here.slice(0, STRIP) : []).map(pictureOfPoint),
    !similar && few && here.length ? make("li", {}, make("a", { href: explorer.address({ view: "images" }) }, "all as a list")) : "",
  );
};

/** A picture below the map; pointed at or focused, it marks its point. */
const pictureOfPoint = (image) => {
  const point = map.content.images.indexOf(image);
  const [on, off] = [() => pointAt(point), () => pointAt(null)];
  const item = make("li", { pointerenter: on, pointerleave: off, focusin: on, focusout: off }, openingPicture(image));
  item.place = point;
  return item;
};

/** The id of the image that is pointed at. */
map.image = () => {
  return state.view === "map" && map.at !== null ? data.images.ids[map.content.images[map.at]] : undefined;
};

/** Point at an image, or at none. */
const pointAt = (place) => {
  if (map.at === place) return;
  map.at = place;
  drawPoint();
  map.tip.hidden = place === null;
  if (place === null) return;
  const number = map.content.images[place];
  const column = colouring();
  map.tip.replaceChildren(
    explorer.picture(number, ""),
    make("p", {}, make("b", {}, data.images.ids[number]), " ", explorer.altOf(number)),
    column ? make("p", {}, `${columnTitle(column)}: ${explorer.valueOf(column, number)}`) : "",
  );
  const [x, y] = toScreen(map.content.places[place]);
  const left = x > map.canvas.clientWidth / 2;
  map.tip.style.left = left ? "" : `${x + 14}px`;
  map.tip.style.right = left ? `${map.canvas.clientWidth - x + 14}px` : "";
  map.tip.style.top = `${Math.max(0, Math.min(y - 40, map.canvas.clientHeight - 230))}px`;
};

/** Filter by the drawn line; a line with fewer than three corners takes the filter away. */
const enclose = () => {
  const corners = map.line;
  map.line = null;
  drawNext(false);
  refine({ lasso: corners.length > 2 ? explorer.lasso.written(corners, map.space) : "" });
  drawMap();
};

const openPoint = () => {
  if (map.at !== null) go({ image: data.images.ids[map.content.images[map.at]] });
};

const zoomBy = (factor, x = 0, y = 0) => {
  const zoom = Math.min(40, Math.max(1, map.zoom * factor));
  const shift = (1 - map.zoom / zoom) / sideOf();
  Object.assign(map, { zoom, x: map.x + x * shift, y: map.y + y * shift });
  pointAt(null);
  drawMap();
};

const zoomOut = () => {
  Object.assign(map, { zoom: 1, x: 0.5, y: 0.5 });
  pointAt(null);
  drawMap();
};

/** The nearest point of those that pass, by distance on the screen. */
const nearestPoint = (x, y, most, passes = () => true) => {
  let [best, least] = [null, most * most];
  map.content.places.forEach((place, number) => {
    const [across, up] = toScreen(place);
    const distance = (across - x) ** 2 + (up - y) ** 2;
    if (distance < least && passes(across - x, up - y, number)) [best, least] = [number, distance];
  });
  return best;
};

const TOWARDS = {
  ArrowLeft: (x, y) => x < 0 && Math.abs(y) <= -x,
  ArrowRight: (x, y) => x > 0 && Math.abs(y) <= x,
  ArrowUp: (x, y) => y < 0 && Math.abs(x) <= -y,
  ArrowDown: (x, y) => y > 0 && Math.abs(x) <= y,
};

const listen = (canvas) => {
  let from = null;
  let moved = 0;
  const offset = (event) => {
    const { left, top } = canvas.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    [from, moved] = [[event.clientX, event.clientY], 0];
    if (event.shiftKey || map.draws.getAttribute("aria-pressed") === "true") map.line = [fromScreen(offset(event))];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!from) return pointAt(nearestPoint(...offset(event), NEAR));
    const [x, y] = [event.clientX - from[0], event.clientY - from[1]];
    if (map.line) {
      if (Math.hypot(x, y) < STEP) return;
      from = [event.clientX, event.clientY];
      map.line.push(fromScreen(offset(event)));
      return drawMap();
    }
    moved += Math.abs(x) + Math.abs(y);
    map.x -= x / sideOf();
    map.y -= y / sideOf();
    from = [event.clientX, event.clientY];
    drawMap();
  });
  canvas.addEventListener("pointerup", (event) => {
    from = null;
    if (map.line) return enclose();
    if (moved > 5) return;
    pointAt(nearestPoint(...offset(event), NEAR));
    if (map.image() === state.at) return openPoint();
    go({ at: map.image() ?? null }, true);
  });
  canvas.addEventListener("pointercancel", () => (from = map.line = null));
  canvas.addEventListener("pointerleave", () => from ?? pointAt(null));
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const [x, y] = offset(event);
      zoomBy(Math.exp(-event.deltaY / 500), x - canvas.clientWidth / 2, y - canvas.clientHeight / 2);
    },
    { passive: false },
  );
  canvas.addEventListener("keydown", (event) => {
    const towards = TOWARDS[event.key];
    if (towards) {
      const [x, y] =
        map.at === null ? [canvas.clientWidth / 2, canvas.clientHeight / 2] : toScreen(map.content.places[map.at]);
      const passes = (across, up, number) => number !== map.at && (map.at === null || towards(across, up));
      const next = nearestPoint(x, y, Infinity, passes);
      if (next !== null) pointAt(next);
    } else if (event.key === "Enter") openPoint();
    else if (event.key === "+" || event.key === "=") zoomBy(1.5);
    else if (event.key === "-") zoomBy(1 / 1.5);
    else if (event.key === "0") zoomOut();
    else return;
    event.preventDefault();
  });
  new ResizeObserver(drawMap).observe(canvas);
};
