"""The possible content of scenes, with English and Chinese names."""

from dataclasses import dataclass

Rgb = tuple[int, int, int]


@dataclass(frozen=True)
class Kind:
    """A kind of thing.

    Attributes:
        nouns: (singular, plural) pairs that English captions choose from.
        chinese: its noun in Chinese, and ``measure`` the measure word that goes with it.
        posture: (singular, plural) of the verb for being somewhere.
    """

    name: str
    nouns: tuple[tuple[str, str], ...]
    chinese: str
    measure: str
    posture: tuple[str, str]

    def words(self) -> list[str]:
        """Every noun by which a caption may name it."""
        return list(dict.fromkeys([*(word for pair in self.nouns for word in pair), self.chinese]))


@dataclass(frozen=True)
class Color:
    name: str
    chinese: str
    rgb: Rgb


@dataclass(frozen=True)
class Place:
    """The background of a picture.

    Attributes:
        phrases: how English captions say that something is there.
        chinese: the same in Chinese, ``chinese_noun`` the place by itself.
        kinds: the names of the kinds that may be seen there.
        avoided: colours that would not stand out from it.
        posture: the verb for being there where the place decides it, not the kind.
    """

    name: str
    phrases: tuple[str, ...]
    chinese: str
    chinese_noun: str
    kinds: tuple[str, ...]
    avoided: tuple[str, ...]
    posture: tuple[str, str] | None = None


SITS, STANDS, LIES = ("sits", "sit"), ("stands", "stand"), ("lies", "lie")
FLOATS = ("floats", "float")

# From what is spoken of to what it is located by: a ball is left of a house, a house is not right of a ball.
# The order makes the subject of a caption a property of the picture.
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("bird", (("bird", "birds"),), "鸟", "只", SITS),
        Kind("ball", (("ball", "balls"),), "球", "个", LIES),
        Kind("cup", (("cup", "cups"), ("mug", "mugs")), "杯子", "个", STANDS),
        Kind("star", (("star", "stars"),), "星星", "颗", LIES),
        Kind("fish", (("fish", "fish"),), "鱼", "条", LIES),
        Kind("kite", (("kite", "kites"),), "风筝", "只", LIES),
        Kind("flower", (("flower", "flowers"),), "花", "朵", STANDS),
        Kind("box", (("box", "boxes"), ("crate", "crates")), "箱子", "个", SITS),
        Kind("boat", (("boat", "boats"), ("sailboat", "sailboats")), "船", "艘", LIES),
        Kind("car", (("car", "cars"),), "汽车", "辆", ("is parked", "are parked")),
        Kind("tree", (("tree", "trees"),), "树", "棵", STANDS),
        Kind("house", (("house", "houses"),), "房子", "座", STANDS),
    )
}

# Told apart by lightness as well as hue, after Okabe and Ito's palette for colour-blind readers.
COLORS: dict[str, Color] = {
    color.name: color
    for color in (
        Color("red", "红色", (204, 38, 32)),
        Color("orange", "橙色", (240, 136, 16)),
        Color("yellow", "黄色", (250, 226, 60)),
        Color("green", "绿色", (0, 140, 84)),
        Color("blue", "蓝色", (36, 98, 214)),
        Color("purple", "紫色", (148, 74, 178)),
        Color("white", "白色", (248, 248, 248)),
        Color("black", "黑色", (38, 38, 44)),
    )
}

PLACES: dict[str, Place] = {
    place.name: place
    for place in (
        Place(
            "grass",
            ("on the grass", "on green grass", "in the grass"),
            "草地上",
            "草地",
            ("bird", "ball", "cup", "kite", "flower", "box", "car", "tree", "house"),
            ("green",),
        ),
        Place(
            "sand",
            ("on the sand", "on the beach", "on a sandy beach"),
            "沙滩上",
            "沙滩",
            ("bird", "ball", "cup", "star", "fish", "kite", "box", "boat", "car", "tree", "house"),
            ("yellow",),
        ),
        Place(
            "snow",
            ("in the snow", "on the snow", "on white snow"),
            "雪地上",
            "雪地",
            ("bird", "ball", "cup", "star", "box", "car", "tree", "house"),
            ("white",),
        ),
        Place(
            "water",
            ("in the water", "on the water", "in blue water"),
            "水中",
            "水面",
            ("bird", "ball", "cup", "fish", "flower", "box", "boat"),
            ("blue",),
            FLOATS,
        ),
        Place(
            "sky",
            ("in the sky", "in the blue sky", "in a cloudy sky"),
            "天空中",
            "天空",
            ("bird", "ball", "star", "kite"),
            ("blue", "white"),
            FLOATS,
        ),
        Place(
            "night",
            ("at night", "in the dark", "under a night sky"),
            "夜空下",
            "夜空",
            ("bird", "ball", "star", "kite", "flower", "boat", "car", "tree", "house"),
            ("black",),
        ),
        Place(
            "wall",
            ("by a brick wall", "against a brick wall", "near a brick wall"),
            "砖墙边",
            "砖墙",
            ("bird", "ball", "cup", "star", "kite", "flower", "box", "car", "tree", "house"),
            ("red", "orange"),
        ),
        Place(
            "floor",
            ("on a wooden floor", "on the floor", "on a floor of wood"),
            "木地板上",
            "木地板",
            ("bird", "ball", "cup", "star", "fish", "kite", "flower", "box", "boat", "car", "house"),
            ("orange",),
        ),
    )
}

SIZES = ("small", "large")
TEXTURES = ("plain", "striped", "dotted")
