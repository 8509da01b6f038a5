const log = document.getElementById("log");
const names = [
  "flatthread:ready",
  "flatthread:count",
  "flatthread:posted",
  "flatthread:error",
];

for (const name of names) {
  document.addEventListener(name, ({ detail }) => {
    const line = document.createElement("li");
    line.textContent =
      `${name} ${JSON.stringify(detail)}`;
    log.append(line);
  });
}

document.getElementById("fail").onclick = () => {
  const other = document.createElement("div");
  other.id = "flatthread";
  other.dataset.site = "unknown";
  document.body.append(other);
};
