// Uploads of files that are dropped or chosen, and events of the map of codes.
window.explore = (() => {
  const maxBytes = MAX_BODY_BYTES;

  const show = (zone, text, refused) => {
    const line = zone && zone.querySelector(".message");
    if (line) {
      line.textContent = text;
      line.classList.toggle("refused", refused);
    }
  };

  const send = async (file, zone) => {
    if (!file || !zone) return;
    if (file.size > maxBytes) {
      const megabytes = (file.size / 2 ** 20).toFixed(0);
      show(zone, `${file.name}: refused. It has ${megabytes} MB, and a file may have at most ${maxBytes / 2 ** 20} MB: make it smaller`, true);
      return;
    }
    show(zone, `${file.name}: loading...`, false);
    try {
      const answer = await fetch(zone.dataset.address, {
        method: "POST",
        body: file,
        headers: { "content-type": "application/octet-stream", "x-name": encodeURIComponent(file.name) },
      });
      show(zone, (await answer.text()).trim(), !answer.ok);
    } catch {
      show(zone, `${file.name}: the upload failed. Is sqvae explore still running?`, true);
    }
  };

  // A file can be dropped anywhere. It goes to the drop zone under it, or else to the first visible one.
  const zoneOf = (event) =>
    event.target.closest?.(".drop") ?? [...document.querySelectorAll(".drop")].find((zone) => zone.offsetParent);

  const carriesFile = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const leave = () => document.querySelectorAll(".drop.over").forEach((zone) => zone.classList.remove("over"));

  document.addEventListener("dragover", (event) => {
    if (!carriesFile(event)) return;
    event.preventDefault();
    leave();
    zoneOf(event)?.classList.add("over");
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget ?? leave());
  document.addEventListener("drop", (event) => {
    if (!carriesFile(event)) return;
    event.preventDefault();
    leave();
    send(event.dataTransfer.files[0], zoneOf(event));
  });
  document.addEventListener("change", (event) => {
    if (!event.target.matches?.(".drop input[type=file]")) return;
    send(event.target.files[0], event.target.closest(".drop"));
    event.target.value = "";
  });

  const choose = (event) => event.target.closest(".drop").querySelector("input[type=file]").click();

  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

  const press = (event, emit) => {
    const map = event.currentTarget;
    const cells = [...map.querySelectorAll("[data-position]")];
    if (!cells.length) return;
    const here = Math.max(0, cells.findIndex((cell) => cell.classList.contains("current")));
    const columns = map.querySelector("[role=row]").children.length;
    let next = here;
    if (event.key in moves) {
      const [right, down] = moves[event.key];
      const column = (here % columns) + right;
      next = column < 0 || column >= columns ? here : here + right + columns * down;
    } else if (event.key === "Home") next = here - (here % columns);
    else if (event.key === "End") next = Math.min(here - (here % columns) + columns - 1, cells.length - 1);
    else if (event.key === "Enter" || event.key === " ") emit(Number(cells[here].dataset.position));
    else return;
    event.preventDefault();
    if (next < 0 || next >= cells.length) return;
    cells[here].classList.remove("current");
    cells[next].classList.add("current");
    map.setAttribute("aria-activedescendant", cells[next].id);
    cells[next].scrollIntoView({ block: "nearest" });
  };

  const point = (event, emit) => {
    const cell = event.target.closest("[data-position]");
    if (cell) emit(Number(cell.dataset.position));
  };

  const code = (event, emit) => {
    const button = event.target.closest("[data-code]");
    if (button) emit(Number(button.dataset.code));
  };

  const dot = (event, emit) => {
    const mark = event.target.closest(".hot");
    if (mark) emit([...mark.parentElement.querySelectorAll(".hot")].indexOf(mark));
  };

  return { choose, press, point, code, dot };
})();
