"""The figures that Hoang, Haffari and Cohn (EMNLP 2017) printed, as facts to stand beside ours."""

from __future__ import annotations

NAMES = {"btec": "BTEC zh-en", "ted": "TED de-en", "wmt": "WMT de-en"}

# Table 1: part, tokens of the source and target, types, sentences.
SIZES: dict[str, tuple[tuple[str, str, str, str], ...]] = {
    "btec": (
        ("train", "422k / 454k", "3k / 3k", "44,016"),
        ("dev", "10k / 10k", "1k / 1k", "1,006"),
        ("test", "5k / 5k", "1k / 1k", "506"),
    ),
    "ted": (
        ("train", "4m / 4m", "26k / 19k", "194,181"),
        ("dev", "33k / 35k", "4k / 3k", "1,565"),
        ("test", "26k / 27k", "4k / 3k", "1,305"),
    ),
    "wmt": (
        ("train", "107m / 108m", "90k / 78k", "4m"),
        ("dev", "154k / 152k", "20k / 13k", "6,003"),
        ("test", "54k / 54k", "10k / 8k", "2,169"),
    ),
}

# Table 2: BLEU by half of the table and system.
BLEU: dict[str, dict[str, dict[str, float]]] = {
    "btec": {
        "greedy": {
            "greedy l2r": 35.98,
            "greedy r2l": 35.86,
            "EG from greedy": 36.34,
            "+bidirectional": 36.67,
            "+bilingual": 36.88,
        },
        "beam": {
            "beam l2r": 38.02,
            "beam r2l": 37.38,
            "EG from beam": 38.38,
            "+bidirectional": 39.13,
            "+bilingual": 38.25,
        },
    },
    "ted": {
        "greedy": {
            "greedy l2r": 23.16,
            "greedy r2l": 21.95,
            "EG from greedy": 23.28,
            "+bidirectional": 23.91,
            "+bilingual": 24.01,
        },
        "beam": {
            "beam l2r": 23.95,
            "beam r2l": 23.13,
            "EG from beam": 24.02,
            "+bidirectional": 24.72,
            "+bilingual": 24.60,
        },
    },
    "wmt": {
        "greedy": {
            "greedy l2r": 24.41,
            "greedy r2l": 23.59,
            "EG from greedy": 24.63,
            "+bidirectional": 25.37,
            "+bilingual": 25.21,
        },
        "beam": {
            "beam l2r": 26.69,
            "beam r2l": 26.11,
            "EG from beam": 26.66,
            "+bidirectional": 27.34,
            "+bilingual": 26.82,
        },
    },
}

# What Table 2 prints bold: significantly better than the best baseline of its half.
BOLD = {
    "btec": {("greedy", "+bidirectional"), ("greedy", "+bilingual"), ("beam", "+bidirectional")},
    "ted": {(half, name) for half in BLEU["ted"] for name in ("+bidirectional", "+bilingual")},
    "wmt": {("greedy", "+bidirectional"), ("greedy", "+bilingual"), ("beam", "+bidirectional")},
}

# Table 3: BLEU and average length on WMT de-en, bidirectional.
RERANKING = {
    "beam l2r": (26.69, 20.73),
    "filtered rerank": (26.84, 20.66),
    "EG from beam": (27.34, 20.73),
    "full rerank": (27.34, 21.76),
    "EG from rerank": (27.78, 21.70),
}

# Milliseconds a sentence of BTEC on a Titan X.
MILLISECONDS = {"greedy": 20, "beam 5": 70, "beam 10": 110, "EG, 35 iterations": 3100}
SPLIT = {"forward": 940, "backward": 2090, "update": 10}
