"""Graphiti over an embedded Kuzu: its model draws a graph of facts, which end where a newer one contradicts them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from memstory.contract.clock import Clock
from memstory.contract.target import Environment, Hit, Query, Tree
from memstory.models.openai_server import NO_KEY
from memstory.targets.embedders import EmbeddingFactory, EmbeddingTarget, TimedEmbedder
from memstory.targets.vendors.model_inside import MODEL_CAPABILITIES, ModelInside


class GraphitiTarget(ModelInside, EmbeddingTarget):
    """A group of the graph a user. What is listed and found are facts that still hold, as Graphiti dates them."""

    capabilities = MODEL_CAPABILITIES | {"embedder.fixed", "option.embedder"}
    _graph: Any
    _client: Any = None

    async def open(self, env: Environment, clock: Clock) -> None:
        self._clock = clock
        await super().open(env, clock)

    async def open_memory(self, env: Environment) -> None:
        self.choose_embedder(env)
        with warnings.catch_warnings():
            # It is the one store that needs no server, and Graphiti says that its makers have stopped.
            warnings.simplefilter("ignore", DeprecationWarning)
            driver = import_module("graphiti_core.driver.kuzu_driver").KuzuDriver(db=str(Path(env.workspace) / "graph"))
        # Two repairs of graphiti-core 0.31: it reads a name that this driver has not, and makes no indexes of words.
        driver._database = "memstory"  # noqa: SLF001
        provider = import_module("graphiti_core.driver.driver").GraphProvider.KUZU
        for query in import_module("graphiti_core.graph_queries").get_fulltext_indices(provider):
            await driver.execute_query(query)
        config = import_module("graphiti_core.llm_client.config").LLMConfig(
            api_key=NO_KEY, model=self._name, small_model=self._name, base_url=self.model.url if self.model else None
        )
        self._client = import_module("openai").AsyncOpenAI(api_key=NO_KEY, base_url=config.base_url)
        generic = import_module("graphiti_core.llm_client.openai_generic_client").OpenAIGenericClient
        ranker = import_module("graphiti_core.cross_encoder.openai_reranker_client").OpenAIRerankerClient
        self._graph = import_module("graphiti_core").Graphiti(
            graph_driver=driver,
            llm_client=generic(config=config, client=self._client),
            embedder=_client_of(self.embedder),
            cross_encoder=ranker(config=config, client=self._client),
        )

    async def close_memory(self) -> None:
        await self._client.close()
        await self._graph.close()

    def store_name(self) -> str:
        return f"graphiti-core {version('graphiti-core')}, kuzu {version('kuzu')}"

    async def learn(self, text: str, user: str) -> None:
        source = import_module("graphiti_core.nodes").EpisodeType.message
        await self._graph.add_episode(
            name="message", episode_body=f"user: {text}", source=source, source_description="a conversation",
            reference_time=self._clock.now(), group_id=_group(user),
        )  # fmt: skip

    async def memories(self, user: str) -> Sequence[Hit]:
        edges = import_module("graphiti_core.edges")
        try:
            found = await edges.EntityEdge.get_by_group_ids(self._graph.driver, [_group(user)])
        except import_module("graphiti_core.errors").GroupsEdgesNotFoundError:
            return []
        return [_hit(one) for one in sorted(found, key=lambda one: one.created_at) if one.invalid_at is None]

    async def matches(self, query: Query, user: str) -> Sequence[Hit]:
        limit = 10 if query.top_k is None else query.top_k
        # Facts that ended come too: they do not count.
        found = await self._graph.search(query.text, group_ids=[_group(user)], num_results=2 * limit)
        return [_hit(one) for one in found if one.invalid_at is None][:limit]

    async def forget(self, hit: Hit, user: str) -> None:
        edges = import_module("graphiti_core.edges")
        await (await edges.EntityEdge.get_by_uuid(self._graph.driver, hit.id)).delete(self._graph.driver)

    @property
    def _name(self) -> str:
        return self.model.name if self.model else "none"


class GraphitiFactory(EmbeddingFactory):
    """Graphiti with the embedder that the reference uses too; `llm=openai:MODEL` names its model."""

    name: ClassVar[str] = "graphiti"
    adapter = GraphitiTarget

    async def start(self, folder: Path) -> None:
        # Read when it is imported: it reports to its makers otherwise.
        os.environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"


def _client_of(embedder: TimedEmbedder) -> Any:
    """Return the embedder as Graphiti calls one; it does not say whether a text is a query."""

    class Client(import_module("graphiti_core.embedder.client").EmbedderClient):  # type: ignore[misc]
        async def create(self, input_data: Tree) -> list[float]:
            texts = [input_data] if isinstance(input_data, str) else list(input_data)
            return (await self.create_batch(texts))[0]

        async def create_batch(self, input_data_list: list[str]) -> list[list[float]]:
            return [list(row) for row in await embedder.embed(input_data_list, "document")]

    return Client()


def _group(user: str) -> str:
    # Graphiti takes letters, digits, dashes and underscores.
    return f"u{user.encode().hex()}"


def _hit(found: Any) -> Hit:
    return Hit(id=found.uuid, text=found.fact, created_at=found.created_at.isoformat())
