"""The codebook, looked at: what is computed from a model and pictures, what is drawn, and what `inspect` says."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from PIL import Image
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from families import SINGLE, STOCHASTIC
from runs import said, tiny, write_pictures
from sqvae.analysis import code_distances
from sqvae.cli import main
from sqvae.data import load as load_data
from sqvae.distributions import perplexity
from sqvae.modalities.evaluation import evaluate
from sqvae.modalities.images.codebook import code_atlas, map_size, quantized_pictures
from sqvae.modalities.images.data import new_model
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.reports import save_atlas, save_curves, save_distances, save_use
from sqvae.reports.clustering import near_order
from sqvae.reports.codebook import most_used
from sqvae.runs import train
from sqvae.tokenizers import load
from sqvae.training import read_records

SHAPES = {"grey": (1, 8, 8), "colour": (3, 8, 16), "tall": (1, 16, 8), "one position": (3, 4, 4)}
PLOTS = {"use.png", "distances.png", "codes.png", "annealing.png"}


def write(path: Path, shape: tuple[int, int, int] = (3, 8, 16), count: int = 60) -> Path:
    """A bright square on dark noise in each picture, as a .npy file."""
    channels, height, width = shape
    random = np.random.default_rng(0)
    pictures = random.integers(0, 60, (count, height, width, channels), dtype=np.uint8)
    for picture in pictures:
        top, left = random.integers(0, height - 3), random.integers(0, width - 3)
        picture[top : top + 4, left : left + 4] += np.uint8(150)
    np.save(path, pictures)
    return path


def experiment_on(source: Path, shape: tuple[int, int, int] = (3, 8, 16), name: str = "gaussian-1", codes: int = 16):
    base = tiny(source, epochs=1)
    return replace(
        base,
        data=replace(base.data, size=shape[1:], channels=shape[0]),
        quantizer=replace(base.quantizer, name=name, codebook_size=codes),
    )


def untrained(source: Path, shape: tuple[int, int, int], name: str = "gaussian-1", codes: int = 16) -> ImageTokenizer:
    """A model whose codes are encodings of its pictures, so that several are used without any training."""
    experiment = experiment_on(source, shape, name, codes)
    tokenizer = ImageTokenizer(new_model(experiment).eval(), experiment, "none")
    x = load_data(source, tokenizer.preprocessing).train.take(slice(None)).float() / 255
    with torch.no_grad():
        z = tokenizer.model.encoder(x)
        z = (z if isinstance(z, torch.Tensor) else z[0]).movedim(1, -1).flatten(0, 2)
        codebook = tokenizer.model.quantizer.get_parameter("codebook")
        codebook.copy_(z[torch.randperm(len(z))[:codes]])
    return tokenizer


@pytest.fixture(params=SHAPES)
def looked_at(request, tmp_path):
    shape = SHAPES[request.param]
    source = write(tmp_path / "pictures.npy", shape)
    tokenizer = untrained(source, shape)
    return tokenizer, load_data(source, tokenizer.preprocessing).validation


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run on colour pictures that are not square, and its data beside it."""
    root = tmp_path_factory.mktemp("inspected")
    train(experiment_on(write(root / "pictures.npy")), root / "run", announce=lambda text: None)
    return root / "run"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def figures(monkeypatch):
    """The figures that are drawn, kept rather than saved."""
    kept = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **_: kept.append(figure))
    return kept


def drawn(folder: Path) -> set[str]:
    """The plots in a folder, each of which is a whole picture with something on it."""
    for path in folder.glob("*.png"):
        with Image.open(path) as picture:
            assert len(np.unique(np.asarray(picture.convert("L")))) > 5, path
    return {path.name for path in folder.glob("*")}


# What is computed.


def direct_means(tokenizer, pictures, stride):
    """By hand: the mean over all positions of a code of the patch around it, leaving out what is outside."""
    x = pictures.take(range(len(pictures))).double() / 255
    codes = tokenizer.encode(pictures.take(range(len(pictures))))
    padded = torch.nn.functional.pad(x, (stride,) * 4, value=torch.nan)
    means = {}
    for code in range(tokenizer.codebook_size):
        patches = [
            padded[picture, :, row * stride : (row + 3) * stride, column * stride : (column + 3) * stride]
            for picture, row, column in (codes == code).nonzero().tolist()
        ]
        means[code] = torch.stack(patches).nanmean(0) if patches else torch.full_like(padded[0, :, :12, :12], torch.nan)
    return means


