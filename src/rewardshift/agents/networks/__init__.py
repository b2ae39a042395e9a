"""Networks, which turn observations into outputs: a slot of every agent.

A network is a frozen dataclass with two pure functions, `init` and `apply`. Its parameters are a
tree of arrays, which the agent keeps. `MLP` is the default and `Convolution` is for images; any
other object that follows `Network` works too.
"""

from rewardshift.agents.networks.convolution import Convolution
from rewardshift.agents.networks.perceptron import (
    MLP,
    Initial,
    InputRange,
    MLPParameters,
    Network,
    apply_mlp,
    init_mlp,
    init_several,
    normal_from_uniform,
    twin_values,
)

__all__ = [
    "MLP",
    "Convolution",
    "Initial",
    "InputRange",
    "MLPParameters",
    "Network",
    "apply_mlp",
    "init_mlp",
    "init_several",
    "normal_from_uniform",
    "twin_values",
]
