/**
 * Hints in the browser's console for the owner of a website whose comments are not set up correctly.
 */

import { t } from "../base/writertexts.js";

const COMMAND = "flatthread site";

/**
 * Log how to fix the cause of a failed call, if the owner can fix it.
 *
 * @param {{ code?: string, status?: number, message?: string }} error
 * @param {Place} place
 */
export function logHint({ code, status, message }, { site }) {
  const server = new URL(import.meta.url).origin;
  const { origin } = location;
  const attribute = "data-site";
  if (code === "no-site") {
    log(t("hint-no-site", { attribute, document: "docs/embedding.md" }));
  } else if (code === "site-not-found") {
    const command = [COMMAND, "add", site, "--origin", origin].join(" ");
    log(t("hint-site", { server, site, attribute, command }));
  } else if (code === "origin-not-allowed" || (status === 0 && navigator.onLine)) {
    // Browsers do not tell a page whether a call failed or was refused.
    const command = [COMMAND, "set", site, "--add-origin", origin].join(" ");
    log(t("hint-origin", { server, site, origin, command }));
  } else if (/^(http-|other-host$)/.test(code ?? "")) {
    log(`${server}: ${message}`); // the server refused the request before it reached the service
  }
}

function log(text) {
  console.warn(`Flatthread: ${text}`);
}
