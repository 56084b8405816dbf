"""The page about a run: `sqvae report`, for every kind of run, as a person and as a browser meets it."""

import json
import re
import shutil
import subprocess
import sys
from base64 import b64decode
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import soundfile
from matplotlib.figure import Figure
from PIL import Image

from runs import said, tiny, with_quantizer
from sqvae.cli import main
from sqvae.config import PriorExperiment, PriorSettings, SpeechSettings
from sqvae.metrics.meanings import BATCHES, CODES, MEAN_PROBABILITIES
from sqvae.reports import Claim, Picture, Report, Table, html_page
from sqvae.reports.axes import Axis, fitting
from sqvae.reports.charts import Dot, Level, bar_chart, line_chart, scatter
from sqvae.reports.codes import Span, Tiles, code_map, code_numbers
from sqvae.reports.page import as_png, is_page_of, page, words
from sqvae.reports.results import results_page
from sqvae.reports.run_page import about_chapter, without_places
from sqvae.runs import train
from sqvae.training import Plan

HOSTILE = "a <b>bold & \"quoted\" 'name'"
VOID = {"meta", "img", "br", "link", "input", "hr"}


class Checked(HTMLParser):
    """A page whose elements are closed in order; with what it names and what it asks for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.kinds: Counter[str] = Counter()
        self.ids: list[str] = []
        self.asked: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.kinds[tag] += 1
        values = dict(attrs)
        assert len(values) == len(attrs), f"{tag} has an attribute twice"
        assert not [name for name in values if name.startswith("on")]
        self.ids += [values["id"]] if "id" in values else []
        self.asked += [values[name] for name in ("src", "href") if name in values]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"{tag} is closed where it is not open"

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def checked(path: Path, *places: Path) -> Checked:
    """A page that is whole, small, leads nowhere outside of itself, and does not tell where files lie."""
    text = path.read_text(encoding="utf-8")
    found = Checked(text)
    assert len(found.ids) == len(set(found.ids))
    assert all(
        one.startswith(("data:image/", "data:audio/")) or one.removeprefix("#") in found.ids for one in found.asked
    )
    assert not re.search(r"https?://", text)
    assert found.kinds["script"] == 0
    assert len(text) < 3_000_000
    for place in (*places, Path.home(), Path.cwd()):
        assert f"{place}/" not in text
    return found


def write_pictures(folder: Path, count: int = 40, side: int = 8, name: str = "{}.png") -> Path:
    random = np.random.default_rng(0)
    folder.mkdir()
    for number in range(count):
        pixels = random.integers(0, 60, (side, side, 3), dtype=np.uint8)
        pixels[number % 4 : number % 4 + 4, :4] += np.uint8(150)
        Image.fromarray(pixels).save(folder / name.format(number))
    return folder


def write_maps(folder: Path) -> Path:
    random = np.random.default_rng(0)
    folder.mkdir()
    for number in range(30):
        labels = np.repeat(np.repeat(random.integers(0, 3, (2, 2), dtype=np.uint8), 4, 0), 4, 1)
        Image.fromarray(labels).save(folder / f"{number}.png")
    (folder / "classes.txt").write_text("sky\n<i>road\ncar\n")
    return folder


def write_recordings(folder: Path) -> Path:
    random = np.random.default_rng(0)
    for speaker in ("anna", "<u>ben"):
        for number in range(6):
            path = folder / speaker / f"{number}.wav"
            path.parent.mkdir(parents=True, exist_ok=True)
            soundfile.write(path, 0.1 * random.standard_normal(8000), 16_000)
    return folder


def trained(experiment, out: Path) -> Path:
    train(experiment, out, announce=lambda text: None)
    return out


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("reported")


@pytest.fixture(scope="module")
def pictures(place) -> Path:
    """A run on pictures with odd names, with a prior, evaluated."""
    source = write_pictures(place / "my <i>photos", name=f"{HOSTILE} {{}}.png")
    base = tiny(source, epochs=6, learning_rate=2e-2)
    run = trained(replace(base, quantizer=replace(base.quantizer, initial_variance=1.0)), place / "my <i>run")
    settings = PriorSettings(channels=8, layers=1)
    plan = Plan(epochs=1, batch_size=8, passes_per_epoch=1, threads=1)
    trained(PriorExperiment(tokenizer=str(run), prior=settings, training=plan), run / "prior")
    assert main(["evaluate", str(run), "--no-rates"]) == 0
    return run


@pytest.fixture(scope="module")
def maps(place) -> Path:
    base = tiny(write_maps(place / "maps"), epochs=1)
    experiment = replace(with_quantizer(base, "vmf"), data=replace(base.data, kind="labels"))
    run = trained(experiment, place / "run-maps")
    assert main(["evaluate", str(run)]) == 0
    return run


@pytest.fixture(scope="module")
def speech(place) -> Path:
    base = tiny(write_recordings(place / "voices"), epochs=1)
    small = SpeechSettings(channels=8, hidden=8, speaker_dim=4, segments_per_epoch=32)
    return trained(replace(base, data=replace(base.data, kind="speech"), speech=small), place / "run-speech")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def moved(pictures, tmp_path) -> Path:
    """A copy of the run without its prior and its results, to change."""
    return Path(shutil.copytree(pictures, tmp_path / "run", ignore=shutil.ignore_patterns("prior", "results*")))


@pytest.fixture
def _without_data(pictures):
    photos = pictures.parent / "my <i>photos"
    photos.rename(photos.with_name("hidden"))
    yield
    photos.with_name("hidden").rename(photos)


class TestKinds:
    def test_pictures_with_a_prior_show_everything(self, pictures, place, tmp_path, capsys):
        out = tmp_path / "report.html"
        assert main(["report", str(pictures), "-o", str(out), "--examples", "3"]) == 0
        told = said(capsys)
        assert "not on the page" not in told
        assert "open it in any browser" in told
        found = checked(out, place, tmp_path)
        assert found.kinds["article"] == 3
        assert found.kinds["img"] == 3 * 3 + 16 + 11  # three of an example, samples, an interpolation with its ends
        assert found.text.count(HOSTILE) == 3
        for text in (
            "12.5%",
            "along a straight line in the latent space",
            "my <i>run",
            "3 of 4 test pictures of my <i>photos.",
            "seed 0, batch size 8",
            "all 6 epochs are done",
            "quantizer.codebook_size 16",
            "bits by the prior",
            "Full colour is a difference of 0.5 or more, where black is 0 and white is 1",
            "\N{MINUS SIGN}0.5, darker equal +0.5, brighter",
            "The effective number of codes in use",
            "On the test set of my <i>photos",
            "perplexity of the codes",
            "Decoded from latents sampled from its prior",
            "From one held-out example to another",
        ):
            assert text in found.text
        records = map(json.loads, (pictures / "log.jsonl").read_text().splitlines())
        best = [record for record in records if record["kind"] == "validation" and record["best"]][-1]
        dead = [code for code, number in enumerate(best["counts"]) if not number]
        assert f"{len(dead)} of 16, namely {', '.join(map(str, dead))}." in found.text
        assert f"Perplexity {best['perplexity']:.1f} of 16" in found.text
        assert {f"code-{code}" for code in range(16)} <= set(found.ids)

    def test_the_codes_on_the_page_are_those_of_the_model(self, pictures, tmp_path):
        from sqvae.data import load as load_data
        from sqvae.tokenizers import load

        assert main(["report", str(pictures), "-o", str(tmp_path / "report.html"), "--examples", "1"]) == 0
        tokenizer = load(pictures)
        held_out = load_data(tokenizer.experiment.data.source, tokenizer.preprocessing).test
        codes = tokenizer.encode(held_out.take([0]))[0]
        text = (tmp_path / "report.html").read_text()
        (numbers,) = re.findall("<pre>(.*?)</pre>", text, re.S)
        assert [[int(code) for code in row.split()] for row in numbers.split("\n")] == codes.tolist()
        assert len(codes.unique()) > 1
        drawn = text[text.index('<svg class="codes"') : text.index("<pre>")]
        for code, number in Counter(codes.flatten().tolist()).items():
            assert f"code {code}: {number} of {codes.numel()}" in drawn

    def test_label_maps_have_a_legend_with_the_overlap_of_each_class(self, maps, place, tmp_path):
        assert main(["report", str(maps), "-o", str(tmp_path / "report.html")]) == 0
        found = checked(tmp_path / "report.html", place)
        measures = json.loads((maps / "results-test.json").read_text())["measures"]
        assert any(name.startswith("iou of ") for name in measures)
        for name in ("sky", "<i>road", "car"):
            overlap = measures.get(f"iou of {name}")
            assert (f"{name} IoU {100 * overlap:.1f}%" if overlap is not None else name) in found.text
        assert "In the difference, magenta is a wrong label" in found.text
        assert found.kinds["i"] == 0  # no key of signed differences
        assert "of the pixels are wrong" in found.text
        assert "concentration of the quantization" in found.text

    def test_grey_levels_and_a_model_without_codes(self, pictures, place, tmp_path):
        photos = pictures.parent / "my <i>photos"
        base = tiny(photos, epochs=1)
        levels = replace(with_quantizer(base, "vmf"), data=replace(base.data, kind="levels"))
        assert main(["report", str(trained(levels, tmp_path / "levels")), "-o", "levels.html"]) == 0
        found = checked(Path("levels.html"), place, tmp_path)
        assert "red means that the reconstruction is brighter" in found.text
        assert "the run has no prior yet: train one with sqvae train-prior" in found.text

        vae = trained(with_quantizer(base, "gaussian-latent"), tmp_path / "vae")
        assert main(["report", str(vae), "-o", "vae.html", "--examples", "2"]) == 0
        found = checked(Path("vae.html"), place, tmp_path)
        assert "this model has a continuous latent, and no codes" in found.text
        assert "the normal distribution, which is a VAE's prior" in found.text
        assert found.kinds["img"] == 2 * 3 + 16 + 11
        assert not [one for one in found.ids if one.startswith("code-")]
        assert "variance of the latent" in found.text
        assert "anneals" not in found.text

    def test_speech(self, speech, place, tmp_path):
        assert main(["report", str(speech), "-o", str(tmp_path / "report.html")]) == 0
        found = checked(tmp_path / "report.html", place)
        assert "by <u>ben" in found.text
        assert "red means that the reconstruction is louder" in found.text
        assert "The mean spectrum of each of the" in found.text
        assert "a second of speech, 16,000 samples" in found.text
        assert "mean squared error" in found.text

    def test_speech_can_be_listened_to(self, speech, place, tmp_path, monkeypatch):
        from sqvae.pages import writing

        assert main(["report", str(speech), "-o", str(tmp_path / "report.html")]) == 0
        found = checked(tmp_path / "report.html", place)
        sounds = [one for one in found.asked if one.startswith("data:audio/flac;base64,")]
        assert len(sounds) == 2 * found.kinds["article"] > 0
        assert found.text.count("original, as recorded") == found.kinds["article"]
        assert "reconstruction from the codes, in the voice <u>ben" in found.text
        contents = [b64decode(one.partition(",")[2]) for one in sounds]
        for content in contents:
            samples, rate = soundfile.read(BytesIO(content))
            assert (len(samples), rate) == (8000, 16_000)  # half a second, as it was recorded
            assert np.abs(samples).max() > 0.01
        size = sum(map(len, contents))
        assert f"All examples have sound: {size / 1000:,.0f} kB (FLAC) in this page" in found.text

        most = len(contents[0]) + len(contents[1])
        monkeypatch.setattr(writing, "MAX_SOUND_BYTES", most)
        assert main(["report", str(speech), "-o", str(tmp_path / "report.html"), "--overwrite"]) == 0
        found = checked(tmp_path / "report.html", place)
        held = [b64decode(one.partition(",")[2]) for one in found.asked if one.startswith("data:audio/")]
        assert 0 < sum(map(len, held)) <= most
        assert "The first 1 have sound" in found.text

    def test_measures_that_look_alike_are_told_apart(self, pictures, tmp_path):
        assert main(["report", str(pictures), "-o", str(tmp_path / "report.html")]) == 0
        text = checked(tmp_path / "report.html").text
        for sentence in (CODES, MEAN_PROBABILITIES, BATCHES):
            assert text.count(sentence) == 1
            assert sentence in (pictures / "results-test.md").read_text()

    def test_what_is_wrong_comes_first_where_it_is_given(self):
        chapter = about_chapter([], ["a model"], [], {}, warnings=["the codebook has <i>collapsed"])
        assert chapter.body.index("has &lt;i&gt;collapsed") < chapter.body.index("a model")
        assert "warned" not in about_chapter([], ["a model"], [], {}).body
        page = results_page("Results", "sqvae", "on mine", {"MSE": "1"}, warnings=["the codebook has collapsed"])
        assert page.index("**the codebook has collapsed**") < page.index("| MSE | 1 |")


class TestWhatIsMissing:
    @pytest.mark.usefixtures("_without_data")
    def test_data_that_is_not_there(self, pictures, place, tmp_path, capsys):
        out = tmp_path / "report.html"
        assert main(["report", str(pictures), "-o", str(out)]) == 0
        assert "not on the page: Held-out examples" in said(capsys)
        found = checked(out, place)
        assert (
            "Held-out examples can't be shown: my <i>photos, which my <i>run was trained on, is not here" in found.text
        )
        assert found.kinds["article"] == 0
        assert "From one sample to another" in found.text
        assert "A map of the codes" in found.text
        assert "On the test set of my <i>photos" in found.text
        assert main(["report", str(pictures), "-o", str(out), "--data", str(tmp_path / "nowhere")]) == 1

    def test_other_data(self, pictures, place, tmp_path):
        other = write_pictures(tmp_path / "others", count=20)
        assert main(["report", str(pictures), "-o", str(tmp_path / "report.html"), "--data", str(other)]) == 0
        assert "of 2 test pictures of others" in checked(tmp_path / "report.html", place, tmp_path).text

    def test_before_the_first_checkpoint_and_after_a_part_of_the_training(self, moved, place, capsys):
        assert main(["report", str(moved), "-o", "page.html"]) == 0
        assert "Measures can't be shown: sqvae evaluate has not been run" in checked(Path("page.html"), place).text
        config = json.loads((moved / "config.json").read_text())
        config["experiment"]["training"]["epochs"] = 9
        (moved / "config.json").write_text(json.dumps(config))
        assert main(["report", str(moved), "-o", "page.html", "--overwrite"]) == 0
        assert "6 of 9 epochs are done; resume with: sqvae resume" in checked(Path("page.html"), place).text
        for name in ("best", "last", "previous"):
            shutil.rmtree(moved / name, ignore_errors=True)
        assert main(["report", str(moved), "-o", "page.html", "--overwrite"]) == 0
        found = checked(Path("page.html"), place)
        assert found.text.count("there is no checkpoint yet") == 3
        assert found.kinds["img"] == 0
        assert "variance of the quantization" in found.text
        (moved / "log.jsonl").unlink()
        assert main(["report", str(moved), "-o", "page.html", "--overwrite"]) == 0
        assert "nothing has been recorded yet" in checked(Path("page.html"), place).text

    def test_results_that_are_damaged_or_of_before(self, moved, pictures, place):
        (moved / "results-test-other.json").write_text("{")
        record = json.loads((pictures / "results-test.json").read_text())
        (moved / "results-test.json").write_text(json.dumps({**record, "fingerprint": "another"}))
        assert main(["report", str(moved), "-o", "page.html"]) == 0
        found = checked(Path("page.html"), place)
        assert "results-test-other.json can't be shown" in found.text
        assert "not a result of the current model" in found.text

    def test_a_prior_of_another_model(self, moved, pictures, maps, tmp_path, capsys):
        assert main(["report", str(maps), "-o", "page.html", "--prior", str(pictures / "prior")]) == 1
        assert "is a prior of another model" in said(capsys)
        assert main(["report", str(moved), "-o", "page.html", "--prior", str(pictures / "prior")]) == 0
        assert "sampled from its prior" in checked(Path("page.html")).text
        shutil.copytree(pictures / "prior", tmp_path / "maps" / "prior")
        shutil.copytree(maps, tmp_path / "maps", dirs_exist_ok=True)
        assert main(["report", str(tmp_path / "maps"), "-o", "page.html", "--overwrite"]) == 0
        assert (
            "Samples can't be shown: maps/prior is a prior of another model"
            in checked(Path("page.html"), tmp_path).text
        )

    def test_what_is_no_run(self, pictures, tmp_path, capsys):
        for folder in (tmp_path, pictures / "best"):
            assert main(["report", str(folder), "-o", "page.html"]) == 1
            assert "is no run" in said(capsys)
        assert main(["report", str(pictures / "prior"), "-o", "page.html"]) == 1
        assert "holds a prior over a model's codes" in said(capsys)
        assert not Path("page.html").exists()


class TestTheFile:
    def test_nothing_is_replaced(self, moved, capsys):
        out = Path("page.html")
        out.write_text("<!doctype html>mine")
        assert main(["report", str(moved), "-o", "page.html"]) == 1
        assert "page.html is there already, and is left as it is" in said(capsys)
        assert out.read_text() == "<!doctype html>mine"
        assert main(["report", str(moved), "-o", "page.html", "--overwrite"]) == 0
        first = out.read_bytes()
        assert main(["report", str(moved), "-o", "page.html"]) == 1
        assert main(["report", str(moved), "-o", "page.html", "--overwrite"]) == 0
        assert out.read_bytes() == first
        assert [path.name for path in Path.cwd().iterdir() if path.name.startswith("page")] == ["page.html"]
        Path("folder").mkdir()
        assert main(["report", str(moved), "-o", "folder"]) == 1
        assert "it is a folder" in said(capsys)

    def test_the_command_costs_nothing_before_it_runs(self):
        code = "import sys, sqvae.cli; print(*{'torch', 'numpy', 'matplotlib'} & set(sys.modules))"
        assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "\n"


class TestParts:
    def test_words_stay_words(self):
        assert words("<&\"'>") == "&lt;&amp;&quot;&#x27;&gt;"
        assert "\0" not in words("a\0b\x1b")
        text = page(HOSTILE, HOSTILE, [], maker="test")
        assert "<b>" not in text
        assert is_page_of("test", text)
        assert not is_page_of("other", text)

    def test_the_page_of_results_is_made_of_the_same_parts(self):
        figure = Figure()
        figure.subplots().plot([1, 2])
        report = Report(
            "table-9",
            HOSTILE,
            "On digits.",
            "sqvae reproduce <x>",
            tables=[Table("t", ("a",), [(HOSTILE,)], "a note")],
            pictures=[Picture("p", figure, HOSTILE)],
            claims=[Claim(HOSTILE, False, "1 > 0")],
            notes=["made by `sqvae reproduce`"],
        )
        found = Checked(html_page("Results", "all", [report]))
        assert found.text.count(HOSTILE) == 5  # the contents, the title, a cell, a caption and a claim
        assert found.kinds["b"] == 0
        assert found.kinds["code"] == 2
        assert [one.split(",")[0] for one in found.asked] == ["#table-9", "data:image/svg+xml;base64"]

    @pytest.mark.parametrize("colours", [1, 2, 255, 5000])
    def test_a_picture_is_the_same_to_the_pixel(self, colours):
        random = np.random.default_rng(0)
        pixels = random.integers(0, 256, (colours, 3), dtype=np.uint8)[random.integers(0, colours, (90, 70))]
        for one in (pixels, np.repeat(pixels[..., :1], 3, -1)):
            with Image.open(BytesIO(as_png(one))) as image:
                assert np.array_equal(np.asarray(image.convert("RGB")), one)

    def test_places_are_left_out_and_names_kept(self):
        text = "/data/my photos, which /home/me/runs/a was trained on, is not in C:\\data\\sets\\b or 7/8"
        clean = without_places(text, ["/data/my photos", "runs/a"])
        assert clean == "my photos, which a was trained on, is not in b or 7/8"

    def test_a_home_with_a_space_is_left_out(self, monkeypatch):
        monkeypatch.setenv("HOME", "/home/Jane Doe")
        assert without_places("it is not in /home/Jane Doe/data/mnist") == "it is not in mnist"

    def test_axes(self):
        axis = Axis(1, 1000, 0, 90, log=True)
        assert [round(axis(value)) for value in (0.1, 1, 10, 1000, 5000)] == [0, 0, 30, 90, 90]
        assert axis.ticks() == [1, 10, 100, 1000]
        assert Axis(0, 10, 0, 1).ticks() == [0, 2, 4, 6, 8, 10]
        for values in ([], [0.0], [3.0], [-2.0, 5.0], [1e-9, 1e9], [0.0, 1e-12]):
            axis = fitting(values, 0, 100)
            assert all(0 <= axis(value) <= 100 for value in values)
            assert axis.low < axis.high

    def test_charts(self):
        line = line_chart("error <x>", range(1000), [1000 / (step + 1) for step in range(1000)])
        assert "From 200 at step 4 to 1 at 999." in line
        assert line.count('class="hot"') == 200
        assert "error &lt;x&gt;" in line
        assert "nothing recorded yet" in line_chart("none", [0], [float("nan")])
        bars = bar_chart("use", [3, 0, 1], ["a", "<b>", "c"], x_name="codes", levels=[Level(2, "equal")])
        heights = [float(height) for height in re.findall(r'height="([\d.]+)" fill="var\(--ink', bars)]
        assert heights[0] == pytest.approx(3 * heights[2], rel=0.01)
        assert heights[1] == 0
        assert "&lt;b&gt;" in bars
        dots = scatter("map", [Dot(0.2, 0.1, "#000000", "low"), Dot(0.4, 0.5, "#ff0000", "high", hollow=True)])
        (x, y), (right, above) = ((float(a), float(b)) for a, b in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', dots))
        assert right > x
        assert above < y
        for chart in (line, bars, dots):
            Checked(chart)

    def test_a_map_of_codes_covers_every_place_once(self):
        codes = np.random.default_rng(0).integers(0, 9, (5, 7))
        drawn = code_map(codes, np.arange(27, dtype=np.uint8).reshape(9, 3), None)
        Checked(drawn)
        for cells, colour in re.findall(r'<path d="([^"]*)" fill="(#\w+)"', drawn):
            places = [(int(row), int(column)) for column, row in re.findall(r"M(\d+) (\d+)h1v1h-1z", cells)]
            code = int(colour[1:3], 16) // 3
            assert places == [tuple(place) for place in np.argwhere(codes == code).tolist()]
        assert len(re.findall("h1v1h-1z", drawn)) == 35
        assert code_numbers(np.zeros((64, 64), dtype=np.int64)) == ""
        strip = code_map(codes[0], np.zeros((9, 3), dtype=np.uint8), None, Span(6.5, 0.13))
        assert 'viewBox="0 0 6.5 1" preserveAspectRatio="none"' in strip
        assert "0.1 s</text>" in strip

    def test_tiles_are_parts_of_one_picture(self):
        drawn = np.random.default_rng(0).integers(0, 256, (5, 4, 6, 3), dtype=np.uint8)
        text = Tiles("code", np.array([7, 3, 9, 0, 1]), drawn).definitions()
        Checked(text)
        (encoded,) = re.findall(r"base64,([^\"]*)", text)
        with Image.open(BytesIO(b64decode(encoded))) as image:
            sheet = np.asarray(image.convert("RGB"))
        for place, code in enumerate((7, 3, 9, 0, 1)):
            box = re.search(rf'id="code-{code}"[^>]*viewBox="(\d+) (\d+) (\d+) (\d+)"', text)
            x, y, width, height = map(int, box.groups())
            assert np.array_equal(sheet[y : y + height, x : x + width], drawn[place])


def browser():
    """Chromium, or a reason to skip."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("browser: there is no Chromium on this machine")
    return playwright, path


