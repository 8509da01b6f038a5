// The modules that the server makes of the catalogue (comments/domain/languages).

export type Entries = Record<string, string | Record<string, string>>;
export const language: string;
export const entries: Entries;
