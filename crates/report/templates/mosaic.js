// A mosaic: the exact numbers of the tile that the reader points at, keys that move among tiles, and colours one by one.
for (const figure of document.querySelectorAll("figure.mosaic")) {
  const view = figure.querySelector(".tiles"), status = figure.querySelector(".status"), tiles = [...view.children];
  const buttons = [...figure.querySelectorAll(".keys button")], toned = figure.querySelector(".toned");
  const texts = tiles.map((tile) => tile.title);
  let at = 0;

  // The browser's own note would stand over the tiles next to it.
  tiles.forEach((tile) => tile.removeAttribute("title"));
  figure.querySelector(".keyed").hidden = false;
  status.hidden = false;
  if (toned) toned.hidden = false;

  function select(next) {
    tiles[at].classList.remove("selected");
    at = Math.max(0, Math.min(tiles.length - 1, next));
    tiles[at].classList.add("selected");
    const lines = texts[at].split("\n").map((text) => {
      const line = document.createElement("span");
      line.textContent = text;
      return line;
    });
    status.replaceChildren(...lines);
  }

  // Tiles of a row: those at the height of the first.
  function columns() {
    const top = tiles[0].offsetTop, below = tiles.findIndex((tile) => tile.offsetTop !== top);
    return below < 0 ? tiles.length : below;
  }

  const moves = {
    ArrowLeft: () => at - 1, ArrowRight: () => at + 1, ArrowUp: () => at - columns(), ArrowDown: () => at + columns(),
    Home: () => 0, End: () => tiles.length - 1,
  };
  view.addEventListener("keydown", (event) => {
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const next = move();
    if (next >= 0 && next < tiles.length) select(next);
    tiles[at].scrollIntoView({ block: "nearest" });
  });
  view.addEventListener("pointermove", (event) => {
    if (event.target.parentNode === view) select(tiles.indexOf(event.target));
  });
  view.addEventListener("click", (event) => {
    if (event.target.parentNode === view) select(tiles.indexOf(event.target));
  });
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const isPressed = button.getAttribute("aria-pressed") !== "true", hue = [...button.classList].find((name) => name.startsWith("h-"));
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(isPressed && other === button)));
      tiles.forEach((tile) => tile.classList.toggle("dim", isPressed && !tile.classList.contains(hue)));
    });
  }
  toned?.querySelector("input").addEventListener("change", (event) => figure.classList.toggle("by-step", event.target.checked));
  select(0);
}
