"""Names of `sqvae.experiment`, which is now several rooms, are still found there, with a warning."""

import pytest
import torch

import sqvae
from sqvae.modalities.images.views import view_image


def test_a_former_name_is_found_with_a_warning_that_says_the_new_one():
    from sqvae import experiment

    with pytest.warns(DeprecationWarning, match=r"sqvae\.tokenizers\.load"):
        assert experiment.load is sqvae.load
    with pytest.warns(DeprecationWarning, match=r"sqvae\.config\.Experiment"):
        assert experiment.Experiment is sqvae.Experiment
    with pytest.warns(DeprecationWarning, match=r"sqvae\.modalities\.images\.views\.view_image"):
        assert experiment.see is view_image


def test_what_never_was_there_is_not():
    from sqvae import experiment

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = experiment.nothing


def test_an_sqvae_that_draws_no_codes_says_what_to_write_instead():
    parts = torch.nn.Conv2d(1, 4, 2, 2), torch.nn.ConvTranspose2d(4, 1, 2, 2), sqvae.GaussianLikelihood()
    for quantizer in (sqvae.VectorQuantizer(8, 4), sqvae.GaussianLatent(4)):
        with pytest.warns(DeprecationWarning, match=rf"{type(quantizer).__name__}.*LatentModel\("):
            sqvae.SQVAE(parts[0], quantizer, *parts[1:])
