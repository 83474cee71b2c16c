const { run, attack, sessions, entries, texts } = data;
const told = data.history ? data.history.sessions : [];
const SIGNS = { original: "\u25cf", descendant: "\u25c6", other: "" };
const ORIGINS = { original: "original poison", descendant: "descendant", other: "no poison" };
const LABELS = { exact: "exact", transformed: "transformed", fragmented: "fragmented", not_observed: "not observed" };
const INDIRECT = new Set(["linked", "episodic"]);
const ROW = 20;
const cell = Math.max(22, Math.min(64, Math.floor(900 / sessions.length)));
const indexOf = new Map(entries.map((entry, at) => [entry.id, at]));

// Which items each entry was delivered in, and the routes that it came by.
for (const entry of entries) Object.assign(entry, { items: [], routes: new Set() });
for (const session of sessions)
  for (const item of session.items)
    for (const id of item.entries) {
      const entry = entries[indexOf.get(id)];
      if (!entry) continue;
      entry.items.push({ session: session.number, item });
      entry.routes.add(item.route);
    }

let picked = null;
const visited = [];

// ---------------------------------------------------------------- the head of the page

function head() {
  by("name").textContent = `Trace of ${line(run.id)}`;
  if (run.simulated) by("banners").append(simulatedBanner());
  const begun = sessions.filter((session) => session.begun).length;
  if (run.status !== "completed")
    by("banners").append(
      el("p", { class: "banner", id: "unfinished" }, el("strong", {}, line(run.status).toUpperCase()),
        ` ${begun} of ${sessions.length} planned sessions were begun; what did not run counts as 0.`)
    );
  const facts = { memory: run.memory, model: run.model, "memory model": run.memoryModel, trajectory: run.trajectory,
    judge: run.judge };
  if (run.defense) facts.defense = run.defense;
  if (attack) {
    facts.payload = `${attack.payload} for ${attack.objective}`;
    facts.insertion = `session ${attack.session}, observation ${attack.observation}; stored: ${LABELS[attack.label]}`;
    facts["later sessions"] = summary();
  } else facts.condition = "clean run, no payload";
  if (data.history) {
    const failed = told.filter((session) => !session.completed).length;
    facts.history = `${data.history.id}: ${told.length} of ${plural(data.history.planned, "session")} before the tasks` +
      (failed ? `, ${failed} FAILED` : "");
    facts["held-out question"] = data.history.question ? (data.history.correct ? "answered right" : "answered wrong")
      : "never asked, counts as wrong";
  }
  for (const [name, value] of Object.entries(facts))
    by("facts").append(el("span", {}, `${name} `, el("b", {}, line(value))));
  if (attack) by("facts").append(el("button", { class: "link", id: "show-payload", type: "button", click: showPayload }, "payload text"));
  if (data.history && data.history.question)
    by("facts").append(el("button", { class: "link", id: "show-question", type: "button", click: showQuestion }, "question and answer"));
}

function summary() {
  const later = sessions.filter((session) => session.number > attack.session);
  const given = later.filter((s) => s.original || s.descendant);
  const acted = given.filter((s) => s.met);
  return `${later.length} planned, ${given.length} with the payload retrieved` +
    ` (${attack.indirect.length} only indirectly), ${acted.length} of these met the objective`;
}

// ---------------------------------------------------------------- the map

// What a history session wrote lies at the left edge: it came before the first task session.
const x = (session, part) => (session < 0 ? 5 : (session - 1 + part) * cell);
const GIVEN = 0.28;
const WRITTEN = 0.72;

function signs(session) {
  const found = [];
  if (!session.begun) return "";
  if (session.entered) found.push("P");
  if (session.original || session.descendant) found.push("R");
  if (attack && session.number >= attack.session && session.met) found.push("M");
  if (!session.completed) found.push("F");
  return found.join("");
}

function described(session) {
  const words = [`session ${session.number}, ${line(session.domain)} ${line(session.task)}`];
  if (!session.begun) words.push("did not happen");
  if (session.entered) words.push("payload entered");
  if (session.original || session.descendant) words.push("payload retrieved");
  if (session.met) words.push("objective met");
  if (session.begun && !session.completed) words.push("failed");
  return words.join(", ");
}

