"""Configurations: written, read, changed one by one, and what is said of a slip of the pen."""

import json
from dataclasses import replace

import pytest
import torch

from families import RELAXED, SINGLE, takes
from sqvae.config import (
    WITH_HEAD,
    ConfigurationError,
    Experiment,
    QuantizerSettings,
    from_json,
    override,
    to_json,
    with_profile,
)
from sqvae.config.profiles import PROFILES
from sqvae.modalities.images.assembly import build_model
from sqvae.modalities.images.data import new_model
from sqvae.quantizers import LATENTS
from sqvae.recipes import RECIPES
from sqvae.tokenizers.assembly import build_quantizer
from sqvae.training import Plan


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_survives_its_file(name):
    experiment = RECIPES[name]()
    assert experiment.recipe == name
    assert from_json(Experiment, json.loads(json.dumps(to_json(experiment)))) == experiment
    assert RECIPES[name].__doc__


@pytest.mark.parametrize(
    ("recipe", "shape", "codes"),
    [
        ("demo", (1, 28, 28), (7, 7)),
        ("mnist", (1, 28, 28), (7, 7)),
        ("fashion-mnist", (1, 28, 28), (7, 7)),
        ("cifar10", (3, 32, 32), (8, 8)),
        ("celeba", (3, 64, 64), (16, 16)),
        ("celeba-hq", (3, 256, 256), (32, 32)),
        ("pictures", (3, 64, 96), (16, 24)),
        ("pictures", (1, 128, 128), (16, 16)),
    ],
)
def test_every_recipe_builds_the_paper_s_latent(recipe, shape, codes):
    import torch

    model = build_model(RECIPES[recipe](), shape)
    x = torch.rand(1, *shape)
    assert model.encode(x).shape == (1, *codes)
    assert model.reconstruct(x).shape == x.shape


def test_the_paper_s_mnist_network_has_its_layers():
    """Counted by hand from appendix E.1: d = 64, 2 ResBlocks on either side, K = 128."""
    model = build_model(RECIPES["mnist"](), (1, 28, 28))
    block = 64 * 64 * 9 + 2 * 64 + 64 * 64 + 2 * 64
    halving = 16 * 32 + 2 * 32 + (16 * 32 * 64 + 64)
    doubling = 16 * 64 * 32 + 2 * 32 + (16 * 32 + 1)
    quantizer = 128 * 64 + 1
    trained = sum(parameter.numel() for parameter in model.parameters())
    assert trained == 4 * block + halving + doubling + quantizer


def test_settings_are_overridden_by_their_kind():
    experiment = override(
        RECIPES["mnist"](),
        [
            "quantizer.codebook_size=1024",
            "training.clip=1",
            "training.compile=yes",
            "network.widths=8,16,64",
            "data.size=64,32",
            "data.channels=3",
            "quantizer.initial_variance=none",
            "likelihood.variance=learned",
            "seed=7",
        ],
    )
    assert experiment.quantizer.codebook_size == 1024
    assert experiment.training.clip == 1.0
    assert isinstance(experiment.training.clip, float)
    assert experiment.training.compile is True
    assert experiment.network.widths == (8, 16, 64)
    assert experiment.data.size == (64, 32)
    assert experiment.data.channels == 3
    assert experiment.quantizer.initial_variance is None
    assert experiment.likelihood.variance == "learned"
    assert experiment.seed == 7
    assert override(experiment, ["data.size=28"]).data.size == 28


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        (
            "quantizer.codebok_size=3",
            r"'quantizer.codebok_size'.*did you mean codebook_size\?.*name, codebook_size, dim",
        ),
        (
            "codebook_size=3",
            r"'codebook_size'.*did you mean quantizer.codebook_size\?.*recipe, seed",
        ),
        ("trainng.epochs=3", r"'trainng.epochs'.*did you mean training.epochs\?"),
        ("quantizer.codebook_size=many", r"quantizer\.codebook_size .*whole number.*'many'"),
        ("quantizer.codebook_size=1.5", r"quantizer\.codebook_size .*whole number.*'1\.5'"),
        (
            "quantizer.name=gausian-1",
            r"quantizer\.name 'gausian-1'.*did you mean gaussian-1\?.*gaussian-1, gaussian-2, ",
        ),
        ("quantizer=vq", r"quantizer .*group.*quantizer\.name, quantizer\.codebook_size"),
        ("seed.x=1", r"seed\.x: seed .*x$"),
        ("seed", r"key=value.*seed=VALUE.*'seed'"),
        ("training.schedule=cosin", r"training\.schedule 'cosin'.*did you mean cosine\?"),
        ("training.compile=perhaps", r"training\.compile .*true or false.*'perhaps'"),
        ("training.precision=fp8", r"training\.precision .*no or bf16 or fp16.*'fp8'"),
        ("data.size=1,2,3", r"data\.size .*2 whole numbers.*64,128.*none.*'1,2,3'"),
        ("data.channels=2", r"channels must be 1 or 3"),
        ("training.epochs=0", r"training.epochs must be at least 1, got 0"),
        ("training.learning_rate=0", r"must be finite and > 0"),
        ("training.accumulate=5", r"training.accumulate .*32 examples .* 5 equal"),
        ("quantizer.codebook_size=0", r"must be at least 1, got 0"),
        ("quantizer.epochs=3", r"'quantizer.epochs'.*did you mean training.epochs\?"),
        ("network.blocks=-1", r"must be at least 0, got -1"),
        ("network.decoder_blocks=-1", r"network\.decoder_blocks must be at least 0, got -1"),
        ("network.map_dim=0", r"network\.map_dim must be at least 1, got 0"),
        ("network.map_dim=16", r"gaussian-1 .*network\.map_dim=none.*quantizer\.name=gaussian-latent"),
        ("quantizer.heads=mean", r"quantizer\.heads .*product or sum or bounded or none.*'mean'"),
        ("training.learning_rate=inf", r"must be finite and > 0"),
        ("training.temperature_end=1.5", r"must lie between 0 and 1, or be none; got 1.5"),
        ("training.temperature_decay=nan", r"must be finite and at least 0"),
    ],
)
def test_a_slip_is_named_with_what_was_meant(assignment, message):
    with pytest.raises(ValueError, match=message):
        override(Experiment(), [assignment])


