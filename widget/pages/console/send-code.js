// Send the login code to the page that opened this window, and to no other origin.
//
// This script receives no messages. If the opener is gone, the reader types the code.

const shown = /** @type {HTMLElement} */ (document.getElementById("code"));
history.replaceState(null, "", location.pathname);
if (window.opener) {
  window.opener.postMessage({ flatthread: "code", code: shown.textContent }, shown.dataset.origin);
}
