// Judges HTML documents: a list of them as JSON on standard input, a list of complaints on output.
//
// "standard" holds a document to the HTML standard, without opinions on style. It also wants digests
// of the files a page loads, which the standard does not and which ours from one server do not need.

import { HtmlValidate } from "html-validate";

const judge = new HtmlValidate({
  extends: ["html-validate:standard", "html-validate:document"],
  rules: { "require-sri": "off" },
});
let given = "";
for await (const piece of process.stdin) given += piece;
const complaints = [];
for (const html of JSON.parse(given)) {
  const { results } = await judge.validateString(html);
  const said = results.flatMap(({ messages }) => messages);
  complaints.push(said.map((each) => `${each.line}: ${each.ruleId}: ${each.message}`));
}
process.stdout.write(JSON.stringify(complaints));
