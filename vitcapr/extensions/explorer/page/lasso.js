"use strict";
// Images that a line on the map encloses. The address has the line in the places of the map, so that it is a filter like
// any other.

explorer.lasso = {};
let enclosed = { key: "", images: null };

/** Read the map that the line of the present state lies on, before images are filtered by it. */
explorer.lasso.load = async () => {
  const { lasso } = state;
  if (enclosed.key === lasso) return;
  const [corners, name] = parsed(lasso);
  const space = data.overview.spaces.findIndex((one) => one.name === name);
  const content = corners.length > 2 && space >= 0 ? await explorer.load(`map-${space}`) : null;
  const images = content?.places && content.images.filter((_, place) => inside(content.places[place], corners));
  enclosed = { key: lasso, images: images ? new Set(images) : null };
};

/** Whether an image is enclosed; every image is where there is no line. */
explorer.lasso.has = (number) => !state.lasso || !enclosed.images || enclosed.images.has(number);

/** A line as the address has it: its corners, then the name of the retrieval model. */
explorer.lasso.written = (corners, space) =>
  `${corners.map(([x, y]) => `${Math.round(1000 * x)},${Math.round(1000 * y)}`).join(";")}~${space}`;

/** The corners of the line on a map; none if it lies on the map of another model. */
explorer.lasso.corners = (space) => {
  const [corners, name] = parsed(state.lasso);
  return name === space ? corners : [];
};

const parsed = (text) => {
  const [line, ...name] = text.split("~");
  const corners = line.split(";").map((corner) => corner.split(",").map((value) => Number(value) / 1000));
  return [corners.filter((corner) => corner.length === 2 && corner.every(Number.isFinite)), name.join("~")];
};

/** Whether a ray from the point to the right crosses the closed line an odd number of times. */
const inside = ([x, y], corners) =>
  corners.filter(([x1, y1], place) => {
    const [x2, y2] = corners[(place + 1) % corners.length];
    return y1 > y !== y2 > y && x < x1 + ((y - y1) / (y2 - y1)) * (x2 - x1);
  }).length %
    2 ===
  1;
