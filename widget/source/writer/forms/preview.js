/** The preview of a comment: its text as the server would render it. */

import * as prose from "../../shared/prose.js";
import * as calls from "../base/calls.js";

/**
 * @param {string} site
 * @param {string} body the Markdown
 * @param {string[]} images the origins of images to show
 * @returns {Promise<Node>}
 */
export async function preview(site, body, images) {
  return prose.nodes((await calls.preview(site, body)).html, images);
}
