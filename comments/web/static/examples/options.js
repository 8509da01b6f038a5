// A preview: this page gives the widget different options from the site's.
import { mount } from "https://comments.example/widget/flatthread.js";

const form = document.getElementById("options");
const load = window.fetch;

window.fetch = async (url, init) => {
  const answer = await load(url, init);
  if (!answer.ok || !new URL(url).pathname.endsWith("/comments")) return answer;
  const page = await answer.json();
  return Response.json({ ...page, options: { ...page.options, ...options() } });
};

function options() {
  const { votes, website, guests, moderation, forms } = form.elements;
  const { order, theme, live, images } = form.elements;
  return {
    votes: votes.checked,
    website: website.checked,
    guests: guests.checked,
    moderation: moderation.checked,
    forms: forms.checked,
    order: order.value,
    theme: theme.value,
    live: Number(live.value),
    images: images.value ? [images.value] : [],
  };
}

function command() {
  const { order, theme, live, images, language } = form.elements;
  const flags = [...form.querySelectorAll("[type=checkbox]")]
    .filter((box) => box.checked !== box.defaultChecked)
    .map((box) => (box.checked ? `--${box.name}` : `--no-${box.name}`));
  if (images.value) flags.push("--image-origin", images.value);
  if (language.value) flags.push("--language", language.value);
  flags.push("--order", order.value, "--theme", theme.value, "--live", live.value);
  return `flatthread site set demo ${flags.join(" ")}`;
}

function show() {
  document.getElementById("command").textContent = command();
  const { language, order } = form.elements;
  const lang = language.value || undefined;
  mount(document.getElementById("comments"), { site: "demo", thread: "demo", lang, order: order.value });
}

form.addEventListener("change", show);
form.addEventListener("submit", (event) => event.preventDefault());
show();
