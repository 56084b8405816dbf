"""The paper's tables and figures, and further studies, by name."""

from sqvae.paper.artefact import Artefact, Results, chosen, plan, report, words
from sqvae.paper.catalogue import ARTEFACTS
from sqvae.paper.collection import MOST_SEEDS, collect, collect_all
from sqvae.paper.reproduction import Reproduction, failures
from sqvae.paper.scales import SCALES, Scale

__all__ = [
    "ARTEFACTS",
    "MOST_SEEDS",
    "SCALES",
    "Artefact",
    "Reproduction",
    "Results",
    "Scale",
    "chosen",
    "collect",
    "collect_all",
    "failures",
    "plan",
    "report",
    "words",
]