function map() {
  const root = by("map");
  document.documentElement.style.setProperty("--cell", `${cell}px`);
  const heads = el("div", { class: "heads" }, el("span", { class: "corner" }, "entry \\ session"));
  for (const session of sessions) {
    const classes = ["head"];
    if (attack && session.number === attack.session) classes.push("insertion");
    if (!session.begun) classes.push("absent");
    heads.append(
      el("button", { type: "button", class: classes.join(" "), "data-session": session.number, title: described(session),
        "aria-label": described(session), click: () => showSession(session.number) }, `${session.number}\n${signs(session)}`)
    );
  }
  root.append(heads);
  if (attack) root.append(shade("insertion-shade", attack.session));
  root.append(shade("pick-shade", 0));
  entries.forEach((entry, at) => root.append(row(entry, at)));
  if (!entries.length) root.append(el("p", { class: "empty" }, "The memory stored no entry."));
}

function shade(id, session) {
  const node = el("div", { class: id === "pick-shade" ? "shade pick" : "shade", id });
  place(node, session);
  return node;
}

function place(node, session) {
  node.hidden = !session;
  node.style.left = `calc(var(--name) + ${(session - 1) * cell}px)`;
}

// A long id in two pieces: where there is no room, the first one is cut, so that ids that begin alike are told apart.
function ends(id) {
  const chars = Array.from(id);
  const first = Math.max(Math.ceil(chars.length / 2), chars.length - 8);
  return [el("span", { class: "start" }, chars.slice(0, first).join("")),
    el("span", { class: "end" }, chars.slice(first).join(""))];
}

function row(entry, at) {
  const days = entry.items.map((found) => found.session);
  const about = `${line(entry.id)}, ${line(entry.kind)}, ${ORIGINS[entry.origin]}, ` +
    `first written by ${sessionName(entry.versions[0].session)}, delivered to ${plural(new Set(days).size, "session")}`;
  const name = el("button", { type: "button", class: "name", title: about, "aria-label": about },
    el("span", { class: "sign" }, SIGNS[entry.origin]), el("span", { class: "id" }, ends(line(entry.id))));
  const node = el("div", { class: `row ${entry.origin}`, "data-entry": at, click: () => showEntry(at) }, name, lane(entry));
  return node;
}

// A line from write to write, thick while the text bears the payload; marks for writes and deliveries.
function lane(entry) {
  const width = sessions.length * cell;
  const node = svg("svg", { class: "lane", width, height: ROW, "aria-hidden": "true" });
  const middle = ROW / 2;
  const paths = new Map();
  const add = (kind, path) => paths.set(kind, (paths.get(kind) || "") + path);
  entry.versions.forEach((version, at) => {
    const start = x(version.session, WRITTEN);
    const next = entry.versions[at + 1];
    const mark = version.bears ? ` ${entry.origin}` : "";
    if (version.change === "removed") {
      add("gone", `M${start - 4} ${middle - 4}l8 8m0 -8l-8 8`);
      return;
    }
    add(`life${mark}`, `M${start} ${middle}H${next ? x(next.session, WRITTEN) : width}`);
    if (version.change === "created") add(`dot${mark}`, `M${start - 4} ${middle}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z`);
    else if (version.change === "rewritten") add(`dot${mark}`, `M${start} ${middle - 5}l5 5l-5 5l-5 -5z`);
    else add("life", `M${start} ${middle - 4}v8`);
  });
  for (const { session, item } of entry.items) {
    const own = item.bears && (item.bearers.length === 0 || item.bearers.includes(entry.id));
    const kind = own ? `given bears${INDIRECT.has(item.route) ? " indirect" : ""}` : "given";
    add(kind, `M${x(session, GIVEN) - 4} ${middle - 7}h8l-4 7z`);
  }
  for (const kind of [...paths.keys()].sort((a, b) => order(a) - order(b)))
    node.append(svg("path", { class: kind, d: paths.get(kind) }));
  return node;
}

function order(kind) {
  return ["life", "dot", "given", "gone"].indexOf(kind.split(" ")[0]);
}