def _check_speech(shown) -> None:
    """Sound that plays, and codes that lie exactly below the spectrogram."""
    shown.wait_for_function("[...document.querySelectorAll('audio')].every(sound => sound.readyState > 0)")
    lengths = shown.evaluate("[...document.querySelectorAll('audio')].map(sound => sound.duration)")
    assert lengths == pytest.approx([0.5] * 4, abs=0.001)
    example = shown.locator("article").first
    pictures = [one.bounding_box() for one in example.locator("figure img").all()]
    cells = [one.bounding_box() for one in example.locator("svg.codes path").all()]
    left, right = min(cell["x"] for cell in cells), max(cell["x"] + cell["width"] for cell in cells)
    for picture in pictures:
        assert (left, right) == pytest.approx((picture["x"], picture["x"] + picture["width"]), abs=0.5)
    assert min(cell["y"] for cell in cells) > max(picture["y"] + picture["height"] for picture in pictures)


def test_a_browser_asks_for_nothing_and_shows_it_on_a_small_screen(pictures, speech, tmp_path):
    playwright, path = browser()
    pages = [tmp_path / "pictures.html", tmp_path / "speech.html"]
    for run, out in zip((pictures, speech), pages, strict=True):
        assert main(["report", str(run), "-o", str(out), "--examples", "2"]) == 0
    with playwright.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        try:
            for out in pages:
                shown = chromium.new_page(viewport={"width": 360, "height": 740})
                asked, complaints = [], []
                shown.on("request", lambda request, asked=asked: asked.append(request.url))
                shown.on("console", lambda message, complaints=complaints: complaints.append(message.text))
                shown.goto(out.as_uri())
                for folded in shown.locator("summary").all():
                    folded.click()
                assert [one for one in asked if not one.startswith("data:")] == [out.as_uri()]
                assert complaints == []
                assert shown.evaluate("document.documentElement.scrollWidth") == 360
                assert shown.evaluate("[...document.images].every(image => image.naturalWidth > 0)")
                if out == pages[1]:
                    _check_speech(shown)
                first = shown.locator("svg.codes .hot").first
                assert not first.locator("text").is_visible()
                area = first.locator("path")
                area.scroll_into_view_if_needed()
                # The middle of the area's first place, which need not be the middle of its box.
                x, y = area.evaluate(
                    """path => {
                        const [column, row] = path.getAttribute('d').match(/\\d+/g).map(Number);
                        const place = new DOMPoint(column + 0.5, row + 0.5).matrixTransform(path.getScreenCTM());
                        return [place.x, place.y];
                    }"""
                )
                shown.mouse.move(x, y)
                assert first.locator("text").is_visible()
                assert re.fullmatch(r"code \d+: \d+ of \d+", first.locator("text").text_content())
                shown.close()
        finally:
            chromium.close()
