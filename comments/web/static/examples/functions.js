import { mount, update, destroy }
  from "https://comments.example/widget/flatthread.js";

const element = document.getElementById("comments");
const first = { site: "demo", thread: "demo" };
const second = { site: "demo", thread: "another" };
const actions = {
  mount: () => mount(element, first),
  update: () => update(element, second),
  destroy: () => destroy(element),
};
for (const [id, act] of Object.entries(actions)) {
  document.getElementById(id)
    .addEventListener("click", act);
}
actions.mount();