def test_what_is_seen_is_the_mean_of_the_patches(looked_at):
    tokenizer, pictures = looked_at
    atlas = code_atlas(tokenizer, pictures, codes=16, batch_size=4)
    assert atlas.stride == 4
    assert atlas.margin == 4
    expected = direct_means(tokenizer, pictures, 4)
    for rank, code in enumerate(atlas.codes.tolist()):
        torch.testing.assert_close(atlas.seen[rank].double(), expected[code], equal_nan=True, rtol=1e-6, atol=1e-6)
    assert not torch.isnan(atlas.seen[atlas.counts[atlas.codes] > 0][:, :, 4:8, 4:8]).any()


def test_what_is_drawn_is_the_centre_of_a_map_of_that_code_alone(looked_at):
    tokenizer, pictures = looked_at
    atlas = code_atlas(tokenizer, pictures, codes=5, batch_size=2)
    rows, columns = map_size(tokenizer)
    for rank, code in enumerate(atlas.codes.tolist()):
        picture = tokenizer.decode(torch.full((1, rows, columns), code))[0]
        top, left = rows // 2 * 4, columns // 2 * 4
        torch.testing.assert_close(atlas.drawn[rank, :, 4:8, 4:8], picture[:, top : top + 4, left : left + 4])
        inside = atlas.drawn[rank][:, 4 - top if top < 4 else 0 :, 4 - left if left < 4 else 0 :]
        reach = picture[:, max(0, top - 4) : top + 8, max(0, left - 4) : left + 8]
        torch.testing.assert_close(inside[:, : reach.shape[1], : reach.shape[2]], reach)
        assert torch.isnan(atlas.drawn[rank]).sum() == atlas.drawn[rank].numel() - reach.numel()


def test_places_and_use(looked_at):
    tokenizer, pictures = looked_at
    atlas = code_atlas(tokenizer, pictures, codes=16, batch_size=5)
    codes = tokenizer.encode(pictures.take(range(len(pictures))))
    for rank, code in enumerate(atlas.codes.tolist()):
        assert torch.equal(atlas.places[rank], (codes == code).sum(0))
    assert torch.equal(atlas.places.sum((1, 2)), atlas.counts[atlas.codes])
    assert atlas.counts[atlas.codes].tolist() == sorted(atlas.counts.tolist(), reverse=True)
    assert tuple(atlas.counts.tolist()) == evaluate(tokenizer.model, pictures, medium=tokenizer.medium).counts


