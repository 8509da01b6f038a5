/**
 * Comment bodies. They are the only strings parsed as markup, because the server sanitized them.
 *
 * A page that enforces Trusted Types should allow the policy "flatthread". If it forbids the
 * policy, the browser's own sanitizer parses the body. In a browser without a sanitizer, the body
 * becomes plain text.
 */

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
 * Return the nodes of sanitized HTML.
 *
 * @param {string} html
 */
export function nodes(html) {
  if (policy === null) return withoutPolicy(html);
  const parsed = new DOMParser().parseFromString(policy.createHTML(html), "text/html");
  const fragment = document.createDocumentFragment();
  fragment.append(...parsed.body.childNodes);
  return fragment;
}

function withoutPolicy(html) {
  const holder = document.createElement("div");
  if (holder.setHTML) holder.setHTML(html);
  else holder.textContent = html.replace(/<[^>]*>/g, "");
  const fragment = document.createDocumentFragment();
  fragment.append(...holder.childNodes);
  return fragment;
}