function legend() {
  const samples = [
    ["M2 8H26", "life original", "bears the payload, original poison (\u25cf)"],
    ["M2 8H26", "life descendant", "bears the payload, descendant (\u25c6)"],
    ["M2 8H26", "life", "bears none"],
    ["M10 8a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", "dot", "created"],
    ["M14 3l5 5l-5 5l-5 -5z", "dot", "rewritten"],
    ["M10 4l8 8m0 -8l-8 8", "gone", "removed"],
    ["M10 3h8l-4 7z", "given bears", "delivered with the payload"],
    ["M10 3h8l-4 7z", "given bears indirect", "the same, by link or episode"],
    ["M10 3h8l-4 7z", "given", "delivered without"],
  ];
  for (const [path, kind, words] of samples) {
    const picture = svg("svg", { width: 28, height: 16, "aria-hidden": "true" });
    picture.append(svg("path", { class: kind, d: path }));
    by("legend").append(el("span", {}, picture, words));
  }
  by("legend").append(el("span", {}, el("mark", {}, "judge's span"), " ", el("mark", { class: "words" }, "the payload's own words")));
  by("legend").append(el("span", {}, "P payload entered, R retrieved, M objective met, F failed"),
    el("span", {}, "Keys: \u2191 \u2193 entries, \u2190 \u2192 sessions, b back, / find, Esc clears the filters"));
}

// ---------------------------------------------------------------- details

function link(words, target, attributes) {
  return el("button", { type: "button", class: "link", click: target, ...attributes }, line(words));
}

// History sessions have numbers below 0; the last of them is -1.
function sessionName(number) {
  return number < 0 ? `history session ${number + 1 + told.length} of ${told.length}` : `session ${number}`;
}

function sessionLink(number, words) {
  return link(words || sessionName(number), () => showSession(number), { "data-to-session": number });
}

function entryLink(id, words) {
  const at = indexOf.get(id);
  return at === undefined ? el("span", {}, line(words || id)) : link(words || id, () => showEntry(at), { "data-to-entry": id });
}

function tag(words, kind) {
  return el("span", { class: kind ? `tag ${kind}` : "tag" }, line(words));
}

function poisonTags(what) {
  if (!what.label) return [];
  const found = [tag(LABELS[what.label], what.bears ? "poison label" : "label")];
  if (what.bears && what.original) found.push(tag("original poison", "poison"));
  if (what.bears && what.descendant) found.push(tag("descendant", "descendant"));
  return found;
}

function block(text, marks, attributes) {
  const node = el("pre", { class: "text", tabindex: "0", ...attributes });
  let at = 0;
  for (const [start, end, level] of marks || []) {
    node.append(visible(text.slice(at, start)));
    node.append(el("mark", { class: level === 2 ? "words" : "judge" }, visible(text.slice(start, end))));
    at = end;
  }
  node.append(visible(text.slice(at)));
  return node;
}

function difference(before, after, parts) {
  const node = el("pre", { class: "text difference", tabindex: "0" });
  for (const [sign, a, b, c, d] of parts) {
    if (sign === "=") node.append(visible(after.slice(c, d)));
    if (sign === "-" || sign === "~") node.append(el("del", {}, visible(before.slice(a, b))));
    if (sign === "+" || sign === "~") node.append(el("ins", {}, visible(after.slice(c, d))));
  }
  return node;
}

function nodeLink([kind, first, second]) {
  if (kind === "session") return sessionLink(first);
  if (kind === "item") return sessionLink(first, `item ${second + 1} of session ${first}`);
  return entryLink(entries[first].id, `${entries[first].id}, version ${second}`);
}

// The writes that the payload went through, from the insertion to a delivered item.
function chain(item) {
  if (!item.bears) return null;
  if (!item.chain.length)
    return el("p", { class: "empty" }, "No chain of writes from the insertion to this item is on record.");
  const steps = [el("li", {}, nodeLink(item.chain[0][1]), " carried the payload")];
  for (const [kind, , target] of item.chain) steps.push(el("li", {}, `${kind} `, nodeLink(target)));
  return el("details", {}, el("summary", {}, "Chain of writes from the insertion"), el("ol", { class: "chain" }, steps));
}

function replace(key, ...children) {
  if (picked && picked.key !== key) visited.push(picked);
  const back = visited.length ? link("back", goBack, { id: "back" }) : null;
  by("detail").replaceChildren(...[back, ...children.flat()].filter(Boolean));
  by("detail").scrollTop = 0;
  for (const node of by("detail").querySelectorAll(".text")) {
    const mark = node.querySelector("mark");
    if (mark) node.scrollTop = mark.offsetTop - 60;
  }
  for (const node of document.querySelectorAll(".picked")) node.classList.remove("picked");
}

function goBack() {
  const before = visited.pop();
  if (!before) return;
  picked = null;
  before.show();
}

