"""Find out which emulator answers at an address, and which tests it cannot pass.

`emulator_limits.toml` lists these tests with the emulator's reason.
"""

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import grpc

from datastore_emulator import inprocess, protobufs

DATASTORE = "Google's Datastore emulator"
FIRESTORE = "Google's Firestore emulator"
OTHER = "an emulator that is not Google's"
_LIMITS = Path(__file__).with_name("emulator_limits.toml")
_PATIENCE = 10.0  # Seconds for one call


class Emulator(NamedTuple):
    """An emulator, with the reasons why it cannot pass some tests, by the beginnings of ids."""

    name: str
    limits: dict[str, str]

    def limit(self, test: str) -> str:
        """Return why the emulator cannot pass a test, or ""."""
        return next((self.limits[each] for each in self.limits if test.startswith(each)), "")


def identify(host: str) -> Emulator:
    """Return the emulator at `host`. It is recognized by the calls that it refuses."""
    with grpc.insecure_channel(host) as channel:
        name = _name(channel)
    limits = tomllib.loads(_LIMITS.read_text(encoding="utf-8"))["limit"]
    return Emulator(
        name,
        {
            test: each["reason"]
            for each in limits
            if name in each["emulators"]
            for test in each["tests"]
        },
    )


def _name(channel: grpc.Channel) -> str:
    try:
        query = {"kind": [{"name": "Kind"}]}
        count = {"nested_query": query, "aggregations": [{"alias": "n", "count": {}}]}
        _call(channel, "RunAggregationQuery", aggregation_query=count)
        begun = _call(channel, "BeginTransaction", transaction_options={"read_only": {}})
        _call(channel, "Commit", mode="TRANSACTIONAL", transaction=begun.transaction)
    except grpc.RpcError as error:
        refused = {
            grpc.StatusCode.UNIMPLEMENTED: DATASTORE,
            grpc.StatusCode.INVALID_ARGUMENT: FIRESTORE,
        }
        return refused.get(error.code(), OTHER)
    return OTHER


def _call(channel: grpc.Channel, name: str, **fields: Any) -> Any:
    call = channel.unary_unary(
        f"{inprocess.SERVICE}{name}",
        request_serializer=protobufs.REQUESTS[name].SerializeToString,
        response_deserializer=protobufs.RESPONSES[name].FromString,
    )
    return call(protobufs.REQUESTS[name](project_id="which", **fields), timeout=_PATIENCE)