def test_the_order_of_assignments_does_not_matter():
    both = ["training.accumulate=64", "training.batch_size=64"]
    assert override(Experiment(), both) == override(Experiment(), both[::-1])
    for order in (1, -1):
        with pytest.raises(ConfigurationError, match=r"vq has no quantizer\.hard"):
            build_quantizer(override(Experiment(), ["quantizer.hard=true", "quantizer.name=vq"][::order]).quantizer)


def test_a_file_with_a_strange_key_or_value_is_refused():
    content = to_json(Experiment())
    with pytest.raises(ConfigurationError, match=r"'quantizer.codebok'.*did you mean codebook_size"):
        from_json(Experiment, {**content, "quantizer": {"codebok": 3}})
    with pytest.raises(ConfigurationError, match=r"quantizer\.codebook_size .*whole number.*'3'"):
        from_json(Experiment, {**content, "quantizer": {"codebook_size": "3"}})
    with pytest.raises(ConfigurationError, match=r"quantizer .*group.*got 3"):
        from_json(Experiment, {**content, "quantizer": 3})
    with pytest.raises(ConfigurationError, match=r"network\.widths .*whole numbers.* or none.*\['a'\]"):
        from_json(Experiment, {**content, "network": {"widths": ["a"]}})
    with pytest.raises(ConfigurationError, match=r"data\.strict .*true or false.*got 1"):
        from_json(Experiment, {**content, "data": {"strict": 1}})


@pytest.mark.parametrize("name", LATENTS)
def test_every_quantizer_is_built_by_name(name):
    quantizer = build_quantizer(QuantizerSettings(name=name, codebook_size=8, dim=4))
    assert quantizer.dim == 4
    assert quantizer.channel_first
    if name in SINGLE:
        assert quantizer.needs_log_variance == (name in WITH_HEAD)


def test_a_setting_that_a_quantizer_does_not_have_is_refused():
    with pytest.raises(
        ConfigurationError,
        match=r"vq has no quantizer.initial_variance; it takes codebook_size, dim, codebook_scale, commitment",
    ):
        build_quantizer(QuantizerSettings(name="vq", initial_variance=3.0))
    assert build_quantizer(QuantizerSettings(name="vq-ema", decay=0.5)).decay == 0.5


def test_a_recipe_serves_for_every_quantizer():
    """What only the recipe's own quantizer has is left behind; what is set beside the name must be known."""
    for name in LATENTS:
        settings = override(RECIPES["mnist"](), [f"quantizer.name={name}"]).quantizer
        assert (settings.name, settings.codebook_size, settings.dim) == (name, 128, 64)
        kept = takes(name, "initial_variance") and name != "gaussian-fixed"
        assert settings.initial_variance == (10.0 if kept else None)
        build_quantizer(settings)
    with pytest.raises(ConfigurationError, match=r"vq has no quantizer\.hard"):
        build_quantizer(override(RECIPES["mnist"](), ["quantizer.name=vq", "quantizer.hard=true"]).quantizer)


