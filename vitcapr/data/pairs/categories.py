"""A coarse class of a pair, derived from its words, for stratified splits. It is the same for Chinese and English.

The classes are those that the paper names for its pairs. A picture belongs to the class that most of its captions speak
for; a caption speaks for the first class, in the order below, that one of its words belongs to. That order goes from
what decides a picture's subject (a match, a party) to what is only present in it (a street, a table).
"""

import re
from collections import Counter
from collections.abc import Iterable

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


def category_of(text: str, language: str) -> str:
    """The class of one caption."""
    if language == "zh":
        return next((name for name, pattern in _PATTERN_OF.items() if pattern.search(text)), OTHER)
    found = {_CLASS_OF[word] for word in re.findall("[a-z]+", text.lower()) if word in _CLASS_OF}
    return min(found, key=_ORDER.__getitem__, default=OTHER)


def commonest(categories: Iterable[str]) -> str:
    """The class named most often; of several, the first by name, ``other`` only where nothing else is named."""
    counts = Counter(categories)
    named = {name: number for name, number in counts.items() if name != OTHER}
    return min(named, key=lambda name: (-named[name], name)) if named else OTHER
