/**
 * Properties of the surrounding page that style sheets cannot detect: whether its text is light on a
 * dark background, whether it sets no font, and whether its `rem` differs much from its text size.
 */

/** Keep the classes of `element` in step with the page around `host` until `signal` is aborted. */
export function watchPage(host, element, signal) {
  const update = () => {
    element.classList.toggle("ft-on-dark", isLight(element));
    element.classList.toggle("ft-plain", hasDefaultFont(element, host));
    scale(element, host);
  };
  update();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", update, { signal });
  const observer = new MutationObserver(update);
  for (const node of [document.documentElement, document.body])
    observer.observe(node, { attributes: true });
  signal.addEventListener("abort", () => observer.disconnect());
}

/** Tell whether an element's text is lighter than middle gray. */
function isLight(element) {
  const probe = document.createElement("span");
  // This converts most notations of a color to red, green and blue.
  probe.style.color = "color-mix(in srgb, currentColor, currentColor)";
  element.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  const [red, green, blue] = (color.match(/-?[\d.]+(?:e-?\d+)?/g) ?? []).map(Number);
  const most = color.startsWith("rgb") ? 255 : 1;
  return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / most > 0.5;
}

/** Scale the widget's lengths (rem) on a page whose `rem` does not match its text size. */
function scale(element, host) {
  const size = (node) => parseFloat(getComputedStyle(node).fontSize);
  const factor = size(host) / size(document.documentElement);
  const isOdd = factor < 0.7 || factor > 1.4;
  element.style.zoom = isOdd ? factor : "";
  element.style.fontSize = isOdd ? `${100 / factor}%` : "";
}

/** Tell whether a page without a font of its own would show the widget in the browser's default. */
function hasDefaultFont(element, host) {
  const probe = document.createElement("span");
  probe.style.all = "initial";
  element.append(probe);
  const isDefault = getComputedStyle(probe).fontFamily === getComputedStyle(host).fontFamily;
  probe.remove();
  return isDefault;
}
