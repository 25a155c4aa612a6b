"""CHAIR: how often captions name objects of MS COCO that are not in the image.

The 80 categories of the instance annotations, and the words that count as each, are those of Rohrbach et al. 2018,
"Object Hallucination in Image Captioning", without misspellings.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache

from vitcapr.errors import UserError
from vitcapr.metrics.base import CaptionMetric, TokenisedCaptions
from vitcapr.metrics.bootstrap import Measure, mean_measure, ratio, ratio_measure

_SYNONYMS = {
    "person": "adult, baby, baker, bicyclist, biker, boy, bride, buyer, caller, camper, chef, child, children, cop, "
    "cowboy, coworker, doctor, drinker, driver, father, female, foreigner, gentleman, girl, grandchild, groom, "
    "guy, hunter, kid, lady, male, man, mother, offender, officer, passenger, patient, people, pitcher, player, "
    "policeman, politician, rider, serviceman, shopper, sister, skateboarder, skater, skier, snowboarder, "
    "soldier, student, teenager, thief, traveler, trespasser, villager, walker, woman, worker",
    "bicycle": "bike, minibike, trike, unicycle",
    "car": "automobile, cab, coupe, hatchback, jeep, limo, minivan, sedan, suv, taxi, taxicab, van",
    "motorcycle": "moped, motor bike, motor cycle, motorbike, scooter",
    "airplane": "air plane, airbus, aircraft, biplane, jet, jetliner, monoplane, plane, seaplane",
    "bus": "minibus, trolley",
    "train": "caboose, locomotive, tramway",
    "truck": "firetruck, hauler, lorry, pickup",
    "boat": "barge, battleship, canoe, catamaran, dinghy, ferry, ferryboat, freighter, houseboat, kayak, lifeboat, "
    "liner, motorboat, paddleboat, pontoon, powerboat, riverboat, rowboat, sailboard, sailboat, schooner, ship, "
    "skiff, speedboat, steamboat, steamship, trawler, tugboat, vessel, watercraft, yacht",
    "traffic light": "stop light, stoplight, street light, streetlight, traffic signal",
    "fire hydrant": "hydrant",
    "bench": "pew",
    "bird": "blackbird, bluebird, bluejay, buzzard, chickadee, cockatiel, cockatoo, condor, cormorant, cowbird, "
    "crow, duck, egret, falcon, finch, flamingo, fowl, goose, gosling, gull, heron, hummingbird, kingfisher, "
    "loon, lorikeet, macaw, magpie, mallard, oriole, osprey, ostrich, owl, parakeet, parrot, peacock, peafowl, "
    "pelican, pheasant, pigeon, puffin, quail, raven, robin, rooster, sandpiper, seabird, seagull, shorebird, "
    "songbird, sparrow, swan, turkey, vulture, warbler, waterbird, waterfowl, willet, woodpecker",
    "cat": "feline, kitten, tabby",
    "dog": "beagle, brindle, bulldog, canine, chihuahua, cocker, collie, corgi, dachshund, doberman, doggie, doggy, "
    "greyhound, hound, husky, labrador, mutt, pitbull, poodle, pug, pup, puppy, retriever, rottweiler, schnauzer, "
    "sheepdog, spaniel, terrier, weimaraner, whippet",
    "horse": "bronc, bronco, clydesdale, colt, equine, foal, mare, mustang, palomino, pony, racehorse, stallion",
    "sheep": "ewe, goat, lamb, ram",
    "cow": "bison, buffalo, bull, calf, cattle, heifer, holstein, ox, oxen, zebu",
    "bear": "panda",
    "backpack": "knapsack",
    "handbag": "briefcase, purse, wallet",
    "tie": "bow, bow tie",
    "suitcase": "luggage, suit case",
    "skis": "ski",
    "sports ball": "ball",
    "surfboard": "longboard, shortboard, skimboard, wakeboard",
    "tennis racket": "racket",
    "knife": "pocketknife",
    "bowl": "container",
    "sandwich": "burger, cheeseburger, hamburger, sub",
    "donut": "bagel, doughnut",
    "cake": "cheesecake, coffeecake, cupcake, pancake, shortcake",
    "chair": "seat, stool",
    "couch": "chesterfield, futon, loveseat, recliner, settee, sofa",
    "potted plant": "houseplant",
    "dining table": "desk, table",
    "toilet": "commode, lavatory, potty, toilet seat, urinal",
    "tv": "monitor, television",
    "laptop": "computer, laptop computer, lenovo, macbook, netbook, notebook",
    "cell phone": "cellphone, iphone, mobile phone, phone, smartphone, telephone",
    "oven": "stove, stovetop",
    "refrigerator": "freezer, fridge",
    "teddy bear": "teddybear",
    "hair drier": "hairdryer",
}
_WITHOUT_SYNONYMS = (
    "stop sign, parking meter, elephant, zebra, giraffe, umbrella, frisbee, snowboard, kite, baseball bat, "
    "baseball glove, skateboard, bottle, wine glass, cup, fork, spoon, banana, apple, orange, broccoli, carrot, "
    "hot dog, pizza, bed, mouse, remote, keyboard, microwave, toaster, sink, book, clock, vase, scissors, "
    "toothbrush"
)

CATEGORIES = frozenset([*_SYNONYMS, *_WITHOUT_SYNONYMS.split(", ")])
"""The names of the categories in COCO's instance annotations."""

