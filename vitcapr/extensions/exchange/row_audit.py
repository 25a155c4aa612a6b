"""Whether a store holds what its recipe says: rows drawn at random are computed again and compared.

Rows that differ are looked for in other rows of the store, then computed by recipes that differ in one thing, so that
the fault has a name where it can have one.
"""

import platform
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial

import numpy as np
import torch

from vitcapr.data.images import ImageSource
from vitcapr.encoders.devices import dtype_name
from vitcapr.errors import UserError
from vitcapr.extensions.exchange.recompute import Arrays, CaptionRecipes, ImageRecipes, Recipes
from vitcapr.formats.audit_files import Audit, content_digest
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.store_manifest import read_sealed
from vitcapr.store.layout import TEXT
from vitcapr.store.reader import FeatureStore

TOLERANCE = {"float32": 1e-3, "bfloat16": 5e-2, "float16": 1e-2}
"""The distance of a row from its recomputation that counts as rounding, as a share of its length, by arithmetic."""
_CLEARLY_ROUNDING = 1e-4
"""No other recipe is looked for below this distance."""
_PROBES = 16
"""Rows that are computed by each other recipe."""


def audit(
    store: FeatureStore,
    data: Manifest,
    size: int,
    seed: int,
    source: str | None,
    device: torch.device,
    say: Callable[[str], None] = lambda _: None,
) -> Audit:
    """Compute a sample of rows again, by the recipe in the attributes of the store.

    Args:
        data: the data set whose images or captions are the rows.
        size: number of rows of the sample.
        source: hub id or folder of the checkpoint; None: the name in the attributes.
        say: receives a line on each recipe that is tried.

    Raises:
        UserError: the rows are not those of the data set, the store was imported, or it differs and the checkpoint at
            hand is not the one of the recipe, so nothing is proved.
    """
    attributes, where = store.attributes, store.manifest_path
    if not attributes.get("weights_sha256"):
        what = "the store has no recipe of an encoder that could be run again"
        raise UserError(what, where=where, remedy="audit a store that vitcapr extracted")
    if store.partial:
        raise UserError("the store is incomplete", where=where, remedy="pull all of it")
    store.check_rows(store.identity, data)
    count = len(store.ids)
    rows = np.sort(np.random.default_rng(seed).choice(count, min(size, count), replace=False))
    name = source or attributes["backbone"]
    with ExitStack() as stack:
        if store.identity == "image_id":
            files = stack.enter_context(ImageSource(data.image_root))
            recipes: Recipes = ImageRecipes(attributes, data, files, name, device)
        else:
            recipes = CaptionRecipes(attributes, data, name, device)
        same_weights = recipes.weights == attributes["weights_sha256"]
        computed, tolerance = recipes.compute(recipes.own, rows), TOLERANCE[attributes["dtype"]]
        stored = {array: store[array].gather(rows) for array in computed}
        errors = np.max([distances(stored[array], computed[array]) for array in computed], axis=0)
        bad, fault = rows[errors > tolerance], None
        equal = all(np.array_equal(stored[array], computed[array]) for array in computed)
        if len(bad) and not same_weights:
            theirs, ours = attributes["weights_sha256"][:16], recipes.weights[:16]
            what = f"the recipe names the weights {theirs}, and this checkpoint has {ours}: perhaps one is older"
            raise UserError(what, where=name, remedy=f"give the checkpoint {attributes['backbone']} with --backbone")
        if not equal:
            fault = _explain(store, recipes, rows, errors, tolerance, stored, computed, say)
        if not same_weights:
            fault = f"computed with the weights {recipes.weights}, which are not those of its recipe"
    largest, on_gpu = float(errors.max()), device.type == "cuda"
    processor = torch.cuda.get_device_name(device) if on_gpu else "CPU"
    return Audit(
        fingerprint=store.fingerprint,
        content_sha256=content_digest(read_sealed(where)),
        weights_sha256=recipes.weights,
        rows=count,
        seed=seed,
        sample=tuple(rows.tolist()),
        verdict="different" if fault else "equal" if equal else "rounding",
        fault=fault,
        bad=tuple(bad.tolist()),
        error=largest if np.isfinite(largest) else None,
        tolerance=tolerance,
        machine=f"{platform.system()} {platform.machine()}, {processor}, torch {torch.__version__}",
    )


