(() => {
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
