"""Pictures with words on them, and axes that don't mislead: what every drawing has in common."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from PIL import Image

from sqvae.metrics.meanings import (
    BATCHES,
    CODES,
    MEAN_PROBABILITIES,
    NEGATIVE_BITS,
    NEGATIVE_BITS_OF_DENSITIES,
    meanings,
)
from sqvae.modalities.images.media import UNKNOWN, LabelMedium, PictureMedium
from sqvae.reports import Caption, Picture, save_curves, save_pairs, save_rates, save_rows
from sqvae.reports.axes import LEAST_SPAN, fitting
from sqvae.reports.charts import Level, line_chart, time_axis
from sqvae.reports.grid import MOST_CLASSES


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def figures(monkeypatch):
    """The figures that are drawn, kept rather than saved."""
    kept = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **_: kept.append(figure))
    return kept


def opened(name: str) -> tuple[np.ndarray, str]:
    """A picture's pixels, and what it says of itself."""
    with Image.open(name) as image:
        return np.asarray(image.convert("RGB")), image.text.get("Description", "")


def has_colour(pixels: np.ndarray, colour: str) -> bool:
    wanted = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return bool((pixels == wanted).all(-1).any())


class TestSheets:
    def test_a_sheet_of_pairs_says_what_is_seen_and_leaves_the_pictures_as_they_are(self):
        pictures = torch.rand(5, 3, 96, 96)
        save_pairs(Path("pairs.png"), pictures, 1 - pictures, title="mine: 5 test pictures of photos")
        pixels, words = opened("pairs.png")
        assert words == "mine: 5 test pictures of photos\noriginal, reconstruction"
        first = (pictures[0].permute(1, 2, 0) * 255).round().byte().numpy()
        rows = [row for row in range(len(pixels) - 96) if (pixels[row, -14 - 5 * 96 - 4] == first[0, 0]).all()]
        assert any((pixels[row : row + 96, -14 - 5 * 96 - 4 : -14 - 4 * 96 - 4] == first).all() for row in rows)
        # Ink above and beside the pictures.
        assert (pixels[:30] < 128).any()
        assert (pixels[40:200, :100] < 128).any()

    def test_a_plain_sheet_stays_plain(self):
        save_rows(Path("samples.png"), [torch.rand(4, 1, 96, 96)], 2)
        pixels, words = opened("samples.png")
        assert pixels.shape == (2 * 96 + 2, 2 * 96 + 1, 3)
        assert words == ""

    @pytest.mark.parametrize("number", [1, 3, MOST_CLASSES, MOST_CLASSES + 7])
    def test_classes_are_named_in_their_colours_up_to_a_limit(self, number):
        classes = tuple((f"class {place}", f"#{10 + place:02x}{200 - place:02x}33") for place in range(number))
        save_rows(Path("maps.png"), [torch.ones(2, 3, 8, 8)], 2, Caption(classes=classes))
        pixels, words = opened("maps.png")
        for place, (name, colour) in enumerate(classes):
            assert (name in words.replace("\n", ", ").split(", ")) == (place < MOST_CLASSES)
            assert has_colour(pixels, colour) == (place < MOST_CLASSES)
        assert ("and 7 more classes" in words) == (number > MOST_CLASSES)

    def test_long_names_and_titles_stay_inside(self):
        caption = Caption("title " * 60 + "x" * 300, ("line " * 80,), ("original",), (), (("y" * 400, "#ff0000"),))
        save_rows(Path("long.png"), [torch.zeros(1, 1, 8, 8)], 8, caption)
        pixels, _ = opened("long.png")
        assert pixels.shape[1] < 800
        assert (pixels[:, -3:] == 255).all()

    def test_only_classes_that_occur_are_named_the_most_frequent_first(self):
        medium = LabelMedium(5, 255, ("sky", "road", "car", "tree", "sign"), ())
        labels = torch.tensor([[[1, 1, 1, 255], [3, 1, 3, 3]]])
        found = medium.classes_in(labels, torch.full((1, 2, 4), 1))
        assert [name for name, _ in found] == ["road", "tree", UNKNOWN]
        shown = (medium.shown(labels)[0, :, 0, 0] * 255).round().int().tolist()
        assert found[0][1] == "#{:02x}{:02x}{:02x}".format(*shown)
        assert LabelMedium(3).legend()[2][0] == "class 2"
        assert PictureMedium().classes_in(torch.rand(1, 3, 4, 4)) == ()

    def test_figures_of_results_have_their_captions_in_them(self):
        figure = Figure(layout="constrained")
        figure.subplots().plot([1, 2])
        caption = "Figure 1. What came of it, in a sentence that is long enough for two lines of a small drawing. " * 2
        Picture("drawn", figure, caption).save(Path())
        assert " ".join(figure.get_supxlabel().split()) == caption.strip()
        assert "What came of it" not in Path("drawn.svg").read_text()
        assert overlapping(figure) == []


