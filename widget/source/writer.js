/** The bundle of modules that load when somebody begins to write, or when a call fails. */

export { Changes } from "./changes.js";
export { offer as offerMail } from "./notify.js";
export { explain } from "./problems.js";
export { Proofs, isStale, solve } from "./proof.js";
export { offer as offerSignIn } from "./signin.js";
export { weave } from "./weaving.js";
export { use as useTexts } from "./writing.js";
