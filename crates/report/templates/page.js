(() => {
  const figures = JSON.parse(document.getElementById("charts").textContent);
  const places = [...document.querySelectorAll(".chart")];
  // Charts so near to what is in sight are drawn with it, px.
  const MARGIN = 300;

  // Charts name colours and fonts as the style sheet does; what they are depends on the theme.
  function resolved(value, styles) {
    if (typeof value === "string") {
      return value.startsWith("var(--") ? styles.getPropertyValue(value.slice(4, -1)).trim() : value;
    }
    if (Array.isArray(value)) return value.map((item) => resolved(item, styles));
    if (value !== null && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolved(item, styles)]));
    }
    return value;
  }

  function draw(place) {
    const figure = resolved(figures[place.id], getComputedStyle(document.documentElement));
    place.dataset.drawn = "yes";
    return Plotly.react(place, figure.data, figure.layout, figure.config);
  }

  function drawMissing(which) {
    which.filter((place) => !place.dataset.drawn).forEach(draw);
  }

  function isInSight(place) {
    const { top, bottom } = place.getBoundingClientRect();
    return bottom > -MARGIN && top < innerHeight + MARGIN;
  }

  // What is in sight at once, the others while the page is idle, so that a long page answers soon.
  function drawAll() {
    drawMissing(places.filter(isInSight));
    const seen = new IntersectionObserver((entries) => {
      const inSight = entries.filter((entry) => entry.isIntersecting).map((entry) => entry.target);
      inSight.forEach((place) => seen.unobserve(place));
      drawMissing(inSight);
    }, { rootMargin: `${MARGIN}px` });
    places.forEach((place) => seen.observe(place));
    const rest = [...places];
    (function next() {
      const place = rest.shift();
      if (!place) {
        document.documentElement.dataset.charts = "drawn";
        return;
      }
      drawMissing([place]);
      setTimeout(next, 0);
    })();
  }

  function redraw() {
    places.filter((place) => place.dataset.drawn).forEach(draw);
  }

  function start() {
    const script = document.createElement("script");
    script.textContent = new TextDecoder().decode(unpacked(document.getElementById("engine").textContent));
    document.head.append(script);
    if (typeof Plotly === "undefined") throw new Error("the charting library did not start");
    drawAll();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    matchMedia("print").addEventListener("change", redraw);
    addEventListener("beforeprint", () => drawMissing(places));
  }

  try {
    start();
  } catch (error) {
    const note = document.getElementById("no-charts");
    note.textContent = `The charts cannot be drawn here (${error.message}). The tables hold the same figures.`;
    note.hidden = false;
    places.forEach((place) => { place.closest("figure").hidden = true; });
  }

  for (const box of document.querySelectorAll(".command")) {
    const [command, button] = [box.querySelector("pre"), box.querySelector("button")];
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(command.textContent);
        button.textContent = "Copied";
      } catch {
        // A page opened from a file may not be let near the clipboard: select it for the reader instead.
        getSelection().selectAllChildren(command);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }

  // What a link leads to may be folded away.
  function unfold() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let part = target; part; part = part.parentElement) {
      if (part.tagName === "DETAILS") part.open = true;
    }
    target?.scrollIntoView();
  }
  addEventListener("hashchange", unfold);
  if (location.hash) unfold();

  // Paper cannot be unfolded.
  const folded = [];
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details.unfold:not([open])")) {
      part.open = true;
      folded.push(part);
    }
  });
  addEventListener("afterprint", () => {
    while (folded.length > 0) folded.pop().open = false;
  });
})();
