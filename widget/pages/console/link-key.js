// Move the key of a one-time link from the fragment of the address into the forms of the page.
//
// Browsers do not send fragments, so opening the link reveals the key to no server, log or other
// page. Without this script, the owner of the link copies the key into the field. A key that the
// server has not refused needs no correction, so its field is hidden.

const token = location.hash.slice(1);
/** @type {NodeListOf<HTMLInputElement>} */
const fields = document.querySelectorAll("input[name=token]");
for (const field of fields) {
  field.value = token || field.value;
  const isHidden = Boolean(field.value) && (Boolean(token) || !("refused" in field.dataset));
  for (const element of [field, ...(field.labels ?? [])]) element.hidden = isHidden;
}
if (token) {
  history.replaceState(null, "", location.pathname + location.search);
}