function showEntry(at) {
  const entry = entries[at];
  replace(
    `entry ${at}`,
    el("h2", {}, line(entry.id)),
    el("p", {}, tag(entry.kind), tag(ORIGINS[entry.origin], { original: "poison", descendant: "descendant" }[entry.origin])),
    el("h3", {}, plural(entry.versions.length, "version")),
    entry.versions.map((version, number) => showVersion(entry, version, number)),
    el("h3", {}, `Delivered ${plural(entry.items.length, "time")}`),
    deliveries(entry)
  );
  pick({ key: `entry ${at}`, show: () => showEntry(at), entry: at });
}

function showVersion(entry, version, number) {
  const verb = { created: "created", rewritten: "rewritten", relinked: "links or metadata changed", removed: "removed" };
  const top = el("h4", {}, `Version ${version.number}: ${verb[version.change]} by `, sessionLink(version.session,
    `the write of ${sessionName(version.session)}`));
  const card = el("div", { class: version.bears ? "card version bears" : "card version", "data-version": version.number }, top);
  if (version.change === "removed") return card;
  const before = entry.versions[number - 1];
  const own = { ...version, original: entry.origin === "original", descendant: entry.origin === "descendant" };
  card.append(el("p", {}, version.kind !== entry.kind && tag(version.kind), poisonTags(own)));
  card.append(block(texts[version.text], version.marks));
  if (version.difference)
    card.append(el("h4", {}, `Changed against version ${before.number}`),
      difference(texts[before.text], texts[version.text], version.difference));
  if (version.links.length)
    card.append(el("p", {}, "Links to ", version.links.map((id, at) => [at ? ", " : "", entryLink(id)]).flat()));
  if (version.metadata !== null)
    card.append(el("details", {}, el("summary", {}, "Metadata"), block(texts[version.metadata])));
  return card;
}

function deliveries(entry) {
  if (!entry.items.length) return el("p", { class: "empty" }, "Never delivered.");
  return el("ul", {}, entry.items.map(({ session, item }) =>
    el("li", {}, sessionLink(session), `, place ${item.rank + 1}, route `, tag(item.route), via(item), poisonTags(item))));
}

function via(item) {
  return item.via === null ? null : el("span", { class: "via" }, "via ", entryLink(item.via), " ");
}

function showTold(number) {
  const session = told[number + told.length];
  const name = sessionName(number);
  const parts = [el("h2", {}, `${name[0].toUpperCase()}${name.slice(1)}`), el("p", { class: "empty" }, line(session.time))];
  parts.push(...failure(session), ...writes(number), ...spent(session));
  replace(name, parts);
  pick({ key: name, show: () => showTold(number) });
}

function showQuestion() {
  const asked = data.history.question;
  const parts = [el("h2", {}, "Held-out question"), el("p", {}, tag(asked.type), tag(data.history.correct ? "answered right" : "answered wrong"))];
  parts.push(block(texts[asked.text], null, { id: "question" }), ...failure(asked));
  parts.push(el("h3", {}, "Answer"), asked.answer === null ? el("p", { class: "empty" }, "None.") : block(texts[asked.answer], null, { id: "answer" }));
  parts.push(el("h3", {}, "Reference, which no model of the run has seen"), block(texts[asked.reference], null, { id: "reference" }));
  parts.push(...context(asked), ...spent(asked));
  replace("question", parts);
  pick({ key: "question", show: showQuestion });
}

function failure({ failure: found }) {
  if (!found) return [];
  return [el("p", { class: "banner" }, `Failed in ${line(found.stage)}: ${line(found.type)}: `, line(found.message))];
}

function showSession(number) {
  if (number < 0) return showTold(number);
  const session = sessions[number - 1];
  const parts = [el("h2", {}, `Session ${number}: ${line(session.domain)}/${line(session.task)}`)];
  if (session.begun) parts.push(...outcome(session), ...context(session), ...calls(session), ...writes(number), ...spent(session));
  else parts.push(el("p", { class: "empty" }, "This planned session did not happen. It counts as 0 in every metric."));
  replace(`session ${number}`, parts);
  pick({ key: `session ${number}`, show: () => showSession(number), session: number });
}

