"""Host names get a canonical form, and names that imitate other names are recognized."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.domain.text.addresses import host_names


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("Blog.Example", "blog.example"),
        ("blog.example.", "blog.example"),
        ("b\xfccher.example", "xn--bcher-kva.example"),
        ("\u6771\u4eac\u3002example", "xn--1lqs71d.example"),
        ("127.0.0.1", "127.0.0.1"),
        ("[2001:DB8::1]", "[2001:db8::1]"),
        ("a_b.example", "a_b.example"),
    ],
)
def test_a_host_has_one_canonical_form(name: str, host: str) -> None:
    assert host_names.canonical(name, "x") == host
    assert host_names.canonical(host, "x") == host


NONE = [
    "", ".", "x..com", ".x.com", "x.com..", "-x.com", "x-.com", "x .com", "127.1", "0x7f.0.0.1",
    "1.2.3.256", "[::g]", "[1.2.3.4]", "[::1", f"{'a' * 64}.com", "a." * 127 + "com", "x%2ecom",
    "[::1%eth0]", "\u2026.com", "a\ud800.com", "xn--\u2026.com",
]  # fmt: skip


@pytest.mark.parametrize("name", NONE)
def test_an_invalid_host_is_refused_by_field(name: str) -> None:
    with pytest.raises(errors.BadInput) as caught:
        host_names.canonical(name, "website")
    assert caught.value.field == "website"


@given(st.text())
def test_any_text_has_one_canonical_form_or_is_refused(name: str) -> None:
    try:
        found = host_names.canonical(name, "x")
    except errors.BadInput:
        return
    assert found.isascii()
    assert host_names.canonical(found, "x") == found


MIXED = [
    "\u0430pple.com", "goog\u013ce.\u0441om", "g\u03bfogle.com", "www.p\u0430ypal.com",
    "\u0430\u0440\u0440l\u0435.com", "\u0561bc.example", "\uff41\u0430.example",
    "x.example\u3002c\u03bf",
]  # fmt: skip


@pytest.mark.parametrize("name", MIXED)
def test_a_word_of_several_scripts_is_refused(name: str) -> None:
    with pytest.raises(errors.BadInput, match="mixed-scripts"):
        host_names.check_scripts(name, "website")


@pytest.mark.parametrize(
    "name",
    [
        "example.com", "b\xfccher.example", "\u043f\u043e\u0447\u0442\u0430.example",
        "\u6771\u4eactower.example", "\u30bf\u30ef\u30fc\u6771\u4eac\u306e.example",
        "\uc11c\uc6b8news.example", "\u03b1\u03b2\u03b3-1.example",
        "\u0928\u092e\u0938\u094d\u0924\u0947.example",
    ],
)  # fmt: skip
def test_ordinary_words_are_accepted(name: str) -> None:
    host_names.check_scripts(name, "website")
    assert host_names.canonical(name, "website")


def test_a_port_must_exist() -> None:
    assert [host_names.port("http", text, "x") for text in ("", "1", "080", "65535")] == [
        80, 1, 80, 65_535,
    ]  # fmt: skip
    for text in ("0", "00000", "65536", "99999", "x", "-1", "\u0661"):
        with pytest.raises(errors.BadInput) as caught:
            host_names.port("https", text, "website")
        assert caught.value.field == "website"


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("localhost", True),
        ("localhost:8000", True),
        ("127.0.0.1:80", True),
        ("10.1.2.3", True),
        ("192.168.0.7:8080", True),
        ("[::1]", True),
        ("[fe80::1]:80", True),
        ("desk", True),
        ("desk.local:4000", True),
        ("blog.test", True),
        ("blog.example", False),
        ("localhost.example:80", False),
        ("10.example", False),
        ("mylocalhost.example", False),
        ("test.example", False),
        ("8.8.8.8:80", False),
        ("[2606:4700::1111]:443", False),
    ],
)
def test_private_names_and_addresses_are_local(host: str, is_local: bool) -> None:
    assert host_names.is_local(host) is is_local
