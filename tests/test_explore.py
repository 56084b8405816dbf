"""A run in the browser: what a tab does, and what is refused."""

import asyncio
import importlib.util
import io
import re
import socket
import struct
import time
import zlib
from dataclasses import replace
from unittest.mock import MagicMock

import numpy as np
import pytest
import soundfile
import torch
from PIL import Image

pytest.importorskip("nicegui", reason="the page needs NiceGUI: pip install -e '.[explore]'")

from kinds import CODES, SHAPE, example, picture_tokenizer, speech_tokenizer
from runs import said, tiny, with_quantizer, write_pictures
from servers import explored
from sqvae.cli import main
from sqvae.data import Preprocessing
from sqvae.data.speech import FEATURES
from sqvae.explore import explorer_of, free_socket
from sqvae.explore.codebook_view import usage_summary
from sqvae.explore.drawings import code_map, image_svg
from sqvae.explore.example_view import ExampleView
from sqvae.explore.session import Session
from sqvae.modalities.exploring import Example, RefusedError
from sqvae.modalities.images.data import new_model
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.modalities.images.uploads import picture_from
from sqvae.modalities.images.views import view_image
from sqvae.modalities.speech.uploads import LONGEST, sound_from
from sqvae.runs import train

GREY = Preprocessing(size=8, channels=1)


def png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "png")
    return file.getvalue()


