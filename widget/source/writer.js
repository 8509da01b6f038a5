/** The bundle of modules that load when somebody begins to write, or when a call fails. */

export { Actions } from "./actions.js";
export { Changes } from "./changes.js";
export { Draft } from "./drafts.js";
export { Erasure } from "./erasure.js";
export { PostForms } from "./postforms.js";
export { explain } from "./problems.js";
export { Proofs, isStale, solve } from "./proof.js";
export { Report } from "./report.js";
export { toggleMenu } from "./menu.js";
export { offer as offerSignIn } from "./signin.js";
export { weave } from "./weaving.js";
export { dress } from "./dress.js";
export { use as useTexts } from "./writing.js";
