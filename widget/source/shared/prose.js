/**
 * Comment bodies. They are the only strings parsed as markup, because the server sanitized them.
 *
 * A page that enforces Trusted Types should allow the policy "flatthread". If it forbids the
 * policy, the browser's own sanitizer parses the body. In a browser without a sanitizer, the body
 * becomes plain text.
 */

import { el } from "./dom.js";
import { t } from "./words.js";

const policy = makePolicy();

function makePolicy() {
  const plain = { createHTML: (html) => html };
  try {
    return window.trustedTypes?.createPolicy("flatthread", plain) ?? plain;
  } catch {
    return null;
  }
}

/**
 * Return the nodes of sanitized HTML. Show the images from `origins` within their links, and give
 * code and tables accessible names. If an image cannot be loaded, browsers show its description in
 * the same box, which is still a link.
 *
 * @param {string} html
 * @param {string[]} origins
 */
export function nodes(html, origins) {
  const fragment = parse(html);
  const links = /** @type {NodeListOf<HTMLAnchorElement>} */ (
    fragment.querySelectorAll("[data-ft-image]")
  );
  for (const link of links) {
    if (!origins.includes(link.origin)) continue;
    const image = el("img", {
      class: "ft-image",
      alt: link.textContent,
      loading: "lazy",
      decoding: "async",
      referrerpolicy: "no-referrer",
      src: link.href, // last, because it starts the request
    });
    link.replaceChildren(image);
  }
  // Wide blocks scroll, so the keyboard can focus them; screen readers then read this name.
  for (const block of fragment.querySelectorAll("pre,table")) {
    const isCode = block.matches("pre");
    if (isCode) block.role = "group";
    block.ariaLabel = isCode ? t("code") : t("table");
  }
  return fragment;
}

/** Return the nodes of sanitized HTML. */
function parse(html) {
  const template = document.createElement("template");
  if (policy) template.innerHTML = policy.createHTML(html);
  else if (template.setHTML) template.setHTML(html);
  else template.content.append(html.replace(/<[^>]*>/g, ""));
  return template.content;
}
