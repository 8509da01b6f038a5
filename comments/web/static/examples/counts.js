import { refresh }
  from "https://comments.example/widget/count.js";

const button = document.getElementById("refresh");
button.addEventListener("click", () => refresh());
