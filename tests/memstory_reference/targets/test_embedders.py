from importlib.metadata import entry_points

from memstory.targets.embedders import GROUP, load_embedder


async def test_the_harness_finds_the_reference_embedder_by_entry_point():
    assert "minilm" in entry_points(group=GROUP).names
    embedder = load_embedder("minilm")
    (tea, green_tea, ship) = await embedder.embed(["a cup of tea", "a cup of green tea", "the ship sails"], "document")
    assert embedder.model == "all-MiniLM-L6-v2"
    assert len(tea) == 384
    near, far = (sum(a * b for a, b in zip(tea, other, strict=True)) for other in (green_tea, ship))
    await embedder.close()
    assert near > 0.7
    assert far < 0.3
