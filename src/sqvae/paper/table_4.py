"""Table 4 and figure 4: label maps, and the self-annealing of quantization and decoder."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sqvae.config import Experiment
from sqvae.metrics.measures import MEASURES
from sqvae.paper.artefact import Artefact, Content, Results, resized
from sqvae.paper.dynamics import ends_of, epochs_of
from sqvae.paper.methods import CATEGORICAL, categorical
from sqvae.paper.scales import Scale
from sqvae.paper.side_by_side import side_by_side
from sqvae.recipes.categories import celebamask_hq
from sqvae.reports import Claim, Table, mean_and_deviation
from sqvae.reports.plotting import fit_heights
from sqvae.sweeps import Record

PAPER = {
    "vae": ("8.79 ± 0.01", "55.8 ± 0.3", "-"),
    "vq-vae-ema": ("6.95 ± 0.14", "59.7 ± 0.7", "46.2 ± 2.0"),
    "nc-sq-vae": ("6.63 ± 1.38", "64.1 ± 5.4", "12.6 ± 5.2"),
    "vmf-sq-vae": ("3.51 ± 0.17", "74.6 ± 0.0", "52.4 ± 0.8"),
}
"""The paper's pixel error and mIoU in percent, and perplexity."""

FACES = 30_000
"""The number of label maps in CelebAMask-HQ. The paper's numbers are shown only for results on them."""

OURS = "vmf-sq-vae"

SHORT_EPOCHS = 17
"""The number of epochs of a short run, each of at least 200 steps."""


def _plan(scale: Scale, data: str) -> list[tuple[Experiment, Mapping[str, str]]]:
    base = resized(celebamask_hq(), 16, 16) if scale.name == "smoke" else celebamask_hq()
    tags = {"k": str(base.quantizer.codebook_size), "d": str(base.quantizer.dim), "kind": "labels"}
    return [(experiment, {"method": name, **tags}) for name, experiment in categorical(base, 20).items()]


def _present(results: Results) -> list[str]:
    return [method for method in CATEGORICAL if results.where(method=method)]


def _table(results: Results) -> Content:
    on_faces = all(sum(record.pictures.values()) == FACES for record in results.records)
    rows = []
    for method in _present(results):
        wrong, overlap = (
            [MEASURES[name].shown(value) for value in results.values(name, method=method)]
            for name in ("pixel_error", "miou")
        )
        cells = [
            mean_and_deviation(wrong),
            mean_and_deviation(overlap, 1),
            mean_and_deviation(results.values("perplexity", method=method), 1),
        ]
        rows.append([CATEGORICAL[method].label, *cells, *(PAPER[method] if on_faces else ())])
    header = ["model", MEASURES["pixel_error"].column, MEASURES["miou"].column, "perplexity"]
    header += ["paper's pixel error", "paper's mIoU", "paper's perplexity"] if on_faces else []
    present = sorted({int(record.measures["classes_present"]) for record in results.records})
    notes = [f"mIoU is the mean over the {' or '.join(map(str, present))} classes that occur in the test set."]
    if not on_faces:
        notes.append("This is not the paper's CelebAMask-HQ: the paper's numbers do not apply.")
    notes += _where_behind(results)
    caption = "Some label maps of the test set, and their reconstructions by each model. Black is unknown."
    return Content(
        tables=[Table("Test set", header, rows), _by_class(results)],
        drawings={"": (side_by_side(results, _present(results)), caption)},
        claims=_claims(results),
        notes=notes,
    )


def _by_class(results: Results) -> Table:
    """A table of the intersection over union of each class."""
    methods = _present(results)
    names = [name for name in results.where(method=methods[0])[0].measures if name.startswith("iou of ")]
    rows = [
        [
            name.removeprefix("iou of "),
            *(
                mean_and_deviation([MEASURES["miou"].shown(v) for v in results.values(name, method=m)], 1)
                for m in methods
            ),
        ]
        for name in names
    ]
    return Table("IoU by class, %", ["class", *(CATEGORICAL[method].label for method in methods)], rows)


def _where_behind(results: Results) -> list[str]:
    """A note on the classes in which another model is better than vMF SQ-VAE, if that model has the highest mIoU."""
    means = {method: statistics.fmean(results.values("miou", method=method)) for method in _present(results)}
    best = max(means, key=lambda method: means[method])
    if OURS not in means or best == OURS:
        return []
    names = [name for name in results.where(method=OURS)[0].measures if name.startswith("iou of ")]
    ours, theirs = (
        {name: statistics.fmean(results.values(name, method=method)) for name in names} for method in (OURS, best)
    )
    behind = [name.removeprefix("iou of ") for name in names if ours[name] < theirs[name]]
    label = CATEGORICAL[best].label
    return [f"{label} is ahead of vMF SQ-VAE in {len(behind)} of {len(names)} classes: {', '.join(behind)}."]