def distances(stored: np.ndarray, computed: np.ndarray) -> np.ndarray:
    """Return the distance of each stored row from the computed one, relative to the computed length: (n,) float64.

    It is infinite where a number is not finite.
    """
    first, second = (array.reshape(len(array), -1).astype(np.float64) for array in (stored, computed))
    with np.errstate(invalid="ignore", over="ignore"):
        far = np.linalg.norm(first - second, axis=1) / np.maximum(np.linalg.norm(second, axis=1), 1e-12)
    return np.where(np.isfinite(far), far, np.inf)


def _explain(
    store: FeatureStore,
    recipes: Recipes,
    rows: np.ndarray,
    errors: np.ndarray,
    tolerance: float,
    stored: Arrays,
    computed: Arrays,
    say: Callable[[str], None],
) -> str | None:
    """Explain the difference; None if there is nothing but rounding."""
    bad = np.flatnonzero(errors > tolerance)
    if not len(bad) and errors.max() < _CLEARLY_ROUNDING:
        return None
    if np.isinf(errors).any():
        return "numbers that are not finite, or too large for its dtype (float16 overflow)"
    if len(bad) and (moved := _elsewhere(store, rows[bad], {name: a[bad] for name, a in computed.items()}, tolerance)):
        examples = ", ".join(f"'{store.ids[row]}' in the row of '{store.ids[there]}'" for row, there in moved[:3])
        what = "the order of the rows is another" if 2 * len(moved) > len(rows) else "rows are swapped"
        return f"{what}: the features of {examples}{', ...' if len(moved) > 3 else ''}"
    probes = (bad if len(bad) else np.arange(len(rows)))[:_PROBES]
    names = [name for name in stored if distances(stored[name], computed[name])[probes].max() > tolerance] or [*stored]

    def distance(arrays: Arrays) -> float:
        return max(float(np.median(distances(stored[name][probes], arrays[name]))) for name in names)

    own = {name: computed[name][probes] for name in stored}
    far_by_own = distance(own)
    best, least = None, far_by_own / 2
    for name, compute in _others(recipes, own, rows[probes]):
        with suppress(RuntimeError, KeyError):  # This encoder has no such layer or arithmetic.
            try:
                far = distance(compute())
            except UserError as error:
                say(f"{name}: not tried, {error}")
                continue
            say(f"{name}: {far:.1e}")
            if far < least:
                best, least = name, far
            if far == 0:
                break
    if best or not len(bad):
        return best
    cause = f"other weights, such as those of an older checkpoint, or another network (distance {far_by_own:.1e})"
    if far_by_own < TOLERANCE["bfloat16"]:
        cause = f"a coarser arithmetic or slightly other weights (distance {far_by_own:.1e})"
    return f"not by this recipe and no neighbouring one: {cause}"


def _others(recipes: Recipes, own: Arrays, rows: np.ndarray) -> Iterator[tuple[str, Callable[[], Arrays]]]:
    """Yield names of faults, each with a function that computes the rows with this fault; ``own`` are without one."""
    for dtype in (torch.float16, torch.bfloat16):
        rounded = {name: torch.from_numpy(array).to(dtype).float().numpy() for name, array in own.items()}
        yield f"rounded to {dtype_name(dtype)}", partial(dict, rounded)
    length_one = {name: a / np.maximum(np.linalg.norm(a, axis=-1, keepdims=True), 1e-12) for name, a in own.items()}
    yield "vectors scaled to length 1", partial(dict, length_one)
    for recipe in recipes.others():
        yield recipe.name, partial(recipes.compute, recipe, rows)


def _elsewhere(store: FeatureStore, rows: np.ndarray, computed: Arrays, tolerance: float) -> list[tuple[int, int]]:
    """Return the rows whose features are in another row of the store, which is read whole, and that other row."""
    name = next((name for name in (TEXT, "cls") if name in computed), next(iter(computed)))
    target = computed[name].reshape(len(rows), -1)
    array, best, place = store[name], np.full(len(rows), np.inf), np.full(len(rows), -1)
    for first in range(0, len(array), array.chunk):
        block = array[first : first + array.chunk].reshape(-1, target.shape[1]).astype(np.float32)
        far = (block**2).sum(1) - 2 * target @ block.T + (target**2).sum(1)[:, None]
        near = far.argmin(1)
        closer = far[np.arange(len(rows)), near] < best
        best[closer], place[closer] = far[np.arange(len(rows)), near][closer], first + near[closer]
    same = distances(array.gather(place), computed[name]) <= tolerance
    return [(int(row), int(there)) for row, there, yes in zip(rows, place, same, strict=True) if yes and row != there]
