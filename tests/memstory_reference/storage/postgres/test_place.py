"""Where the layers lie in Postgres: one setting, a URL, which is never shown."""

import pytest
from psycopg.conninfo import conninfo_to_dict

from memstory_reference.errors import InputError
from memstory_reference.storage.postgres.place import BESIDE, PostgresPlace, parse_place

URL = "postgresql://ann:s3cret@db.example:5433/work"


def test_without_a_schema_it_is_memstory():
    assert parse_place(URL) == PostgresPlace(url=URL, schema="memstory")


def test_the_schema_is_taken_out_of_what_libpq_reads():
    place = parse_place(f"{URL}?schema=team&sslmode=require")
    assert place == PostgresPlace(url=f"{URL}?sslmode=require", schema="team")


def test_what_libpq_reads_is_left_as_it_was():
    place = parse_place("postgresql://ann:a%20b@/work?host=%2Frun%2Fpg&schema=team&connect_timeout=3")
    assert conninfo_to_dict(place.url) == {
        "user": "ann",
        "password": "a b",
        "dbname": "work",
        "host": "/run/pg",
        "connect_timeout": "3",
    }


def test_the_password_is_in_no_repr():
    assert "s3cret" not in repr(parse_place(URL))


@pytest.mark.parametrize("schema", ["", "Team", "1team", "a b", 'a"; DROP TABLE x; --', "x" * 55, "ä"])
def test_a_schema_that_needs_quotes_is_refused(schema):
    with pytest.raises(InputError, match="schema"):
        parse_place(f"{URL}?schema={schema}")


def test_the_longest_schema_fits_with_what_lies_beside_it():
    place = parse_place(f"{URL}?schema={'x' * 54}")
    assert all(len(place.sibling(name).schema) <= 63 for name in BESIDE)


@pytest.mark.parametrize(
    "setting", ["", "memory", "mysql://ann:s3cret@h/x", "postgresql:/x", "host=x", "postgresql://["]
)
def test_what_is_no_url_of_postgres_is_refused_without_its_password(setting):
    with pytest.raises(InputError, match="postgresql://USER:PASSWORD@HOST/DATABASE") as told:
        parse_place(setting)
    assert "s3cret" not in str(told.value)
