"use strict";
// The controls beside the images: words, ranges of numbers, systems. They are made once and then follow the state.

const BARS = 40;

const filters = { parts: {} };

filters.make = () => {
  const { parts } = filters;
  parts.words = make("input", {
    type: "search",
    id: "words",
    placeholder: 'red -ball "on the grass"',
    "aria-describedby": "words-note",
    input: () => refine({ words: parts.words.value, image: null }),
  });
  const places = [["all", "captions and references"], ["captions", "captions of the systems"], ["references", "references"]];
  parts.where = explorer.menu("Where to search", places, (where) => refine({ where, image: null }), "all");
  parts.presets = make("div", { class: "chips" });
  const free = () => refine({ lasso: "", image: null });
  parts.lasso = make("button", { hidden: true, click: free }, "× enclosed on the map");
  parts.conditions = make("div", { class: "conditions" });
  parts.systems = make("div", { class: "systems" });
  const note = "All words must occur; -word excludes; “several words” occur together.";
  find("controls").append(
    make("label", { for: "words" }, "Words"),
    parts.words,
    make("p", { id: "words-note", class: "note" }, note),
    parts.where,
    make("h2", {}, "Only images where"),
    parts.presets,
    parts.lasso,
    parts.conditions,
    columnMenu("", filters.add, "Filter by a number", "Filter by a number"),
    make("h2", { hidden: !explorer.systems.length }, "Systems"),
    parts.systems,
    make("button", { class: "reset", click: filters.reset }, "Reset"),
  );
  find("controls").addEventListener("submit", (event) => event.preventDefault());
  find("filters").open = window.matchMedia("(min-width: 60rem)").matches;
  filters.makePresets();
  filters.makeSystems();
};

/** Bring the controls in line with the state. A field in which someone types is left alone. */
filters.update = () => {
  const { parts } = filters;
  const { words, where, conditions, hidden, lasso } = state;
  if (document.activeElement !== parts.words) parts.words.value = words;
  parts.where.value = where;
  parts.lasso.hidden = !lasso;
  for (const button of parts.presets.children)
    button.setAttribute("aria-pressed", conditions.some((condition) => sameCondition(condition, button.condition)));
  for (const box of parts.systems.querySelectorAll("input")) box.checked = !hidden.includes(box.value);
  updateConditions();
};

filters.reset = () => {
  filters.parts.words.value = "";
  refine({ words: "", where: "all", conditions: [], hidden: [], sort: "", down: false, lasso: "" });
};

filters.add = (name) => {
  if (name)
    refine({ conditions: [...state.conditions, { name, low: null, high: null }], image: null });
  find("controls").querySelector("select[aria-label='Filter by a number']").value = "";
};

/** Ranges that people ask for most, as buttons: of the last system that has them, which is not an oracle. */
filters.makePresets = () => {
  const { systems, column, columns } = explorer;
  const honest = systems.filter((system) => !system.oracle).reverse();
  const first = (...keys) => {
    for (const key of keys) for (const { name } of honest) if (column(`${name}:${key}`)) return `${name}:${key}`;
    return null;
  };
  const reranked = honest.filter(({ base }) => base);
  const gains = ["cider", "bleu_4", "meteor"].flatMap((key) =>
    reranked.map(({ name, base }) => `${name}:${key}${explorer.MINUS}${base}:${key}`),
  );
  const gain = gains.find(column) ?? null;
  const space = data.overview.spaces[0];
  const offered = [
    ["reranking changed the caption", first("changed"), 1, null],
    ["reranking helped", gain, 0.01, null],
    ["reranking hurt", gain, null, -0.01],
    ["a claim is wrong", first("wrong_claims"), 1, null],
    ["the true match is not first", space ? `${space.name}:i2t` : null, 2, null],
    ["its caption retrieves another image first", space ? first(`rank@${space.name}`) : null, 2, null],
    ["a reference is probably wrong", columns.find(({ name }) => /\baudit .*:wrong$/.test(name))?.name, 0.5, null],
    ["★ starred", "starred", 1, null],
  ];
  for (const [label, name, low, high] of offered) {
    if (!name || !column(name)) continue;
    const condition = { name, low, high };
    const button = make("button", { title: columnTitle(column(name)), click: toggle }, label);
    button.condition = condition;
    filters.parts.presets.append(button);
    function toggle() {
      const others = state.conditions.filter((other) => !sameCondition(other, condition));
      const on = others.length < state.conditions.length;
      refine({ conditions: on ? others : [...others, condition], image: null });
    }
  }
};

