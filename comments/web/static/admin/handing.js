// The code for the page that opened this window, told to that page's origin and to no other.
//
// Nothing is listened to here. Where the window that opened this one is lost, the code is typed.

const shown = /** @type {HTMLElement} */ (document.getElementById("code"));
history.replaceState(null, "", location.pathname);
if (window.opener) {
  window.opener.postMessage({ flatthread: "code", code: shown.textContent }, shown.dataset.origin);
}