def test_neither_batches_nor_memory_change_the_atlas(looked_at, monkeypatch):
    tokenizer, pictures = looked_at
    whole = code_atlas(tokenizer, pictures, codes=7)
    monkeypatch.setattr("sqvae.modalities.images.codebook.AT_ONCE", 500)
    parts = code_atlas(tokenizer, pictures, codes=7, batch_size=1)
    for name in ("counts", "codes", "seen", "places"):
        torch.testing.assert_close(getattr(whole, name), getattr(parts, name), rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(whole.drawn, parts.drawn, equal_nan=True)
    assert len(whole.codes) == 7


def test_few_pictures_are_taken_from_the_whole_set(looked_at):
    tokenizer, pictures = looked_at
    assert len(pictures) == 6
    atlas = code_atlas(tokenizer, pictures, at_most=3)
    assert (atlas.pictures, atlas.available) == (3, 6)
    codes = tokenizer.encode(pictures.take([0, 2, 4]))
    assert torch.equal(atlas.counts, torch.bincount(codes.flatten(), minlength=16))
    seen = []
    code_atlas(tokenizer, pictures, at_most=3, progress=lambda *report: seen.append(report))
    assert seen == [("counting codes", 3, 3), ("looking at codes", 3, 3)]


def test_codes_that_are_never_used_are_drawn_and_not_seen(tmp_path):
    source = write(tmp_path / "pictures.npy")
    tokenizer = untrained(source, SHAPES["colour"])
    with torch.no_grad():
        tokenizer.model.quantizer.get_parameter("codebook")[[3, 8]] = 1e3
    atlas = code_atlas(tokenizer, load_data(source, tokenizer.preprocessing).validation, codes=16)
    unused = [rank for rank, code in enumerate(atlas.codes.tolist()) if not atlas.counts[code]]
    assert {3, 8} <= set(atlas.codes[unused].tolist())
    assert torch.isnan(atlas.seen[unused]).all()
    assert not atlas.places[unused].any()
    assert not torch.isnan(atlas.drawn[unused][:, :, 4:8, 4:8]).any()


@pytest.mark.parametrize("name", SINGLE)
def test_distances_as_the_quantizer_sees_them(name, tmp_path):
    source = write(tmp_path / "pictures.npy")
    tokenizer = untrained(source, SHAPES["colour"], name)
    pictures = load_data(source, tokenizer.preprocessing).validation
    counts = torch.arange(16)
    distances = code_distances(tokenizer, counts=counts, quantized=quantized_pictures(tokenizer, pictures), at_most=5)
    assert distances.codes.tolist() == [15, 14, 13, 12, 11]
    codebook = tokenizer.model.quantizer.get_parameter("codebook").detach().double()
    if name == "vmf":
        directions = codebook / codebook.norm(dim=-1, keepdim=True)
        expected = 1 - directions @ directions.T
    else:
        expected = (codebook.unsqueeze(1) - codebook).norm(dim=-1)
    chosen = expected[distances.codes]
    torch.testing.assert_close(distances.matrix, chosen[:, distances.codes], rtol=1e-5, atol=1e-7)
    others = chosen.clone()
    others[torch.arange(5), distances.codes] = torch.inf
    torch.testing.assert_close(distances.nearest, others.amin(-1), rtol=1e-5, atol=1e-7)
    assert distances.directions == (name == "vmf")

    quantized = tokenizer.model(pictures.take(slice(None)).float() / 255).quantized
    blind = code_distances(tokenizer).scale
    if name not in STOCHASTIC:
        assert distances.scale is None
        assert blind is None
    elif name == "vmf":
        assert distances.scale == blind == pytest.approx(1 / quantized.concentration.item())
    else:
        assert distances.scale == pytest.approx(quantized.variance.mean().sqrt().item(), rel=1e-5)
        assert blind == (None if tokenizer.model.quantizer.needs_log_variance else distances.scale)


def test_the_nearest_code_is_found_however_little_fits_at_once(tmp_path, monkeypatch):
    tokenizer = untrained(write(tmp_path / "pictures.npy"), SHAPES["colour"])
    whole = code_distances(tokenizer)
    monkeypatch.setattr("sqvae.analysis.distances.AT_ONCE", 40)
    torch.testing.assert_close(code_distances(tokenizer).nearest, whole.nearest)


def test_near_codes_stand_together():
    """The order is one of the tree's that average linkage makes: every cluster of it is a stretch of the order."""
    random = np.random.default_rng(0)
    for count in (2, 3, 10, 60):
        points = random.normal(size=(count, 3)) + 4 * random.normal(size=(5, 3))[random.integers(0, 5, count)]
        distances = np.linalg.norm(points[:, None] - points, axis=-1)
        order = near_order(distances)
        place = {int(code): position for position, code in enumerate(order)}
        assert sorted(place) == list(range(count))
        clusters = {code: [place[code]] for code in range(count)}
        for number, (one, other, *_) in enumerate(linkage(squareform(distances, checks=False), "average")):
            members = clusters[int(one)] + clusters[int(other)]
            clusters[count + number] = members
            assert max(members) - min(members) == len(members) - 1


def test_the_order_of_few_or_equal_codes():
    assert near_order(np.zeros((0, 0))).tolist() == []
    assert near_order(np.zeros((1, 1))).tolist() == [0]
    assert sorted(near_order(np.zeros((5, 5)))) == list(range(5))


# What is drawn.


@pytest.mark.parametrize("size", [1, 2, 16, 4096])
def test_the_plot_of_use(size, figures):
    counts = torch.randint(0, 4, (size,)) * torch.randint(0, 100, (size,)) + (torch.arange(size) == 0)
    save_use(Path("use.png"), counts, "5 validation pictures of mine")
    title = figures[0].get_suptitle()
    unused = int((counts == 0).sum())
    assert f"perplexity {perplexity(counts.double()).item():,.1f}" in title
    assert (f"{unused:,} never used" if unused else "all are used") in title
    assert f"{int(counts.sum()):,} positions of 5 validation pictures" in figures[0].get_supxlabel()
    bars, together = figures[0].axes
    shares = bars.patches[0].get_data().values
    np.testing.assert_allclose(shares, np.sort(counts.numpy())[::-1] / int(counts.sum()))
    equal = next(line for line in bars.lines if line.get_label().startswith("equal use"))
    assert equal.get_ydata() == [1 / size, 1 / size]
    assert bars.get_yscale() == ("log" if shares.max() * size > 20 else "linear")
    assert together.lines[0].get_ydata()[-1] == pytest.approx(1)


@pytest.mark.parametrize(("size", "shown"), [(1, 1), (2, 2), (16, 16), (200, 50)])
@pytest.mark.parametrize("known", [True, False])
def test_the_plot_of_distances(size, shown, known, figures):
    vectors = torch.randn(size, 4)
    distances = torch.cdist(vectors, vectors)
    nearest = (distances + torch.diag(torch.full((size,), torch.inf))).amin(-1)[: shown if size > 1 else 0]
    counts = torch.arange(size) % 3 if known else None
    save_distances(
        Path("distances.png"),
        torch.arange(shown),
        distances[:shown, :shown],
        nearest,
        counts=counts,
        codebook_size=size,
        directions=False,
        scale=0.5,
    )
    figure, (matrix, histogram) = figures[0], figures[0].axes[:2]
    image = np.asarray(matrix.images[0].get_array())
    values = distances[:shown, :shown].numpy()
    np.testing.assert_allclose(np.sort(image, axis=None), np.sort(values, axis=None))
    labels = [int(label.get_text()) for label in matrix.get_yticklabels()]
    if shown <= 40:
        np.testing.assert_allclose(image, values[np.ix_(labels, labels)])
    if size == 1:
        assert "there is no other" in histogram.texts[0].get_text()
        return
    assert sum(bar.get_height() for bar in histogram.patches) == shown
    assert any("= 0.5" in text.get_text() for text in histogram.get_legend().get_texts())
    if shown < size:
        which = most_used(shown, counts) if known else f"the first {shown} of {size} codes"
        assert figure.get_suptitle() == f"Distances between {which}"


def test_which_codes_are_shown_is_said():
    counts = torch.cat((torch.arange(1, 33), torch.zeros(96)))
    assert most_used(32, counts) == "the 32 most used of 128 codes"
    assert most_used(64, counts) == "all 32 used, and 32 of the 96 unused, of 128 codes"


def test_codes_are_described_as_the_best_checkpoint_has_them(run, capsys):
    copy = Path("copy")
    shutil.copytree(run, copy)
    records = read_records(copy / "log.jsonl")
    best = [one for one in records if one["kind"] == "validation" and one["best"]][-1]
    later = {**best, "epoch": best["epoch"] + 1, "best": False, "perplexity": 1.0, "counts": [1, *[0] * 15]}
    (copy / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in [*records, later]))
    assert main(["inspect", str(copy)]) == 0
    used = sum(map(bool, best["counts"]))
    words = f"with the best checkpoint, after epoch {best['epoch']}: {used} of 16 are used on validation"
    assert words in said(capsys)


