/** The bundle of modules that load when a reader begins to write, or when a call fails. */

export { Actions } from "./actions/actions.js";
export { VoteSender } from "./actions/votesender.js";
export { offerEntrance } from "./identity/optionalparts.js";
export { PostForms } from "./forms/postforms.js";
export { openSubscribeForm } from "./actions/subscribe.js";
export { commentOfLine } from "./comments/lines.js";
export { logHint } from "./forms/hints.js";
export { announce } from "./comments/newcomments.js";
export { explain } from "./base/problems.js";
export { solve } from "./identity/proof.js";
export { noteOwn } from "./base/ownstore.js";
export { toggleMenu } from "./base/menu.js";
export { mergePage } from "./comments/merge.js";
export { addStyles } from "./base/styles.js";
export { use as useTexts } from "./base/writertexts.js";
export { signInByToken, ownHeldComments } from "./base/calls.js";
