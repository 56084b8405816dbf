"""The paper's tables and figures, and further studies, by name."""

from collections.abc import Mapping

from sqvae.paper.artefact import Artefact, Results, chosen, plan, report, words
from sqvae.paper.collection import MOST_SEEDS, collect, collect_all
from sqvae.paper.encoder_inputs import ENCODER_INPUTS
from sqvae.paper.every_budget import EVERY_BUDGET
from sqvae.paper.figure_2 import FIGURE_2
from sqvae.paper.figure_5 import FIGURE_5
from sqvae.paper.figure_10 import FIGURE_10
from sqvae.paper.generation import GENERATION
from sqvae.paper.scales import SCALES, Scale
from sqvae.paper.table_2 import FIGURE_6, FIGURE_7, TABLE_2
from sqvae.paper.table_3 import FIGURE_8, TABLE_3, TABLE_9, TABLE_10
from sqvae.paper.table_4 import FIGURE_4, TABLE_4
from sqvae.paper.table_5 import TABLE_5

ARTEFACTS: Mapping[str, Artefact] = {
    "figure-2": FIGURE_2,
    "figure-5": FIGURE_5,
    "table-2": TABLE_2,
    "figure-6": FIGURE_6,
    "figure-7": FIGURE_7,
    "figure-10": FIGURE_10,
    "table-3": TABLE_3,
    "table-9": TABLE_9,
    "table-10": TABLE_10,
    "figure-8": FIGURE_8,
    "table-4": TABLE_4,
    "figure-4": FIGURE_4,
    "table-5": TABLE_5,
    "encoder-inputs": ENCODER_INPUTS,
    "every-budget": EVERY_BUDGET,
    "generation": GENERATION,
}
"""All tables and figures by the name that `sqvae reproduce` takes."""

__all__ = [
    "ARTEFACTS",
    "MOST_SEEDS",
    "SCALES",
    "Artefact",
    "Results",
    "Scale",
    "chosen",
    "collect",
    "collect_all",
    "plan",
    "report",
    "words",
]