@pytest.mark.parametrize(("channels", "number"), [(1, 1), (3, 9)])
def test_the_plot_of_codes(channels, number, figures):
    seen, drawn_alone = torch.rand(2, number, channels, 12, 12)
    seen[0, :, :4] = torch.nan
    places = torch.randint(0, 5, (number, 3, 6)) + 1
    counts = torch.arange(20, 20 - number - 3, -1)
    counts[number - 1] = 0
    save_atlas(Path("codes.png"), torch.arange(number), counts, seen, drawn_alone, places, stride=4, where="2 pictures")
    axes = figures[0].axes[0]
    words = [text.get_text() for text in axes.texts]
    assert words[0].endswith(f": the {number} most used of {number + 3} codes")
    assert any("2 pictures" in text for text in words)
    assert f"code {number - 1}: never used" in words
    if number > 1:
        assert f"code 1: {100 * 19 / int(counts.sum()):.2f}%" in words
    canvas = axes.images[0].get_array()
    label = next(text for text in axes.texts if text.get_text().startswith("code 0:"))
    left, bottom = label.get_position()
    top = int(bottom) + 4
    first = canvas[top : top + 60 : 5, left : left + 60 : 5]
    np.testing.assert_allclose(first[4:], seen[0, :, 4:].permute(1, 2, 0).numpy() * np.ones(3), rtol=1e-6)
    assert np.allclose(first[:4], first[0, 0])
    second = canvas[top : top + 60 : 5, left + 65 : left + 125 : 5]
    np.testing.assert_allclose(second, drawn_alone[0].permute(1, 2, 0).numpy() * np.ones(3), rtol=1e-6)
    where = canvas[top + 15 : top + 45 : 10, left + 130 : left + 190 : 10].mean(-1)  # twice as wide as high
    assert np.argsort(-places[0].flatten().numpy(), kind="stable")[0] == where.argmin()


