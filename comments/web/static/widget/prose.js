/**
 * Comment bodies, the only strings parsed as markup: the server sanitized them.
 *
 * Pages that enforce Trusted Types allow this through the policy "flatthread". If a page forbids
 * that policy, the browser's own sanitizer parses the body, or it is shown as plain text.
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
