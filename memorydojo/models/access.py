"""How runs reach their models: what may be called, with which keys, and what is replayed. Can be sent to workers."""

import os
import secrets
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from memorydojo.errors import InvalidInputError
from memorydojo.models.config import Models
from memorydojo.models.keys import Keys

if TYPE_CHECKING:
    from memorydojo.models.gateway import Gateway

Replay = Literal["off", "prefer", "only"]

#: The file of recorded answers in a directory of runs.
ANSWERS = "answers.sqlite"


@dataclass(frozen=True)
class Access:
    """What a process needs to call models for runs.

    Attributes:
        models: Which models there are.
        keys: Keys that are not in the environment.
        replay: ``"off"`` asks and records, ``"prefer"`` asks only for what is not recorded, ``"only"`` asks nothing.
        answers: The file of recorded answers; None for ``answers.sqlite`` in the directory of the runs.
        start: Tells one start of a user's from the next: each may try again what an earlier one gave up.
    """

    models: Models = field(default_factory=Models)
    keys: Keys = field(default_factory=Keys)
    replay: Replay = "off"
    answers: Path | None = None
    start: str = field(default_factory=lambda: secrets.token_hex(8), compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.models, Models):
            path = str(self.models) if isinstance(self.models, str | Path) else "models.toml"
            raise InvalidInputError(
                "models takes what memorydojo.models.config.Models makes of a file: "
                f"models=Models.from_toml({path!r:.200}), not {type(self.models).__name__}"
            )

    def check(self, *names: str) -> None:
        """Looks up models and their keys, so that a run that cannot work does not start.

        Raises:
            UnknownNameError: No model has this name.
            InvalidInputError: The key of an endpoint is missing, or there is nothing to replay.
        """
        if self.replay not in ("off", "prefer", "only"):
            raise InvalidInputError(f"replay takes 'off', 'prefer' or 'only', not {self.replay!r}")
        for name in names:
            route = self.models.route(name)
            needs = route.backend.key_variable
            if self.replay != "only" and needs is not None and self.keys.find(route.backend) is None:
                raise InvalidInputError(
                    f"the model {name!r} needs a key: set the environment variable {needs} "
                    f"(for the endpoint {route.backend.host}), or give it in Keys. Workers on other machines "
                    "need it in their environment too"
                )

    def gateway(self, directory: Path, *, record: bool) -> "Gateway":
        """The gateway of this process for runs in ``directory``; the same one for the same access.

        The first call of each start closes its circuits.

        Args:
            directory: The directory of the runs.
            record: Whether answers are recorded or replayed at all; those of the simulator need not be.
        """
        from memorydojo.models.gateway import Gateway

        store = self._store(directory) if record or self.replay != "off" else None
        key = (os.getpid(), self.keys.digest(), self.models.model_dump_json(), self.replay, store)
        with _lock:
            if key not in _gateways:
                _gateways[key] = Gateway(self.models, keys=self.keys, store=store, replay=self.replay), set()
            gateway, starts = _gateways[key]
            if self.start not in starts:
                starts.add(self.start)
                gateway.reset()
            return gateway

    def settle(self, directory: Path) -> None:
        """Makes the file of recorded answers whole by itself; called when a run or a sweep ends."""
        from memorydojo.models.cache import settle

        settle(self._store(directory))

    def _store(self, directory: Path) -> Path:
        return (self.answers or directory / ANSWERS).absolute()


_lock = threading.Lock()
#: The gateways of this process, and the starts that have used them. One port and one set of limits serve all runs that
#: share an access.
_gateways: "dict[tuple[object, ...], tuple[Gateway, set[str]]]" = {}
