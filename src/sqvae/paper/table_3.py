"""Tables 3, 9 and 10, and figure 8: all models on speech."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from sqvae.config import Experiment
from sqvae.metrics.measures import MEASURES
from sqvae.paper.artefact import Artefact, Content, Results
from sqvae.paper.methods import METHODS
from sqvae.paper.scales import Scale, short
from sqvae.recipes.speech import BATCH, librispeech, vctk, zerospeech
from sqvae.reports import Claim, Table, mean_and_deviation
from sqvae.reports.plotting import fit_heights
from sqvae.sweeps import load_pictures

BASES = {"vctk": vctk, "zerospeech2019": zerospeech, "librispeech": librispeech}
LABELS = {"vctk": "VCTK", "zerospeech2019": "ZeroSpeech 2019", "librispeech": "LibriSpeech"}

GRID = ("vq-vae-ema-0.01", "vq-vae-ema-0.1", "vq-vae-ema-1", "vq-vae-ema-10")
OURS = ("sq-vae-1", "sq-vae-3", "sq-vae-4")

PAPER: Mapping[str, Mapping[str, str]] = {
    "vq-vae-ema-0.01": {"vctk": "31.25 ± 0.40", "zerospeech2019": "35.20 ± 1.21", "abx": "22.36 ± 0.14"},
    "vq-vae-ema-0.1": {"vctk": "30.89 ± 0.46", "zerospeech2019": "34.33 ± 1.57", "abx": "22.53 ± 0.33"},
    "vq-vae-ema-1": {"vctk": "29.59 ± 0.25", "zerospeech2019": "40.40 ± 1.24", "abx": "23.78 ± 0.74"},
    "vq-vae-ema-10": {"vctk": "36.92 ± 0.95", "zerospeech2019": "79.30 ± 42.95", "abx": "35.40 ± 6.73"},
    "sq-vae-1": {"vctk": "25.52 ± 0.08", "zerospeech2019": "33.17 ± 1.11", "abx": "22.11 ± 0.62"},
    "sq-vae-3": {"vctk": "25.94 ± 0.22", "zerospeech2019": "34.35 ± 1.07", "abx": "22.13 ± 0.29"},
    "sq-vae-4": {"vctk": "24.68 ± 0.21", "zerospeech2019": "32.32 ± 0.88", "abx": "24.46 ± 0.66"},
}
"""The paper's MSE in dB² on the test sets, and the ABX error in percent on ZeroSpeech 2019."""

SHORT_EPOCHS = 10
SHORT_STEPS = 250
"""The number of steps in an epoch of a short run: 2,500 in total; the paper has 500,000."""
SHORT_CHANNELS = 256
"""The number of channels of the encoder in a short run: a third of the paper's."""

ABX_DATA = {"vctk": None, "zerospeech2019": "zerospeech2019", "librispeech": "timit"}
"""The data of the ABX items for models of each data set. LibriSpeech has none, and uses those of TIMIT."""

REPRESENTATIONS = {"vectors": "quantized", "codes": "one-hot", "encodings": "before quantization"}


def _plan(scale: Scale, data: str) -> list[tuple[Experiment, Mapping[str, str]]]:
    if scale.name == "smoke" and data != "librispeech":
        return []  # synthetic voices are the same for all data sets
    base = BASES[data]()
    base = replace(base, speech=replace(base.speech, abx=ABX_DATA[data]))
    base = _small(base) if scale.name == "smoke" else base
    tags = {"k": str(base.quantizer.codebook_size), "d": str(base.quantizer.dim)}
    experiments = {method: METHODS[method].applied(base) for method in (*GRID, *OURS)}
    if scale.name == "short":
        experiments = {method: _short(experiment) for method, experiment in experiments.items()}
    return [(experiment, {"method": method, **tags}) for method, experiment in experiments.items()]


def _short(base: Experiment) -> Experiment:
    speech = replace(base.speech, channels=SHORT_CHANNELS, segments_per_epoch=SHORT_STEPS * BATCH)
    base = short(replace(base, speech=speech))
    return replace(base, training=replace(base.training, epochs=SHORT_EPOCHS))


def _small(base: Experiment) -> Experiment:
    speech = replace(base.speech, channels=16, hidden=16, speaker_dim=4, segments_per_epoch=64, abx="voices")
    quantizer = replace(base.quantizer, codebook_size=16, dim=8)
    return replace(base, speech=speech, quantizer=quantizer, training=replace(base.training, batch_size=8))


def _errors(results: Results, data: str, method: str) -> list[float]:
    return results.values("mse_db", data=data, method=method)


def _present(results: Results, data: str) -> list[str]:
    return [method for method in PAPER if results.where(data=data, method=method)]


