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
