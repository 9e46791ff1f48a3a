"""The same round of training by Flower, a federated framework with a server: five clients, no noise, no pads. For its seconds
alone.

    python benchmarks/together_flower.py PARTIES ROUNDS      prints the seconds of every round as JSON

Every client is a process; it draws rows with the same chance, clips every record's gradient by the same function
(`netdp.models.clipped_sum`, 64 records at once) and sends the sum to the server, which adds them up and makes the step. Needs
the package flwr, which is no dependency of netdp: `together.py` runs this file with the interpreter that NETDP_FLOWER names,
if there is one.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
import warnings
from typing import Any

import numpy as np

SAMPLING, CLIP, STEP, MOMENTUM = 0.064, 0.1, 5.0, 0.9


def client(address: str, parties: int, number: int) -> None:
    """One party."""
    import logging

    import flwr
    import torch

    from netdp.models import clipped_sum
    from together_data import cnn_model, mnist

    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    X, y, *_ = mnist(0)
    part = np.array_split(np.random.default_rng(0).permutation(len(X)), parties)[number]
    X, y, model = X[part], y[part], cnn_model()
    coins = np.random.default_rng([70, number])

    class One(flwr.client.NumPyClient):
        def get_parameters(self, config: dict[str, Any]) -> list[Any]:
            return [model.start()]

        def fit(self, parameters: list[Any], config: dict[str, Any]) -> tuple[list[Any], int, dict[str, Any]]:
            there = coins.random(len(X)) < SAMPLING
            return [clipped_sum(model, parameters[0], X[there], y[there], CLIP)], 1, {}

    flwr.client.start_client(server_address=address, client=One().to_client())


def serve(parties: int, rounds: int) -> list[float]:
    """Seconds of every round at the server, from one step to the next."""
    import logging

    import flwr
    from flwr.common import ndarrays_to_parameters, parameters_to_ndarrays

    from netdp.peers.setup import free_ports
    from together_data import cnn_model

    logging.disable(logging.CRITICAL)
    address = f"127.0.0.1:{free_ports(1)[0]}"
    context = multiprocessing.get_context("spawn")
    clients = [context.Process(target=client, args=(address, parties, u), daemon=True) for u in range(parties)]
    ends: list[float] = []
    theta = cnn_model().start()

    class Summed(flwr.server.strategy.FedAvg):  # type: ignore[misc]
        def __init__(self, theta: Any) -> None:
            super().__init__(
                fraction_evaluate=0.0, min_fit_clients=parties, min_available_clients=parties,
                initial_parameters=ndarrays_to_parameters([theta]),
            )  # fmt: skip
            self.theta, self.velocity = theta, np.zeros_like(theta)

        def aggregate_fit(self, server_round: int, results: Any, failures: Any) -> Any:
            if failures or len(results) != parties:
                raise RuntimeError(f"round {server_round}: {len(results)} results, {failures}")
            total = sum(parameters_to_ndarrays(result.parameters)[0] for _, result in results)
            self.velocity = MOMENTUM * self.velocity + total / (8000 * SAMPLING)
            self.theta = self.theta - STEP * self.velocity
            ends.append(time.perf_counter())
            return ndarrays_to_parameters([self.theta]), {}

    for one in clients:
        one.start()
    try:
        flwr.server.start_server(
            server_address=address, config=flwr.server.ServerConfig(num_rounds=rounds), strategy=Summed(theta)
        )
    finally:
        for one in clients:
            one.join(10)
            if one.is_alive():
                one.kill()
    return np.diff(ends).tolist()


if __name__ == "__main__":
    os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
    warnings.simplefilter("ignore")
    print(json.dumps(serve(int(sys.argv[1]), int(sys.argv[2]))))
