"""Parts of speech of English captions by rule: closed classes by list, open ones by ending and neighbour.

Tagging is a side product here, and the taggers of NLTK and spaCy need a model that has to be downloaded. The rules are
those a caption needs: it is short, in the present tense, and its words are a noun unless something speaks against it.
"""

import re

_CLOSED = {
    "DET": "a an the this that these those some any each every no another both all",
    "ADP": "in on at of with by from to into onto over under through near behind beside between across along around "
    "against up down off out above below inside outside toward towards for during as among past beneath before after",
    "CONJ": "and or but while nor yet so because if when where",
    "PRON": "he she it they him her them his its their who which someone something himself herself itself i you we "
    "there one another's other others what",
    "NUM": "two three four five six seven eight nine ten eleven twelve several many few",
    "VERB": "is are be being been has have had was were do does did can could will would may wearing holding",
    "PRT": "not n't",
    "ADV": "very away together outside again also just almost then now here too forward back while",
    "ADJ": "red blue green yellow black white brown orange purple pink grey gray blond blonde small large big little "
    "young old tall short long other wooden dirty wet same different open high grassy snowy sandy rocky asian",
    "NOUN": "building ceiling clothing evening king morning ring string thing wedding wing bed field head road seed "
    "shed child friend family body belly butterfly",
}
_WORD_CLASS = {word: tag for tag, words in _CLOSED.items() for word in words.split()}
_ENDINGS = (
    ("ly", "ADV"),
    ("ing", "VERB"),
    ("ed", "VERB"),
    ("ful", "ADJ"),
    ("ous", "ADJ"),
    ("ish", "ADJ"),
    ("less", "ADJ"),
    ("est", "ADJ"),
)
_FINITE = re.compile(
    "(?:run|jump|play|stand|sit|walk|ride|hold|look|wear|swim|climb|catche|leap|fl(?:y|ie)|carr(?:y|ie)|chase|throw|"
    "stare|smile|pose|perform|ski|surf|race|lie|lay|get|make|take|watche|reache|watch|reach|catch)s?"
)
_SUBJECT = ("NOUN", "PRON", "NUM")
_TOKEN = re.compile(r"[A-Za-z]+(?:['’\-][A-Za-z]+)*|\d+(?:[.,]\d+)*|[^\w\s]|\w")


def tag_english(text: str) -> list[tuple[int, int, str]]:
    """(start, end, tag) of each word and symbol, in characters of ``text``; tags of Petrov et al. (2012).

    >>> [tag for _, _, tag in tag_english("A young man rides two brown horses .")]
    ['DET', 'ADJ', 'NOUN', 'VERB', 'NUM', 'ADJ', 'NOUN', '.']
    """
    found: list[tuple[int, int, str]] = []
    for match in _TOKEN.finditer(text):
        before = found[-1][2] if found else ""
        found.append((match.start(), match.end(), _tag(match.group().lower(), before)))
    return found


def _tag(word: str, before: str) -> str:
    if word[0].isdigit():
        return "NUM"
    if not word[0].isalpha():
        return "."
    if word in _WORD_CLASS:
        return _WORD_CLASS[word]
    if before in _SUBJECT and _FINITE.fullmatch(word):
        return "VERB"
    for ending, tag in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 2:
            # "a running dog": what describes stands between its article and its noun.
            return "ADJ" if tag == "VERB" and before == "DET" else tag
    return "NOUN"
