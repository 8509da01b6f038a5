/** Return 128 random bits in hex. (Pages on plain HTTP have no crypto.randomUUID.) */
export function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