_YOUNG = ("bird", "cat", "dog", "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe", "animal", "cub")
_NAMED = {
    **{f"{age} {animal}": animal for age in ("baby", "adult") for animal in _YOUNG},
    **{f"passenger {vehicle}": vehicle for vehicle in ("jet", "train")},
    "home plate": "",
    "train track": "",
}
"""Two words that name what one word does, or nothing: in "baby bear", "baby" does not name a person."""
_WORD = re.compile("[a-z]+")


def mentioned(caption: str) -> list[str]:
    """The category of each mention of an object, in the order of the caption; a category may be named again.

    A term of two words, such as "hot dog", is taken before its words. Singular and plural count.
    """
    words, terms = _WORD.findall(caption.lower()), _terms()
    found: list[tuple[str, str]] = []
    place = 0
    while place < len(words):
        pair, word = " ".join(words[place : place + 2]), words[place]
        term = pair if pair in terms else word
        found.append((term, terms.get(term, "")))
        place += len(term.split())
    toilet = any(category == "toilet" for _, category in found)
    return [category for term, category in found if category and not (toilet and term in ("seat", "seats"))]


@cache
def _terms() -> dict[str, str]:
    """Every term in singular and plural -> its category; empty for none."""
    categories = {category: category for category in sorted(CATEGORIES)}
    categories |= {word: category for category, words in _SYNONYMS.items() for word in words.split(", ")}
    terms = categories | {pair: categories.get(word, "") for pair, word in _NAMED.items()}
    return {form: category for term, category in terms.items() for form in (term, *_plurals(term))} | terms


def _plurals(term: str) -> Iterator[str]:
    yield term + ("es" if term.endswith(("s", "x", "z", "ch", "sh")) else "s")
    if term.endswith("o"):
        yield term + "es"
    irregular = (("y", "ies"), ("man", "men"), ("child", "children"), ("mouse", "mice"), ("goose", "geese"))
    for ending, plural in (*irregular, ("fe", "ves"), ("calf", "calves"), ("thief", "thieves")):
        if term.endswith(ending):
            yield term.removesuffix(ending) + plural


def chair(captions: Sequence[str], objects: Sequence[Collection[str]]) -> dict[str, Measure]:
    """CHAIRi and CHAIRs (Rohrbach et al. 2018, "Object Hallucination in Image Captioning", section 2).

    CHAIRi is the share of the mentions of objects that name an object which is not in the image; CHAIRs is the share of
    captions with such a mention.

    Args:
        captions: (N,).
        objects: (N,) the categories in the image of each caption.
    """
    named = [mentioned(caption) for caption in captions]
    wrong = [sum(category not in there for category in each) for each, there in zip(named, objects, strict=True)]
    return {
        "chair_i": ratio_measure(wrong, [len(each) for each in named]),
        "chair_s": mean_measure([count > 0 for count in wrong]),
    }


def _chair(captions: TokenisedCaptions) -> dict[str, Measure]:
    if not captions.instances:
        raise UserError("CHAIR needs the instance annotations of COCO", remedy="name them, or leave out chair")
    objects = []
    for image, references in captions.references.items():
        if image not in captions.instances:
            what = "an image is not in the instance annotations"
            raise UserError(what, where=f"image {image}", remedy="name the instances_*.json of these images")
        objects.append(captions.instances[image].union(*map(mentioned, references)))
    return chair(captions.words, objects)


METRIC = CaptionMetric(
    measure=_chair,
    protocol="chair:instances+references",
    corpus={"chair_i": ("chair_statistics", ratio)},
)
