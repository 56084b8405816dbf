"""What is shown of a model: pictures of examples, codes and codebooks, as tensors and numbers."""

import json
import math

import pytest
import torch

from kinds import CODES, SHAPE, example, picture_tokenizer, speech_tokenizer
from runs import tiny, write_pictures
from sqvae.analysis import code_colours, code_positions, nearest_codes, neighbour_table, training_views
from sqvae.config import PriorExperiment, PriorSettings
from sqvae.metrics import MEASURES
from sqvae.modalities.images.codebook import code_atlas
from sqvae.modalities.images.views import code_images, decoded_image, replacement_images, view_image
from sqvae.modalities.speech.views import code_spectrograms, decoded_spectrogram, view_utterance
from sqvae.modalities.views import recorded_use
from sqvae.runs import Generator, prepare, train
from sqvae.tokenizers import load
from sqvae.training import RunFolder, read_records


@pytest.fixture(scope="module", params=SHAPE)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def tokenizer(kind):
    return picture_tokenizer(kind)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    root = tmp_path_factory.mktemp("views")
    train(tiny(write_pictures(root / "pictures.npy")), root / "run", announce=lambda text: None)
    return root / "run"


class TestOneExample:
    def test_it_is_seen_through_its_own_codes(self, tokenizer, kind):
        given = example(kind)
        seen = view_image(tokenizer, given)
        assert seen.codes.equal(tokenizer.encode(given[None])[0])
        for shown in (seen.original, seen.reconstruction, seen.difference):
            assert shown.dtype == torch.uint8
            assert shown.shape == (3, *SHAPE[kind][1:])
        assert seen.reconstruction.equal(decoded_image(tokenizer, seen.codes))

    def test_pictures_are_shown_as_they_are(self):
        given = example("pictures")
        assert view_image(picture_tokenizer("pictures"), given).original.equal(given)

    def test_grey_is_shown_in_three_channels(self):
        given = example("levels")
        assert view_image(picture_tokenizer("levels"), given).original.equal(given.expand(3, -1, -1))

    def test_without_a_prior_every_code_costs_the_same(self, tokenizer, kind):
        seen = view_image(tokenizer, example(kind))
        assert seen.bits == seen.codes.numel() * 4
        assert seen.bits_by == "log2 K"

    def test_other_codes_make_another_picture_of_it(self, tokenizer, kind):
        given = example(kind)
        own = view_image(tokenizer, given)
        changed = (own.codes + 1) % CODES
        seen = view_image(tokenizer, given, codes=changed)
        assert seen.codes.equal(changed)
        assert seen.original.equal(own.original)
        assert not seen.reconstruction.equal(own.reconstruction)

    def test_the_error_is_that_of_the_picture(self):
        tokenizer, given = picture_tokenizer("pictures"), example("pictures")
        made = tokenizer.decode(tokenizer.encode(given[None]))[0]
        mse = float((made - given / 255).square().mean())
        assert (
            view_image(tokenizer, given).error == f"MSE x 1000 = {1000 * mse:.3f}, PSNR {-10 * math.log10(mse):.1f} dB"
        )

    def test_of_label_maps_it_is_the_share_of_wrong_pixels_that_are_known(self):
        tokenizer, given = picture_tokenizer("labels"), example("labels")
        given[:, :4] = 255
        made = tokenizer.decode(tokenizer.encode(given[None]))[0]
        wrong = (made != given[0])[given[0] != 255].float().mean()
        seen = view_image(tokenizer, given)
        assert seen.error == f"{float(wrong):.1%} of the pixels are wrong"
        colour = torch.tensor(bytearray.fromhex(tokenizer.medium.unknown[1][1:])).view(3, 1, 1)
        assert (seen.difference[:, :4] == colour).all()
        right = (made == given[0]) & (given[0] != 255)
        assert (seen.difference[:, right] >= 191).all()  # pale

    def test_the_difference_is_white_where_nothing_changed_and_tells_directions(self):
        from sqvae.modalities.views import signed_difference

        shown = signed_difference(torch.tensor([[0.0, 1.0, -1.0]]), 0.5)
        assert shown[:, 0, 0].tolist() == [255, 255, 255]
        assert shown[0, 0, 1] > shown[2, 0, 1]  # red
        assert shown[2, 0, 2] > shown[0, 0, 2]  # blue

    def test_with_a_prior_codes_cost_what_it_expects(self):
        tokenizer = picture_tokenizer("pictures")
        settings = PriorExperiment(codebook_size=CODES, shape=(2, 4), prior=PriorSettings(channels=8, layers=2))
        prior = Generator(tokenizer, settings.build().eval(), settings, "")
        seen = view_image(tokenizer, example("pictures"), prior)
        with torch.no_grad():
            logs = prior.prior(seen.codes[None])[0].log_softmax(-1).gather(-1, seen.codes[..., None])
        assert seen.bits == pytest.approx(-float(logs.sum()) / math.log(2), rel=1e-5)
        assert seen.bits_by == "the prior"

    def test_a_prior_that_needs_to_know_more_does_not_tell(self):
        tokenizer = picture_tokenizer("pictures")
        settings = PriorExperiment(
            codebook_size=CODES, shape=(2, 4), class_names=("a", "b"), prior=PriorSettings(channels=8, layers=2)
        )
        prior = Generator(tokenizer, settings.build().eval(), settings, "")
        assert view_image(tokenizer, example("pictures"), prior).bits_by == "log2 K"


