// Draws what the layout has placed, as SVG.

const KINDS = {
  append: { title: "INSERT", sign: "M-5 0h10M0 -5v10" },
  overwrite: { title: "INSERT OVERWRITE", sign: "M-5 -5h10v10h-10z", full: true },
  mutate: { title: "UPDATE, DELETE, MERGE", sign: "M0 -5.5L6 5H-6z", full: true },
  minor: { title: "COMPACT MINOR", sign: "M-6 -5l4 5l-4 5M6 -5l-4 5l4 5" },
  major: { title: "COMPACT MAJOR", sign: "M-7 -5l4 5l-4 5M7 -5l-4 5l4 5M0 -6v12" },
  "small-files": {
    title: "OPTIMIZE, MERGE SMALLFILES", sign: "M-5 -5h4v4h-4zM1 -5h4v4h-4zM-2 1h4v4h-4z",
    full: true,
  },
  other: { title: "other", sign: "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z", full: true },
};
const AXIS = 40;
const CHARACTER = 6.7; // the width of one
const CAP_PATH = `M5 0H${CAP}V${BAR}H5a5 5 0 0 1 -5 -5V5a5 5 0 0 1 5 -5z`;

function svg(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawAxis(placed, into) {
  resize(into, placed.width, AXIS);
  into.replaceChildren(...placed.ticks.flatMap(({ x, label, below }) => [
    svg("text", { x, y: 17, class: "tick" }, label),
    svg("text", { x, y: 32, class: "time" }, below),
  ]));
}

/** Draw jobs and return the elements of bars and of arrows into them, each by the job's key. */
function drawJobs(placed, into) {
  resize(into, placed.width, placed.height);
  const bars = new Map([...placed.bars.values()].map((one) => [one.job.key, drawBar(one)]));
  const drawn = placed.arrows.map((one) => [one.job.key, drawArrow(one)]);
  into.replaceChildren(
    definitions(),
    ...placed.bands.map(({ top, height }) =>
      svg("rect", { class: "band", y: top + TITLE, width: placed.width, height: height - TITLE })),
    ...placed.ticks.map(({ x }) =>
      svg("line", { class: "grid", x1: x, x2: x, y1: 0, y2: placed.height })),
    ...bars.values(),
    ...drawn.map(([, arrow]) => arrow),
  );
  return { bars, arrows: Map.groupBy(drawn, ([key]) => key) };
}

function definitions() {
  const tip = { viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7 };
  const head = (id) => svg(
    "marker", { ...tip, id, orient: "auto" },
    svg("path", { d: "M0 0L8 4L0 8z", class: `head ${id}` }),
  );
  const square = { width: 7, height: 7, patternUnits: "userSpaceOnUse" };
  const hatch = svg(
    "pattern", { ...square, id: "hatch", patternTransform: "rotate(45)" },
    svg("rect", { class: "stripe", width: 2.5, height: 7 }),
  );
  return svg("defs", {}, head("pass"), head("lost"), hatch);
}

function drawBar({ job, left, right, top }) {
  const width = right - left;
  const parts = body(job.kind, width);
  const room = Math.floor((width - CAP - 3 - (job.rejected ? CROSS : 0)) / CHARACTER);
  parts.push(svg("text", { x: CAP + 3, y: BAR / 2 + 4 }, caption(job, room)));
  if (job.rejected) {
    parts.push(svg("path", { class: "cross", d: `M${width - 15} 6l10 10m0 -10l-10 10` }));
  }
  const state = [["rejected", job.rejected], ["unsure", job.reads_unknown]];
  return svg("g", {
    "data-key": job.key,
    class: ["job", job.kind, ...state.filter(([, is]) => is).map(([name]) => name)].join(" "),
    transform: `translate(${left} ${top})`,
    role: "option",
    "aria-selected": "false",
    "aria-label": job.rejected ? job.story[0] : job.story.join(" "),
    tabindex: -1,
  }, ...parts);
}

function body(kind, width) {
  const { sign, full } = KINDS[kind];
  const box = { width, height: BAR, rx: 5 };
  const middle = `translate(${CAP / 2} ${BAR / 2})`;
  return [
    svg("rect", { class: "body", ...box }),
    svg("rect", { class: "hatch", ...box }),
    svg("path", { class: "cap", d: CAP_PATH }),
    svg("path", { class: full ? "sign full" : "sign", d: sign, transform: middle }),
  ];
}

function drawArrow({ job, x, y1, y2 }) {
  const kind = job.rejected ? "lost" : "pass";
  const d = `M${x} ${y1}V${y2}`;
  return svg("path", { class: `arrow ${kind}`, d, "marker-end": `url(#${kind})` });
}

/** A small bar of a kind, for the legend. */
function sample(kind) {
  const made = svg("svg", { class: kind, width: 40, height: BAR, "aria-hidden": true });
  made.append(...body(kind, 40));
  return made;
}

function resize(element, width, height) {
  element.setAttribute("width", width);
  element.setAttribute("height", height);
}

/** The version and the operation, in so many characters; no version is cut. */
function caption(job, room) {
  const version = job.rejected ? "" : `${job.end}`;
  const text = `${version} ${job.label}`.trim();
  if (text.length <= room) return text;
  if (room >= version.length + 4) return `${text.slice(0, room - 1)}…`;
  return version.length <= room ? version : "";
}
