"use strict";
{
  const records = JSON.parse(document.getElementById("records").textContent);
  const order = Object.keys(records);
  const panel = document.getElementById("record");
  const empty = panel.innerHTML;
  const scroll = document.getElementById("scroll");
  const svg = scroll.querySelector("svg");
  let kept = null;
  let shown = null;

  const bar = (key) => document.getElementById(key);
  const keyOf = (event) => event.target.closest?.(".job")?.id ?? null;

  function element(name, text, parent) {
    const made = document.createElement(name);
    made.textContent = text;
    parent.append(made);
    return made;
  }

  function fill(record) {
    panel.replaceChildren();
    element("h2", record.title, panel);
    const list = element("dl", "", panel);
    for (const [title, text] of record.fields) {
      const field = element("div", "", list);
      if (text.length > 60) field.className = "wide";
      element("dt", title, field);
      element("dd", text, field);
    }
  }

  function show(key) {
    if (key === shown) return;
    for (const marked of svg.querySelectorAll(".near, .chosen")) {
      marked.classList.remove("near", "chosen");
    }
    shown = key;
    svg.classList.toggle("choosing", key !== null);
    if (key === null) {
      panel.innerHTML = empty;
      return;
    }
    bar(key).classList.add("chosen");
    for (const other of records[key].near) bar(other)?.classList.add("near");
    for (const arrow of svg.querySelectorAll(".arrow")) {
      if (arrow.dataset.of === key) arrow.classList.add("near");
    }
    fill(records[key]);
  }

  function keep(key) {
    kept = key;
    show(key);
    history.replaceState(null, "", key === null ? "#" : `#${encodeURIComponent(key)}`);
  }

  function step(from, by) {
    const next = order[order.indexOf(from) + by];
    if (next !== undefined) bar(next).focus();
  }

  svg.addEventListener("mouseover", (event) => show(keyOf(event) ?? kept));
  svg.addEventListener("mouseleave", () => show(kept));
  svg.addEventListener("focusin", (event) => show(keyOf(event)));
  svg.addEventListener("focusout", () => show(kept));
  svg.addEventListener("click", (event) => keep(keyOf(event)));
  document.addEventListener("keydown", (event) => {
    const key = keyOf(event);
    if (event.key === "Escape") keep(null);
    else if (key === null) return;
    else if (event.key === "Enter" || event.key === " ") keep(key);
    else if (event.key === "ArrowRight") step(key, 1);
    else if (event.key === "ArrowLeft") step(key, -1);
    else return;
    event.preventDefault();
  });

  scroll.scrollLeft = scroll.scrollWidth;
  const asked = decodeURIComponent(location.hash.slice(1));
  if (Object.hasOwn(records, asked)) {
    kept = asked;
    show(asked);
    const box = bar(asked).getBBox();
    scroll.scrollLeft = box.x + (box.width - scroll.clientWidth) / 2;
  }
}
