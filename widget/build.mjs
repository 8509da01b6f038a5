// Build the files that browsers load: `scripts/build-widget`, or with `--check`, compare the
// committed files with a new build. docs/widget.md lists the files.
//
// A bundle is built from the folder of its name in `source/`, and imports the modules of earlier
// bundles from those bundles. Each module therefore exists once in a page, and readers load no file
// with shared code. The earlier bundle exports the names of those modules under short aliases.
//
// The entry names the other files by the digests of their contents, except that the strings of a
// language name the file of its later texts. Nothing else may refer to a later bundle or to strings,
// because a file's digest depends on the files that it names.

import { createHash } from "node:crypto";
import * as fs from "node:fs";
import * as path from "node:path";
import { fileURLToPath } from "node:url";

import * as esbuild from "esbuild";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const SOURCE = path.join(HERE, "source");
const LANGUAGES = path.join(HERE, "../comments/domain/languages");
const TARGET = path.join(HERE, "../comments/web/static/widget");

// The folders of `source/`. A folder imports only itself and folders to its left.
const ROOMS = (
  "shared page reader/comments reader " +
  "writer/base writer/identity writer/comments writer/forms writer/actions writer moderation"
).split(" ");
// The bundles, in the order in which a page loads them, with the stems of their files' names. The
// first one contains the folder `shared/` too.
const BUNDLES = { reader: "widget", writer: "writer", moderation: "moderating" };
// The surfaces of the catalogue whose texts load later.
const WRITING = ["widget-writing", "errors", "reasons"];
// The surfaces for which the server sends an English sentence too.
const SERVERS = ["errors", "reasons"];

/** The built files, by name. */
const built = new Map();

function put(name, content) {
  if (built.has(name)) throw new Error(`two files are named ${name}`);
  built.set(name, content);
}

/** Add a file whose name contains its digest, like those of source/page/files.js. Return both. */
function putHashed(stem, suffix, content) {
  const digest = createHash("sha256").update(content).digest("base64");
  const name = `${stem}-${digest.slice(0, 12).replace(/\W/g, "_")}.${suffix}`;
  put(name, content);
  return { digest, name };
}

function roomOf(file) {
  return path.relative(SOURCE, path.dirname(file));
}

function bundleOf(file) {
  return roomOf(file).split("/")[0].replace("shared", "reader");
}

/** A plugin: a folder may not import a folder to its right. */
const rooms = {
  name: "rooms",
  setup(build) {
    build.onResolve({ filter: /^\./ }, ({ importer, resolveDir, path: target }) => {
      const [from, to] = [importer, path.resolve(resolveDir, target)].map(roomOf);
      if (!ROOMS.includes(from) || ROOMS.slice(0, ROOMS.indexOf(from) + 1).includes(to)) return;
      return { errors: [{ text: `${from}/ may not import ${to}/, which is not to its left` }] };
    });
  },
};

/** A plugin: an imported style sheet becomes a string. */
const styles = {
  name: "styles",
  setup(build) {
    build.onLoad({ filter: /\.css$/ }, async ({ path: file }) => {
      const contents = (await bundle({ entryPoints: [file], plugins: [] })).trimEnd();
      return { contents, loader: "text" };
    });
  },
};

/** Build a module with the options. Return its text. */
async function bundle(options) {
  const { outputFiles } = await esbuild.build({
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    logLevel: "error",
    logOverride: { "import-is-undefined": "error" },
    plugins: [rooms, styles],
    ...options,
  });
  const { text } = outputFiles[0];
  if (text.includes("defineProperty")) {
    throw new Error("namespace objects break on pages that changed Object.prototype: name exports");
  }
  return text;
}

