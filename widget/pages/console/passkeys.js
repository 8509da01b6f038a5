/**
 * Make and use passkeys: each form with `data-passkey` asks the service for the options, lets the
 * browser make or use a passkey, and sends the answer. Without support, the forms stay hidden.
 */

/** @type {any} */
const api = window.PublicKeyCredential;

/** Return what the authenticator answered to the options of the service. */
async function answer(form) {
  const isNew = form.dataset.passkey === "create";
  const asked = new FormData(form);
  for (const name of ["answer", "name"]) asked.delete(name);
  const body = new URLSearchParams(/** @type {any} */ (asked));
  const response = await fetch(`${form.action}/options`, { method: "POST", body });
  const options = await response.json();
  if (!response.ok) throw new Error(options.problem);
  const publicKey = isNew
    ? api.parseCreationOptionsFromJSON(options)
    : api.parseRequestOptionsFromJSON(options);
  const made = await navigator.credentials[isNew ? "create" : "get"]({ publicKey });
  return JSON.stringify(made);
}

/** Let a form use passkeys. */
function offer(form) {
  const problem = form.querySelector("[role=alert]");
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.hidden = true;
    try {
      form.elements.answer.value = await answer(form);
    } catch (error) {
      // The browser's own errors are technical, and the same for a cancellation.
      const isOurs = error.constructor === Error && error.message;
      problem.textContent = isOurs ? error.message : form.dataset.failed;
      problem.hidden = false;
      return;
    }
    if (form.elements.current) form.elements.current.disabled = true;
    form.submit();
  });
}

if (api?.parseCreationOptionsFromJSON) {
  for (const form of document.querySelectorAll("[data-passkey]")) offer(form);
}
