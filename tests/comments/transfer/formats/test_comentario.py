"""What Comentario writes for none is no data, and no fault of the file."""

from pathlib import Path

from comments.transfer import import_source
from comments.transfer.formats import comentario
from tests.support.importing.samples import comentario as samples


def items(path: Path, data: bytes) -> list[import_source.Item]:
    path.write_bytes(data)
    return list(comentario.read(path))


def test_an_export_without_faults_needs_no_correction(tmp_path: Path) -> None:
    found = items(tmp_path / "export", samples.SANE.data)
    assert [each for each in found if isinstance(each, import_source.Corrected)] == []


def test_ids_of_zeros_are_none(tmp_path: Path) -> None:
    export = f'{{"comments": [{{"id": "1", "pageId": "2", "parentId": "{samples.ZEROS}",'
    export += f'"userCreated": "{samples.ZEROS}", "createdTime": "2023-01-01T00:00:00Z"}}]}}'
    (comment,) = items(tmp_path / "export", export.encode())
    assert isinstance(comment, import_source.SourceComment)
    assert (comment.parent, comment.account) == (None, "")


def test_the_address_of_a_page_is_that_of_its_comments_without_their_ids(tmp_path: Path) -> None:
    found = items(tmp_path / "export", samples.SANE.data)
    threads = [each for each in found if isinstance(each, import_source.SourceThread)]
    assert [each.link for each in threads] == ["https://garden.example/beans/", "/peas"]
