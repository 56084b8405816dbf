"""The networks and the model for speech: shapes, lengths, jitter, and batches that equal their parts."""

import pytest
import torch

from sqvae.likelihoods import GaussianLikelihood
from sqvae.models import Speech, SpeechModel, padded
from sqvae.networks import Jitter, SpeechDecoder, SpeechEncoder, without_batch_norm
from sqvae.quantizers import QUANTIZERS

MELS, DIM, SPEAKERS = 12, 8, 3


def model(name: str = "gaussian-1", variance: str = "closed_form", **options) -> SpeechModel:
    quantizer = QUANTIZERS[name](codebook_size=16, dim=DIM, channel_first=True)
    return SpeechModel(
        SpeechEncoder(MELS, DIM, channels=24, log_variance=quantizer.needs_log_variance),
        quantizer,
        SpeechDecoder(MELS, DIM, SPEAKERS, speaker_dim=4, hidden=10),
        GaussianLikelihood(variance, **options),
        offset=torch.full((MELS,), -40.0),
        scale=torch.linspace(5, 20, MELS),
    )


def utterances(*lengths: int) -> list[torch.Tensor]:
    return [torch.randn(length, MELS) * 10 - 40 for length in lengths]


def trained(name: str = "gaussian-1") -> SpeechModel:
    """With statistics of batches behind it, so that batch normalisation and masks have something to disagree about."""
    one = model(name)
    for _ in range(3):
        one(Speech(torch.randn(4, 34, MELS) * 10 - 35, torch.randint(SPEAKERS, (4,))), 0.7).loss.backward()
    return one.eval()


@pytest.mark.parametrize("name", [name for name in QUANTIZERS if name not in ("gaussian-2", "gaussian-latent")])
def test_every_quantizer_trains_on_crops(name):
    one = model(name)
    objective = one(Speech(torch.randn(5, 34, MELS) * 10 - 40, torch.randint(SPEAKERS, (5,))), 0.5)
    assert objective.output.shape == (5, 32, MELS)
    assert objective.quantized.codes.shape[:2] == (5, 16)
    assert objective.dimensions == 32 * MELS
    objective.loss.backward()
    for part, parameter in one.named_parameters():
        if parameter.grad is not None:
            assert parameter.grad.isfinite().all(), part
    for part in ("encoder.layers.0.0.weight", "decoder.linear.weight", "decoder.speakers.weight"):
        assert one.get_parameter(part).grad.abs().sum() > 0, part


def test_the_loss_is_the_picture_models_loss_for_frames():
    """D/2 log MSE over all numbers of a crop, on the normalised scale."""
    one = model().train()
    x = Speech(torch.randn(5, 34, MELS) * 10 - 40, torch.zeros(5, dtype=torch.int64))
    objective = one(x)
    target = (x.frames[:, 1:-1] + 40) / torch.linspace(5, 20, MELS)
    error = (objective.output - target).square().mean()
    torch.testing.assert_close(objective.fit.loss, 32 * MELS / 2 * error.log())


@pytest.mark.parametrize("name", ["gaussian-1", "gaussian-3", "gaussian-4", "vq-ema", "vmf"])
def test_batches_of_different_lengths_equal_one_by_one(name):
    one = trained(name)
    spoken = utterances(1, 2, 5, 31, 32, 77)
    who = torch.tensor([0, 1, 2, 0, 1, 2])
    with torch.no_grad():
        together = one(padded(spoken, who))
        codes = one.encode(padded(spoken, who))
        encodings = one.encodings(padded(spoken, who))
        frames = one.decode(codes, who, torch.tensor([len(each) for each in spoken]))
        nats, counts = 0.0, torch.zeros(16)
        for index, each in enumerate(spoken):
            alone = padded([each], who[index : index + 1])
            positions = -(-len(each) // 2)
            assert torch.equal(one.encode(alone)[0], codes[index, :positions])
            torch.testing.assert_close(one.encodings(alone)[0], encodings[index, :positions], rtol=1e-5, atol=1e-5)
            objective = one(alone)
            decoded = one.decode(codes[index : index + 1, :positions], who[index : index + 1], alone.lengths)
            assert decoded.shape == (1, 2 * positions, MELS)
            torch.testing.assert_close(decoded[0, : len(each)], frames[index, : len(each)], rtol=1e-5, atol=1e-4)
            torch.testing.assert_close(
                objective.output[0, : len(each)], together.output[index, : len(each)], rtol=1e-5, atol=1e-5
            )
            nats += objective.bound.nats.item()
            counts += objective.quantized.counts
    assert together.bound.nats.item() == pytest.approx(nats / len(spoken), rel=1e-4)
    assert torch.equal(together.quantized.counts, counts)
    assert together.dimensions == pytest.approx(MELS * sum(map(len, spoken)) / len(spoken))


def test_what_lies_beyond_an_utterance_changes_nothing():
    one = trained()
    x = padded(utterances(9, 40), torch.tensor([0, 1]))
    noisy = x.frames.clone()
    noisy[0, 12:] = 1e4  # 9 frames, one more to make them even, one on each side
    with torch.no_grad():
        clean, other = one(x), one(x._replace(frames=noisy))
    assert torch.equal(clean.quantized.codes[0, :5], other.quantized.codes[0, :5])
    assert clean.loss == other.loss
    torch.testing.assert_close(clean.output[0, :9], other.output[0, :9], rtol=0, atol=0)


def test_normalisation_can_be_worked_into_the_convolutions():
    one = trained()
    x = padded(utterances(20, 33), torch.tensor([0, 1]))
    before = one.encodings(x)
    one.encoder = without_batch_norm(one.encoder)
    torch.testing.assert_close(one.encodings(x)[0, :10], before[0, :10], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(one.encodings(x)[1], before[1], rtol=1e-4, atol=1e-5)


def test_the_speaker_changes_the_frames_and_not_the_codes():
    one = trained()
    spoken = utterances(30)
    first, second = (padded(spoken, torch.tensor([speaker])) for speaker in (0, 1))
    codes = one.encode(first)
    assert torch.equal(codes, one.encode(second))
    voices = [one.decode(codes, x.speakers) for x in (first, second)]
    assert (voices[0] - voices[1]).abs().max() > 1e-3


@pytest.mark.parametrize("length", [2, 3, 5, 33])
def test_the_encoder_says_which_lengths_it_takes(length):
    with pytest.raises(ValueError, match=rf"takes 2n \+ 2 frames, at least 4; got {length}"):
        SpeechEncoder(MELS, DIM, channels=4)(torch.randn(1, MELS, length))


def test_jitter_moves_half_of_the_vectors_to_either_side_and_only_in_training():
    jitter = Jitter(0.5)
    z = torch.arange(2000.0).expand(50, 1, 2000)
    moved = jitter(z) - z
    shares = [(moved[:, :, 1:-1] == step).float().mean().item() for step in (-1, 0, 1)]
    assert shares == pytest.approx([0.25, 0.5, 0.25], abs=0.01)
    assert moved[:, :, 0].min() == 0
    assert moved[:, :, -1].max() == 0
    assert jitter.eval()(z) is z
    assert Jitter(0.0)(z) is z
    with pytest.raises(ValueError, match="between 0 and 1"):
        Jitter(1.5)


def test_jitter_moves_whole_vectors():
    z = torch.randn(3, 5, 40)
    moved = Jitter(1.0)(z)
    for before, after in zip(z, moved, strict=True):
        assert {tuple(v.tolist()) for v in after.T} <= {tuple(v.tolist()) for v in before.T}
