"""Biology: base pairing, transcription, the genetic code, classes of animals, GC content."""

from __future__ import annotations

from itertools import product

from cl_bench.tasks.lab.kinds import Kind, Operands, sample_space

_PAIR = {"A": "T", "T": "A", "C": "G", "G": "C"}
_RNA = {"A": "U", "T": "A", "C": "G", "G": "C"}
# One letter per codon in the order TCAG x TCAG x TCAG of the standard genetic code.
_CODE = "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG"
_AMINO = {
    "A": "Ala",
    "R": "Arg",
    "N": "Asn",
    "D": "Asp",
    "C": "Cys",
    "Q": "Gln",
    "E": "Glu",
    "G": "Gly",
    "H": "His",
    "I": "Ile",
    "L": "Leu",
    "K": "Lys",
    "M": "Met",
    "F": "Phe",
    "P": "Pro",
    "S": "Ser",
    "T": "Thr",
    "W": "Trp",
    "Y": "Tyr",
    "V": "Val",
    "*": "stop",
}
_CODONS = {" ".join(bases): _AMINO[letter] for bases, letter in zip(product("UCAG", repeat=3), _CODE, strict=True)}
_ANIMALS = {
    "mammal": "cat dog cow pig bat fox seal wolf bear deer lion goat",
    "bird": "hen owl duck hawk crow swan dove kiwi",
    "fish": "cod eel carp tuna pike bass ray shark",
    "insect": "ant bee fly moth wasp flea gnat",
    "reptile": "boa asp gecko viper cobra skink",
    "amphibian": "frog toad newt",
    "mollusc": "clam snail slug squid mussel",
}
_CLASS = {animal: name for name, animals in _ANIMALS.items() for animal in animals.split()}


def _sequences(seed: str, lengths: range, n: int) -> tuple[Operands, ...]:
    return sample_space(n, seed, [(" ".join(s),) for length in lengths for s in product("ATGC", repeat=length)])


def _mapped(operands: Operands, table: dict[str, str]) -> str:
    return " ".join(table[base] for base in operands[0].split())


def _complement(operands: Operands) -> tuple[str, str]:
    return f"pairs of {operands[0]}", _mapped(operands, _PAIR)


def _transcript(operands: Operands) -> tuple[str, str]:
    return f"copy of {operands[0]}", _mapped(operands, _RNA)


def _reverse_complement(operands: Operands) -> tuple[str, str]:
    return f"pairs of {operands[0]}", " ".join(_PAIR[base] for base in reversed(operands[0].split()))


def _gc(operands: Operands) -> tuple[str, str]:
    found = [base for base in operands[0].split() if base in "GC"]
    return "found " + " ".join(found or ["none"]), str(len(found))


def _amino(operands: Operands) -> tuple[str, str]:
    return f"codon {operands[0]}", _CODONS[operands[0]]


def _class(operands: Operands) -> tuple[str, str]:
    return f"animal {operands[0]}", _CLASS[operands[0]]


_COMPLEMENT = (
    "What is the complement of {0}?",
    "Give the strand that pairs with {0}.",
    "Write the complement for {0}.",
    "Fill in: {0} pairs with ...",
)

KINDS = (
    Kind("biology", "complement", "rule", _COMPLEMENT, _sequences("complement", range(3, 6), 1400), _complement),
    Kind(
        "biology",
        "transcript",
        "rule",
        (
            "What is the transcript of {0}?",
            "Give the RNA made from {0}.",
            "Transcribe {0} to RNA.",
            "Fill in: the RNA of {0} is ...",
        ),
        _sequences("transcript", range(3, 6), 1400),
        _transcript,
    ),
    Kind(
        "biology",
        "codon",
        "fact",
        (
            "Which amino acid does {0} code for?",
            "Translate the codon {0}.",
            "The codon {0} means what?",
            "Give the amino acid of {0}.",
            "Fill in: {0} codes for ...",
        ),
        tuple((codon,) for codon in _CODONS),
        _amino,
    ),
    Kind(
        "biology",
        "class",
        "fact",
        (
            "Which class of animal is the {0}?",
            "Give the class of the {0}.",
            "The {0} is what kind of animal?",
            "Name the class that the {0} is in.",
            "Fill in: the {0} is a ...",
        ),
        tuple((animal,) for animal in _CLASS),
        _class,
    ),
    Kind(
        "biology",
        "gc",
        "rule",
        (
            "How many G or C are in {0}?",
            "Count G and C in {0}.",
            "Give the GC count of {0}.",
            "Fill in: the GC count of {0} is ...",
        ),
        _sequences("gc", range(4, 7), 1400),
        _gc,
    ),
    Kind(
        "biology", "long-complement", "rule", _COMPLEMENT, _sequences("long", range(7, 8), 200), _complement, ood=True
    ),
    Kind(
        "biology",
        "reverse-complement",
        "rule",
        ("What is the reverse complement of {0}?", "Give the complement of {0} in reverse order."),
        _sequences("reverse-complement", range(4, 5), 200),
        _reverse_complement,
        ood=True,
    ),
)
