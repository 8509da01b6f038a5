// Propose the browser's time zone in forms that have none yet. Nothing is stored until they are sent.

const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
const known = /** @type {HTMLDataListElement} */ (document.querySelector("#zones"));
if (Array.from(known.options).some(({ value }) => value === timeZone)) {
  /** @type {NodeListOf<HTMLInputElement>} */
  const fields = document.querySelectorAll("[data-propose-zone]");
  for (const field of fields) field.value = timeZone;
}
