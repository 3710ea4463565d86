import socket

import pytest

from memstory.contract.errors import UnavailableError
from memstory_reference.adapters.vectors.chroma_store import open_chroma_server


async def test_server_that_does_not_answer_is_one_clear_error():
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    with pytest.raises(UnavailableError, match=f"http://127.0.0.1:{port} does not answer. Start it with 'chroma run"):
        await open_chroma_server("127.0.0.1", port, model="fixed")
