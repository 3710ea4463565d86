"""Wishes around a statement: to remember it, to forget it, and the courtesies that mean nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Something to remember. `always`: it was said to hold from now on."""

    content: str
    always: bool = False


_OPENING = re.compile(
    r"^(?:(?:hi|hello|hey|hiya|well|so|ok|okay|oh|ah|um|erm|look|listen|alright|right|sure|great|thanks|thank you|"
    r"yes|yeah|"
    r"and|also|but|then|by the way|btw|anyway|quick question|quick one|one more thing|another thing|one more question|"
    r"just (?:so you know|to be clear|curious|checking|a quick note)|to be clear|fun fact|honestly|you know|good "
    r"(?:morning|afternoon|evening)|"
    r"you know what|i think|i guess|i believe|as i said|as you know|for context|some context|(?:just )?a (?:quick "
    r")?(?:heads[- ]up|note|reminder)|heads[- ]up|important|attention|"
    r"hi there|hello there|hey there|dear assistant|assistant)(?:\s*[,:;!.–—-]+\s*|\s+(?=(?:i|my|our|we|the|what|"
    r"which|who|where|when|how|do|does|"
    r"did|can|could|please|remember|is|am|are)\b)))+(?=\S)",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"(?:\s*[,;–—-]\s*|\s+)(?:please|ok|okay|right|thanks|thank you(?: so much| very much)?|thanks a lot|you know|"
    r"cheers|by the way|btw|got it|alright|"
    r"all right|is(?: it|n['’]t it)|isn['’]t it|will you|would you|if you (?:can|do not mind|don['’]t mind|would|"
    r"please|know|remember)|huh|eh|again|"
    r"though|haha|lol|:\)|in case you (?:wonder|need it)|(?:just )?so you know|fyi|can you (?:tell|help) me(?: "
    r"out)?|can you help|do you (?:know|"
    r"remember))\s*(?P<end>[?!.]*)$",
    re.IGNORECASE,
)
_KEEP_TAG = re.compile(
    r"[\s,;.:!–—-]+(?:(?:and|so|please|now|just|do|you should|you must|make sure you|make sure to|could you|can you|"
    r"will you|i want you to)[,\s]+){0,6}"
    r"(?:keep|remember|note|save|store|memori[sz]e|(?:do not|don['’]t|never) forget|write|jot|bear|record|log)\s+"
    r"(?:that|it|this|them|those|all that|all of that)(?:\s+(?:down|somewhere|well))?"
    r"(?:\s+(?:in (?:your )?(?:mind|memory)|for (?:me|later|next time|the future|future reference)|forever|"
    r"permanently))*"
    r"(?:[,\s]+(?:please|ok|okay|will you|would you|thanks|thank you|alright))*\s*[.!?]*$|"
    r"[\s,;–—-]+(?:(?:please|and)\s+)?(?:keep (?:it|that) in mind|for (?:future reference|the record|next time|"
    r"later)|please remember|(?:please )?(?:do not|don['’]t) forget)\s*[.!]*$|"
    r"[,;–—-]\s*remember\s*[.!?]*$",
    re.IGNORECASE,
)
_ASKING = (
    r"(?:(?:can|could|will|would) you(?: please| kindly| maybe)?|please|kindly|do|now|always|just|also|so|try to|"
    r"you should|you must|you need to|you have to|"
    r"you can|make sure (?:to|that you|you)|be sure to|i (?:want|need|ask|expect) you to|i(?:['’]d| would) like you to|"
    r"i(?:['’]d| would) like you to please|it is important (?:to|that you)|it['’]s important (?:to|that you)|let us|"
    r"let['’]s|"
    r"would you mind|and)"
)
_SOMEBODY_DOES = re.compile(
    r"\b(?:I|we|he|she|they|people|nobody|everyone)(?:['’](?:ll|d|ve|m))?(?: (?:will|can|could|would|do|did|should|may|"
    r"might|not|always|never|still|hardly|ever|cannot|(?:ca|do|wo|did|could|would)n['’]t))*$",
    re.IGNORECASE,
)
"""`I'll always remember it` is no wish."""