def test_a_size_that_the_network_can_t_halve_names_the_next_one():
    with pytest.raises(ConfigurationError, match=r"30x32 can't be halved 2 times.*pass `data.size=32,32`"):
        build_model(RECIPES["mnist"](), (1, 30, 32))


def test_the_plan_s_own_numbers_are_the_paper_s():
    plan = Plan()
    assert (plan.learning_rate, plan.batch_size, plan.epochs, plan.patience) == (1e-3, 32, 100, 3)
    assert (plan.temperature_decay, plan.schedule) == (1e-5, "plateau")
    assert replace(RECIPES["celeba"]().training, epochs=100) == plan


@pytest.mark.parametrize("name", SINGLE)
def test_only_a_continuous_latent_is_a_vector(name):
    with pytest.raises(ConfigurationError, match=rf"{name} would have a single code.*quantizer\.name=gaussian-latent"):
        override(Experiment(), [f"quantizer.name={name}", "network.map_dim=16"])
    vector = override(Experiment(), ["quantizer.name=gaussian-latent", "network.map_dim=16"])
    with pytest.raises(ConfigurationError, match=r"set network\.map_dim=none for a map of codes"):
        override(vector, [f"quantizer.name={name}"])
    assert override(vector, [f"quantizer.name={name}", "network.map_dim=none"]).network.map_dim is None


def test_a_file_from_before_a_setting_has_its_default():
    content = to_json(RECIPES["celeba"]())
    for group, names in {"network": ("decoder_blocks", "map_dim"), "quantizer": ("variance_offset", "heads")}.items():
        for name in names:
            del content[group][name]
    assert from_json(Experiment, content) == RECIPES["celeba"]()


def test_a_head_is_bounded_where_the_plan_anneals_and_nothing_else_is_said():
    def heads(recipe, *settings):
        return build_model(override(RECIPES[recipe](), settings), (1, 16, 16)).quantizer.heads

    assert heads("pictures", "quantizer.name=gaussian-4") == "bounded"
    assert heads("pictures", "quantizer.name=gaussian-4", "quantizer.heads=sum") == "sum"
    assert heads("pictures") == "product"  # type I has none
    assert heads("mnist", "quantizer.name=gaussian-4") == "product"


def test_settings_of_the_authors_own_variances_reach_the_quantizer():
    first = build_quantizer(QuantizerSettings(codebook_size=8, dim=4, variance_offset=1.0))
    assert (first.variance_offset, first.heads) == (1.0, "product")
    second = build_quantizer(QuantizerSettings("gaussian-2", 8, 4, heads="sum"))
    assert (second.variance_offset, second.heads) == (0.0, "sum")
    for name in ("vq", "vmf", "gaussian-latent"):
        with pytest.raises(
            ConfigurationError, match=rf"{name} has no quantizer\.variance_offset, quantizer\.heads; it"
        ):
            build_quantizer(QuantizerSettings(name, 8, 4, variance_offset=1.0, heads="sum"))
    with pytest.raises(ValueError, match=r"variance_offset must be finite and at least 0, got -1"):
        build_quantizer(QuantizerSettings(variance_offset=-1.0))


def official(recipe, *settings):
    return with_profile(override(RECIPES[recipe](), settings), "official")


def test_the_profile_of_the_recipe_is_every_recipe_itself():
    assert next(iter(PROFILES)) == "recipe"
    for make in RECIPES.values():
        assert with_profile(make(), "recipe") == make()


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_profile_of_the_paper_has_its_schedule(recipe):
    plan = with_profile(RECIPES[recipe](), "paper").training
    assert not plan.anneals
    own = RECIPES[recipe]().training
    assert plan.epochs == own.epochs
    if not own.anneals:
        assert plan == own
    else:
        assert (plan.schedule, plan.learning_rate, plan.codebook_rate) == ("plateau", 1e-3, 1)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("name", LATENTS)
def test_every_recipe_and_quantizer_has_the_schedule_for_any_number_of_steps(recipe, name):
    if name in ("gaussian-2", "gaussian-latent") and RECIPES[recipe]().kind == "speech":
        return  # not for speech
    before = override(RECIPES[recipe](), [f"quantizer.name={name}"])
    plan = with_profile(before, "any-budget").training
    assert plan.schedule == "cosine"
    assert plan.anneals == (name in RELAXED)
    rate = 2e-3 if before.kind in ("speech", "vectors") else 8e-3
    assert plan.learning_rate == (rate if plan.anneals else 1e-3)
    if before.training.anneals:  # and no other is trained by what is not for it
        assert with_profile(before, "recipe").training == plan


