/**
 * The server's time, for comparisons with its times: the clock of the reader's device may be wrong.
 */

/** @type {number | undefined} */
let ahead; // milliseconds by which the device's clock is ahead, from the first response with a date

/** Return the server's time in milliseconds. Before the first response, it is the device's. */
export function now() {
  return Date.now() - (ahead ?? 0);
}

/** @param {Headers} headers of a response, which a cache may have kept for `Age` seconds */
export function set(headers) {
  const sent = Date.parse(headers.get("date") ?? "");
  // The header leaves out fractions; a second more never promises too much time to edit.
  if (sent) ahead ??= Date.now() - sent - 1000 - Number(headers.get("age")) * 1000;
}
