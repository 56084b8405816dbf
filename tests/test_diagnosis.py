"""What is wrong with a model is said in words, now and not once: each fault made on purpose."""

import json
import math
from types import SimpleNamespace

import pytest
import torch

from runs import said, tiny, with_quantizer, write_pictures
from sqvae.cli import main
from sqvae.metrics import SquaredErrors
from sqvae.quantizers import QUANTIZERS, GaussianQuantizer
from sqvae.runs import diagnose, train
from sqvae.runs.observation import mixture_gap
from sqvae.training import RunFolder, read_records
from test_exact_resume import quiet


def of(used: int, size: int = 512, each: int = 100, **measures: float) -> tuple[str, ...]:
    counts = [each] * used + [0] * (size - used)
    return diagnose({"perplexity": float(used), **measures}, counts, what="test pictures", quantizer="gaussian-1")


class TestWords:
    def test_nothing_is_said_where_all_is_well(self):
        assert of(500) == ()
        assert of(500, mixture_gap=1.04) == ()
        assert diagnose({"mse": 0.1}, (), what="test pictures", quantizer="gaussian-latent") == ()

    def test_collapse_and_unused_codes(self):
        (words,) = of(12)
        assert words.startswith(
            "the codebook has collapsed: 12 of 512 codes are used on the test pictures. Train longer"
        )
        (words,) = of(96)
        assert words.startswith("416 of 512 codes are never used on the test pictures. Train longer")
        assert "quantizer.initial_variance" in words

    def test_few_positions_can_t_show_all_codes(self):
        assert diagnose({"perplexity": 49.0}, [1] * 49 + [0] * 463, what="x", quantizer="vmf") == ()
        (words,) = diagnose({"perplexity": 2.0}, [25, 24] + [0] * 510, what="x", quantizer="vmf")
        assert "collapsed: 2 of 512" in words
        assert "initial_variance" not in words, "a von Mises-Fisher quantizer has none"

    def test_uneven_use(self):
        counts = [100_000] * 4 + [1] * 508
        (words,) = diagnose({"perplexity": 4.1}, counts, what="test pictures", quantizer="vq-ema")
        assert words.startswith("few codes do nearly all the work: 512 of 512 are used on the test pictures")
        assert "vq-ema-reset" in words

    def test_mixtures(self):
        (words,) = of(500, mixture_gap=2.13)
        assert "mixtures of codes that no single code equals: on the test pictures single codes have 2.1 times" in words
        assert "--profile any-budget" in words


class Decoder(torch.nn.Module):
    """As much of a model as the gap is about: codes are what is decoded, and the data is 0."""

    def __init__(self, quantizer):
        super().__init__()
        self.quantizer = quantizer

    def forward(self, x, temperature=1.0):
        return SimpleNamespace(quantized=self.quantizer(x, temperature))


def gap(quantizer, temperature=1.0):
    torch.manual_seed(0)
    model = Decoder(quantizer).eval()

    def add(comparison, x, objective):
        comparison.add(torch.zeros_like(x), objective.quantized.z_q)

    return mixture_gap(model, [torch.zeros(64, 8) for _ in range(3)], temperature, SquaredErrors, add)


class TestChoice:
    def test_blind_choice_comes_first_and_hides_the_gap(self):
        (words,) = of(500, entropy_per_position=0.97 * math.log(512), mixture_gap=3.0)
        assert words.startswith("codes are chosen nearly blindly: on the test pictures the entropy of a choice is 97%")
        assert of(500, entropy_per_position=0.5 * math.log(512)) == ()

    def test_the_entropy_is_that_of_a_position(self):
        quantizer = GaussianQuantizer(16, 8, initial_variance=1e9)
        assert gap(quantizer)["entropy_per_position"] == pytest.approx(math.log(16), rel=1e-3)


class TestGap:
    def test_it_is_the_ratio_of_the_errors(self):
        """Codes at -1 and 1: a mixture of many is near 0, a single one is not; certain choices have no mixtures."""
        quantizer = GaussianQuantizer(2, 8, initial_variance=100.0)
        with torch.no_grad():
            quantizer.codebook.copy_(torch.tensor([[-1.0] * 8, [1.0] * 8]))
        blind = gap(quantizer, temperature=50.0)["mixture_gap"]
        assert blind > 20
        assert gap(quantizer, temperature=0.01)["mixture_gap"] == pytest.approx(1, abs=0.05)
        assert not quantizer.training, "the model is left as it was"

    @pytest.mark.parametrize("name", ["vq", "vq-ema", "vq-ema-reset"])
    def test_quantizers_that_don_t_draw_have_none_and_are_not_touched(self, name):
        quantizer = QUANTIZERS[name](4, 8)
        before = {key: value.clone() for key, value in quantizer.state_dict().items()}
        assert gap(quantizer) == {}
        assert all(value.equal(before[key]) for key, value in quantizer.state_dict().items())


@pytest.fixture(scope="module")
def collapsed(tmp_path_factory):
    """Without training, and with encodings near 0 among codes far apart, one or two codes take everything."""
    folder = tmp_path_factory.mktemp("collapsed")
    source = write_pictures(folder / "pictures.npy")
    experiment = tiny(source, epochs=2, learning_rate=1e-9)
    train(with_quantizer(experiment, "gaussian-1"), folder / "run", announce=quiet)
    return folder / "run"


def test_validations_record_the_gap(collapsed):
    found = [
        record["mixture_gap"] for record in read_records(collapsed / "log.jsonl") if record["kind"] == "validation"
    ]
    assert len(found) == 2
    assert all(0 < value < 100 for value in found)


def test_evaluate_and_inspect_say_what_is_wrong_now(collapsed, capsys):
    assert main(["evaluate", str(collapsed), "--no-rates"]) == 0
    words = said(capsys)
    assert "warning: " in words
    assert "codes are never used on the test pictures" in words or "the codebook has collapsed" in words
    kept = json.loads((collapsed / "results-test.json").read_text())["findings"]
    assert kept
    assert kept[0].partition(".")[0] in words
    assert main(["inspect", str(collapsed), "--no-plots"]) == 0
    words = said(capsys)
    assert "What is wrong now" in words
    assert "on the validation pictures" in words.partition("What is wrong now")[2]


def test_a_warning_of_long_ago_is_not_what_is_wrong_now(tmp_path, capsys):
    """It collapsed after epoch 1, and the codes have come back since."""
    source = write_pictures(tmp_path / "pictures.npy")
    train(tiny(source, epochs=1), tmp_path / "run", announce=quiet)
    folder = RunFolder(tmp_path / "run")
    records = [record for record in read_records(folder.log) if record["kind"] != "warning"]
    last = next(record for record in records if record["kind"] == "validation")
    stale = {"kind": "warning", "epoch": 1, "step": last["step"], "message": "the codebook has collapsed: 1 of 16"}
    well = {"codes_used": 16.0, "perplexity": 16.0, "mixture_gap": 1.0, "entropy_per_position": 0.5}
    recovered = {**last, "epoch": 2, "counts": [10] * 16, **well}
    folder.log.write_text("".join(json.dumps(record) + "\n" for record in [*records, stale, recovered]))
    assert main(["inspect", str(tmp_path / "run"), "--no-plots"]) == 0
    now = said(capsys).partition("What is wrong now")[2]
    current, _, before = now.partition("earlier, ")
    assert "no problems" in current
    assert "epoch 2" in current
    assert before.startswith("after epoch 1: the codebook")