def overlapping(figure: Figure) -> list[tuple[str, str]]:
    """Labels of ticks that lie on each other."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer, found = canvas.get_renderer(), []
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            (low, high), labels = sorted(axis.get_view_interval()), [*axis.get_ticklabels(), *axis.get_ticklabels(True)]
            places = [label.get_position()[0 if axis is axes.xaxis else 1] for label in labels]
            drawn = [
                (label.get_text(), label.get_window_extent(renderer))
                for label, place in zip(labels, places, strict=True)
                if label.get_text() and label.get_visible() and low <= place <= high
            ]
            assert len(drawn) >= 2 or not axes.lines, f"{axes.get_title()} has no scale"
            found += [(a, b) for (a, one), (b, other) in itertools.combinations(drawn, 2) if one.overlaps(other)]
    return found


RANGES = [(0.31, 0.33), (0.31, 4.8), (0.02, 30), (1e-4, 1e3), (2.1, 2.1), (0.21, 0.49)]


class TestAxes:
    @pytest.mark.parametrize(("low", "high"), RANGES)
    def test_labels_of_rates_don_t_overlap(self, low, high, figures):
        bits = np.geomspace(low, high, 9).tolist()
        curve = [(rate, 20 + 2 * place) for place, rate in enumerate(bits)]
        save_rates(Path("rates.png"), [(low, 24.4)], {"JPEG": curve, "WebP": curve[1:]}, "mine", "What files cost.")
        assert overlapping(figures[0]) == []
        assert "bits per pixel" in figures[0].axes[0].get_xlabel()
        assert "dB" in figures[0].axes[0].get_ylabel()

    @pytest.mark.parametrize(
        ("low", "high", "steps"),
        [(*ends, steps) for ends, steps in zip(RANGES, (11, 950, 5000, 123_456, 2_000_000, 70), strict=True)],
    )
    def test_labels_of_curves_don_t_overlap_and_have_units(self, low, high, steps, figures):
        records = [
            {
                "kind": kind,
                "step": round(steps * place / 10),
                "variance": value,
                "mse": value,
                "entropy_per_position": 4.2,
                "perplexity": 30.0,
                "codes_used": 100,
            }
            for place, value in enumerate(np.geomspace(high, low, 11).tolist())
            for kind in ("step", "validation")
        ]
        save_curves(Path("curves.png"), records, 128, title="How mine trained on photos")
        assert overlapping(figures[0]) == []
        assert all(axes.get_xlabel() and axes.get_ylabel() for axes in figures[0].axes)
        assert figures[0].get_suptitle() == f"How mine trained on photos, up to step {steps:,}"

    @pytest.mark.parametrize("falling", [True, False])
    @pytest.mark.parametrize("number", [1, 3, 200])
    @pytest.mark.parametrize("of_prior", [True, False])
    def test_legends_of_curves_hide_nothing(self, falling, number, of_prior, figures):
        values = np.linspace(0.9, 0.2, number) if falling else np.linspace(0.2, 0.9, number)
        names = ("variance", "relative_variance", "decoder_variance", "mse", "entropy_per_position", "perplexity")
        names = ("bits_per_code", "histogram_bits_per_code", "uniform_bits_per_code") if of_prior else names
        records = [
            {"kind": kind, "step": 10 * (place + 1), "best": True, **dict.fromkeys(names, value)}
            for place, value in enumerate(values.tolist())
            for kind in ("step", "validation")
        ]
        save_curves(Path("curves.png"), records, 0 if of_prior else 16)
        figures[0].draw_without_rendering()
        for axes in figures[0].axes:
            box, words = axes.get_legend().get_window_extent(), axes.xaxis.get_tightbbox()
            assert not box.overlaps(axes.get_window_extent())
            assert not box.overlaps(words)
            assert not any(box.overlaps(other.get_tightbbox()) for other in figures[0].axes if other is not axes)
            assert figures[0].bbox.containsx(box.x1)
            assert figures[0].bbox.containsy(box.y0)
            points = [point for line in axes.lines for point in line.get_transform().transform(line.get_xydata())]
            assert points
            assert not any(box.contains(*point) for point in points)

    def test_curves_of_a_prior_show_what_a_code_costs(self, figures):
        validated = {"bits_per_code": 5.2, "histogram_bits_per_code": 4.5, "uniform_bits_per_code": 7.0}
        records = [
            {"kind": "step", "step": 5, "bits_per_code": 6.1},
            {"kind": "validation", "step": 10, "best": True, **validated},
        ]
        save_curves(Path("curves.png"), records, 0)
        (axes,) = figures[0].axes
        labels = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
        assert labels["training batches"] == [6.1]
        assert labels["validation"] == [5.2]
        assert labels["validation, by the frequency of each code in training: 4.5"] == [4.5, 4.5]
        assert labels["all codes equally likely: 7"] == [7, 7]
        assert axes.get_ylabel() == "bits per code"
        assert not axes.texts
        assert "dashed line" in figures[0].get_supxlabel().replace("\n", " ")

    @pytest.mark.parametrize(("low", "high"), [(4.17, 4.21), (0.0333, 0.0334), (-4.21, -4.17), (7.0, 7.0)])
    def test_a_small_change_looks_small(self, low, high):
        axis = fitting([low, high], 0, 1)
        most = max(abs(low), abs(high))
        assert axis.high - axis.low >= LEAST_SPAN * most * (1 - 1e-9)
        assert axis(high) - axis(low) <= (high - low) / (LEAST_SPAN * most) + 1e-9
        assert axis.low < low <= high < axis.high

    def test_zeros_and_what_is_not_finite_are_drawn_too(self):
        assert fitting([0.0, 0.0], 0, 1).low == 0
        axis = fitting([math.inf, 3.0, math.nan, 2.9], 0, 1)
        assert axis.low < 2.9 < 3.0 < axis.high < 4

    def test_what_has_a_limit_is_drawn_from_nothing_to_the_limit(self, figures):
        records = [{"kind": "step", "step": step, "entropy_per_position": 4.21 - step / 1000} for step in (10, 50)]
        save_curves(Path("curves.png"), records, 128)
        low, high = figures[0].axes[1].get_ylim()
        assert low == 0
        assert high > math.log(128)
        chart = line_chart("entropy", [1, 2], [4.21, 4.17], y_name="nats", levels=[Level(4.85, "uniform choice")])
        assert ">nats</text>" in chart
        heights = [float(pair.split(",")[1]) for pair in chart.split('points="')[1].split('"')[0].split()]
        assert abs(heights[1] - heights[0]) < 3

    @pytest.mark.parametrize("seconds", [0.3, 2.76, 20.0])
    def test_seconds_are_where_they_are(self, seconds):
        places = [float(text.split('%"')[0]) for text in time_axis(seconds).split('<text class="label" x="')[1:]]
        texts = [text.rsplit(">", 1)[1] for text in time_axis(seconds).split("</text>")[:-1]]
        values = [float(text.removesuffix(" s")) for text in texts]
        assert len(values) > 2
        np.testing.assert_allclose(places, [100 * value / seconds for value in values], atol=0.01)


class TestMeanings:
    def test_each_measure_that_needs_it_is_told_apart_once(self):
        measures = {"perplexity": 20.0, "soft_perplexity": 198.9, "batch_perplexity": 26.1, "bits_per_dimension": -1.0}
        record = {"measures": measures, "likelihood": "gaussian", "rates": {"by": "the prior"}}
        told = meanings(record, 512)
        assert told[:3] == [CODES, MEAN_PROBABILITIES, BATCHES]
        assert "log2 K = 9" in told[3]
        assert "by the prior" in told[3]
        assert told[4:] == [NEGATIVE_BITS]

    def test_what_is_not_shown_is_not_explained(self):
        assert meanings({"measures": {"mse": 1.0, "bits_per_dimension": 0.5}, "likelihood": "gaussian"}, 0) == []
        assert meanings({"measures": {"bits_per_dimension": -0.5}, "likelihood": "vmf"}, 0) == []
        speech = {"measures": {"mse_db": 1.0, "bits_per_dimension": -0.5}, "likelihood": "gaussian"}
        assert meanings(speech, 0) == [NEGATIVE_BITS_OF_DENSITIES]
