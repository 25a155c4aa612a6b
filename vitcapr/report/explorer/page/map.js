"use strict";
// The images as points on a map of the embedding space. Filters grey out; a column colours.

const NEAR = 14;
const STEP = 6; // pixels between two corners of a lasso
const SCALE = ["#00204d", "#31446b", "#666970", "#958f78", "#cab969", "#ffea46"]; // cividis: one order for all eyes
const DARK_SCALE = ["#2c5f9e", "#5a7196", "#848285", "#a89b79", "#cab969", "#ffea46"]; // the same, lighter at its dark end

explorer.map = { zoom: 1, x: 0.5, y: 0.5, at: null, line: null };

explorer.map.show = async () => {
  const { make, map, data, state } = explorer;
  const space = explorer.space();
  const place = explorer.find("map");
  if (!space) return place.replaceChildren(make("p", { class: "empty" }, "No embeddings of this split were stored."));
  const content = await explorer.load(`map-${space.place}`);
  if (!content.places)
    return place.replaceChildren(make("p", { class: "empty" }, "There are too few images for a map."));
  if (map.space !== space.name) {
    map.space = space.name;
    map.content = content;
    map.canvas = make("canvas", {
      tabindex: "0",
      role: "application",
      "aria-label": `Map of ${content.images.length} images; arrows move among them, Enter opens one`,
    });
    map.tip = make("div", { class: "tip", "aria-live": "polite", hidden: true });
    map.legend = make("p", { class: "legend" });
    map.minus = make("span");
    map.draws = make("button", { type: "button", "aria-pressed": "false", click: () => drawNext(true) }, "lasso");
    const button = (label, title, act) => make("button", { type: "button", "aria-label": title, click: act }, label);
    place.replaceChildren(
      make(
        "div",
        { class: "bar" },
        data.overview.spaces.length > 1 ? explorer.spaceMenu() : make("b", {}, space.name),
        make(
          "label",
          {},
          "Colour ",
          explorer.columnMenu(state.colour, (name) => explorer.go({ colour: name }, true), "none", "Colour"),
        ),
        map.minus,
        button("+", "Enlarge", () => zoomBy(1.5)),
        button("−", "Reduce", () => zoomBy(1 / 1.5)),
        button("all", "Show all", zoomOut),
        map.draws,
      ),
      map.legend,
      make("div", { class: "sheet" }, map.canvas, map.tip),
      make(
        "p",
        { class: "note" },
        "t-SNE of the image embeddings: near points are near in the space, far distances mean nothing. Images that the filters leave out are pale. Shift and drag, or “lasso” and drag: only the enclosed images stay.",
      ),
    );
    listen(map.canvas);
  }
  for (const [menu, value] of [
    ["Colour", state.colour],
    ["Retrieval model", space.name],
  ]) {
    const shown = place.querySelector(`select[aria-label="${menu}"]`);
    if (shown) [shown.value] = value.split(explorer.MINUS);
  }
  map.minus.replaceChildren(
    explorer.minusMenu(state.colour, (name) => explorer.go({ colour: name }, true), "Minus") ?? "",
  );
  drawMap();
};

/** Whether the next drag draws a lasso, rather than moves the map. */
const drawNext = (draws) => explorer.map.draws.setAttribute("aria-pressed", String(draws));

const toScreen = ([x, y]) => {
  const { zoom, x: middle, y: centre, canvas } = explorer.map;
  const side = Math.min(canvas.clientWidth, canvas.clientHeight) * 0.94 * zoom;
  return [canvas.clientWidth / 2 + (x - middle) * side, canvas.clientHeight / 2 + (y - centre) * side];
};

const fromScreen = ([across, up]) => {
  const { zoom, x, y, canvas } = explorer.map;
  const side = Math.min(canvas.clientWidth, canvas.clientHeight) * 0.94 * zoom;
  return [x + (across - canvas.clientWidth / 2) / side, y + (up - canvas.clientHeight / 2) / side];
};

const drawMap = () => {
  const { map, state } = explorer;
  const { canvas, content } = map;
  const dense = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = [canvas.clientWidth * dense, canvas.clientHeight * dense];
  const brush = canvas.getContext("2d");
  brush.scale(dense, dense);
  const chosen = new Set(explorer.selection());
  const style = getComputedStyle(document.documentElement);
  const column = explorer.column(state.colour);
  const range = column ? rangeOf(column.values) : null;
  const scale = window.matchMedia("(prefers-color-scheme: dark)").matches ? DARK_SCALE : SCALE;
  const size = content.images.length > 2000 ? 2.5 : 4;
  for (const wanted of [false, true])
    content.images.forEach((image, place) => {
      if (chosen.has(image) !== wanted) return;
      const value = column?.values[image];
      brush.fillStyle = !wanted
        ? style.getPropertyValue("--line")
        : !column
          ? style.getPropertyValue("--accent")
          : value === null
            ? style.getPropertyValue("--faint")
            : colourOf(value, range, scale);
      brush.beginPath();
      brush.arc(...toScreen(content.places[place]), wanted ? size : size - 1, 0, 2 * Math.PI);
      brush.fill();
    });
  brush.strokeStyle = style.getPropertyValue("--text");
  brush.lineWidth = 2;
  const corners = map.line ?? explorer.lasso.corners(map.space);
  if (corners.length) {
    brush.beginPath();
    for (const corner of corners) brush.lineTo(...toScreen(corner));
    if (!map.line) brush.closePath();
    brush.stroke();
  }
  if (map.at !== null) {
    brush.beginPath();
    brush.arc(...toScreen(content.places[map.at]), size + 4, 0, 2 * Math.PI);
    brush.stroke();
  }
  map.legend.replaceChildren(...(column ? legend(column, range, scale) : []));
};