_ONLY_ASKING = re.compile(
    rf"^(?:{_ASKING}[,\s]+){{0,6}}(?:remember|keep|save|note|store) (?:that|it|this)[.!]*$", re.IGNORECASE
)
_KEEPING = (
    r"(?:remember(?:ing)?|note|keep (?:(?:this|it|that|the following) )?in mind|keep a note|bear in mind|(?:do not|"
    r"don['’]t|dont|never) (?:ever )?forget|memori[sz]e|save|store|record|"
    r"write down|jot down|log|make (?:a )?note|take (?:a )?note|make a mental note|put on record|put in (?:your "
    r")?memory|add to (?:your )?memory|"
    r"commit to memory|know|hold on to|keep track of|keep hold of|take into account)"
)
_OBJECT = (
    r"(?:\s+(?:down|to self|also|of|for me|for later|for the future|for future reference|always|well|please|"
    r"in (?:your )?memory|to (?:your )?memory|the fact|about me|the following|these|this|forever|permanently))*"
)
_REQUEST = re.compile(
    rf"^(?:{_ASKING}[,\s]+){{0,6}}(?P<verb>{_KEEPING}){_OBJECT}(?:\s*[,:–—-]\s*|\s+|(?=[.!?]*$))(?:that\b(?:\s*[:,]\s*|"
    r"\s+|(?=[.!?]*$))|it\b(?=[.!?]*$))?(?P<rest>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_FOR_LATER = re.compile(
    r"^(?:note to self|for (?:future reference|the record|your information|later|next time)|fyi|note|important|"
    r"remember|reminder|memo|nb|n\.b\.|nota bene|you should know(?: that)?|"
    r"i want you to know(?: that)?|i(?:['’]d| would) like you to know(?: that)?|remind me that|(?:something|one "
    r"thing|a thing) to (?:remember|note))"
    r"\s*[,:–—-]?\s*(?P<rest>.+)$",
    re.IGNORECASE,
)
_ALWAYS = re.compile(
    r"^(?:please[,\s]+)?(?:from (?:now|today|here|this point|this moment) on(?:wards?)?|going forward|in (?:the "
    r")?future|henceforth|starting (?:now|today)|"
    r"as of (?:now|today)|from this day on|effective immediately|from now onwards?)\s*[,:–—-]?\s*(?P<rest>.+)$",
    re.IGNORECASE,
)
_ALWAYS_AFTER = re.compile(
    r"^(?P<rest>.+?)[,\s]+(?:from (?:now|today|here|this point) on(?:wards?)?|going forward|in (?:the )?future|"
    r"henceforth|starting (?:now|today)|as of (?:now|today))"
    r"(?:[,\s]+please)?[.!]*$",
    re.IGNORECASE,
)
_NO_REQUEST = re.compile(
    r"^(?:when|the (?:time|day|days|good old)|how|what|where|which|who|whose|why|if|whether|me|us|him|her|them|you)\b",
    re.IGNORECASE,
)
_LIST_AHEAD = re.compile(
    r"^(?:(?:these|the following|those|some|a few|a couple of|two|three|four|\d) ?)*(?:things?|facts?|points?|details?)"
    r"(?: for me| about me)?\s*[:,–-]\s*",
    re.IGNORECASE,
)
_NEEDS_ASKING = re.compile(r"^(?:know|save|store|record|log|hold|note)$", re.IGNORECASE)
_FORGET = re.compile(
    r"^(?:(?:please|you can|you may|you should|can you|could you|would you|i want you to|i(?:['’]d| would) like you "
    r"to|now|just|so|kindly|actually)[,\s]+){0,6}"
    r"(?P<verb>forget|delete|remove|erase|drop|wipe|clear|stop remembering|unlearn)\s+(?P<rest>.+)$",
    re.IGNORECASE,
)
_FORGET_OBJECT = re.compile(
    r"^(?:(?:about|that|everything|anything|all|what(?:ever)? (?:i (?:said|told you)|you (?:know|remember|saved|"
    r"stored))|the (?:memory|memories|note|notes|fact|entry|entries) "
    r"(?:of|about|that|on)|memories (?:of|about)|about)\s+)+",
    re.IGNORECASE,
)
_FROM_MEMORY = re.compile(r"\s+(?:from|in) (?:(?:your|the) )?(?:memory|memories|notes|store|mind)\b.*$", re.IGNORECASE)


def without_opening(sentence: str) -> str:
    """Return a sentence without greetings and fillers before it.

    >>> without_opening("Hi, by the way, my name is Ana.")
    'my name is Ana.'
    """
    return _OPENING.sub("", sentence.strip()).strip()


