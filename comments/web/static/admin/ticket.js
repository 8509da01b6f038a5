// What follows "#" in a one-time link, put into the forms of its page and out of the address.
//
// It is sent nowhere by opening the link: not to us, not to a log, not to another page. Nobody has to
// read it then. Without this script its owner copies it into the field.

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