def _sets(results: Results) -> list[str]:
    return [data for data in BASES if any(record.tags["data"] == data for record in results.records)]


def _ending(results: Results, data: str) -> str:
    """The suffix of a figure's name, if there are several."""
    return f"-{data}" if len(_sets(results)) > 1 else ""


def _best_of_grid(results: Results, data: str) -> str | None:
    """The variance that is best on validation."""
    found = {
        method: statistics.fmean(min(record.validation["mse_db"]) for record in results.where(data=data, method=method))
        for method in GRID
        if results.where(data=data, method=method)
    }
    return min(found, key=lambda method: found[method]) if found else None


def _table_3(results: Results) -> Content:
    tables, claims, notes = [], [], []
    for data in _sets(results):
        best = _best_of_grid(results, data)
        methods = [*([best] if best else []), *(method for method in OURS if method in _present(results, data))]
        tables.append(Table(f"{LABELS[data]}, test set", *_rows(results, data, methods)))
        claims += _claims(results, data)
        notes += _why_behind(results, data)
    note = "VQ-VAE's variance is the one with the lowest error on validation; table-9 has all of them."
    return Content(tables=tables, claims=claims, notes=[note, *notes])


def _table_9(results: Results) -> Content:
    tables, drawings, claims, notes = [], {}, [], []
    for data in _sets(results):
        tables.append(Table(f"{LABELS[data]}, test set", *_rows(results, data, _present(results, data))))
        caption = f"Validation on {LABELS[data]} during training."
        drawings[_ending(results, data)] = (_curves(results, data), caption)
        claims += _claims(results, data)
        notes += _why_behind(results, data)
    return Content(tables=tables, drawings=drawings, claims=claims, notes=notes)


