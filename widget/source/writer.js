/** The bundle of modules that load when somebody begins to write, or when a call fails. */

export { Actions } from "./actions.js";
export { Ballots } from "./ballots.js";
export { PostForms } from "./postforms.js";
export { explain } from "./problems.js";
export { solve } from "./proof.js";
export { toggleMenu } from "./menu.js";
export { offer as offerSignIn } from "./signin.js";
export { weave } from "./weaving.js";
export { dress } from "./dress.js";
export { use as useTexts } from "./writing.js";
export { enter, held } from "./writingcalls.js";
