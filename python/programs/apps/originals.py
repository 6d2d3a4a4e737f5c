"""The usual calls of msgpack and tiktoken, under the originals' names."""

import pickle

import msgpack
import tiktoken
from msgpack import Packer, Timestamp, Unpacker, packb
from tiktoken import Encoding


def main() -> None:
    message = {"name": "Ishmael", "when": Timestamp(1, 2), "list": [1, 2.5, None]}
    assert msgpack.unpackb(packb(message)) == message
    unpacker = Unpacker()
    unpacker.feed(Packer().pack(message))
    assert list(unpacker) == [message]
    assert isinstance(unpacker, msgpack.Unpacker)
    encoding = tiktoken.encoding_for_model("gpt-4o")
    assert isinstance(encoding, Encoding)
    assert encoding.decode(encoding.encode("off the lock")) == "off the lock"
    assert pickle.loads(pickle.dumps(encoding)).encode("x") == encoding.encode("x")
