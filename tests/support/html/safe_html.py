"""Check that HTML made from strangers' texts is harmless, and texts that attack it."""

import html.parser

from comments.domain.text import sanitizing

Node = tuple[str, dict[str, str | None]]


class Dom(html.parser.HTMLParser):
    """A parsed document: the elements with their attributes, and the text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.nodes: list[Node] = []
        self.text = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.nodes.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    handle_decl = handle_pi = unknown_decl = handle_comment  # type: ignore[assignment]


def assert_safe(source: str) -> Dom:
    """Check that HTML has only allowed elements, attributes and links, and is already clean."""
    dom = Dom(source)
    for tag, attributes in dom.nodes:
        assert tag in sanitizing.TAGS
        allowed = sanitizing.ATTRIBUTES.get(tag, frozenset())
        assert attributes.keys() <= allowed | ({"rel"} if tag == "a" else set())
        assert attributes.get("rel", sanitizing.LINK_REL) == sanitizing.LINK_REL
        assert (tag == "a") == ("href" in attributes) == ("rel" in attributes)
        assert attributes.get(sanitizing.IMAGE_MARK, "") == ""
        assert attributes.get("align", "left") in {"left", "center", "right"}
        assert attributes.get("tabindex") == ("0" if tag in {"pre", "table"} else None)
        assert (attributes.get("href") or "https://x").lower().startswith(("http://", "https://"))
    assert sanitizing.sanitise_html(source) == source
    return dom


ATTACKS = [
    "<img src=\"1'onerror='x'a='\">",
    "<details open ontoggle=alert(1)>x</details>",
    "<svg/onload=alert(1)>",
    "<p onclick=alert(1) style='position:fixed' class=admin id=login>x</p>",
    "<style>*{display:none}</style><form action=//evil><input name=password></form>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<a href='javascript:alert(1)'>x</a><a href=' javascript:alert(1)'>x</a>",
    "<a href='java\tscript:alert(1)'>x</a><a href='\x01javascript:alert(1)'>x</a>",
    "<a href='JaVaScRiPt:alert(1)'>x</a><a href='data:text/html,x'>x</a>",
    "<a href='//evil.example'>x</a><a href='https:evil.example'>x</a><a href='/admin'>x</a>",
    "<a href='https://ok.example\\@evil.example'>x</a><a href='https://ok@evil.example'>x</a>",
    "<a href=javascript&colon;alert(1)>x</a><a href=java&#x0a;script:alert(1)>x</a>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img onerror=x&gt;'>",
    "<svg></p><style><a id='</style><img src=1 onerror=alert(1)>'>",
    "<math><annotation-xml encoding='text/html'><style><img src=x onerror=x></style>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<template><img src=x onerror=x></template>",
    "<p>a<button><p>b<button><p>c",
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror=x>",
    "<a href='http://x.example'><table><a href='http://y.example'>y</table>",
    "<b><p>x</b>y</p><table><tr><b>foster<td>x",
    "<pre>\n\n\nx</pre><pre>\n<b>\nx",
    "<!-- <img src=x onerror=x> --><![CDATA[<img>]]><?php x ?><!DOCTYPE html>",
    "<plaintext><b>x",
    "<xmp><img src=x></xmp>",
    "<textarea></textarea><b>",
    "<title><b>x</title>",
    "<a title='\"><img src=x onerror=x>' href=http://x.example rel=opener target=_blank>x</a>",
    "<abbr title='<a rel='>nofollow ugc noopener<b title='><img src=x onerror=x>'>z</b></abbr>",
    "<b title=x lang=en>x</b><p lang=x title=y>z</p>",
    "<abbr title='<a rel='><i>nofollow ugc noopener</i><abbr title='><img src=x>'>z</abbr>",
    "<abbr title='<a title='>x</abbr><a title='y' rel=x>y</a><abbr title=' rel='>z</abbr>",
]