def test_curves_of_runs_with_few_records(run, figures):
    records = read_records(run / "log.jsonl")
    save_curves(Path("none.png"), [], 16)
    save_curves(Path("one.png"), records[:1], 16)
    save_curves(Path("all.png"), records, 16)
    nothing, one, everything = figures
    assert all("nothing recorded yet" in axes.texts[0].get_text() for axes in nothing.axes)
    assert all(line.get_marker() == "." for line in one.axes[0].lines)
    assert "nothing recorded yet" in one.axes[3].texts[0].get_text()
    labels = [text.get_text() for axes in everything.axes for text in axes.get_legend().get_texts()]
    assert labels.count("best checkpoint") == 4
    assert "uniform choice among 16" in labels


def test_curves_say_what_does_not_apply(run, figures):
    records = [{**record, "entropy_per_position": 0.0} for record in read_records(run / "log.jsonl")]
    save_curves(Path("plain.png"), records, 16)
    save_curves(Path("continuous.png"), records, 0)
    assert "nearest code" in figures[0].axes[1].texts[0].get_text()
    assert "no codes" in figures[1].axes[3].texts[0].get_text()


# What a person sees.


def test_inspect_draws_into_the_run_and_names_it(run, capsys):
    assert main(["inspect", str(run)]) == 0
    printed = said(capsys)
    assert drawn(run / "inspection") == PLOTS
    for name in PLOTS:
        assert f"{run / 'inspection' / name}:" in printed


def test_inspect_draws_elsewhere_or_nothing(run, capsys):
    shutil.rmtree(run / "inspection", ignore_errors=True)
    assert main(["inspect", str(run), "--no-plots"]) == 0
    assert "png" not in said(capsys).replace("curves.png", "")
    assert main(["inspect", str(run), "-o", "here/there", "--codes", "3", "--pictures", "2"]) == 0
    assert not (run / "inspection").exists()
    assert drawn(Path("here/there")) == PLOTS
    Path("taken").touch()
    assert main(["inspect", str(run), "-o", "taken"]) == 1
    assert "taken" in said(capsys)
    assert main(["inspect", str(run), "--codes", "0"]) != 0


def test_the_plots_say_on_how_many_pictures(run, figures, capsys):
    assert main(["inspect", str(run), "-o", "out", "--pictures", "4", "--codes", "5"]) == 0
    atlas, use, distances, _ = figures
    words = " ".join(text.get_text() for text in atlas.axes[0].texts)
    assert "the only one used, and 4 of the 15 unused, of 16 codes" in words
    assert "4 of 6 validation pictures of pictures.npy, with the best checkpoint, after epoch" in words
    assert "4 of 6 validation pictures" in use.get_supxlabel()
    assert "16 codes" in distances.get_suptitle()


def test_inspect_without_the_data(run, capsys, figures):
    shutil.copytree(run, "moved")
    config = json.loads(Path("moved/best/config.json").read_text())
    assert config["experiment"]["data"]["source"] == str(run.parent / "pictures.npy")
    hidden = run.parent / "hidden.npy"
    (run.parent / "pictures.npy").rename(hidden)
    try:
        assert main(["inspect", "moved", "-o", "out"]) == 0
        printed = said(capsys)
        assert "codes.png is left out:" in printed
        assert "say where the data is with --data" in printed
        assert "out/use.png:" in printed
        assert "out/distances.png:" in printed
        assert "out/annealing.png:" in printed
        use = figures[0]
        recorded = [record for record in read_records(run / "log.jsonl") if record["kind"] == "validation"][-1]
        assert f"perplexity {recorded['perplexity']:,.1f}" in use.get_suptitle()
        assert "as recorded after epoch 1" in use.get_supxlabel()
        Path("moved/log.jsonl").unlink()
        assert main(["inspect", "moved", "-o", "out", "--overwrite"]) == 0
        printed = said(capsys)
        assert "use.png and codes.png are left out:" in printed
        assert "out/distances.png:" in printed
        assert "annealing.png is left out: nothing has been recorded yet" in printed
        assert main(["inspect", "moved", "-o", "out", "--overwrite", "--data", str(hidden)]) == 0
        assert "out/codes.png: the meaning of each code" in said(capsys)
        assert main(["inspect", "moved", "-o", "out", "--overwrite", "--data", "nowhere"]) == 1
        assert "sqvae: there is no such file or folder: nowhere" in said(capsys)
    finally:
        hidden.rename(run.parent / "pictures.npy")


