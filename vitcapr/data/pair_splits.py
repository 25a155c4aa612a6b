"""Splits pairs into training, validation and test sets by picture, so that no picture is in two splits.

Everything is decided by hashes of the seed and an id: the same files and seed give the same split on any machine, and
another order of the file gives no other.

Splits are stratified by a coarse class, derived from the words of a caption; it is the same for Chinese and English.
The classes are those that the paper names for its pairs. A picture belongs to the class that most of its captions speak
for; a caption speaks for the first class, in the order below, that one of its words belongs to. That order goes from
what decides a picture's subject (a match, a party) to what is only present in it (a street, a table).
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
import pandas as pd

from vitcapr.formats.pair_files import Pools

METHOD = "first class in the order given that a word of the caption belongs to; of a picture, the commonest"
OTHER = "other"

_ENGLISH = {
    "sport": "ball football soccer basketball baseball tennis volleyball hockey rugby golf ski skis skier skiing "
    "snowboard snowboarder surf surfer surfing surfboard skateboard skateboarder skateboarding skating race racing "
    "racer player players team match game goal climber climbing swimmer swimming wakeboarder cyclist cycling biker "
    "kayak wrestlers gymnast runner marathon",
    "social": "party wedding parade festival concert performance performer dancing dancers crowd protest restaurant "
    "band ceremony celebration carnival",
    "animal": "dog dogs puppy puppies cat cats horse horses bird birds cow cows sheep animal animals elephant bear "
    "fish duck ducks greyhound poodle retriever",
    "person": "man men woman women boy boys girl girls child children kid kids baby toddler person people lady ladies "
    "guy guys couple family adult adults teenager teenagers worker",
    "landscape": "mountain mountains beach ocean sea lake river waterfall field snow forest tree trees sunset sky hill "
    "desert cliff grass street city building buildings road",
    "object": "car cars truck bus train bike bicycle motorcycle boat table chair bench cup bottle book phone camera "
    "guitar circle square triangle star cube ball balls box boxes ring heart",
}
# Chinese has no spaces between words: a character counts but in words that mean something else (马路, a road).
_CHINESE = {
    "sport": "足球 篮球 棒球 网球 排球 橄榄球 曲棍球 滑雪 冲浪 滑板 滑冰 比赛 球员 运动 "
    "攀岩 游泳 赛车 自行车手 跑步 踢球 打球",
    "social": "派对 婚礼 游行 节日 音乐会 表演 演出 跳舞 人群 抗议 餐厅 乐队 庆祝",
    "animal": "狗 猫 马(?!路|上|甲|桶|拉松) 鸟 牛(?!仔|奶) 羊(?!毛) 动物 大象 熊 鱼 鸭",
    "person": "男人 女人 男孩 女孩 男子 女子 孩 婴儿 人 夫妇 情侣 家庭 女士 先生",
    "landscape": "山(?!地车) 沙滩 海(?!报) 湖 河 瀑布 田 雪 森林 树 日落 天空 沙漠 悬崖 草(?!帽|莓) 街 城市 建筑 路",
    "object": "车 火车 船 桌 椅 杯 瓶 书 手机 相机 吉他 圆 方 三角 星(?!期) 球 盒 环 心形",
}
CATEGORIES = (*_ENGLISH, OTHER)
_CLASS_OF = {word: name for name, words in reversed(_ENGLISH.items()) for word in words.split()}
_PATTERN_OF = {name: re.compile("|".join(words.split())) for name, words in _CHINESE.items()}
_ORDER = {name: place for place, name in enumerate(CATEGORIES)}


def classify_caption(text: str, language: str) -> str:
    """Return the class of one caption."""
    if language == "zh":
        return next((name for name, pattern in _PATTERN_OF.items() if pattern.search(text)), OTHER)
    classes = {_CLASS_OF[word] for word in re.findall("[a-z]+", text.lower()) if word in _CLASS_OF}
    return min(classes, key=_ORDER.__getitem__, default=OTHER)


def commonest(categories: Iterable[str]) -> str:
    """Return the class named most often; of several, the first by name, ``other`` only where nothing else is named."""
    counts = Counter(categories)
    named = {name: number for name, number in counts.items() if name != OTHER}
    return min(named, key=lambda name: (-named[name], name)) if named else OTHER


def rank(seed: int, purpose: str, identifier: str) -> bytes:
    """Return a random number for an id, as bytes that sort."""
    return hashlib.sha256(f"{seed}:{purpose}:{identifier}".encode()).digest()


def draw(identifiers: Iterable[str], number: int, seed: int, purpose: str) -> set[str]:
    """Draw ``number`` ids at random, or all of them if there are fewer."""
    return set(sorted(identifiers, key=lambda identifier: rank(seed, purpose, identifier))[:number])


def deal(pictures: pd.DataFrame, validation: float, seed: int) -> dict[str, str]:
    """``train`` or ``validation`` for each picture, in the same mixture of classes and languages.

    The pictures are sorted by class, then by their number of captions in each language, then at random, and at regular
    intervals one goes to validation. In each stretch of that order, hence for each class and each mixture of languages,
    the share of validation pictures is met to within one picture.

    Args:
        pictures: columns ``image_id, category`` and the number of captions in each language, ``en`` and ``zh``.
        validation: the share of the pictures, above 0 and below 1.
    """
    rows = pictures[["category", "zh", "en", "image_id"]].itertuples(index=False, name=None)
    order = sorted(rows, key=lambda row: (row[0], row[1], row[2], rank(seed, "split", row[3])))
    share = Fraction(str(validation))
    return {
        image_id: "validation" if int((place + 1) * share) > int(place * share) else "train"
        for place, (_, _, _, image_id) in enumerate(order)
    }


def choose_pools(
    captions: pd.DataFrame, queries: int, candidates: int, seed: int, distractors: Sequence[pd.DataFrame] = ()
) -> Pools:
    """Draw queries at random, and pools of their true matches, filled up with other random rows.

    Args:
        captions: those of the test split: ``caption_id, image_id, image_row, caption_row``.
        queries: of each direction; fewer where the split has fewer.
        candidates: the size of a pool; fewer where there are fewer, more where the true matches alone are more.
        distractors: captions of further splits, which fill up the pools one after the other.
    """
    pictures = captions.drop_duplicates("image_row")
    asked_images = _rows_of(draw(pictures["image_id"], queries, seed, "image queries"), pictures, "image")
    asked_texts = _rows_of(draw(captions["caption_id"], queries, seed, "text queries"), captions, "caption")
    true_texts = captions["caption_row"][captions["image_row"].isin(asked_images)]
    true_images = captions["image_row"][captions["caption_row"].isin(asked_texts)]
    texts = [captions, *distractors]
    return Pools(
        image_queries=asked_images,
        text_candidates=_filled(true_texts, texts, "caption", candidates, seed),
        text_queries=asked_texts,
        image_candidates=_filled(
            true_images, [table.drop_duplicates("image_row") for table in texts], "image", candidates, seed
        ),
    )


def _rows_of(drawn: set[str], table: pd.DataFrame, kind: str) -> np.ndarray:
    rows = table[f"{kind}_row"][table[f"{kind}_id"].isin(drawn)]
    return np.sort(rows.to_numpy()).astype(np.int32)


def _filled(
    true: "Sequence[int] | pd.Series[int]", tables: Sequence[pd.DataFrame], kind: str, size: int, seed: int
) -> np.ndarray:
    rows = np.unique(np.asarray(true)).astype(np.int32)
    for table in tables:
        others = table[~table[f"{kind}_row"].isin(rows)]
        room = max(0, size - len(rows))
        more = _rows_of(draw(others[f"{kind}_id"], room, seed, f"{kind} candidates"), others, kind)
        rows = np.sort(np.concatenate([rows, more]))
    return rows
