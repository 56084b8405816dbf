"""Recurrent layers as single nodes of an ONNX graph, for sequences of any length."""

import torch
from torch import Tensor, nn

OPSET = 18
"""The ONNX version that defines this GRU."""


class OnnxGRU(nn.Module):
    r"""A bidirectional, batch-first :class:`torch.nn.GRU`, only for tracing to ONNX.

    Tracing unrolls torch's own layers over the length of the example, which fixes the length. Here each layer is one
    ONNX GRU:

    .. math:: h_t = (1 - u_t) \odot n_t + u_t \odot h_{t-1}

    with the gates in the order u, r, n instead of torch's r, u, n, and the weights of both directions in one tensor.

    Arguments:
        recurrent: the layers whose weights are used.
    """

    def __init__(self, recurrent: nn.GRU) -> None:
        super().__init__()
        if not (recurrent.bidirectional and recurrent.batch_first and recurrent.bias):
            raise ValueError("only bidirectional, batch-first layers with biases can be exported")
        self.hidden, self.layers = recurrent.hidden_size, recurrent.num_layers
        for layer in range(self.layers):
            weights = [_both_directions(recurrent, f"{name}_l{layer}") for name in ("weight_ih", "weight_hh")]
            biases = [_both_directions(recurrent, f"{name}_l{layer}") for name in ("bias_ih", "bias_hh")]
            self.register_buffer(f"inputs_{layer}", weights[0])
            self.register_buffer(f"states_{layer}", weights[1])
            self.register_buffer(f"biases_{layer}", torch.cat(biases, 1))

    def forward(self, x: Tensor) -> tuple[Tensor, None]:  # (batch, length, d) -> (batch, length, 2 hidden)
        batch, length, _ = x.shape
        x = x.transpose(0, 1)
        for layer in range(self.layers):
            weights = [self.get_buffer(f"{name}_{layer}") for name in ("inputs", "states", "biases")]
            y = torch.onnx.ops.symbolic(
                "GRU",
                (x, *weights),
                {"hidden_size": self.hidden, "direction": "bidirectional", "linear_before_reset": 1},
                dtype=x.dtype,
                shape=(length, 2, batch, self.hidden),
                version=OPSET,
            )
            x = y.transpose(1, 2).reshape(length, batch, 2 * self.hidden)
        return x.transpose(0, 1), None


def _both_directions(recurrent: nn.GRU, name: str) -> Tensor:  # (3 hidden, ...) -> (2, 3 hidden, ...)
    """The weights or biases of a layer, forward and backward, with the gates in ONNX's order."""
    ordered = []
    for direction in ("", "_reverse"):
        reset, update, new = recurrent.get_parameter(name + direction).detach().chunk(3)
        ordered.append(torch.cat((update, reset, new)))
    return torch.stack(ordered)