def _rows(results: Results, data: str, methods: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    error = MEASURES["mse_db"].column
    header = ["model", error, "perplexity", MEASURES["bits_per_second"].unit, f"paper's {error}"]
    rows = [
        [
            METHODS[method].label,
            mean_and_deviation(_errors(results, data, method)),
            mean_and_deviation(results.values("perplexity", data=data, method=method), 1),
            mean_and_deviation(results.values("bits_per_second", data=data, method=method), 0),
            PAPER[method].get(data, "-"),
        ]
        for method in methods
    ]
    return header, rows


def _claims(results: Results, data: str) -> list[Claim]:
    means = {method: statistics.fmean(_errors(results, data, method)) for method in _present(results, data)}
    grid = {method: error for method, error in means.items() if method in GRID}
    if not grid:
        return []
    best = min(grid, key=lambda method: grid[method])
    return [
        Claim(
            f"{LABELS[data]}: {METHODS[method].label} has a lower error than every VQ-VAE (EMA) of the grid",
            means[method] < grid[best],
            f"{means[method]:.2f} dB² against {grid[best]:.2f} ({METHODS[best].label})",
        )
        for method in OURS
        if method in means
    ]


def _why_behind(results: Results, data: str) -> list[str]:
    """Notes on models whose error is not below that of all VQ-VAEs, from their training curves."""
    means = {method: statistics.fmean(_errors(results, data, method)) for method in _present(results, data)}
    grid = [error for method, error in means.items() if method in GRID]
    notes = []
    for method in OURS:
        if method not in means or not grid or means[method] < min(grid):
            continue
        record = results.where(data=data, method=method)[0]
        entropy, errors = record.training.get("entropy_per_position"), record.validation["mse_db"]
        if entropy:
            notes.append(
                f"{LABELS[data]}, {METHODS[method].label}: after {record.steps:,} steps (the paper has 500,000) the "
                f"codes are still drawn at random, with an entropy of {entropy[-1]:.2f} nats per position, while "
                f"VQ-VAE is deterministic; on validation its error has fallen from {errors[0]:.1f} to "
                f"{errors[-1]:.1f} dB²."
            )
    return notes


def _curves(results: Results, data: str) -> Figure:
    figure = Figure(figsize=(11, 4), layout="constrained")
    panels = figure.subplots(1, 3)
    for method in _present(results, data):
        record, style = results.where(data=data, method=method)[0], METHODS[method]
        for axes, curves, name in zip(
            panels,
            (record.validation, record.validation, record.training),
            ("mse_db", "perplexity", "variance"),
            strict=True,
        ):
            if curves.get(name):
                axes.plot(curves["step"], curves[name], color=style.colour, label=style.label, linewidth=1.2)
    for axes, title in zip(
        panels, ("MSE on validation, dB²", "perplexity on validation", "variance of the quantization"), strict=True
    ):
        axes.set(title=title, xlabel="step")
        axes.grid(alpha=0.25)
        if axes.lines:
            fit_heights(axes, floor=axes is panels[1])
    for axes, unit in zip(panels, ("dB²", "codes", "variance of one dimension"), strict=True):
        axes.set(ylabel=unit)
    panels[0].legend(fontsize="x-small")
    return figure


def _table_10(results: Results) -> Content:
    tables, claims = [], []
    for data in _sets(results):
        methods = [m for m in _present(results, data) if results.values("abx_across_codes", data=data, method=m)]
        if methods:
            tables.append(_abx_table(results, data, methods))
            claims += _abx_claims(results, data, methods)
    notes = [
        "ABX error: given three pieces of speech, A and X of the same kind and B of another, how often X is nearer "
        "to B. 50% is chance; lower is better. The pieces are triphones that differ in the middle. Across: the "
        "speaker of X is not that of A and B, as in the paper.",
        *(f"{record.name}: {note}." for record in results.records for note in record.notes),
    ]
    return Content(tables=tables, claims=claims, notes=notes)


def _abx_table(results: Results, data: str, methods: Sequence[str]) -> Table:
    columns = [(mode, what) for mode in ("across", "within") for what in REPRESENTATIONS]
    header = ["model", *(f"{mode}, {REPRESENTATIONS[what]}, %" for mode, what in columns), "paper's, across, %"]
    rows = [
        [
            METHODS[method].label,
            *(mean_and_deviation(_percent(results, f"abx_{mode}_{what}", data, method), 1) for mode, what in columns),
            PAPER[method]["abx"] if data == "zerospeech2019" else "-",
        ]
        for method in methods
    ]
    frames = [
        mean_and_deviation([100 * value for value in results.values(f"abx_{mode}_frames", data=data)][:1], 1)
        for mode in ("across", "within")
    ]
    rows.append(["log-mel frames themselves", frames[0], "-", "-", frames[1], "-", "-", "-"])
    return Table(f"Models of {LABELS[data]}, items of {ABX_DATA[data]}", header, rows)


def _percent(results: Results, measure: str, data: str, method: str) -> list[float]:
    return [100 * value for value in results.values(measure, data=data, method=method)]


CLEAR = 40.0
"""An ABX error below this percentage is clearly better than chance."""


def _abx_claims(results: Results, data: str, methods: Sequence[str]) -> list[Claim]:
    found = {method: statistics.fmean(_percent(results, "abx_across_vectors", data, method)) for method in methods}
    return [
        Claim(
            f"{LABELS[data]}: quantized, {METHODS[method].label} is below {CLEAR:g}% across speakers",
            error < CLEAR,
            f"{error:.1f}%",
        )
        for method, error in found.items()
        if method in OURS
    ]


def _figure_8(results: Results) -> Content:
    drawings = {
        _ending(results, data): (
            _spectrograms(results, data),
            f"Figure 8. The beginnings of two test utterances of {LABELS[data]}, and their reconstructions by each "
            "model.",
        )
        for data in _sets(results)
    }
    return Content(drawings=drawings)


def _spectrograms(results: Results, data: str) -> Figure:
    found = {
        METHODS[method].label: pictures
        for method in _present(results, data)
        if (pictures := load_pictures(results.folder, results.where(data=data, method=method)[0])) is not None
    }
    figure = Figure(figsize=(11, 1.6 * (len(found) + 1)), layout="constrained")
    if not found:
        return figure
    strips = {"source": next(iter(found.values()))[0], **{label: pictures[1] for label, pictures in found.items()}}
    panels = figure.subplots(len(strips), 2, squeeze=False)
    for row, (label, strip) in zip(panels, strips.items(), strict=True):
        for axes, picture in zip(row, strip[:: max(1, len(strip) // 2)], strict=False):
            axes.imshow(picture.numpy(), aspect="auto", interpolation="nearest")
            axes.set(xticks=[], yticks=[])
        row[0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize=8)
    return figure


def _artefact(heading: str, title: str, content: Callable[[Results], Content]) -> Artefact:
    return Artefact(
        heading=heading,
        title=title,
        data=tuple(BASES),
        plan=_plan,
        content=content,
        own_schedule=True,
    )


TABLE_3 = _artefact("Table 3, speech", "all models on speech: error (VCTK, ZeroSpeech 2019)", _table_3)
TABLE_9 = _artefact("Table 9, speech in detail", "all models on speech, each variance of VQ-VAE: error", _table_9)
TABLE_10 = _artefact("Table 10, acoustic units", "all models on speech: ABX discriminability of units", _table_10)
FIGURE_8 = _artefact("Figure 8, log-mel spectrograms", "log-mel spectrograms of all models side by side", _figure_8)
