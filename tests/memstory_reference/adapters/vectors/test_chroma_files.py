import pickle
import struct

import pytest

from memstory_reference.adapters.vectors.chroma_files import HEADER, HEADER_BYTES, is_index_whole

WHOLE = {"dimensionality": None, "total_elements_added": 2, "id_to_label": {"a": 0, "b": 1}, "label_to_id": {}}


@pytest.fixture
def segment(tmp_path):
    """An index of two elements of eight bytes, as hnswlib lays it out."""
    (tmp_path / "header.bin").write_bytes(HEADER.pack(1, 0, 2, 2, 8).ljust(HEADER_BYTES, b"\0"))
    (tmp_path / "data_level0.bin").write_bytes(bytes(16))
    (tmp_path / "length.bin").write_bytes(bytes(8))
    (tmp_path / "link_lists.bin").write_bytes(struct.pack("<ii", 0, 0))
    (tmp_path / "index_metadata.pickle").write_bytes(pickle.dumps(WHOLE))
    return tmp_path


def test_files_that_agree_are_whole(segment):
    assert is_index_whole(segment)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80\x03K\x01K\x02a.",
        b"\x80\x03X\x01\x00\x00\x00aK\x01K\x02s.",
        b"\x80\x03}r\x00\x00\x00\x40.",
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fa.",
        b"\x80\x03cos\nsystem\n.",
        pickle.dumps({}),
        pickle.dumps([]),
        pickle.dumps({**WHOLE, "id_to_label": {}}),
        pickle.dumps({**WHOLE, "id_to_label": {"a": 0, "b": 1, "c": 2}}),
        pickle.dumps(WHOLE)[:-9],
    ],
)
def test_names_that_cannot_be_read_or_do_not_fit_are_damage(segment, content):
    (segment / "index_metadata.pickle").write_bytes(content)
    assert not is_index_whole(segment)


def test_damage_of_any_byte_is_seen_or_harmless_but_never_raises(segment):
    file = segment / "index_metadata.pickle"
    good = file.read_bytes()
    for place in range(len(good)):
        for byte in (0, 0x2E, 0x5D, 0x72, 0x94, 0xFF):
            file.write_bytes(good[:place] + bytes([byte]) + good[place + 1 :])
            assert is_index_whole(segment) in (True, False)