def png_of_zeros(width: int, height: int) -> bytes:
    """A whole PNG of any size, grey, that takes little memory to make: rows of zeros pack a thousandfold."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    packer, packed = zlib.compressobj(9), []
    for _ in range(height):
        packed.append(packer.compress(bytes(width + 1)))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = b"".join([*packed, packer.flush()])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def wav(samples, rate=16_000) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="WAV", subtype="FLOAT")
    return file.getvalue()


def session_of(kind: str) -> Session:
    tokenizer = speech_tokenizer() if kind == "speech" else picture_tokenizer(kind)
    session = Session(explorer_of("nowhere", tokenizer))
    session.show(Example(example(kind), "mine"))
    return session


@pytest.fixture(params=[*SHAPE, "speech"])
def session(request):
    return session_of(request.param)


class TestSession:
    def test_a_code_is_chosen_changed_and_changed_back(self, session):
        before = session.current.coded
        session.select(2)
        assert session.code == int(before.codes.flatten()[2])
        other = (session.code + 5) % CODES
        session.replace(other, session.selected)
        assert session.code == other
        assert session.changes == 1
        assert not session.current.coded.reconstruction.equal(before.reconstruction)
        session.undo()
        assert session.changes == 0
        assert session.current.coded.reconstruction.equal(before.reconstruction)
        assert not session.can_undo

    def test_all_places_of_a_code_can_be_changed_at_once_and_reset(self, session):
        own = session.codes
        session.select(0)
        code = session.code
        positions = int((own == code).sum())
        session.replace((code + 1) % CODES, session.selected, everywhere=True)
        assert session.changes == positions
        assert not (session.codes == code).any()
        session.reset()
        assert session.codes.equal(own)
        session.undo()
        assert session.changes == positions

    def test_what_is_not_there_is_refused(self, session):
        with pytest.raises(ValueError, match="select a position"):
            session.replace(1, session.selected)
        with pytest.raises(ValueError, match="no position 1000"):
            session.select(1000)
        session.select(0)
        with pytest.raises(ValueError, match="no code 16: codes are 0 to 15"):
            session.replace(CODES, session.selected)
        session.replace(session.code, session.selected)
        assert not session.can_undo  # nothing was changed

    def test_the_cost_is_said(self, session):
        number = session.codes.numel()
        assert session.cost_text().startswith(f"{number} codes of log2(16) = 4 bits: {4 * number} bits, ")

    def test_other_codes_are_offered(self, session):
        session.select(1)
        viewer, near = session.explorer.viewer, session.explorer.nearest(session.code, 8)
        assert len(near) == 8
        assert session.code not in dict(near)
        codes = torch.tensor([code for code, _ in near])
        drawn = viewer.replacements(session.codes, 1, codes)
        assert (viewer.code_images(codes) if drawn is None else drawn).shape[:2] == (8, 3)

    def test_a_place_belongs_to_a_part_of_the_picture(self, session):
        viewer, shown = session.explorer.viewer, session.current.coded.original
        boxes = [viewer.box(session.codes, position) for position in range(session.codes.numel())]
        assert (boxes[0].left, boxes[0].top) == (0, 0)
        assert boxes[-1].left + boxes[-1].width == pytest.approx(shown.shape[2], abs=1)
        assert boxes[-1].top + boxes[-1].height == shown.shape[1]


class Unseen(ExampleView):
    """The part of the page that shows an example, with stand-ins for all that it shows."""

    def __init__(self, session):
        self.session, self.explorer = session, session.explorer
        self._held_out, self._near, self._sound_of = 0, [], None
        self.near = [MagicMock() for _ in range(8)]
        self.everywhere = MagicMock(value=False)

    def __getattr__(self, name):
        setattr(self, name, MagicMock())
        return getattr(self, name)


class TestQuickClicks:
    """What a person does next, before the one model has answered."""

    def test_the_place_that_was_clicked_last_is_shown(self):
        view = Unseen(session_of("pictures"))

        async def clicks():
            await asyncio.gather(*(view._select(position) for position in (0, 1, 3, 6)))

        asyncio.run(clicks())
        code = view.session.code
        assert view.session.selected == 6
        assert view._near == [other for other, _ in view.explorer.nearest(code, 8)]
        (title,) = view.title.set_content.call_args.args
        assert f"Code {code}, " in title
        (shown,) = view.near[0].set_content.call_args.args
        assert f"Put code {view._near[0]} here" in shown

    def test_a_code_is_put_where_it_was_asked_for(self):
        view, before = Unseen(session_of("pictures")), session_of("pictures").codes

        async def clicks():
            await view._select(0)
            busy = asyncio.ensure_future(view.explorer.in_worker(time.sleep, 0.2))
            await asyncio.sleep(0.05)
            put = asyncio.ensure_future(view._replace((view.session.code + 1) % CODES))
            await asyncio.sleep(0.05)
            await asyncio.gather(busy, put, view._select(5))

        asyncio.run(clicks())
        changed = view.session.codes != before
        assert changed.flatten().nonzero().flatten().tolist() == [0]
        assert view.session.selected == 5

    def test_a_shorter_recording_comes_while_the_last_place_is_drawn(self):
        view = Unseen(session_of("speech"))

        async def clicks():
            last = asyncio.ensure_future(view._select(view.session.codes.numel() - 1))
            await asyncio.sleep(0)  # the position is chosen before the other recording comes
            await view.explorer.in_worker(view.session.show, Example(example("speech")[:8], "short"))
            await asyncio.gather(last, view.refresh())

        asyncio.run(clicks())
        assert view.session.selected is None

    def test_each_held_out_example_once(self):
        view, taken = Unseen(session_of("pictures")), []

        def take(index):
            taken.append(index)
            return Example(example("pictures"), "held out")

        view.explorer = MagicMock(wraps=view.explorer, example=take, viewer=view.explorer.viewer)

        async def clicks():
            await asyncio.gather(view.another(), view.another())
            await view.another()

        asyncio.run(clicks())
        assert taken == [0, 1, 2]

    def test_sound_of_other_codes_does_not_stay(self):
        view = Unseen(session_of("speech"))
        asyncio.run(view._listen())
        view.sounds.set_visibility.assert_called_with(True)

        async def change():
            await view._select(0)  # the same codes
            view.sounds.set_visibility.assert_called_with(True)
            await view._replace((view.session.code + 1) % CODES)

        asyncio.run(change())
        view.sounds.set_visibility.assert_called_with(False)
        assert view.sounds.set_content.call_args.args == ("",)


def test_tabs_don_t_know_of_each_other():
    explorer = explorer_of("nowhere", picture_tokenizer("pictures"))
    one, other = Session(explorer), Session(explorer)
    for session in (one, other):
        session.show(Example(example("pictures"), "mine"))
        session.select(0)
    one.replace((one.code + 1) % CODES, one.selected)
    assert (one.changes, other.changes) == (1, 0)


def test_another_voice_speaks_the_same_codes():
    session = session_of("speech")
    before = session.current.coded
    session.change_voice("ben")
    assert session.codes.equal(before.codes)
    assert not session.current.coded.reconstruction.equal(before.reconstruction)
    sound = session.explorer.viewer.sound(session.example, session.codes)
    assert soundfile.info(io.BytesIO(sound)).format == "FLAC"


def test_the_original_is_heard_as_it_was_recorded_and_its_reconstruction_as_long():
    session = session_of("speech")
    viewer, samples = session.explorer.viewer, 0.1 * np.random.default_rng(0).standard_normal(8123)
    session.show(viewer.read(wav(samples), "mine.wav"))
    original, rate = soundfile.read(io.BytesIO(viewer.original(session.example)))
    assert rate == viewer.tokenizer.features.rate
    np.testing.assert_allclose(original, samples, atol=1e-4)
    session.change_voice("ben")  # which keeps the recording
    assert viewer.original(session.example) is not None
    made, _ = soundfile.read(io.BytesIO(viewer.sound(session.example, session.codes)))
    assert len(made) == len(samples)
    assert viewer.original(Example(example("speech"), "frames alone")) is None

    def gone():
        raise FileNotFoundError("moved")

    assert viewer.original(replace(session.example, recorded=gone)) is None


def test_between_two_pictures():
    session = session_of("pictures")
    end = Example(example("pictures", 1), "other")
    shown = session.explorer.viewer.interpolation(session.example, end, 5)
    assert len(shown) == 5
    assert shown[0].equal(session.current.coded.reconstruction)
    assert shown[-1].equal(view_image(session.explorer.tokenizer, end.data).reconstruction)


class TestDrawings:
    def test_each_cell_says_where_it_is_and_which_code_it_has(self):
        session = session_of("pictures")
        session.select(3)
        viewer, codes = session.explorer.viewer, session.codes
        names = [viewer.position_name(codes, position) for position in range(8)]
        boxes = [viewer.box(codes, position) for position in range(8)]
        drawn = code_map(codes, codes, 4, boxes, (16, 8), session.explorer.colours, names, 3)
        assert drawn.count('role="gridcell"') == 8
        assert f'aria-label="row 1, column 4: code {session.code}"' in drawn
        assert drawn.count('aria-selected="true"') == 1
        assert "<circle" not in drawn
        changed = codes.clone()
        changed[0, 0] = (changed[0, 0] + 1) % CODES
        assert code_map(changed, codes, 4, boxes, (16, 8), session.explorer.colours, names, 3).count("<circle") == 1

    def test_a_strip_covers_the_spectrogram_and_no_more(self):
        """51 frames are 26 codes, of which the last has one frame."""
        session = session_of("speech")
        viewer, codes = session.explorer.viewer, session.codes
        boxes = [viewer.box(codes, position) for position in range(len(codes))]
        drawn = code_map(
            codes, codes, len(codes), boxes, (51, 80), session.explorer.colours, [""] * len(codes), None, wide=True
        )
        assert 'viewBox="0 0 51 80" preserveAspectRatio="none"' in drawn
        cells = [tuple(map(float, cell)) for cell in re.findall(r'<rect x="([\d.]+)" y="0" width="([\d.]+)"', drawn)]
        assert cells == [*((2.0 * position, 2.0) for position in range(25)), (50.0, 1.0)]
        assert viewer.seconds(51) == pytest.approx(51 * 0.01)

    def test_names_are_words_whatever_they_hold(self):
        drawn = image_svg(torch.zeros(3, 4, 4, dtype=torch.uint8), '"><script>alert(1)</script>')
        assert "<script" not in drawn
        assert "&lt;script&gt;" in drawn

    def test_dead_codes_are_named(self):
        counts = torch.ones(40, dtype=torch.int64)
        assert usage_summary(counts) == "Perplexity 40.0 of 40. All 40 codes are used."
        counts[3:30] = 0
        assert "27 codes never used: 3, 4, 5," in usage_summary(counts)
        assert "and 7 more" in usage_summary(counts)


class TestUploads:
    def test_a_picture_is_brought_to_the_model_s_shape(self):
        given = Image.fromarray(np.full((20, 30, 3), 200, dtype=np.uint8))
        shown, changes = picture_from(png(given), GREY)
        assert changes == "cropped from 30x20 to its centre square, 20x20, resized to 8x8, made grey"
        assert (shown.dtype, shown.shape) == (torch.uint8, (1, 8, 8))
        assert (shown.int() - 200).abs().max() <= 1

    @pytest.mark.parametrize(
        ("mode", "size", "preprocessing", "said"),
        [
            ("L", (8, 8), GREY, ""),
            ("RGB", (8, 8), GREY, "made grey"),
            ("RGB", (8, 8), replace(GREY, channels=3), ""),
            ("L", (4, 4), GREY, "enlarged to 8x8"),
            ("L", (64, 48), replace(GREY, size=(6, 8)), "resized to 8x6"),
            ("L", (64, 64), replace(GREY, size=(6, 8)), "cropped from 64x64 to its centre, 64x48, resized to 8x6"),
            ("L", (64, 64), replace(GREY, crop=8), "cropped from 64x64 to its centre square, 8x8"),
            ("P", (8, 8), Preprocessing(size=8, labels=True, classes=3), ""),
        ],
    )
    def test_what_is_done_to_a_picture_is_said(self, mode, size, preprocessing, said):
        assert picture_from(png(Image.new(mode, size)), preprocessing)[1] == said

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (b"just some words\n" * 100, "not an image"),
            (b"", "the file is empty"),
            (png(Image.new("L", (64, 64)))[:60], "."),
            (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not an image"),
        ],
    )
    def test_what_is_no_picture_is_refused(self, content, reason):
        with pytest.raises(RefusedError, match=reason):
            picture_from(content, GREY)

    @pytest.mark.parametrize("size", [(10_000, 10_000), (70_000, 1_000), (200_000, 100_000)])
    def test_large_dimensions_are_refused_by_the_header(self, size):
        """Only the header is there: whoever tried to decode it would fail for another reason."""
        bomb = png_of_zeros(1, 1)
        bomb = bomb[:16] + struct.pack(">II", *size) + bomb[24:]
        bomb = bomb[:29] + struct.pack(">I", zlib.crc32(bomb[12:29])) + bomb[33:]
        with pytest.raises(RefusedError, match="the limit"):
            picture_from(bomb, GREY)

    def test_a_recording_is_cut_at_its_length(self):
        features = FEATURES["zerospeech"]
        frames, samples, longer = sound_from(wav(0.1 * np.random.default_rng(0).standard_normal(16_000)), features)
        assert (frames.shape, len(samples), longer) == ((101, 80), 16_000, False)
        frames, _, longer = sound_from(wav(np.zeros((LONGEST + 5) * 16_000)), features)
        assert (len(frames), longer) == (100 * LONGEST + 1, True)

    @pytest.mark.parametrize("content", [b"just some words\n" * 100, b"", wav(np.zeros(10)), wav([np.nan] * 9000)])
    def test_what_is_no_recording_is_refused(self, content):
        with pytest.raises(RefusedError):
            sound_from(content, FEATURES["zerospeech"])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    root = tmp_path_factory.mktemp("explored")
    train(tiny(write_pictures(root / "pictures.npy"), epochs=1), root / "run", announce=lambda text: None)
    return root / "run"


@pytest.fixture(scope="module")
def server(run):
    with explored(run) as found:
        yield found


class TestServer:
    def test_it_shows_the_page_with_a_held_out_picture(self, server):
        status, page, headers = server.ask("GET", "/")
        assert status == 200
        assert "held-out picture 1 of" in page
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"

    def test_a_picture_is_taken(self, server):
        content = png(Image.new("L", (30, 20), 99))
        status, text, _ = server.ask("POST", server.upload_address(), content, x_name="mine.png")
        said = "cropped from 30x20 to its centre square, 20x20, resized to 8x8"
        assert (status, text) == (200, f"mine.png: {said}")

    @pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", ""])
    def test_another_host_is_refused(self, server, host):
        """A name that an attacker makes mean this machine comes with every request of its page."""
        status, text, _ = server.ask("GET", "/", host=host.format(port=server.port))
        assert status == 403
        assert text.startswith(f"403: this server answers to {server.address} only")

    @pytest.mark.parametrize(
        "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"]
    )
    def test_another_origin_is_refused(self, server, origin):
        address = server.upload_address()
        origin = origin.format(port=server.port)
        status, text, _ = server.ask("POST", address, png(Image.new("L", (8, 8))), origin=origin)
        assert status == 403
        assert repr(origin) in text
        assert server.ask("POST", address, png(Image.new("L", (8, 8))), origin=server.address)[0] == 200

    def test_another_site_may_link_here_and_nothing_else(self, server):
        site = {"sec-fetch-site": "cross-site"}
        assert server.ask("GET", "/", **site, sec_fetch_mode="no-cors", sec_fetch_dest="image")[0] == 403
        assert server.ask("GET", "/", **site, sec_fetch_mode="navigate", sec_fetch_dest="iframe")[0] == 403
        assert server.ask("GET", "/", **site, sec_fetch_mode="navigate", sec_fetch_dest="document")[0] == 200

    @pytest.mark.parametrize(("origin", "status"), [("http://evil.example", 403), ("http://127.0.0.1:{port}", 101)])
    def test_web_sockets_of_another_origin_are_refused(self, server, origin, status):
        lines = [
            "GET /_nicegui_ws/socket.io/?EIO=4&transport=websocket HTTP/1.1",
            f"Host: 127.0.0.1:{server.port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            f"Origin: {origin.format(port=server.port)}",
            f"Cookie: sqvae-{server.port}={server.token}",
        ]
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as wire:
            wire.sendall("\r\n".join([*lines, "", ""]).encode())
            assert wire.recv(4096).decode("latin-1").split()[1] == str(status)

    @pytest.mark.parametrize("name", ["../../etc/passwd", "<img src=x onerror=alert(1)>.png", "a" * 5000, "%00%ff"])
    def test_names_are_shown_and_used_for_nothing(self, server, name):
        status, text, headers = server.ask("POST", server.upload_address(), b"root:x:0:0", x_name=name)
        assert status == 422
        assert "refused. not an image" in text
        assert len(text) < 300
        assert headers["content-type"].startswith("text/plain")

    @pytest.mark.parametrize(
        "path",
        [
            "/../../../../etc/passwd",
            "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
            "/config.json",
            "/run/log.jsonl",
            "//etc/passwd",
            "/_nicegui/static/../../../../../etc/passwd",
            "/upload/nobody/first",
            "/docs",
            "/openapi.json",
        ],
    )
    def test_no_address_leads_to_files(self, server, path):
        status, text, _ = server.ask("GET", path)
        assert status in (404, 405)
        assert "root:" not in text
        assert "quantizer" not in text

    def test_without_the_secret_nothing_is_answered(self, server):
        for cookie in (None, f"sqvae-{server.port}=", f"sqvae-{server.port}=guessed", f"other={server.token}"):
            status, text, _ = server.ask("GET", "/", cookie=cookie)
            assert status == 403
            assert "the address that `sqvae explore` has printed" in text
        assert server.ask("POST", server.upload_address(), b"x", cookie=None)[0] == 403
        assert server.ask("GET", "/?token=guessed", cookie=None)[0] == 403

    def test_the_printed_address_gives_the_secret_to_the_browser_alone(self, server):
        status, _, headers = server.ask("GET", f"/?token={server.token}", cookie=None)
        assert (status, headers["location"]) == (303, "/")
        kept, *rules = headers["set-cookie"].split("; ")
        assert {"HttpOnly", "SameSite=Strict"} <= set(rules)
        assert server.ask("GET", "/", cookie=kept)[0] == 200
        elsewhere = server.ask("GET", f"/?token={server.token}", cookie=None, host="evil.example")
        assert elsewhere[0] == 403

    def test_a_second_host_header_is_refused(self, server):
        lines = ["GET / HTTP/1.1", f"Host: 127.0.0.1:{server.port}", "Host: evil.example", "Connection: close"]
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as wire:
            wire.sendall("\r\n".join([*lines, "", ""]).encode())
            assert wire.recv(4096).decode("latin-1").split()[1] == "400"

    def test_stalled_uploads_do_not_keep_others_waiting_for_long(self, server):
        address = server.upload_address()
        lines = [f"POST {address} HTTP/1.1", f"Host: 127.0.0.1:{server.port}", "Content-Length: 1000"]
        lines += [f"Cookie: sqvae-{server.port}={server.token}"]
        stalled = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(2)]
        try:
            for wire in stalled:
                wire.sendall("\r\n".join([*lines, "", "a"]).encode())
            assert stalled[0].recv(4096).decode("latin-1").split()[1] == "408"
            assert stalled[1].recv(4096).decode("latin-1").split()[1] == "408"
            assert server.ask("POST", address, png(Image.new("L", (8, 8))))[0] == 200
        finally:
            for wire in stalled:
                wire.close()

    def test_an_unknown_tab_gets_no_file_in(self, server):
        assert server.ask("POST", "/upload/00000000-0000-0000-0000-000000000000/first", b"x")[0] == 404

    def test_memory_is_bounded_whatever_comes(self, server):
        address, before = server.upload_address(), server.most_memory()
        bomb = png_of_zeros(10_000, 10_000)
        assert len(bomb) < 2**20
        status, text, _ = server.ask("POST", address, bomb, x_name="bomb.png")
        assert status == 422
        assert "10,000 x 10,000 pixels" in text

        status, text, _ = server.ask("POST", address, None, content_length=str(2**40))
        assert status == 413
        assert "at most 32 MB" in text

        endless = (bytes(2**20) for _ in range(300))  # of a length that nobody says
        assert server.ask("POST", address, endless)[0] == 413
        assert server.most_memory() - before < 150 * 2**20
        assert server.ask("GET", "/")[0] == 200


class TestCommand:
    def test_a_model_without_codes_is_refused(self, tmp_path, capsys):
        experiment = with_quantizer(tiny(write_pictures(tmp_path / "pictures.npy"), epochs=1), "gaussian-latent")
        train(experiment, tmp_path / "run", announce=lambda text: None)
        assert main(["explore", str(tmp_path / "run"), "--no-open"]) == 1
        assert "has a continuous latent, and no codes to explore: see `sqvae inspect" in said(capsys)

    def test_a_port_that_is_taken(self, capsys):
        with free_socket(None) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(OSError, match=rf"no free port at {port} \(.*\): .* choose another port with --port"):
                free_socket(port)
            with free_socket(None) as other:
                assert other.getsockname()[1] != port

    def test_without_the_framework_it_says_what_to_install(self, monkeypatch, capsys):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        assert main(["explore", "nowhere"]) == 1
        assert "pip install -e '.[explore]'" in said(capsys)

    def test_a_run_whose_data_is_not_here_invites(self, tmp_path):
        tokenizer = picture_tokenizer("pictures")
        explorer = explorer_of(tmp_path, tokenizer, missing="it was moved")
        assert explorer.held_out is None
        assert explorer.counts is None
        assert explorer.curves == []
        assert explorer.usage_text(3) == "Its usage on held-out data is not known."


def test_use_is_counted_where_none_is_recorded(tmp_path):
    class Two:
        def __len__(self):
            return 2

        def take(self, indices):
            return torch.stack([example("pictures", seed) for seed in indices])

    explorer = explorer_of(tmp_path, picture_tokenizer("pictures"), held_out=Two())
    assert int(explorer.counts.sum()) == 2 * 8
    assert explorer.counted_on == "2 held-out pictures"


def test_a_model_of_one_code_has_nothing_to_offer():
    experiment = picture_tokenizer("pictures").experiment
    single = replace(experiment, quantizer=replace(experiment.quantizer, codebook_size=1))
    session = Session(explorer_of("nowhere", ImageTokenizer(new_model(single).eval(), single, "")))
    session.show(Example(example("pictures"), "mine"))
    session.select(0)
    assert session.explorer.nearest(0, 8) == []
    assert session.cost_text().startswith("8 codes of log2(1) = 0 bits")