def without_tag(sentence: str) -> str:
    """Return a sentence without what trails after it; a question mark stays only where the sentence itself asks.

    >>> without_tag("My favourite colour is green, ok?"), without_tag("Who am I, please?")
    ('My favourite colour is green', 'Who am I?')
    """
    while (found := _TAG.search(sentence)) and sentence[: found.start()].strip():
        sentence = _cut_tag(sentence, found)
    return sentence


def _cut_tag(sentence: str, found: re.Match[str]) -> str:
    kept = sentence[: found.start()].rstrip(" ,;")
    asks = "?" in found.group("end") and re.match(
        r"^(?:what|which|who|whose|where|when|why|how|do|does|did|is|are|am|was|were|can|could|should|have|has|will|"
        r"tell)\b",
        kept,
        re.IGNORECASE,
    )
    return f"{kept}?" if asks else kept


def remembering(sentence: str) -> Wish | None:
    """Return what somebody asks to remember; None if the sentence is no such wish.

    >>> remembering("Please note that the deadline is Friday.").content
    'the deadline is Friday'
    >>> remembering("Can you remember what my name is?") is None
    True
    """
    tagged = None if _ONLY_ASKING.match(sentence) else _KEEP_TAG.search(sentence)
    before = sentence[: tagged.start()] if tagged else ""
    if before.strip() and not _is_asking(before) and not _SOMEBODY_DOES.search(before):
        return remembering(before) or Wish(content=_clean(before))
    for pattern in (_ALWAYS, _ALWAYS_AFTER):
        always = pattern.match(sentence)
        if always and not sentence.rstrip().endswith("?"):
            return Wish(content=_clean(always.group("rest")), always=True)
    found = _REQUEST.match(sentence) or _FOR_LATER.match(sentence)
    if not found:
        return None
    rest = found.group("rest")
    return None if _is_no_wish(found, rest, asks=sentence.rstrip().endswith("?")) else _wish(rest)


def forgetting(sentence: str) -> str | None:
    """Return what somebody asks to forget; None if nothing.

    >>> forgetting("Please forget my phone number."), forgetting("I forgot my keys.")
    ('my phone number', None)
    """
    found = _FORGET.match(sentence)
    if not found or re.match(r"(?:it|about it)[.!]*$", found.group("rest"), re.IGNORECASE):
        return None
    rest = _clean(found.group("rest"))
    is_memory = re.search(
        r"\b(?:my|our|memory|memories|remember|told|said|know|about|note|notes|topic|fact)\b", rest, re.IGNORECASE
    )
    if not is_memory and found.group("verb").casefold() not in {"forget", "stop remembering", "unlearn"}:
        return None
    return _FORGET_OBJECT.sub("", _FROM_MEMORY.sub("", rest)) or rest


def _wish(rest: str) -> Wish:
    always = _ALWAYS.match(rest) or _ALWAYS_AFTER.match(rest)
    content = _LIST_AHEAD.sub("", _clean(always.group("rest") if always else rest))
    to_do = re.match(r"^(?:always )?to (?!be\b)(?=\w)", content, re.IGNORECASE)
    content = content[to_do.end() :] if to_do else content
    return Wish(content=_clean(without_opening(content)), always=bool(always))


def _is_no_wish(found: re.Match[str], rest: str, *, asks: bool) -> bool:
    if _NO_REQUEST.match(rest):
        return True
    verb = found.groupdict().get("verb") or ""
    prefix = found.string[: found.start("verb")] if verb else ""
    if (
        verb
        and _NEEDS_ASKING.match(verb)
        and not prefix
        and not re.search(r"\b(?:that|this|it|my|our|down)\b|:", found.string, re.IGNORECASE)
    ):
        # `Store opens at nine` and `Log files are large` are statements.
        return True
    if verb.casefold() == "know" and not re.search(r"\byou\b", prefix, re.IGNORECASE):
        return True
    # `Remember my name?` asks; `Can you remember that I like tea?` says something.
    if re.search(r"\bthat\s*$|:\s*$", found.string[: found.start("rest")]):
        return False
    return asks and not re.search(
        r"\b(?:is|are|am|was|like|likes|love|prefer|prefers|have|has|hate|live|lives|work|works|use|uses)\b|"
        r"['’](?:m|s|re)\b",
        rest,
    )


def _is_asking(text: str) -> bool:
    return bool(
        re.match(r"^(?:do|did|can|could|will|would|why|how|what|should) (?:you|i|we)\b", text.strip(), re.IGNORECASE)
    )


def _clean(text: str) -> str:
    return without_tag(text.strip()).strip().rstrip(".!?;, ").strip()
