"""Units of work as tasks of a Ray cluster."""

import importlib
import logging
import os
import socket
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rewardshift.errors import InputError, TrainingError, one_line, require, shown
from rewardshift.lab.figure import Unit
from rewardshift.lab.processes import keep_to_one_thread
from rewardshift.lab.runner import RETRIES, Outcome, Plan, perform_unit


class RayCluster:
    """A Ray cluster, or a temporary one on this machine.

    A unit needs one core, and its result returns through Ray's object store. If the workers see the
    folder of the results, a unit from a lost node continues from its last checkpoint; otherwise it
    starts again.

    Args:
        address: The address of the cluster, as `ray.init` takes it; None starts one on this
            machine.
    """

    jobs = 0  # known only once it is connected

    def __init__(self, address: str | None = None) -> None:
        require("ray", "cluster")
        self.address = address

    def perform(self, plan: Plan, units: list[Unit]) -> Iterator[Outcome]:
        """See `Place`."""
        ray = importlib.import_module("ray")
        self._connect(ray)
        try:
            options = {"num_cpus": 1, "max_retries": RETRIES, "max_calls": int(plan.isolated)}
            task = ray.remote(**options)(_perform_alone)
            if plan.isolated and not str(plan.module).startswith("rewardshift."):
                # The workers may not have the file of a trial.
                ray.cloudpickle.register_pickle_by_value(sys.modules[str(plan.module)])
            # Absolute, because the workers may have other working folders.
            far = replace(plan, out=plan.out.absolute())
            waiting = {task.remote(far, unit): unit for unit in units}
            while waiting:
                (ready,), _ = ray.wait(list(waiting))
                unit = waiting.pop(ready)
                try:
                    yield ray.get(ready)
                except ray.exceptions.RayError as error:
                    yield Outcome(unit, None, f"its worker was lost: {one_line(error)}")
        finally:
            ray.shutdown()

    def _connect(self, ray: Any) -> None:
        quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
        if self.address is None:
            _start(ray, quiet)
            return
        try:
            if self.address != "auto":  # if nothing listens, Ray itself would wait for many minutes
                host, _, port = self.address.removeprefix("ray://").rpartition(":")
                socket.create_connection((host, int(port)), timeout=10).close()
            ray.init(address=self.address, **quiet)
        except (OSError, OverflowError, ValueError, RuntimeError) as error:
            raise InputError(
                f"no Ray cluster at {shown(self.address)}, an address such as 10.0.0.1:6379,"
                f" ray://10.0.0.1:10001 or auto: {one_line(error)}"
            ) from error


def _start(ray: Any, options: dict[str, Any]) -> None:
    """Starts a cluster on this machine."""
    try:
        with warnings.catch_warnings():  # the forks of Ray are safe: JAX is not computing
            warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
            ray.init(
                address="local",  # ignores RAY_ADDRESS
                num_cpus=os.cpu_count(),
                include_dashboard=False,
                _node_ip_address="127.0.0.1",
                **options,
            )
    except Exception as error:  # of no class of its own, if the machine is too busy
        raise TrainingError(f"Ray did not start on this machine: {one_line(error)}") from error


def _perform_alone(plan: Plan, unit: Unit) -> Outcome:
    keep_to_one_thread()
    return perform_unit(plan, unit)