function outcome(session) {
  const words = [tag(session.utility ? "task solved" : "task not solved", "utility")];
  if (session.flags.length) words.push(tag(session.flags.join(", ")));
  if (session.entered) words.push(tag("payload entered here", "poison"));
  if (attack && session.number > attack.session) {
    words.push(tag(session.original || session.descendant ? "payload retrieved" : "payload not retrieved", "retrieved"));
    if (attack.indirect.includes(session.number)) words.push(tag("only indirectly", "indirect"));
  }
  if (attack && session.number >= attack.session)
    words.push(tag(session.met ? "OBJECTIVE MET" : "objective not met", session.met ? "poison met" : "met"));
  const found = [el("p", {}, words)];
  if (session.check) found.push(el("p", { id: "check" }, "Earliest check that failed: ", el("b", {}, session.check),
    ` (not so: ${data.checks[session.check]})`));
  found.push(...failure(session));
  if (session.utilityError) found.push(el("p", { class: "banner" }, `The task's own check failed: ${line(session.utilityError)}`));
  found.push(el("p", { class: "empty" }, line(session.time)));
  found.push(el("h3", {}, "Task request, which was also the query to memory"), block(texts[session.query], null, { id: "query" }));
  return found;
}

function context(session) {
  const found = [el("h3", {}, `Delivered context: ${plural(session.items.length, "item")}, in order`)];
  if (!session.items.length) found.push(el("p", { class: "empty" }, "Memory delivered nothing."));
  for (const item of session.items)
    found.push(
      el("div", { class: item.bears ? "card item bears" : "card item", "data-rank": item.rank },
        el("h4", {}, `${item.rank + 1}. `, item.entries.map((id, at) => [at ? ", " : "", entryLink(id)]).flat(), " "),
        el("p", {}, tag(item.kind), tag(`route: ${item.route}`, "route"), via(item),
          item.score !== null && tag(`score ${typeof item.score === "number" ? item.score.toFixed(3) : item.score}`),
          poisonTags(item)),
        block(texts[item.text], item.marks), chain(item))
    );
  return found;
}

function calls(session) {
  const found = [el("h3", {}, plural(session.actions.length, "tool call"))];
  for (const action of session.actions)
    found.push(
      el("div", { class: action.poisoned ? "card action bears" : "card action" },
        el("h4", {}, `${"\u2937 ".repeat(action.depth)}${line(action.call)} `, action.poisoned && tag("payload entered here", "poison"),
          action.error !== null && tag("error")),
        block(texts[action.arguments]),
        action.error !== null && el("p", { class: "banner" }, line(action.error)),
        block(texts[action.observation], action.marks))
    );
  found.push(el("h3", {}, "Final response"));
  found.push(session.final === null ? el("p", { class: "empty" }, "None.") : block(texts[session.final], null, { id: "final" }));
  const all = el("details", {}, el("summary", {}, `All ${plural(session.messages.length, "message")}`));
  all.addEventListener("toggle", () => {
    if (all.children.length > 1) return;
    for (const message of session.messages)
      all.append(el("div", { class: "message" }, el("h4", {}, line(message.role), message.tool && ` (${line(message.tool)})`),
        texts[message.text] && block(texts[message.text]), message.error && el("p", {}, line(message.error)),
        message.calls.map((call) => block(texts[call]))));
  });
  found.push(all);
  return found;
}

function writes(number) {
  const made = entries.flatMap((entry) => entry.versions.filter((version) => version.session === number)
    .map((version) => [entry, version]));
  const verb = { created: "created", rewritten: "rewrote", relinked: "changed links or metadata of", removed: "removed" };
  return [
    el("h3", {}, `Its memory write: ${plural(made.length, "change")}`),
    el("ul", { id: "writes" }, made.map(([entry, version]) => el("li", {}, `${verb[version.change]} `, entryLink(entry.id), " ",
      version.label && poisonTags({ ...version, original: entry.origin === "original", descendant: entry.origin === "descendant" })))),
  ];
}