WHY_BEHIND = {
    "miou": (
        "if the classes at a position have the probabilities p given the codes, the best direction is p / |p| and "
        "costs 1 - |p|, which is about the probability of an error. A softmax costs the entropy of p, which "
        "decreases most when a rare class becomes a little more likely. So vMF SQ-VAE uses its codes for large "
        "regions, and few for thin or rare objects. This was tested by exchanging parts for 800 steps "
        "(docs/schedule.md): the vMF quantizer with a softmax finds more pedestrians and cyclists, with more wrong "
        "pixels; it does not find poles either, so the likelihood is not the only cause. In the paper NC SQ-VAE uses "
        "few of its codes (perplexity 12.6), and is worse in both."
    ),
    "perplexity": (
        "NC SQ-VAE does not collapse here as it does in the paper (perplexity 12.6), and uses codes for rare classes "
        "in addition (see above)."
    ),
}
"""The reasons for the measures in which vMF SQ-VAE is worse than another model."""


def _claims(results: Results) -> list[Claim]:
    methods = _present(results)
    rivals = [method for method in methods if method != OURS]
    if OURS not in methods or not rivals:
        return []
    claims = []
    better: Callable[..., Any]
    for measure, words, better in (
        ("pixel_error", "a lower pixel error", min),
        ("miou", "a higher mIoU", max),
        ("perplexity", "a higher perplexity", max),
    ):
        means = {
            method: MEASURES[measure].shown(statistics.fmean(values))
            for method in methods
            if (values := results.values(measure, method=method))
        }
        others = {method: means[method] for method in rivals if method in means}
        if OURS in means and others:
            named = ", ".join(CATEGORICAL[method].label for method in others)
            best = better(others.values())
            holds = better(means[OURS], best) == means[OURS] != best
            naive = better(others, key=lambda method: others[method]) == "nc-sq-vae"
            claims.append(
                Claim(
                    f"vMF SQ-VAE has {words} than {named}",
                    holds,
                    f"{means[OURS]:.2f} against {best:.2f} at best",
                    WHY_BEHIND.get(measure, "") if naive else "",
                )
            )
    return claims


def _dynamics(results: Results) -> Content:
    ours, naive = (_with_entropy(results.where(method=method)) for method in (OURS, "nc-sq-vae"))
    figure = Figure(figsize=(10, 4), layout="constrained")
    sharpness, entropy = figure.subplots(1, 2)
    _draw_concentrations(sharpness, ours[:1])
    for records, name in ((ours, OURS), (naive, "nc-sq-vae")):
        for record in records[:1]:
            style = CATEGORICAL[name]
            entropy.plot(
                epochs_of(record), record.training["entropy_per_position"], color=style.colour, label=style.label
            )
    entropy.set(title="(b) entropy per position", xlabel="epoch", ylabel="nats")
    if ours or naive:
        fit_heights(entropy, log=False, floor=True)
        entropy.legend()
    caption = (
        "Figure 4. (a) The concentrations of vMF SQ-VAE's quantization and decoder during training. (b) The entropy "
        "per position, for vMF SQ-VAE and for NC SQ-VAE. Both are of the first seed."
    )
    return Content(drawings={"": (figure, caption)}, claims=_annealing_claims(ours, naive))


def _draw_concentrations(axes: Axes, records: Sequence[Record]) -> None:
    for record in records:
        for name, label, colour in (
            ("concentration", r"quantization, $\kappa_\varphi$", "tab:blue"),
            ("decoder_concentration", r"decoder, $\kappa$", "tab:red"),
        ):
            axes.plot(epochs_of(record), record.training[name], color=colour, label=label)
        axes.legend()
        fit_heights(axes)
    axes.set(title="(a) concentrations of vMF SQ-VAE", xlabel="epoch", ylabel="concentration, without a unit")


def _with_entropy(records: Sequence[Record]) -> list[Record]:
    """The records that have curves."""
    return [record for record in records if record.training.get("entropy_per_position")]


def _annealing_claims(ours: Sequence[Record], naive: Sequence[Record]) -> list[Claim]:
    if not ours:
        return []
    claims = []
    for name, text, rises in (
        ("concentration", "The concentration of vMF SQ-VAE's quantization rises", True),
        ("decoder_concentration", "The concentration of its decoder rises", True),
        ("entropy_per_position", "The entropy of vMF SQ-VAE falls", False),
    ):
        first, last = ends_of(ours, name)
        claims.append(
            Claim(text, last > first if rises else last < first, f"{first:.3g} at the beginning, {last:.3g} at the end")
        )
    if naive:
        falls = []
        for records in (ours, naive):
            first, last = ends_of(records, "entropy_per_position")
            falls.append(first - last)
        claims.append(
            Claim(
                "The entropy of NC SQ-VAE falls by less", falls[1] < falls[0], f"{falls[1]:.2f} and {falls[0]:.2f} nats"
            )
        )
    return claims


TABLE_4 = Artefact(
    heading="Table 4, label maps",
    title="all models on label maps of faces: pixel error, mIoU, perplexity (CelebAMask-HQ)",
    data=("celebamask-hq",),
    plan=_plan,
    content=_table,
    short_epochs=SHORT_EPOCHS,
)
FIGURE_4 = Artefact(
    heading="Figure 4, self-annealing on label maps",
    title="concentrations and entropy during training, on label maps of faces (CelebAMask-HQ)",
    data=("celebamask-hq",),
    plan=_plan,
    content=_dynamics,
    short_epochs=SHORT_EPOCHS,
)
