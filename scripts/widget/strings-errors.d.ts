export const entries: import("./strings.js").Entries;
