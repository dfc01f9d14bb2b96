"""The words synthetic prompts are made of: each is one token in common vocabularies."""

import random

# Common English words that are a single token after a space in byte-pair vocabularies of 32k
# entries and more, so that n words are n tokens without a tokenizer at hand. Changing the list
# changes every schedule.
_LIST = """
the in of and to that on with an it are as can at not this have from they were which will
has was had been more other one our but out about some also into these its time how when his
may than new what would like people know work many such use help them their there where who
each make way long then she her him because through between while during before after under
over again same small large little great good best better high higher low early late old
young right left open close full free true real own sure able ready easy hard clear simple
common possible local public social human natural physical medical economic cultural global
national personal private special general specific certain similar several various major
main key top single whole entire half first second third last next past present future today
day days night week month year years hour minutes moment age period century history story
stories life living death birth world earth land sea water air fire wind rain ice sun light
dark space place places area region country city town home house room door wall road street
school college student students teacher teachers class book books page paper word words
letter name names number numbers line list table figure image video music art film game play
sport team player man woman men women child children boy girl mother father parents family
friend friends body head face eye eyes hand hands foot heart brain mind blood skin bone
health disease doctor patient patients care food eat drink milk meat fruit plant plants tree
animal animals bird fish dog cat horse farm field soil forest river mountain island coast
ocean state law laws rule rules power force forces army war peace leader leaders party vote
court police crime money price cost costs value market trade business company industry job
office worker workers service services product products system systems process method
methods model models data computer machine software network code test tests study research
science theory fact facts idea ideas question answer problem problems reason result results
effect effects cause change changes growth energy oil gas metal gold wood stone glass color
red blue green black white brown read write speak talk say said tell told ask asked call
called think thought feel felt see seen saw look show shown find found get got give given
take taken keep kept hold put set let run move turn start begin stop end stay leave come
came went go going bring send pay buy sell build built made create add cut break grow learn
teach live need want love hope try used using follow lead support protect increase reduce
improve develop provide include contain remain become consider believe remember explain
describe discuss compare measure
"""
WORDS = tuple(_LIST.split())


def sentence(rng: random.Random, words: int) -> str:
    """`words` random words, about as many tokens; O(words)."""
    return " ".join(rng.choices(WORDS, k=words))