@pytest.mark.parametrize(
    ("recipe", "settings", "blocks"),
    [
        ("mnist", [], (2, 1)),
        ("fashion-mnist", [], (2, 1)),
        ("cifar10", [], (2, 1)),
        ("cifar10", ["data.source=/data/cifar"], (2, 1)),
        ("celeba", [], (6, 5)),
        ("celeba", ["data.source=/data/faces"], (6, 5)),
        ("celeba-hq", [], (6, 5)),
        ("celeba", ["data.size=32"], (2, 1)),
        ("cifar10", ["network.blocks=4"], (4, 3)),
        ("cifar10", ["network.decoder_blocks=6"], (2, 6)),
        ("pictures", ["data.source=/data/mine", "network.blocks=6"], (6, 5)),
        ("demo", [], (2, 1)),
    ],
)
def test_the_authors_own_networks(recipe, settings, blocks):
    experiment = official(recipe, *settings)
    assert (experiment.network.blocks, experiment.network.decoder_blocks) == blocks
    assert with_profile(experiment, "official") == experiment


@pytest.mark.parametrize("name", LATENTS)
def test_the_authors_own_variances(name):
    experiment = official("cifar10", f"quantizer.name={name}")
    expected = {"gaussian-1": (1.0, None)}.get(name, (None, "sum" if name in WITH_HEAD else None))
    assert (experiment.quantizer.variance_offset, experiment.quantizer.heads) == expected
    before = override(RECIPES["cifar10"](), [f"quantizer.name={name}"])
    unchanged = replace(experiment.quantizer, variance_offset=None, heads=None, concentration_offset=None)
    assert replace(experiment, network=before.network, quantizer=unchanged) == before
    build_quantizer(experiment.quantizer)
    assert from_json(Experiment, json.loads(json.dumps(to_json(experiment)))) == experiment


def test_a_profile_leaves_what_is_set_and_a_new_name_leaves_another_type_s_form_behind():
    given = official("cifar10", "quantizer.variance_offset=0.5").quantizer
    assert given.variance_offset == 0.5
    assert given.renamed("gaussian-1").variance_offset == 0.5
    assert given.renamed("gaussian-2").variance_offset is None
    summed = official("cifar10", "quantizer.name=gaussian-2").quantizer
    assert summed.renamed("gaussian-4").heads == "sum"
    for name in LATENTS:
        build_quantizer(summed.renamed(name))
        build_quantizer(given.renamed(name))


def test_official_concentrations_have_an_offset_of_1():
    experiment = override(official("mnist-levels"), ["data.size=28"])
    assert (experiment.quantizer.concentration_offset, experiment.likelihood.concentration_offset) == (1, 1)
    model = new_model(experiment)
    objective = model(torch.zeros(2, 28, 28).long())
    assert objective.quantized.concentration.item() == pytest.approx(2)  # 1 + e^0
    assert objective.fit.concentration.item() == pytest.approx(101)
    naive = official("mnist-levels", "quantizer.name=gaussian-1", "likelihood.name=categorical")
    assert (naive.quantizer.variance_offset, naive.likelihood.concentration_offset) == (1, 0)


@pytest.mark.parametrize(
    ("profile", "concentration", "length"),
    [("recipe", "closed_form", 1), ("any-budget", "closed_form", 1), ("paper", "learned", 8)],
)
def test_label_maps_begin_as_their_schedule_wants_it(profile, concentration, length):
    """A concentration that fits each batch, and codes of length 1, which turn fast; the paper's has neither."""
    experiment = override(with_profile(RECIPES["label-maps"](), profile), ["data.classes=3", "data.size=16"])
    model = new_model(experiment)
    assert model.likelihood.concentration == concentration
    assert model.quantizer.codebook.norm(dim=1).mean().item() == pytest.approx(length, rel=0.05)


@pytest.mark.parametrize("recipe", ["label-maps", "grey-levels", "camvid"])
def test_a_profile_after_another_is_that_profile(recipe):
    own = RECIPES[recipe]()
    for name in ("paper", "official"):
        assert with_profile(with_profile(own, "any-budget"), name).likelihood == with_profile(own, name).likelihood
    assert with_profile(with_profile(own, "paper"), "any-budget").likelihood.concentration == "closed_form"


def test_an_unknown_profile_is_named_with_what_there_is():
    with pytest.raises(
        ConfigurationError,
        match=r"'offical'.*did you mean official\?.*recipe, any-budget, paper, official",
    ):
        with_profile(Experiment(), "offical")
