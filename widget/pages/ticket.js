// Move the key of a one-time link from the fragment of the address into the forms of the page.
//
// Browsers do not send fragments, so opening the link reveals the key to no server, log or other
// page. Without this script, the owner of the link copies the key into the field.

const token = location.hash.slice(1);
if (token) {
  /** @type {NodeListOf<HTMLInputElement>} */
  const fields = document.querySelectorAll("input[name=token]");
  for (const field of fields) {
    field.value = token;
    for (const each of [field, ...(field.labels ?? [])]) each.hidden = true;
  }
  history.replaceState(null, "", location.pathname + location.search);
}
