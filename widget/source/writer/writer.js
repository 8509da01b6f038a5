/** The bundle of modules that load when a reader begins to write, or when a call fails. */

export { Actions } from "./actions/actions.js";
export { Ballots } from "./actions/ballots.js";
export { offerEntrance } from "./identity/extras.js";
export { PostForms } from "./forms/postforms.js";
export { follow } from "./actions/following.js";
export { commentOfLine } from "./comments/lines.js";
export { hint } from "./forms/hints.js";
export { announce } from "./comments/news.js";
export { explain } from "./base/problems.js";
export { solve } from "./identity/proof.js";
export { note } from "./base/keeping.js";
export { toggleMenu } from "./base/menu.js";
export { weave } from "./comments/weaving.js";
export { dress } from "./base/dress.js";
export { use as useTexts } from "./base/writing.js";
export { enter, held } from "./base/writingcalls.js";
