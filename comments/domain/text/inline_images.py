"""Show images, within their links, if a site lists their origins (pure).

Stored HTML contains a link in place of each image (`sanitizing.IMAGE_MARK`), because an owner may
change the list of origins at any time. The widget shows images in the same way in
`widget/source/shared/prose.js`.

An image's address begins with a listed origin. A content security policy with the same origins
(`img-src`) makes sure that redirects do not lead elsewhere either. Only escaped text becomes an
image's description.
"""

import html
import re
from collections.abc import Sequence

from comments import errors
from comments.domain.text import cleaning, sanitizing
from comments.domain.text.addresses import host_names

# A link in the sanitizer's format that contains only text.
_LINK = re.compile(r'<a((?: [a-z-]+="[^"]*")*)>([^<]*)</a>')
_HREF = re.compile(r' href="([^"]*)"')
_MARK = f' {sanitizing.IMAGE_MARK}=""'


def show_images(source: str, origins: Sequence[str]) -> str:
    """Return sanitized HTML that shows the images from `origins` within their links."""
    if not origins or _MARK not in source:
        return source
    return _LINK.sub(lambda link: _with_image(link, origins), source)


def _with_image(link: re.Match[str], origins: Sequence[str]) -> str:
    attributes, text = link.groups()
    href = _HREF.search(attributes)
    if href is None or _MARK not in attributes or _origin(html.unescape(href[1])) not in origins:
        return link[0]
    return (
        f'<a{attributes}><img class="ft-image" alt="{html.escape(html.unescape(text))}" '
        'loading="lazy" decoding="async" referrerpolicy="no-referrer" '
        f'src="{href[1]}"></a>'
    )


def _origin(url: str) -> str:
    """Return the origin of a URL as browsers write it; "" if the URL has none."""
    match = cleaning.WEB_URL.fullmatch(url)
    if match is None:
        return ""
    scheme, host, port = match["scheme"].lower(), match["host"], match["port"] or ""
    try:
        number = host_names.port(scheme, port, "body")
        name = host_names.canonical(host, "body")
    except errors.BadInput:
        return ""
    suffix = "" if number == host_names.USUAL_PORTS[scheme] else f":{number}"
    return f"{scheme}://{name}{suffix}"
