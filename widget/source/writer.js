/** The bundle of modules that load when a reader begins to write, or when a call fails. */

export { Actions } from "./actions.js";
export { Ballots } from "./ballots.js";
export { offerEntrance } from "./extras.js";
export { PostForms } from "./postforms.js";
export { follow } from "./following.js";
export { commentOfLine } from "./lines.js";
export { hint } from "./hints.js";
export { announce } from "./news.js";
export { explain } from "./problems.js";
export { solve } from "./proof.js";
export { note } from "./keeping.js";
export { toggleMenu } from "./menu.js";
export { weave } from "./weaving.js";
export { dress } from "./dress.js";
export { use as useTexts } from "./writing.js";
export { enter, held } from "./writingcalls.js";
