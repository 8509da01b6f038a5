// Build the files that browsers load: `scripts/build-widget`, or with `--check`, compare the
// committed files with a new build.
//
//   source/entry.js           flatthread.js          the file that pages embed
//   source/count.js          count.js               another file that pages embed
//   source/reader.js          widget-DIGEST.js       everything that a reader needs, with the styles
//   source/writer.js          writer-DIGEST.js       what readers need when they act
//   source/moderating.js      moderating-DIGEST.js   what moderators need
//   domain/languages/LANG     strings-LANG-DIGEST.json, and writing-LANG-DIGEST.json, which loads later
//   pages/                    the same names         scripts and styles of the service's own pages
//
// A later bundle imports the modules that an earlier bundle already contains from that bundle. Each
// module therefore exists once in a page, and readers load no file with shared code. The earlier
// bundle exports those modules' names with the module's name as prefix (`words_t`).
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
const PAGES = path.join(HERE, "pages");
const LANGUAGES = path.join(HERE, "../comments/domain/languages");
const TARGET = path.join(HERE, "../comments/web/static/widget");

// The bundles by the names of their modules, in the order in which a page loads them. Each bundle
// needs the ones before it.
const BUNDLES = ["reader", "writer", "moderating"];
// The stems of the files' names that differ from the bundles' names.
const STEMS = { reader: "widget" };
// The surfaces of the catalogue whose texts load later.
const WRITING = ["widget-writing", "errors", "reasons"];
// The surfaces for which the server sends an English sentence too.
const SERVERS = ["errors", "reasons"];

const COMMON = {
  absWorkingDir: HERE,
  bundle: true,
  minify: true,
  write: false,
  metafile: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  logLevel: "error",
  logOverride: { "import-is-undefined": "error" },
};

/** Build modules with the options. Return the output's text and its metadata. */
async function bundle(options) {
  const { outputFiles, metafile } = await esbuild.build({
    ...COMMON,
    ...options,
  });
  const { text } = outputFiles[0];
  if (text.includes("defineProperty")) {
    throw new Error("namespace objects break on pages that changed Object.prototype: name exports");
  }
  return { text, metafile };
}

/** A plugin: an imported style sheet becomes a string. */
const styles = {
  name: "styles",
  setup(build) {
    build.onLoad({ filter: /\.css$/ }, async ({ path: file }) => {
      const { text } = await bundle({ entryPoints: [file] });
      return { contents: text.trimEnd(), loader: "text", watchFiles: [file] };
    });
  },
};

const fileOf = (input) => path.resolve(HERE, input);

/**
 * Return {file: {bundle, names}} for the modules that later bundles import: the first bundle that
 * contains the module, and the names that the others import from it.
 */
async function sharedModules() {
  const owners = new Map();
  const shared = new Set();
  for (const name of BUNDLES) {
    const { metafile } = await bundle({ entryPoints: [source(name)], plugins: [styles] });
    const inputs = Object.entries(metafile.inputs).filter(([input]) => !owners.has(fileOf(input)));
    for (const { imports } of inputs.map(([, input]) => input))
      for (const each of imports) if (owners.has(fileOf(each.path))) shared.add(fileOf(each.path));
    for (const [input] of inputs) owners.set(fileOf(input), name);
  }
  const described = [...shared].sort().map(async (file) => {
    const bundle = owners.get(file);
    const later = [...owners].filter(([, owner]) => owner !== bundle).map(([each]) => each);
    const needed = namesIn(later, path.basename(file));
    const names = (await exportsOf(file)).filter((name) => needed.has(name));
    return [file, { bundle, names }];
  });
  return Object.fromEntries(await Promise.all(described));
}

/** Return the names that source files import from the module `./name`. */
function namesIn(files, name) {
  const found = new Set();
  const from = `from "\\./${name.replace(".", "\\.")}"`;
  for (const file of files.filter((each) => each.endsWith(".js"))) {
    const text = fs.readFileSync(file, "utf8");
    for (const [, list] of text.matchAll(new RegExp(`\\{([^{}]*)\\}\\s*${from}`, "g")))
      for (const each of list.split(",")) found.add(each.trim().split(" as ")[0]);
    for (const [, space] of text.matchAll(new RegExp(`\\* as (\\w+) ${from}`, "g")))
      for (const [, each] of text.matchAll(new RegExp(`\\b${space}\\.(\\w+)`, "g")))
        found.add(each);
  }
  return found;
}

async function exportsOf(file) {
  const { metafile } = await bundle({ entryPoints: [file], bundle: false });
  return Object.values(metafile.outputs)[0].exports.sort();
}

function source(name) {
  return path.join(SOURCE, `${name}.js`);
}

/** Return the name under which the reader bundle exports a module's export. */
function prefixed(file, name) {
  const module = path.relative(SOURCE, file).replace(/\.js$/, "").replace(/\W/g, "_");
  return `${module}_${name}`;
}

/**
 * Build a bundle. It exports the shared modules that it contains, and imports those of earlier
 * bundles from `files`, which has the names of their files.
 */
