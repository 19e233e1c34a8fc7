// Answers the reader: what is shown, and what is told of the chosen job.
{
  const element = (id) => document.getElementById(id);
  const data = JSON.parse(element("data").textContent);
  const all = new Map(data.jobs.map((job) => [job.key, job]));
  const [chart, picture, panel] = ["chart", "jobs", "record"].map(element);
  const [axis, lanes, zoom] = ["axis", "lanes", "zoom"].map(element);
  const filters = ["kind", "user", "partition"].map(element);
  let placed = null;
  let drawn = { bars: new Map(), arrows: new Map() };
  let order = []; // keys of the jobs that are shown
  let kept = null; // the key of the job that a click or Enter chose
  let shown = null; // of the one that the panel tells of
  let zoomed = false;

  function add(parent, name, text = "", attributes = {}) {
    const made = document.createElement(name);
    made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    parent.append(made);
    return made;
  }

  const valuesOf = {
    kind: (job) => [job.kind],
    user: (job) => (job.user === null ? [] : [job.user]),
    partition: (job) => job.partitions,
  };

  function fillFilters() {
    for (const filter of filters) {
      const found = new Set(data.jobs.flatMap(valuesOf[filter.id]));
      const kinds = Object.keys(KINDS).filter((kind) => found.has(kind));
      for (const value of filter.id === "kind" ? kinds : [...found].sort()) {
        add(filter, "option", filter.id === "kind" ? KINDS[value].title : value, { value });
      }
      filter.disabled = found.size < 2;
    }
  }

  function fillLegend() {
    const entry = (text, ...marks) => add(element("legend"), "li", text).prepend(...marks);
    for (const { value } of [...element("kind").options].slice(1)) {
      entry(KINDS[value].title, sample(value));
    }
    const rejected = sample("other");
    rejected.classList.add("job", "rejected");
    if (data.jobs.some((job) => job.rejected)) entry("rejected", rejected);
    if (data.jobs.some((job) => job.passed.length)) entry("passed by a rebase", mark("pass"));
    if (data.jobs.some((job) => job.rejected)) entry("lost against", mark("lost"));
    entry("A bar leads from the version that a job read to the one it made or lost against.");
  }

  function mark(kind) {
    const job = { rejected: kind === "lost" };
    const made = svg("svg", { width: 12, height: BAR, "aria-hidden": true });
    made.append(drawArrow({ job, x: 6, y1: 0, y2: BAR }));
    return made;
  }

  /** The width of the drawing: what fits, or more where versions would stand too close. */
  function width() {
    const versions = data.last - data.first;
    const wide = (step) => Math.max(chart.clientWidth, versions * step + 2 * EDGE);
    const [least, usual, most] = [wide(8), wide(30), wide(120) * 2];
    if (!zoomed) zoom.value = 100 * Math.log(usual / least) / Math.log(most / least);
    return zoomed ? Math.round(least * (most / least) ** (zoom.value / 100)) : usual;
  }

  function draw() {
    const fits = (job, { id, value }) => value === "" || valuesOf[id](job).includes(value);
    const jobs = data.jobs.filter((job) => filters.every((filter) => fits(job, filter)));
    const middle = (chart.scrollLeft + chart.clientWidth / 2) / chart.scrollWidth;
    const options = { axis: axis.value, lanes: lanes.value, width: width() };
    placed = layout(data, jobs, options);
    order = jobs.map((job) => job.key);
    drawAxis(placed, element("ticks"));
    drawn = drawJobs(placed, picture);
    element("titles").replaceChildren();
    for (const { title, top } of placed.bands) {
      add(add(element("titles"), "div", "", { style: `top:${top}px` }), "span", title);
    }
    element("count").textContent = `${jobs.length} of ${data.jobs.length} jobs`;
    chart.scrollLeft = middle * placed.width - chart.clientWidth / 2;
    reachable(drawn.bars.has(kept) ? kept : order.at(-1));
    shown = null;
    show(kept);
    if (drawn.bars.has(kept)) reveal(kept);
  }

  /** Let Tab lead to one job; arrow keys lead on to the others. */
  function reachable(key) {
    picture.querySelector('[tabindex="0"]')?.setAttribute("tabindex", -1);
    drawn.bars.get(key)?.setAttribute("tabindex", 0);
  }

  function show(key) {
    if (key !== null && key === shown) return;
    for (const marked of picture.querySelectorAll(".near, .chosen")) {
      marked.classList.remove("near", "chosen");
    }
    for (const marked of picture.querySelectorAll('[aria-selected="true"]')) {
      marked.setAttribute("aria-selected", false);
    }
    shown = key;
    picture.classList.toggle("choosing", key !== null && drawn.bars.has(key));
    tell(key === null ? null : all.get(key));
    if (key === null) return;
    drawn.bars.get(key)?.classList.add("chosen");
    drawn.bars.get(key)?.setAttribute("aria-selected", true);
    for (const other of winners(all.get(key))) drawn.bars.get(other)?.classList.add("near");
    for (const [, arrow] of drawn.arrows.get(key) ?? []) arrow.classList.add("near");
  }

  function tell(job) {
    panel.replaceChildren();
    if (job === null) {
      add(panel, "h2", "No job chosen");
      add(panel, "p", "Point at a bar, or reach the drawing by Tab and go from job to job with the "
        + "left and right arrow, Home and End. A click or Enter keeps a job, Escape lets it go.");
      return;
    }
    const [first, ...rest] = job.story;
    add(panel, "h2", first);
    for (const said of rest) add(panel, "p", said);
    const list = add(panel, "dl");
    for (const [title, value] of job.fields) {
      const field = add(list, "div", "", { class: `${value}`.length > 40 ? "wide" : "" });
      add(field, "dt", title);
      write(value, add(field, "dd"), "span");
    }
  }

  function write(value, parent, name) {
    if (!Array.isArray(value)) return add(parent, name, value);
    const list = add(parent, "ul");
    for (const item of value) add(list, "li", item);
    return list;
  }

  function keep(key) {
    kept = key;
    show(key);
    if (key !== null) reachable(key);
    history.replaceState(null, "", key === null ? "#" : `#${encodeURIComponent(key)}`);
  }

  function visit(key) {
    if (!drawn.bars.has(key)) return;
    drawn.bars.get(key).focus({ preventScroll: true });
    reveal(key, "smooth");
  }

  /** Scroll a bar to the middle, unless it can be seen as a whole. */
  function reveal(key, behavior = "auto") {
    const { left, right, top } = placed.bars.get(key);
    const [x, y] = [chart.scrollLeft, chart.scrollTop];
    const [wide, high] = [chart.clientWidth, chart.clientHeight - AXIS];
    const isSeen = left >= x && right <= x + wide && top >= y && top + BAR <= y + high;
    if (isSeen) return;
    const start = Math.min((left + right - wide) / 2, left - EDGE);
    chart.scrollTo({ left: start, top: top + (BAR - high) / 2, behavior });
  }

  const keyOf = (event) => event.target.closest?.(".job")?.dataset.key ?? null;

  function onKey(event) {
    const key = keyOf(event);
    const at = order.indexOf(key);
    const moves = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: order.length - 1 };
    if (event.key === "Escape") keep(null);
    else if (key === null) return;
    else if (event.key === "Enter" || event.key === " ") keep(key);
    else if (event.key in moves) visit(order[moves[event.key]]);
    else return;
    event.preventDefault();
  }

  picture.addEventListener("mouseover", (event) => show(keyOf(event) ?? kept));
  picture.addEventListener("mouseleave", () => show(kept));
  // On the SVG itself they would make it a stop for Tab.
  chart.addEventListener("focusin", (event) => {
    reachable(keyOf(event));
    show(keyOf(event));
  });
  chart.addEventListener("focusout", () => show(kept));
  picture.addEventListener("click", (event) => keep(keyOf(event)));
  document.addEventListener("keydown", onKey);
  for (const control of [axis, lanes]) control.addEventListener("change", draw);
  for (const filter of filters) {
    filter.addEventListener("change", () => {
      draw();
      if (order.length && !drawn.bars.has(kept)) reveal(order.at(-1));
    });
  }
  zoom.addEventListener("input", () => {
    zoomed = true;
    draw();
  });

  element("view").open = innerWidth >= 700;
  fillFilters();
  fillLegend();
  const asked = [...all.keys()].find((key) => location.hash === `#${encodeURIComponent(key)}`);
  if (asked !== undefined) kept = asked;
  draw();
  if (kept === null) chart.scrollLeft = placed.width;
  addEventListener("resize", draw);
}