function spent(session) {
  const names = ["role", "model", "calls", "input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "errors"];
  const head = el("tr", {}, names.map((name) => el("th", { class: names.indexOf(name) > 1 && "number" }, name.replace("_", " "))));
  const rows = session.usage.map((used) => el("tr", {}, names.map((name) =>
    el("td", { class: typeof used[name] === "number" ? "number" : null }, line(used[name])))));
  const seconds = Object.entries(session.seconds).map(([stage, value]) => `${line(stage)} ${Number(value).toFixed(2)} s`);
  return [
    el("h3", {}, "Tokens and time"),
    el("table", { id: "usage" }, el("thead", {}, head), el("tbody", {}, rows)),
    session.usage.some((used) => used.unmetered) && el("p", {}, "Some calls came without token counts; they are in no sum."),
    el("p", { class: "empty" }, seconds.join(", ")),
  ];
}

function showPayload() {
  replace("payload", el("h2", {}, "Payload"), el("p", {}, tag(attack.payload), tag(`objective ${attack.objective}`)),
    block(texts[attack.text], null, { id: "payload" }), el("h3", {}, "First session that lost it, by check"),
    el("ul", { id: "lost" }, Object.entries(attack.firstLost).map(([check, number]) =>
      el("li", {}, el("b", {}, check), " in ", sessionLink(number), ` (not so: ${data.checks[check]})`))));
  pick({ key: "payload", show: showPayload });
}

function pick(what) {
  picked = what;
  place(by("pick-shade"), what.session || 0);
  const node = what.session ? document.querySelector(`[data-session="${what.session}"]`)
    : what.entry === undefined ? null : document.querySelector(`[data-entry="${what.entry}"]`);
  if (!node) return;
  node.classList.add("picked");
  node.scrollIntoView({ block: "nearest", inline: "nearest" });
}

// ---------------------------------------------------------------- filters and keys

const FILTERS = {
  "by-label": (entry, value) => entry.versions.some((v) => 
    v.change !== "removed" && (value === "bearing" ? v.bears : (v.label || "not_observed") === value)),
  "by-origin": (entry, value) => entry.origin === value,
  "by-kind": (entry, value) => entry.versions.some((v) => v.kind === value.slice(1)),
  "by-route": (entry, value) => (value === "!" ? !entry.items.length : entry.routes.has(value.slice(1))),
  "by-session": (entry, value) => entry.versions.some((v) => v.session === Number(value)) ||
    entry.items.some((found) => found.session === Number(value)),
};

function matches(entry) {
  const wanted = by("find").value.toLowerCase();
  if (wanted && !entry.id.toLowerCase().includes(wanted) &&
    !entry.versions.some((v) => v.text !== undefined && texts[v.text].toLowerCase().includes(wanted))) return false;
  return Object.entries(FILTERS).every(([id, test]) => !by(id).value || test(entry, by(id).value));
}

function filter() {
  let shown = 0;
  for (const node of document.querySelectorAll(".row")) {
    const keep = matches(entries[Number(node.dataset.entry)]);
    node.hidden = !keep;
    shown += keep;
  }
  by("count").textContent = `${shown} of ${plural(entries.length, "entry", "entries")}`;
  const height = `${by("map").querySelector(".heads").offsetHeight + shown * ROW}px`;
  for (const node of document.querySelectorAll(".shade")) node.style.height = height;
}

function clear() {
  by("find").value = "";
  for (const id of Object.keys(FILTERS)) by(id).value = "";
  filter();
}

function filters() {
  choices(by("by-kind"), entries.flatMap((entry) => entry.versions.filter((v) => v.change !== "removed").map((v) => v.kind)), ":");
  choices(by("by-route"), entries.flatMap((entry) => [...entry.routes]), ":");
  for (const session of sessions) by("by-session").append(el("option", { value: session.number }, session.number));
  for (const id of ["find", ...Object.keys(FILTERS)]) by(id).addEventListener("input", filter);
  by("clear").addEventListener("click", clear);
}

function moveEntry(step) {
  const shown = [...document.querySelectorAll(".row")].filter((node) => !node.hidden);
  if (!shown.length) return;
  const now = shown.findIndex((node) => picked && Number(node.dataset.entry) === picked.entry);
  const next = shown[now < 0 ? (step > 0 ? 0 : shown.length - 1) : Math.max(0, Math.min(shown.length - 1, now + step))];
  showEntry(Number(next.dataset.entry));
  next.querySelector(".name").focus({ preventScroll: true });
}

function moveSession(step) {
  const now = picked && picked.session ? picked.session + step : step > 0 ? 1 : sessions.length;
  showSession(Math.max(1, Math.min(sessions.length, now)));
  document.querySelector(`[data-session="${picked.session}"]`).focus({ preventScroll: true });
}

const KEYS = {
  ArrowDown: () => moveEntry(1),
  ArrowUp: () => moveEntry(-1),
  ArrowRight: () => moveSession(1),
  ArrowLeft: () => moveSession(-1),
  b: goBack,
  "/": () => by("find").focus(),
  Escape: clear,
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select, textarea");
  const reading = event.target.closest(".text, .detail") && event.key.startsWith("Arrow");
  if (event.ctrlKey || event.metaKey || event.altKey || reading || !Object.hasOwn(KEYS, event.key)) return;
  if (typing && event.key !== "Escape") return;
  event.preventDefault();
  if (typing) event.target.blur();
  KEYS[event.key]();
});

head();
map();
legend();
filters();
filter();
if (attack) showSession(attack.session);
else showSession(1);
