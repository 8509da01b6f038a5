const host = document.getElementById("flatthread");
const rule = document.getElementById("rule");
const names = document.getElementById("names");
const sheet = new CSSStyleSheet();
document.adoptedStyleSheets = [sheet];

function show(name) {
  names.value = name;
  rule.textContent = rule.textContent.replace(/\([^)]*\)/, `(${name})`);
  sheet.replaceSync(rule.textContent);
}

function list() {
  const nodes = [...host.shadowRoot.querySelectorAll("[part]")];
  const found = new Set(nodes.flatMap((node) => [...node.part]));
  const chosen = names.value;
  names.replaceChildren(...[...found].sort().map((name) => new Option(name)));
  if (found.has(chosen)) names.value = chosen;
}

names.addEventListener("pointerdown", list);
names.addEventListener("focus", list);
names.addEventListener("change", () => show(names.value));
host.addEventListener("flatthread:ready", () => {
  list();
  show("ft-title");
});
host.addEventListener("pointerover", (event) => {
  const [node] = event.composedPath();
  const part = node.closest?.("[part]")?.part[0];
  if (!part) return;
  list();
  show(part);
});
