// Places jobs: across by version or by time, down in lanes with as many rows as jobs overlap.

const ROW = 40;
const BAR = 22;
const CAP = 20; // the left end of a bar, which shows its kind: no bar is narrower
const CROSS = 20; // the right end of a rejected one
const TITLE = 24; // above each lane
const EDGE = 28;
const TICK = 68; // the least distance between labels of the axis
const MOST_ARROWS = 8; // into one bar; its panel names all versions that it passed
const SECOND = 1000;
const DAY = 86400 * SECOND;
const TIMES = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800,
  21600, 43200, 86400].map((seconds) => seconds * SECOND);

/** Place `jobs`, a part of `all.jobs`; `axis` is "version" or "time", `lanes` a field of jobs. */
function layout(all, jobs, { axis, lanes, width }) {
  const scale = (axis === "time" ? byTime : byVersion)(all, width);
  const bars = new Map();
  const bands = [];
  let top = 0;
  for (const title of laneTitles(jobs, lanes)) {
    const own = jobs.filter((job) => (job[lanes] ?? null) === title).map((job) => bar(job, scale));
    const rows = pack(own);
    for (const one of own) bars.set(one.job.key, { ...one, top: top + TITLE + one.row * ROW });
    bands.push({ title: title ?? `no ${lanes} recorded`, top, height: TITLE + rows * ROW });
    top += TITLE + rows * ROW;
  }
  return { width, height: top, ticks: scale.ticks, bands, bars, arrows: arrows(jobs, bars) };
}

function laneTitles(jobs, lanes) {
  const found = [...new Set(jobs.map((job) => job[lanes] ?? null))];
  const rank = (title) => (title === null ? "\uffff" : title);
  return found.sort((one, other) => (rank(one) < rank(other) ? -1 : 1));
}

function byVersion({ first, last, jobs }, width) {
  const step = (width - 2 * EDGE) / Math.max(1, last - first);
  const at = (version) => EDGE + (Math.max(version, first) - first) * step;
  const times = new Map(jobs.filter((job) => !job.rejected).map((job) => [job.end, job.time]));
  const every = roundUp(TICK / step);
  const ticks = [];
  for (let v = Math.ceil((first + 1) / every) * every; v <= last; v += every) {
    const time = times.get(v);
    ticks.push({ x: at(v), label: `${v}`, below: time == null ? "" : clock(time).slice(0, 8) });
  }
  return { at, end: (job) => at(job.end), ticks };
}

/** A version stands at the time of its commit, a rejected job ends when it was rejected. */
function byTime({ first, jobs }, width) {
  const known = jobs.filter((job) => job.time !== null);
  const begin = Math.min(...known.map((job) => job.time));
  const span = Math.max(...known.map((job) => job.time)) - begin || SECOND;
  const lead = CAP + EDGE; // for what was read before
  const perMilli = (width - 2 * EDGE - lead) / span;
  const x = (time) => EDGE + lead + (time - begin) * perMilli;
  const times = new Map(known.filter((job) => !job.rejected).map((job) => [job.end, job.time]));
  const at = (version) => (times.has(version) ? x(times.get(version)) : EDGE);
  const every = TIMES.find((millis) => millis * perMilli >= TICK + 12) ?? DAY;
  const ticks = [];
  for (let t = Math.ceil(begin / every) * every; t <= begin + span; t += every) {
    const label = clock(t).slice(0, every < SECOND ? 10 : 8);
    ticks.push({ x: x(t), label, below: new Date(t).toISOString().slice(5, 10) });
  }
  return { at, end: (job) => (job.time === null ? at(job.end) : x(job.time)), ticks };
}

function bar(job, scale) {
  const right = scale.end(job);
  const least = job.rejected ? CAP + CROSS : CAP;
  return { job, right, left: Math.min(scale.at(job.read) + 4, right - least) };
}

/** Give each bar the uppermost row that is free at its place, and return the number of rows. */
function pack(bars) {
  const ends = [];
  for (const one of [...bars].sort((a, b) => a.left - b.left || a.right - b.right)) {
    const free = ends.findIndex((end) => end < one.left);
    one.row = free < 0 ? ends.length : free;
    ends[one.row] = one.right;
  }
  return ends.length;
}

/** From each winner to those that passed it or lost against it, beside one another. */
function arrows(jobs, bars) {
  const found = [];
  const starts = new Map();
  for (const job of jobs) {
    for (const key of winners(job).slice(-MOST_ARROWS)) {
      const from = bars.get(key);
      const to = bars.get(job.key);
      if (!from || from.top === to.top) continue;
      const before = starts.get(key) ?? 0;
      starts.set(key, before + 1);
      const x = Math.max(from.right - CROSS / 2 - 9 * before, from.left + 4, to.left + 4);
      const down = to.top > from.top;
      found.push({
        job, x: Math.min(x, to.right - 4),
        y1: from.top + (down ? BAR : 0), y2: to.top + (down ? 0 : BAR),
      });
    }
  }
  return found;
}

/** The keys of the versions that a job passed, or of the one that it lost against. */
function winners(job) {
  return (job.rejected ? [job.end] : job.passed).map((version) => `v${version}`);
}

/** 1, 2 or 5 times a power of ten. */
function roundUp(number) {
  const power = 10 ** Math.floor(Math.log10(Math.max(number, 1)));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= number);
}

function clock(millis) {
  return new Date(millis).toISOString().slice(11, 23);
}
