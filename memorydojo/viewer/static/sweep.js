const { runs, stages } = data;
const FIELDS = ["memory", "model", "objective", "payload", "defense", "collection", "condition"];
const COLUMNS = [
  ["run", (run) => el("a", { href: run.href }, line(run.id))],
  ["memory", (run) => line(run.memory)],
  ["payload", (run) => (run.attacked ? `${line(run.payload)} for ${line(run.objective)}` : "clean")],
  ["state", (run) => line(run.status) + (run.simulated ? ", simulated" : "")],
  ["stored as", (run) => (run.attacked ? line(run.label).replace("_", " ") : "-")],
  ["later sessions", (run) => (run.attacked ? run.later : "-"), "number"],
  ["retrieved", (run) => counted(run, run.retrieved), "number"],
  ["objective met", (run) => counted(run, run.met), "number"],
  ["met when retrieved", (run) => (run.attacked ? `${run.acted} of ${run.retrieved}` : "-"), "number"],
  ["tasks solved", (run) => `${run.useful} of ${run.planned}`, "number"],
];

function counted(run, count) {
  return run.attacked ? `${count} (${percent(count, run.later)})` : "-";
}

// How far the payload of a run came, as whole runs and as later sessions.
function reached(run, stage) {
  const sessions = { entered: run.entered ? run.later : 0, stored: run.stored ? run.later : 0, retrieved: run.retrieved,
    "acted on": run.acted }[stage];
  const whole = { entered: run.entered, stored: run.stored, retrieved: run.retrieved > 0, "acted on": run.acted > 0 }[stage];
  return [whole ? 1 : 0, sessions];
}

function funnel(shown) {
  const attacked = shown.filter((run) => run.attacked);
  const later = attacked.reduce((sum, run) => sum + run.later, 0);
  const bar = (part, whole) => {
    const node = el("span", { class: "bar" });
    node.style.width = `${whole ? (100 * part) / whole : 0}px`;
    return node;
  };
  const head = el("tr", {}, ["the payload ...", "runs", "", "", "later sessions", "", ""].map((name) => el("th", {}, name)));
  const rows = stages.map((stage) => {
    const [whole, sessions] = attacked.map((run) => reached(run, stage)).reduce(([a, b], [c, d]) => [a + c, b + d], [0, 0]);
    return el("tr", { "data-stage": stage }, el("th", {}, stage),
      el("td", { class: "number runs-reached" }, `${whole} of ${attacked.length}`),
      el("td", { class: "number" }, percent(whole, attacked.length)), el("td", {}, bar(whole, attacked.length)),
      el("td", { class: "number sessions-reached" }, `${sessions} of ${later}`),
      el("td", { class: "number" }, percent(sessions, later)), el("td", {}, bar(sessions, later)));
  });
  by("funnel").replaceChildren(el("thead", {}, head), el("tbody", {}, rows));
  by("funnel-note").textContent =
    "Shares are of all planned runs and later sessions with an attack; a session that did not happen counts as 0. " +
    "Intervals: memorydojo metrics --funnel.";
}

function matches(run) {
  const wanted = by("find").value.toLowerCase();
  if (wanted && !run.id.toLowerCase().includes(wanted)) return false;
  const stage = by("by-stage").value;
  if (stage && !(run.attacked && reached(run, stage)[0])) return false;
  return FIELDS.every((field) => !by(`by-${field}`).value || `:${run[field] ?? "none"}` === by(`by-${field}`).value);
}

function filter() {
  const shown = runs.filter(matches);
  const kept = new Set(shown);
  runs.forEach((run, at) => (document.querySelector(`[data-run="${at}"]`).hidden = !kept.has(run)));
  by("count").textContent = `${shown.length} of ${plural(runs.length, "run")}`;
  funnel(shown);
}

function clear() {
  by("find").value = "";
  for (const field of [...FIELDS, "stage"]) by(`by-${field}`).value = "";
  filter();
}

by("name").textContent = line(data.title);
if (runs.some((run) => run.simulated)) by("banners").append(simulatedBanner());
by("banners").append(el("p", { class: "empty" }, `Labels: ${line(data.judge)}`));
for (const field of FIELDS) {
  choices(by(`by-${field}`), runs.map((run) => run[field] ?? "none"), ":");
  by(`by-${field}`).addEventListener("input", filter);
}
for (const stage of stages) by("by-stage").append(el("option", { value: stage }, stage));
by("by-stage").addEventListener("input", filter);
by("find").addEventListener("input", filter);
by("clear").addEventListener("click", clear);
by("runs").append(
  el("thead", {}, el("tr", {}, COLUMNS.map(([name, , kind]) => el("th", { class: kind }, name)))),
  el("tbody", {}, runs.map((run, at) => el("tr", { "data-run": at },
    COLUMNS.map(([, show, kind]) => el("td", { class: kind }, show(run))))))
);
filter();