async function codeOf(name, shared, files) {
  const lines = [`export * from "./${name}.js";`];
  for (const [file, { bundle: owner, names }] of Object.entries(shared)) {
    if (owner !== name) continue;
    const list = names.map((each) => `${each} as ${prefixed(file, each)}`).join(", ");
    lines.push(`export { ${list} } from ${JSON.stringify(file)};`);
  }
  const earlier = {
    name: "earlier",
    setup(build) {
      build.onResolve({ filter: /^\./ }, (args) => {
        const url = path.basename(args.path);
        if (Object.values(files).includes(url)) return { path: `./${url}`, external: true };
        const file = path.resolve(args.resolveDir, args.path);
        return shared[file]?.bundle in files ? { path: file, namespace: "earlier" } : undefined;
      });
      build.onLoad({ filter: /.*/, namespace: "earlier" }, ({ path: file }) => {
        const { bundle: owner, names } = shared[file];
        const list = names.map((each) => `${prefixed(file, each)} as ${each}`).join(", ");
        return { contents: `export { ${list} } from "./${files[owner]}";`, resolveDir: SOURCE };
      });
    },
  };
  const stdin = { contents: lines.join("\n"), resolveDir: SOURCE, loader: "js" };
  return (await bundle({ stdin, plugins: [earlier, styles] })).text;
}

/**
 * Return {language: {surface: entries}}. English texts fill gaps, so no language lacks a text. Gaps
 * in `errors` and `reasons` stay: then the widget shows the server's English sentence.
 */
function catalogues() {
  const read = (language) => {
    const folder = path.join(LANGUAGES, language);
    const files = fs.readdirSync(folder).filter((file) => file.endsWith(".json"));
    const parsed = (file) => JSON.parse(fs.readFileSync(path.join(folder, file), "utf8"));
    return Object.fromEntries(files.map((file) => [file.replace(/\.json$/, ""), parsed(file)]));
  };
  const english = read("en");
  const folders = fs.readdirSync(LANGUAGES, { withFileTypes: true });
  const languages = folders.filter((each) => each.isDirectory() && /^[a-z]/.test(each.name));
  return Object.fromEntries(
    languages.map(({ name }) => {
      const own = read(name);
      const merged = Object.entries(english).map(([surface, texts]) => [
        surface,
        SERVERS.includes(surface) ? own[surface] : { ...texts, ...own[surface] },
      ]);
      return [name, Object.fromEntries(merged)];
    }),
  );
}

/** The built files, by name, and the digests that the entry contains. */
class Built {
  files = new Map();

  put(name, content) {
    if (this.files.has(name)) throw new Error(`two files are named ${name}`);
    this.files.set(name, content);
  }

  /** Add a file whose name contains its digest. Return the digest (SHA-256, base64). */
  putHashed(stem, suffix, content) {
    const digest = createHash("sha256").update(content).digest("base64");
    this.put(hashedName(stem, digest, suffix), content);
    return digest;
  }
}

// source/files.js computes the same names.
function hashedName(stem, digest, suffix) {
  return `${stem}-${digest.slice(0, 12).replace(/\W/g, "_")}.${suffix}`;
}

async function build() {
  const built = new Built();
  const texts = catalogues();
  const digests = { strings: {} };
  for (const [language, { widget, ...others }] of Object.entries(texts)) {
    const later = Object.fromEntries(WRITING.map((surface) => [surface, others[surface]]));
    const writing = built.putHashed(`writing-${language}`, "json", JSON.stringify(later));
    const content = JSON.stringify({ widget, writing });
    digests.strings[language] = built.putHashed(`strings-${language}`, "json", content);
  }
  const shared = await sharedModules();
  const files = {};
  for (const name of BUNDLES) {
    const stem = STEMS[name] ?? name;
    digests[stem] = built.putHashed(stem, "js", await codeOf(name, shared, files));
    files[name] = hashedName(stem, digests[stem], "js");
  }
  const { failed, again } = texts.en.widget; // until the strings arrive
  const define = {
    DIGESTS: JSON.stringify(digests),
    FAILURE: JSON.stringify({ language: "en", failed, again }),
  };
  built.put(
    "flatthread.js",
    (await bundle({ entryPoints: [source("entry")], define, plugins: [styles] })).text,
  );
  built.put("count.js", (await bundle({ entryPoints: [source("count")] })).text);
  await buildPages(built);
  return built.files;
}

/** Build the scripts that templates name, and the styles and pictures of the service's own pages. */
async function buildPages(built) {
  const parts = ["desk-texts.js"]; // imported by others
  for (const name of fs.readdirSync(PAGES).sort()) {
    const file = path.join(PAGES, name);
    if (parts.includes(name)) continue;
    if (/\.(js|css)$/.test(name)) built.put(name, (await bundle({ entryPoints: [file] })).text);
    else built.put(name, fs.readFileSync(file, "utf8"));
  }
}

/** Return the names of the committed files that differ from the built ones. */
function differences(files) {
  const names = new Set([...fs.readdirSync(TARGET), ...files.keys()]);
  return [...names].sort().filter((name) => {
    const file = path.join(TARGET, name);
    return !fs.existsSync(file) || fs.readFileSync(file, "utf8") !== files.get(name);
  });
}

const files = await build();
if (process.argv.includes("--check")) {
  const found = differences(files);
  if (found.length > 0) {
    console.error(`These files are not up to date, run scripts/build-widget: ${found.join(", ")}`);
    process.exit(1);
  }
} else {
  fs.rmSync(TARGET, { recursive: true, force: true });
  fs.mkdirSync(TARGET, { recursive: true });
  for (const [name, content] of files) fs.writeFileSync(path.join(TARGET, name), content);
}