def test_a_run_that_has_only_begun(run, capsys):
    """Before the first validation, and before the first checkpoint."""
    shutil.copytree(run, "early", ignore=shutil.ignore_patterns("best", "previous"))
    steps = [line for line in (run / "log.jsonl").read_text().splitlines() if '"kind": "step"' in line]
    Path("early/log.jsonl").write_text("\n".join(steps) + "\n")
    assert main(["inspect", "early"]) == 0
    assert "not validated yet" in said(capsys)
    assert drawn(Path("early/inspection")) == PLOTS
    shutil.rmtree("early/last")
    shutil.rmtree("early/inspection")
    assert main(["inspect", "early"]) == 0
    printed = said(capsys)
    assert "no checkpoint yet" in printed
    assert "there is no checkpoint yet, so there are no plots of codes" in printed
    assert f"{len(steps) * 3} steps so far" in printed
    assert drawn(Path("early/inspection")) == {"annealing.png"}
    Path("early/log.jsonl").unlink()
    assert main(["inspect", "early"]) == 0
    assert "annealing.png is left out" in said(capsys)


def test_a_run_that_may_not_be_written_to_is_inspected_in_words(run, capsys):
    shutil.copytree(run, "closed", ignore=shutil.ignore_patterns("inspection"))
    Path("closed/inspection").touch()  # what stands in the way stops even an administrator
    assert main(["inspect", "closed"]) == 0
    printed = said(capsys)
    assert "no plots: can't write to closed/inspection" in printed
    assert "most used:" in printed


def test_changed_pictures_are_noticed(tmp_path, capsys):
    source = write(tmp_path / "pictures.npy")
    train(experiment_on(source), "own", announce=lambda text: None)
    write(source, count=61)
    assert main(["inspect", "own"]) == 0
    assert "the pictures have changed since this run was trained" in said(capsys)


@pytest.mark.parametrize(
    ("name", "codes"), [("gaussian-1", 1), ("gaussian-1", 2), ("gaussian-4", 16), ("vmf", 16), ("vq", 1500)]
)
def test_inspect_of_other_codebooks(name, codes, tmp_path, capsys):
    train(
        experiment_on(write(tmp_path / "pictures.npy", SHAPES["tall"]), SHAPES["tall"], name, codes),
        "run",
        announce=lambda text: None,
    )
    assert main(["inspect", "run"]) == 0
    assert drawn(Path("run/inspection")) == PLOTS


def test_a_continuous_latent_has_only_curves(tmp_path, capsys):
    experiment = experiment_on(write(tmp_path / "pictures.npy"), name="gaussian-latent")
    train(experiment, "run", announce=lambda text: None)
    assert main(["inspect", "run"]) == 0
    assert "a continuous latent has no codes, so there are no plots of them" in said(capsys)
    assert drawn(Path("run/inspection")) == {"annealing.png"}


def test_what_inspect_counts_is_what_evaluate_counts(run, figures, capsys):
    """The plot of use shows the counts of `evaluate` on the same pictures."""
    assert main(["evaluate", str(run), "--json", "--split", "validation"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert main(["inspect", str(run), "-o", "out"]) == 0
    shares = figures[-3].axes[0].patches[0].get_data().values
    np.testing.assert_allclose(shares, np.sort(record["counts"])[::-1] / sum(record["counts"]))
    assert f"perplexity {record['measures']['perplexity']:,.1f}" in figures[-3].get_suptitle()
    assert load(run).codebook_size == 16


def test_a_latent_vector_is_described(tmp_path, capsys):
    source = write_pictures(tmp_path / "squares.npy", side=16)
    settings = ["quantizer.name=gaussian-latent", "quantizer.dim=5", "network.map_dim=8", "network.widths=4,8"]
    options = [word for setting in settings for word in ("--set", setting)]
    run = tmp_path / "run"
    assert main(["train", "--data", str(source), "--out", str(run), "--epochs", "1", *options]) == 0
    assert "d = 5, seed 0" in (run / "results-test.md").read_text()
    assert "K =" not in (run / "results-test.md").read_text()
    capsys.readouterr()
    assert main(["inspect", str(run)]) == 0
    assert "a grey image of 16x16 becomes 5 numbers" in capsys.readouterr().out
