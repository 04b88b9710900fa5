"""Draws the cast of a story: a setting, characters, places, things. All agree with the setting."""

from pathlib import Path

from tale import read_lists, read_records

HERE = Path(__file__).parent
PRONOUNS = {
    "f": {"he": "she", "him": "her", "his": "her", "self": "herself", "child": "girl", "hers": "hers"},
    "m": {"he": "he", "him": "him", "his": "his", "self": "himself", "child": "boy", "hers": "his"},
}
NUMBERS = [
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
]


class Cast:
    """Draws for one story. `pick` chooses from a sequence; what was drawn once is not drawn again."""

    def __init__(self, lexicon: "Lexicon", pick):
        self.lexicon = lexicon
        self.pick = pick
        self.flags: set[str] = set()
        self.used: set[str] = set()
        self.setting = pick(lexicon.settings)
        self.hero_sex = ""

    def draw(self, kind: str) -> dict:
        """Draws one entity of a kind: a method of this class, or a record of a table."""
        if kind in self.lexicon.tables:
            table = self.lexicon.tables[kind]
            return table[self._fresh([(kind, row) for row in range(len(table))])[1]]
        return getattr(self, f"_draw_{kind}")()

    def _fresh(self, options):
        for _ in range(100):
            value = self.pick(options)
            if value not in self.used:
                self.used.add(value)
                return value
        raise ValueError(f"[cast] nothing left to draw from {options[:3]}...; the list needs more entries")

    def _draw_hero(self) -> dict:
        world = self.pick(("animal", "animal", "child", "child", "child", "folk"))
        animal = world == "animal" and bool(self.setting["animals"])
        self.flags.add("animal" if animal else "child")
        self.hero_sex = self.pick("fm")
        if animal:
            return self._creature_of(self.setting["animals"], self.hero_sex)
        return self._folk(self.hero_sex) if world == "folk" else self._child(self.hero_sex)

    def _draw_friend(self) -> dict:
        """A companion of the hero's world, mostly of the other sex, so that pronouns tell them apart."""
        other = "m" if self.hero_sex == "f" else "f"
        sex = self.pick((other, other, other, other, self.hero_sex))
        if "animal" in self.flags:
            return self._creature_of(self.setting["animals"], sex)
        return self._folk(sex) if self.pick(range(8)) == 0 else self._child(sex)

    def _draw_elder(self) -> dict:
        sex = self.pick("fm")
        if "animal" in self.flags:
            kind = self._fresh(self.lexicon.lists["elder animals"])
            title = self.pick(self.lexicon.lists[f"elder {sex}"])
            name = f"{title} {kind.capitalize()}"
            return self._person(
                name, sex, kind, {"intro": f"{name}, the oldest animal around", "role": f"old {kind}"}
            )
        role = self._fresh(self.setting["roles"])
        title = "Mrs." if sex == "f" else "Mr."
        name = f"{title} {self._fresh(self.lexicon.lists['surnames'])}"
        return self._person(name, sex, role, {"intro": f"{name}, the {role}", "role": role})

    def _draw_creature(self) -> dict:
        """A small animal met on the way; it has a kind and pronouns but no name."""
        kind = self._fresh(self.lexicon.lists["creatures"])
        return self._person(f"the {kind}", self.pick("fm"), kind, {"a": f"a~ {kind}", "full": f"a~ {kind}"})

    def _draw_cub(self) -> dict:
        """A small one that cannot help itself."""
        kind = self._fresh(self.lexicon.lists["cubs"])
        return self._person(f"the {kind}", self.pick("fm"), kind, {"a": f"a~ {kind}"})

    def _child(self, sex: str) -> dict:
        name = self._name("girls" if sex == "f" else "boys")
        return self._person(
            name,
            sex,
            PRONOUNS[sex]["child"],
            {
                "limb": "hand",
                "home": "house",
                "bed": "bed",
                "full": f"a {PRONOUNS[sex]['child']} named {name}",
            },
        )

    def _folk(self, sex: str) -> dict:
        return self._creature_of(self.lexicon.lists["folk"], sex) | {"bed": "bed"}

    def _creature_of(self, kinds: list[str], sex: str) -> dict:
        """An animal, or a figure from a fairy tale."""
        kind, limb, home = self._fresh(kinds).split(",")
        self.used.add(kind)
        name = self._name("animal names")
        return self._person(
            name,
            sex,
            kind,
            {"limb": limb, "home": home, "bed": "bed of leaves", "full": f"{name} the {kind}"},
        )

    def _person(self, name: str, sex: str, kind: str, more: dict) -> dict:
        trait = self.pick(self.lexicon.lists["traits"])
        size = self.pick(self.lexicon.lists["sizes"])
        return {"name": name, "kind": kind, "trait": trait, "size": size, "the": f"the {size} {kind}"} | (
            PRONOUNS[sex] | more
        )

    def _name(self, of: str) -> str:
        """A name of a list, or one time in twelve an invented one: a model then learns to keep any name."""
        return (
            self.lexicon.invent(self.pick)
            if self.pick(range(12)) == 0
            else self._fresh(self.lexicon.lists[of])
        )

    def _draw_place(self) -> dict:
        at = self._fresh(self.setting["places"])
        name = at[at.index(" the ") + 1 :] if " the " in at else at.split(" ", 1)[1]
        return {"name": name, "at": at, "to": f"to {name}"}

    def _draw_keepsake(self) -> dict:
        entry = self._fresh(self.lexicon.lists["keepsakes"])
        noun, looks = entry.split("=")
        look = self.pick(self.lexicon.lists[looks])
        name = f"{look} {noun}"
        self.used.add(noun)
        return {"name": name, "noun": noun, "look": look, "the": f"the {name}", "a": f"a~ {name}"}

    def _draw_food(self) -> dict:
        name = self._fresh(self.lexicon.lists["foods"])
        return {"name": name, "the": f"the {name}", "a": f"a~ {name}"}

    def _draw_counts(self) -> dict:
        """Two small numbers with their sum and difference, and what is counted: singular,plural."""
        one, many = self._fresh(self.lexicon.lists["countables"]).split(",")
        more, fewer = self.pick(range(2, 11)), self.pick(range(2, 10))
        first, second = max(more, fewer), min(more, fewer)
        if first == second:
            first += 1
        values = {"a": first, "b": second, "sum": first + second, "less": first - second}
        entity = {name: NUMBERS[value] for name, value in values.items()}
        for name, value in values.items():
            entity[f"{name}s"] = f"{NUMBERS[value]} {one if value == 1 else many}"
        return entity | {"name": many, "one": one}


class Lexicon:
    """Everything the grammar reads from its folders, read once."""

    def __init__(self):
        self.lists = read_lists(HERE / "lexicon" / "lists.txt")
        self.settings = [
            {
                "name": lists["setting"][0],
                "where": lists["where"],
                "places": lists["places"],
                "animals": lists.get("animals", []),
                "roles": lists["roles"],
            }
            for lists in map(read_lists, sorted((HERE / "lexicon" / "settings").glob("*.txt")))
        ]
        self.tables = {path.stem: read_records(path) for path in sorted((HERE / "tables").glob("*.txt"))}

    def invent(self, pick) -> str:
        """A name of one to three syllables, such as Zorba, Kelfini or Trix."""
        start = pick(self.lists["onsets"]) + pick(self.lists["vowels"])
        if pick(range(4)) == 0:
            return (start + pick(self.lists["codas"])).capitalize()
        name = start + pick(self.lists["middles"]) + pick(self.lists["vowels"][:5])
        return (name + (pick(self.lists["tails"]) if pick(range(4)) == 0 else "")).capitalize()