/** Return {file: {name: alias}} for what later bundles import from modules of earlier bundles. */
function sharedNames() {
  const shared = {};
  let count = 0;
  for (const at of fs.readdirSync(SOURCE, { recursive: true }).sort()) {
    const file = path.join(SOURCE, at);
    if (!(bundleOf(file) in BUNDLES) || !file.endsWith(".js")) continue;
    const text = fs.readFileSync(file, "utf8");
    for (const [, clause, target] of text.matchAll(/^import ([^"]*) from "(.*\.js)";/gm)) {
      const module = path.resolve(path.dirname(file), target);
      if (bundleOf(module) === bundleOf(file)) continue;
      const aliases = (shared[module] ??= {});
      const space = clause.match(/^\* as (\w+)/)?.[1];
      const names = space
        ? text.matchAll(RegExp(`(?<![\\w/])${space}\\.(\\w+)`, "g"))
        : clause.matchAll(/(\w+)(?: as \w+)?\s*[,}]/g);
      for (const [, name] of names) aliases[name] ??= `_${(count++).toString(36)}`;
    }
  }
  return shared;
}

/** Build the files of BUNDLES. Return their digests by stem. */
async function buildBundles() {
  const shared = sharedNames();
  const digests = {};
  const files = {};
  /** Write an export of a module's shared names; item(name, alias) is a part of its list. */
  const exportOf = (module, from, item) => {
    const items = Object.entries(shared[module]).map(([name, alias]) => item(name, alias));
    return `export { ${items.join(", ")} } from ${JSON.stringify(from)};`;
  };
  /** A plugin: the modules of earlier bundles are in those bundles' files. */
  const earlier = {
    name: "earlier",
    setup(build) {
      build.onResolve({ filter: /^\./ }, ({ namespace, resolveDir, path: target }) => {
        if (namespace === "earlier") return { path: target, external: true };
        const file = path.resolve(resolveDir, target);
        return bundleOf(file) in files ? { path: file, namespace: "earlier" } : undefined;
      });
      build.onLoad({ filter: /./, namespace: "earlier" }, ({ path: module }) => {
        const from = `./${files[bundleOf(module)]}`;
        return { contents: exportOf(module, from, (name, alias) => `${alias} as ${name}`) };
      });
    },
  };
  for (const [name, stem] of Object.entries(BUNDLES)) {
    const exports = Object.keys(shared)
      .filter((module) => bundleOf(module) === name)
      .map((module) => exportOf(module, module, (each, alias) => `${each} as ${alias}`));
    const contents = [`export * from "./${name}/${name}.js";`, ...exports].join("\n");
    const text = await bundle({
      stdin: { contents, resolveDir: SOURCE },
      plugins: [earlier, rooms, styles],
    });
    ({ digest: digests[stem], name: files[name] } = putHashed(stem, "js", text));
  }
  return digests;
}

/**
 * Build the texts of all languages. English texts fill gaps, so no language lacks a text. Gaps in
 * `errors` and `reasons` stay: then the widget shows the server's English sentence. For the same
 * reason, the English file has only those of them that another language translates. Return the
 * digests by language.
 */
function buildTexts() {
  const read = (language, surface) => {
    const file = path.join(LANGUAGES, language, `${surface}.json`);
    return fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, "utf8")) : undefined;
  };
  const folders = fs.readdirSync(LANGUAGES, { withFileTypes: true });
  const languages = folders.filter((each) => each.isDirectory() && /^[a-z]/.test(each.name));
  const others = languages.filter(({ name }) => name !== "en");
  const merged = (language, surface) => {
    const texts = read(language, surface);
    if (!SERVERS.includes(surface)) return { ...read("en", surface), ...texts };
    const isTranslated = ([key]) => others.some(({ name }) => key in read(name, surface));
    return Object.fromEntries(Object.entries(texts).filter(isTranslated));
  };
  const digests = {};
  for (const { name: language } of languages) {
    const later = Object.fromEntries(
      WRITING.map((surface) => [surface, merged(language, surface)]),
    );
    const { digest: writing } = putHashed(`writing-${language}`, "json", JSON.stringify(later));
    const widget = JSON.stringify({ widget: merged(language, "widget"), writing });
    digests[language] = putHashed(`strings-${language}`, "json", widget).digest;
  }
  return { digests, failure: merged("en", "widget") };
}

/** Build the scripts that templates name, and the styles and pictures of the service's own pages. */
async function buildPages() {
  for (const room of ["console", "public"]) {
    const folder = path.join(HERE, "pages", room);
    for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
      if (!entry.isFile()) continue; // `parts/` has what the scripts import
      const file = path.join(folder, entry.name);
      const isBuilt = /\.(js|css)$/.test(file);
      const plugins = [rooms];
      put(
        entry.name,
        isBuilt ? await bundle({ entryPoints: [file], plugins }) : fs.readFileSync(file, "utf8"),
      );
    }
  }
}

/** Return the names of the committed files that differ from the built ones. */
function differences() {
  const names = new Set([...fs.readdirSync(TARGET), ...built.keys()]);
  return [...names].sort().filter((name) => {
    const file = path.join(TARGET, name);
    return !fs.existsSync(file) || fs.readFileSync(file, "utf8") !== built.get(name);
  });
}

const { digests: strings, failure } = buildTexts();
const define = {
  DIGESTS: JSON.stringify({ strings, ...(await buildBundles()) }),
  // Until the strings arrive.
  FAILURE: JSON.stringify({ language: "en", failed: failure.failed, again: failure.again }),
};
const page = (name) => [path.join(SOURCE, "page", name)];
put("flatthread.js", await bundle({ entryPoints: page("entry.js"), define }));
put("count.js", await bundle({ entryPoints: page("count.js") }));
await buildPages();

if (process.argv.includes("--check")) {
  const names = differences();
  if (names.length > 0) {
    console.error(`These files are not up to date, run scripts/build-widget: ${names.join(", ")}`);
    process.exit(1);
  }
} else {
  fs.rmSync(TARGET, { recursive: true, force: true });
  fs.mkdirSync(TARGET, { recursive: true });
  for (const [name, content] of built) fs.writeFileSync(path.join(TARGET, name), content);
}
