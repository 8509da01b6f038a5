/**
 * The number of comments beside links, with one request for up to 100 threads.
 *
 *     <script type="module" src="https://HOST/widget/count.js" data-site="SITE" async></script>
 *     <a href="/post" data-flatthread-count></a>
 *
 * docs/embedding.md lists the attributes. Pages that change their content call `refresh`.
 */

import { siteId } from "./script.js";

const MOST = 100; // the server's limit for one request

/** Fill all elements with `data-flatthread-count` below `root`. */
export async function refresh(root = document) {
  /** @type {NodeListOf<HTMLElement>} */
  const elements = root.querySelectorAll("[data-flatthread-count]");
  const nodes = [...elements].filter((node) => thread(node) || page(node));
  for (let from = 0; from < nodes.length; from += MOST) await fill(nodes.slice(from, from + MOST));
}

async function fill(nodes) {
  // The response lists the threads before the pages.
  nodes.sort((a, b) => Number(isPage(a)) - Number(isPage(b)));
  const body = {
    __proto__: null,
    threads: bare(nodes.filter((node) => !isPage(node)).map(thread)),
    pages: bare(nodes.filter(isPage).map(page)),
  };
  const path = `../api/v1/sites/${encodeURIComponent(siteId() ?? "")}/counts`;
  const request = fetch(new URL(path, import.meta.url), {
    __proto__: null,
    method: "POST",
    credentials: "omit",
    headers: new Headers([["Content-Type", "application/json"]]),
    body: JSON.stringify(body),
  });
  const answer = await request.catch(() => null);
  if (answer?.status === 413 && nodes.length > 1) {
    const half = nodes.length >> 1; // find the name that is too long, and count the others
    await Promise.all([fill(nodes.slice(0, half)), fill(nodes.slice(half))]);
  }
  if (!answer?.ok) return; // the elements keep their content
  const { counts } = await answer.json();
  // The server has no number for a name that cannot be a thread.
  nodes.forEach((node, at) => counts[at] !== null && show(node, counts[at]));
}

function show(node, count) {
  const { flatthreadOne, flatthreadOther } = node.dataset;
  const language = node.closest("[lang]")?.lang || undefined;
  const words = count === 1 ? (flatthreadOne ?? flatthreadOther) : flatthreadOther;
  const number = count.toLocaleString(language);
  node.textContent = words?.replace("{count}", () => number) ?? number;
}

function thread(node) {
  return node.dataset.flatthreadCount;
}

function isPage(node) {
  return !thread(node);
}

/** Return the address of an element's page; "" if it is not on the web. */
function page(node) {
  const { page } = node.dataset;
  if (page?.startsWith("/")) return page; // the server completes it, as it does for the widget
  const link = node.closest("a");
  // Inside <svg>, `href` is no string.
  const address = page ?? link?.getAttribute("href") ?? link?.href.baseVal ?? "";
  const base = new URL(document.baseURI);
  base.username = base.password = "";
  try {
    const { protocol, href } = new URL(address || location.href, base);
    return protocol.startsWith("http") ? href : "";
  } catch {
    return "";
  }
}

// The page may have changed how arrays are converted to JSON.
function bare(list) {
  return Object.setPrototypeOf(list, null);
}

if (document.readyState === "loading") addEventListener("DOMContentLoaded", () => refresh());
else refresh();