filters.makeSystems = () => {
  for (const system of explorer.systems) {
    const box = make("input", { type: "checkbox", value: system.name, change: choose });
    const oracle = system.oracle ? " (an upper bound: chosen with the references)" : "";
    filters.parts.systems.append(make("label", {}, box, nameOf(system), make("small", {}, oracle)));
    function choose() {
      const others = state.hidden.filter((name) => name !== system.name);
      refine({ hidden: box.checked ? others : [...others, system.name] });
    }
  }
};

const sameCondition = (one, other) => one.name === other.name && one.low === other.low && one.high === other.high;

/** One block for each condition; it is made anew only if its column is another one. */
const updateConditions = () => {
  const place = filters.parts.conditions;
  const { conditions } = state;
  const names = conditions.map(({ name }) => name).join("\n");
  if (place.names !== names) {
    place.names = names;
    place.replaceChildren(...conditions.map(({ name }, number) => conditionBlock(name, number)));
  }
  conditions.forEach((condition, number) => place.children[number].follow(condition));
};

const conditionBlock = (name, number) => {
  const column = explorer.column(name);
  const title = column ? columnTitle(column) : name;
  const change = (changes) => {
    const conditions = state.conditions.map((one, place) => (place === number ? { ...one, ...changes } : one));
    refine({ conditions, image: null });
  };
  const bound = (which, label) => {
    const read = () => change({ [which]: field.value === "" ? null : Number(field.value) });
    const attributes = { type: "number", step: "any", placeholder: label, "aria-label": `${label}, ${title}` };
    const field = make("input", { ...attributes, change: read });
    return field;
  };
  const low = bound("low", "at least");
  const high = bound("high", "at most");
  const described = { role: "img", "aria-label": `Histogram of ${title}; drag to choose a range` };
  const bars = make("canvas", { class: "histogram", width: 480, height: 72, ...described });
  const axis = make("p", { class: "axis" });
  const remove = () =>
    refine({ conditions: state.conditions.filter((_, place) => place !== number) });
  const block = make(
    "fieldset",
    {},
    make("legend", {}, column ? [column.label, make("small", {}, ` ${column.group}`)] : "not in this explorer"),
    make("button", { class: "remove", "aria-label": `Remove ${title}`, click: remove }, "×"),
    column ? [bars, axis] : null,
    minusMenu(name, (other) => change({ name: other, low: null, high: null }), `Minus, ${title}`),
    make("div", { class: "bounds" }, low, "–", high),
  );
  const values = column ? column.values.filter((value) => value !== null) : [];
  const least = values.reduce((one, other) => Math.min(one, other), Infinity);
  const most = values.reduce((one, other) => Math.max(one, other), -Infinity);
  if (column) dragRange(bars, least, most, (from, to) => change({ low: from, high: to }));
  block.follow = (condition) => {
    if (document.activeElement !== low) low.value = condition.low ?? "";
    if (document.activeElement !== high) high.value = condition.high ?? "";
    if (!column) return;
    const others = explorer.fitting(number).map((image) => column.values[image]).filter((value) => value !== null);
    const tallest = drawBars(bars, others, least, most, condition);
    const ends = [least, most].map((value) => make("span", {}, Number.isFinite(value) ? shown(value, column.places) : ""));
    axis.replaceChildren(ends[0], make("span", {}, `highest bar: ${shown(tallest)} of ${shown(others.length)} images`), ends[1]);
  };
  return block;
};

/** Draw the images that fit all other filters; equal heights are equal counts. Returns the count of the highest bar. */
const drawBars = (canvas, values, least, most, { low, high }) => {
  const counts = new Array(BARS).fill(0);
  const width = (most - least) / BARS || 1;
  for (const value of values) counts[Math.min(BARS - 1, Math.floor((value - least) / width))]++;
  const tallest = Math.max(...counts);
  const brush = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  brush.clearRect(0, 0, canvas.width, canvas.height);
  const each = canvas.width / BARS;
  counts.forEach((count, bar) => {
    const [from, to] = [least + bar * width, least + (bar + 1) * width];
    const inside = (low === null || to > low || bar === BARS - 1) && (high === null || from <= high);
    brush.fillStyle = style.getPropertyValue(inside ? "--good" : "--pale");
    const height = count ? Math.max(1, (count / tallest) * canvas.height) : 0;
    brush.fillRect(bar * each + 1, canvas.height - height, each - 2, height);
  });
  return tallest;
};

const dragRange = (canvas, least, most, choose) => {
  let from = null;
  const at = (event) => {
    const { left, width } = canvas.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (event.clientX - left) / width));
    return Number((least + share * (most - least)).toPrecision(3));
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    from = at(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (from !== null && at(event) !== from) choose(Math.min(from, at(event)), Math.max(from, at(event)));
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (from = null));
};