/** From the 2nd to the 98th percentile, so that one odd image does not take all colours. */
const rangeOf = (values) => {
  const known = values.filter((value) => value !== null).sort((one, other) => one - other);
  return [known[Math.floor(known.length * 0.02)], known[Math.min(known.length - 1, Math.floor(known.length * 0.98))]];
};

const colourOf = (value, [low, high], scale) => {
  const share = high > low ? Math.min(1, Math.max(0, (value - low) / (high - low))) : 0.5;
  return scale[Math.round(share * (scale.length - 1))];
};

const legend = (column, [low, high], scale) => {
  const { make, shown } = explorer;
  const swatch = (colour) => {
    const square = make("span", { class: "swatch" });
    square.style.background = colour;
    return square;
  };
  return [`${explorer.columnTitle(column)}: ${shown(low)} `, ...scale.map(swatch), ` ${shown(high)}`];
};

/** Point at an image, or at none. */
const pointAt = (place) => {
  const { make, map, data, state } = explorer;
  if (map.at === place) return;
  map.at = place;
  drawMap();
  map.tip.hidden = place === null;
  if (place === null) return;
  const number = map.content.images[place];
  const column = explorer.column(state.colour);
  map.tip.replaceChildren(
    explorer.picture(number, ""),
    make("p", {}, make("b", {}, data.images.ids[number]), " ", explorer.altOf(number)),
    column ? make("p", {}, `${column.label} ${explorer.shown(column.values[number])}`) : "",
  );
  const [x, y] = toScreen(map.content.places[place]);
  const left = x > map.canvas.clientWidth / 2;
  map.tip.style.left = left ? "" : `${x + 14}px`;
  map.tip.style.right = left ? `${map.canvas.clientWidth - x + 14}px` : "";
  map.tip.style.top = `${Math.max(0, Math.min(y - 40, map.canvas.clientHeight - 230))}px`;
};

/** Filter by the drawn line; a line with fewer than three corners takes the filter away. */
const enclose = () => {
  const { map } = explorer;
  const corners = map.line;
  map.line = null;
  drawNext(false);
  explorer.refine({ lasso: corners.length > 2 ? explorer.lasso.written(corners, map.space) : "" });
  drawMap();
};

const openPoint = () => {
  const { map, data } = explorer;
  if (map.at !== null) explorer.go({ image: data.images.ids[map.content.images[map.at]] });
};

const zoomBy = (factor, x = 0, y = 0) => {
  const { map } = explorer;
  const zoom = Math.min(40, Math.max(1, map.zoom * factor));
  const side = Math.min(map.canvas.clientWidth, map.canvas.clientHeight) * 0.94;
  map.x += (x / side) * (1 / map.zoom - 1 / zoom);
  map.y += (y / side) * (1 / map.zoom - 1 / zoom);
  map.zoom = zoom;
  pointAt(null);
  drawMap();
};

const zoomOut = () => {
  Object.assign(explorer.map, { zoom: 1, x: 0.5, y: 0.5 });
  pointAt(null);
  drawMap();
};

/** The nearest point of those that pass, by distance on the screen. */
const nearestPoint = (x, y, most, passes = () => true) => {
  let [best, least] = [null, most * most];
  explorer.map.content.places.forEach((place, number) => {
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
  const { map } = explorer;
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
    const side = Math.min(canvas.clientWidth, canvas.clientHeight) * 0.94 * map.zoom;
    moved += Math.abs(x) + Math.abs(y);
    map.x -= x / side;
    map.y -= y / side;
    from = [event.clientX, event.clientY];
    drawMap();
  });
  canvas.addEventListener("pointerup", (event) => {
    from = null;
    if (map.line) return enclose();
    if (moved > 5) return;
    pointAt(nearestPoint(...offset(event), NEAR));
    openPoint();
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
      const next = nearestPoint(
        x,
        y,
        Infinity,
        (across, up, number) => number !== map.at && (map.at === null || towards(across, up)),
      );
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