class TestSpeech:
    def test_an_utterance_is_seen_as_spectrograms(self):
        tokenizer, frames = speech_tokenizer(), example("speech")
        seen = view_utterance(tokenizer, frames, "ben")
        assert seen.codes.equal(tokenizer.encode_frames([frames])[0])
        assert seen.original.shape == seen.reconstruction.shape == seen.difference.shape == (3, 80, 51)
        assert seen.bits == 4 * len(seen.codes)
        made = tokenizer.decode([seen.codes], "ben", [51])[0]
        assert seen.error == f"mean squared error {float((made - frames).square().mean()):.1f} dB²"

    def test_the_voice_makes_a_difference(self):
        tokenizer, frames = speech_tokenizer(), example("speech")
        anna, ben = (view_utterance(tokenizer, frames, name).reconstruction for name in ("anna", "ben"))
        assert not anna.equal(ben)

    def test_codes_and_units_by_themselves(self):
        tokenizer = speech_tokenizer()
        assert decoded_spectrogram(tokenizer, torch.arange(7)).shape == (3, 80, 14)
        assert code_spectrograms(tokenizer, torch.arange(3)).shape[:3] == (3, 3, 80)


class TestCodes:
    def test_what_is_drawn_alone_is_what_the_atlas_shows(self, run):
        tokenizer = load(run)
        pictures = prepare(tokenizer.experiment, announce=lambda text: None).part("validation")
        atlas = code_atlas(tokenizer, pictures, codes=3)
        inside = ~atlas.drawn.isnan()
        alone = code_images(tokenizer, atlas.codes)
        assert alone.shape == (3, 3, 12, 12)
        expected = (atlas.drawn.nan_to_num(0.9) * 255).round().byte().expand(-1, 3, -1, -1)
        assert alone.equal(expected)
        assert inside.any()
        for code, tile in zip(atlas.codes.tolist(), alone, strict=True):
            # A map of 2x2 that holds nothing else, around its place (1, 1); the tile is of 3x3.
            whole = decoded_image(tokenizer, torch.full((2, 2), code))
            assert tile[:, :8, :8].equal(whole)
            assert (tile[:, 8:] == 230).all()

    def test_what_a_code_would_draw_is_a_part_of_the_changed_picture(self, tokenizer, kind):
        codes = view_image(tokenizer, example(kind)).codes
        place, columns = 1, codes.shape[1]
        patches = replacement_images(tokenizer, codes, place, torch.tensor([3, 5]))
        for code, patch in zip((3, 5), patches, strict=True):
            changed = codes.clone()
            changed[place // columns, place % columns] = code
            whole = decoded_image(tokenizer, changed)
            assert patch[:, 4:8, 4:8].equal(whole[:, 0:4, 4:8])  # its own square, in the middle
            assert (patch[:, :4] == 230).all()  # above the picture

    def test_positions_keep_the_order_of_distances_on_a_line(self, tokenizer):
        """Codes on a line in their space lie on a line in the map, at the same distances."""
        line = torch.zeros(CODES, 8)
        line[:, 2] = torch.arange(CODES).float() ** 2
        with torch.no_grad():
            tokenizer.model.quantizer.get_parameter("codebook").copy_(line)
        places = code_positions(tokenizer)
        assert places.shape == (CODES, 2)
        assert places.min() >= 0
        assert places.max() <= 1
        steps = places[:, 0].diff()
        assert torch.allclose(steps, line[:, 2].diff() * steps[0], rtol=1e-3, atol=1e-6)
        assert torch.allclose(places[:, 1], torch.full((CODES,), 0.5), atol=1e-5)

    def test_equal_codes_lie_in_the_middle_and_have_one_colour(self):
        tokenizer = picture_tokenizer("pictures")
        with torch.no_grad():
            tokenizer.model.quantizer.get_parameter("codebook").fill_(1.0)
        assert (code_positions(tokenizer) == 0.5).all()
        assert len(code_colours(tokenizer).unique(dim=0)) == 1

    def test_colours_can_be_seen_on_white_and_near_codes_have_like_ones(self):
        tokenizer = picture_tokenizer("pictures")
        generator = torch.Generator().manual_seed(0)
        spread = torch.randn(CODES, 8, generator=generator)
        spread[1] = spread[0] + 1e-4
        with torch.no_grad():
            tokenizer.model.quantizer.get_parameter("codebook").copy_(spread)
        colours = code_colours(tokenizer)
        assert colours.dtype == torch.uint8
        assert (colours[0].int() - colours[1].int()).abs().max() <= 1
        assert len(colours.unique(dim=0)) >= CODES - 1
        light = colours.double() / 255
        light = torch.where(light <= 0.04045, light / 12.92, ((light + 0.055) / 1.055) ** 2.4)
        contrast = 1.05 / (light @ torch.tensor([0.2126, 0.7152, 0.0722], dtype=torch.float64) + 0.05)
        assert contrast.min() >= 3  # what WCAG asks of graphics

    def test_nearest_codes_are_those_of_the_table(self):
        tokenizer = picture_tokenizer("pictures")
        codes, distances = nearest_codes(tokenizer, 3, 4)
        assert codes.tolist() == [int(neighbour_table(tokenizer, k)[3]) for k in (1, 2, 3, 4)]
        assert (distances.diff() >= 0).all()
        assert len(nearest_codes(tokenizer, 0, 100)[0]) == CODES - 1


class TestTraining:
    def test_use_is_that_of_the_best_checkpoint(self, run):
        best = [one for one in read_records(RunFolder(run).log) if one.get("best")][-1]
        assert recorded_use(RunFolder(run))[0].tolist() == best["counts"]

    def test_a_run_without_a_validation_has_no_use_yet(self, tmp_path):
        assert recorded_use(RunFolder(tmp_path))[0] is None
        (tmp_path / "log.jsonl").write_text(json.dumps({"kind": "step", "epoch": 0, "step": 1, "mse": 0.1}) + "\n")
        assert recorded_use(RunFolder(tmp_path))[0] is None

    def test_curves_come_from_the_log_with_a_sentence_each(self, run):
        records = read_records(RunFolder(run).log)
        curves = {curve.name: curve for curve in training_views(records, CODES)}
        assert set(curves) == {
            "error in training",
            "error on held-out data",
            *(
                MEASURES[name].label
                for name in ("relative_variance", "entropy_per_position", "perplexity", "mixture_gap")
            ),
        }
        steps = [one for one in records if one["kind"] == "step"]
        variance = curves[MEASURES["relative_variance"].label]
        assert variance.steps == [one["step"] for one in steps]
        assert variance.values == [one["relative_variance"] for one in steps]
        entropy = curves[MEASURES["entropy_per_position"].label]
        assert f"{math.log(CODES):.2f} is a uniform choice among 16" in entropy.sentence
        assert all(curve.sentence.endswith(".") for curve in curves.values())

    def test_codes_that_move_apart_anneal_whatever_the_variance_does(self):
        """By the schedule for any number of steps the variance itself may rise."""
        step = {"kind": "step", "epoch": 0, "mse": 0.1}
        records = [
            {**step, "step": 1, "variance": 7.4, "relative_variance": 0.045},
            {**step, "step": 2, "variance": 12.0, "relative_variance": 0.007},
        ]
        told = " ".join(curve.sentence for curve in training_views(records, CODES))
        assert "from 0.045 to 0.007." in told
        assert "not annealed" not in told

    @pytest.mark.parametrize(
        ("key", "values", "course"),
        [
            ("variance", [9.75, 3.93], "Here it went from 9.75 to 3.93."),
            ("variance", [1.1, 1.42], "Here it went from 1.1 to 1.42: it has not annealed yet."),
            ("variance", [2.0, 2.0], "Here it stays at 2."),
            ("variance", [2.0], "from nearly random to nearly certain."),
            ("concentration", [10.0, 30.0], "Here it went from 10 to 30."),
            ("concentration", [30.0, 10.0], "Here it went from 30 to 10: it has not annealed yet."),
        ],
    )
    def test_what_is_said_of_annealing_depends_on_the_curve(self, key, values, course):
        records = [{"kind": "step", "step": 10 * place, key: value} for place, value in enumerate(values)]
        (curve,) = training_views(records, CODES)
        assert curve.sentence.endswith(course)
        assert "It should" in curve.sentence
        assert "distance" not in curve.unit

    @pytest.mark.parametrize(
        ("record", "error"),
        [({"mse": 1.0, "mse_db": 2.0}, 2.0), ({"pixel_error": 3.0, "miou": 4.0}, 3.0), ({"mse": 1.0}, 1.0)],
    )
    def test_of_errors_the_one_that_matters_is_shown(self, record, error):
        [curve] = training_views([{"kind": "validation", "step": 5, **record}], CODES)
        assert curve.values == [error]

    def test_what_is_never_random_has_no_curve_of_it(self):
        record = {"kind": "step", "step": 5, "mse": 1.0, "entropy_per_position": 0.0}
        assert [curve.name for curve in training_views([record], CODES)] == ["error in training"]
