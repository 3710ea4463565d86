from memstory.targets.embedders import TimedEmbedder
from memstory.targets.one_thread import OneThread
from memstory.targets.waited_embedder import WaitedEmbedder


class Lengths:
    model = "lengths"

    async def embed(self, texts, purpose):
        return [[float(len(text)), float(purpose == "query")] for text in texts]

    async def close(self):
        pass


async def test_a_thread_gets_its_vectors_from_the_event_loop():
    thread, embedder = OneThread("test"), WaitedEmbedder(Lengths())
    assert await thread.run(embedder.embed, ["a", "abc"], "query") == [[1.0, 1.0], [3.0, 1.0]]
    thread.close()


async def test_the_time_of_embedding_is_counted_for_a_thread_too():
    thread, timed = OneThread("test"), TimedEmbedder(Lengths())
    await thread.run(WaitedEmbedder(timed).embed, ["a"], "document")
    thread.close()
    assert 0 < timed.watch.seconds < 1
