"""The exports folder: every URL maps to a path, and no URL leads outside the folder."""

from pathlib import Path

import pytest

from datastore_emulator import errors
from datastore_emulator.import_export import export_folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "exports"


@pytest.fixture
def folder(root: Path) -> export_folder.Folder:
    return export_folder.Folder(root)


def names_in(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def placed(folder: export_folder.Folder, url: str) -> Path:
    return folder.place(url, "output_url_prefix")


def test_a_bucket_maps_to_a_folder_and_a_path_to_itself(
    folder: export_folder.Folder, root: Path
) -> None:
    assert placed(folder, "gs://bucket") == root / "bucket"
    assert placed(folder, "gs://bucket/a b/é/") == root / "bucket/a b/é"
    for url in (f"{root}/x/y", f"file://{root}/x/y", f"file://localhost{root}/x/%79/"):
        assert placed(folder, url) == root / "x/y"
    assert placed(folder, f"file://{root}") == root


@pytest.mark.parametrize(
    "url",
    [
        "",
        "bucket/x",
        "gs://",
        "gs:///x",
        "gs://..",
        "gs://bucket/../../etc",
        "gs://bucket//x",
        "gs://bucket/.hidden",
        "gs://bucket/a\\b",
        "gs://bucket/a\nb",
        "gs://bucket/a\x00b",
        f"gs://bucket/{'x' * 201}",
        f"gs://bucket/{'x/' * 600}",
        "s3://bucket/x",
        "https://storage.googleapis.com/bucket",
        "/etc",
        "file:///etc/passwd",
        "file:///",
        "file://host{root}/x",
        "file://[{root}/x",
        "file://{root}/x?y",
        "file://{root}/../x",
        "file://{root}/%2e%2e/x",
        "{root}/../x",
        "{root}/./../x",
        "{root}x",
        "{root}/.x.partial",
    ],
)
def test_no_other_url_is_accepted(folder: export_folder.Folder, root: Path, url: str) -> None:
    with pytest.raises(errors.InvalidArgument, match="output_url_prefix"):
        placed(folder, url.replace("{root}", str(root)))


def test_a_symbolic_link_is_not_followed(
    folder: export_folder.Folder, root: Path, tmp_path: Path
) -> None:
    (root / "bucket").mkdir(parents=True)
    (root / "bucket/out").symlink_to(tmp_path)
    (root / "other").symlink_to(root / "bucket")
    for url in ("gs://bucket/out", "gs://bucket/out/x", "gs://other"):
        with pytest.raises(errors.InvalidArgument, match="symbolic link"):
            placed(folder, url)


def test_the_folder_itself_can_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    folder = export_folder.Folder(tmp_path / "link")
    assert placed(folder, "gs://bucket") == tmp_path / "link/bucket"
    assert placed(folder, f"{tmp_path}/real/bucket") == tmp_path / "link/bucket"


def test_without_a_folder_every_url_is_refused() -> None:
    with pytest.raises(errors.FailedPrecondition, match="--exports FOLDER"):
        placed(export_folder.Folder(None), "gs://bucket")


def test_an_export_is_private_and_gets_its_name_when_complete(
    folder: export_folder.Folder, root: Path
) -> None:
    with folder.writing(root / "bucket/x", "one") as draft:
        with draft.entities() as file:
            file.write(b"{}\n")
        assert not (root / "bucket").exists()
    assert names_in(root) == ["bucket"]
    written = root / "bucket/x/one/entities.jsonl"
    assert written.read_bytes() == b"{}\n"
    assert written.stat().st_mode & 0o777 == 0o600
    for made in (root, root / "bucket", root / "bucket/x", root / "bucket/x/one"):
        assert made.stat().st_mode & 0o777 == 0o700


def test_a_fault_leaves_nothing(folder: export_folder.Folder, root: Path) -> None:
    class FaultError(Exception):
        pass

    def fail() -> None:
        with folder.writing(root / "bucket", "one") as draft, draft.entities() as file:
            file.write(b"half")
            raise FaultError

    with pytest.raises(FaultError):
        fail()
    assert names_in(root) == []


def test_only_the_folder_of_a_dead_writer_is_removed(
    folder: export_folder.Folder, root: Path
) -> None:
    (root / ".dead.partial").mkdir(parents=True)
    (root / ".dead.partial/entities.jsonl").write_bytes(b"half")
    (root / ".else").mkdir()
    with folder.writing(root, "first"):
        with folder.writing(root, "second"):
            assert names_in(root) == [".else", ".first.partial", ".second.partial"]
        assert names_in(root) == [".else", ".first.partial", "second"]
    assert names_in(root) == [".else", "first", "second"]


def test_the_error_names_a_file_in_the_way_of_an_export(
    folder: export_folder.Folder, root: Path
) -> None:
    root.mkdir()
    (root / "file").write_text("")
    with (
        pytest.raises(errors.FailedPrecondition, match="file"),
        folder.writing(root / "file/x", "one"),
    ):
        pass
