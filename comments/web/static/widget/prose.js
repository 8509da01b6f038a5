/**
 * Bodies: the only strings that are read as markup, because the server sanitised them.
 *
 * Pages that enforce Trusted Types allow that through the policy named "flatthread" only. Where a
 * page forbids even that policy, the browser's own sanitiser does it, or the text shows as it is.
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
 * The nodes of sanitised HTML.
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
