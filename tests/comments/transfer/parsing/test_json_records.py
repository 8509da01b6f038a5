"""Records are found in a list, in an object around it, and on lines."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.transfer.parsing import json_lines

RECORDS = st.lists(
    st.dictionaries(st.sampled_from(["a", "b", "results", "data", '"data": [']), st.text()),
    min_size=1,
)


def texts(path: Path) -> list[dict[str, str]]:
    found = list(json_lines.records(path, what="an export"))
    assert [fields.number for fields in found] == list(range(1, len(found) + 1))
    return [{name: fields.text(name) for name in fields.names} for fields in found]


@given(
    records=RECORDS,
    indent=st.none() | st.integers(0, 2),
    wrapper=st.sampled_from([None, "results", "data"]),
    is_packed=st.booleans(),
)
def test_records_are_found_in_a_list_and_in_an_object_around_it(
    tmp_path_factory: pytest.TempPathFactory,
    *,
    records: list[dict[str, str]],
    indent: int | None,
    wrapper: str | None,
    is_packed: bool,
) -> None:
    path = tmp_path_factory.getbasetemp() / "list"
    value = {"code": 0, wrapper: records, "more": None} if wrapper else records
    data = json.dumps(value, indent=indent).encode()
    path.write_bytes(gzip.compress(data) if is_packed else data)
    assert texts(path) == records


@given(records=RECORDS, header=st.sampled_from(["", "\n", '#filetype:JSON-streaming {"a":[]}\n']))
def test_records_are_found_on_lines(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, str]], header: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "lines"
    path.write_text(header + "\n".join(json.dumps(each) for each in records))
    assert texts(path) == records


@pytest.mark.parametrize("content", ["", "  ", "{", '{\n"a": 1}', "7", "<p>"])
def test_a_file_without_records_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "export"
    path.write_text(content)
    with pytest.raises(errors.BadImport, match="the file is not an export"):
        list(json_lines.records(path, what="an export"))
