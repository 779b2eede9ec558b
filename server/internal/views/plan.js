// The list of what is to be done: what todo, clearTodo, attemptCompletion and
// update_plan make of it.

const states = new Map([["completed", ["\u2713", "done"]], ["in_progress", ["\u25b6", "in progress"]], ["pending", ["\u25cb", "open"]]]);

const fromTodos = (todos) => list(todos).map((t) => ({ text: str(t?.title), status: t?.completed ? "completed" : "pending" }));
const fromSteps = (steps) => list(steps).map((s) => ({ text: str(s?.description ?? s?.step), status: states.has(s?.status) ? s.status : "pending" }));
const fromShown = (steps) => list(steps).map((s) => ({ text: str(s?.text), status: states.has(s?.status) ? s.status : "pending" }));

// lists returns the list before and after the call; either is null when it is not known.
function lists() {
  const o = object(), input = given(), known = meta("plan")?.before;
  const before = known ? fromShown(known) : null;
  const planned = input.steps ?? input.plan;
  if (!call.result) return [null, planned ? fromSteps(planned) : list(input.newTodos).map((t) => ({ text: str(t), status: "pending" }))];
  if (Array.isArray(o.todos)) return [before, fromTodos(o.todos)];
  if (failure()) return [before, before];
  if (planned) return [before, fromSteps(planned)];
  return [before, before ?? fromTodos(o.remainingTodos)];
}

// compare says of each step what has changed, and which ones are gone. Steps are told
// apart by their text, and those of the same text by their order.
function compare(before, after) {
  const old = new Map();
  for (const s of before) old.has(s.text) ? old.get(s.text).push(s) : old.set(s.text, [s]);
  const words = new Map([["completed", "done now"], ["in_progress", "started"], ["pending", "opened again"]]);
  const steps = after.map((s) => {
    const was = old.get(s.text)?.shift();
    return { ...s, change: !was ? (before.length ? "new" : "") : was.status !== s.status ? words.get(s.status) : "" };
  });
  return [steps, [...old.values()].flat()];
}

function step(s) {
  const [sign, name] = states.get(s.status);
  const line = node("li", "step " + s.status, node("span", "sign", sign), shown("span", "text", clip(s.text, 2000)), unseen(" (" + name + ") "));
  line.firstChild.setAttribute("aria-hidden", "true");
  if (s.change) line.append(node("span", "tag info", s.change));
  return line;
}

function progress(steps) {
  const done = steps.filter((s) => s.status === "completed").length;
  const bar = node("div", "bar", node("div", "fill"));
  bar.setAttribute("role", "progressbar");
  bar.setAttribute("aria-label", "Progress");
  bar.setAttribute("aria-valuemin", 0);
  bar.setAttribute("aria-valuemax", steps.length);
  bar.setAttribute("aria-valuenow", done);
  bar.firstChild.style.width = (steps.length ? (100 * done) / steps.length : 0) + "%";
  return [done + " of " + count(steps.length, "step") + " done", bar];
}

function title(after) {
  const open = after.filter((s) => s.status !== "completed").length;
  if (call.cancelled) return "Cancelled";
  if (!call.result) return "The plan, as it is being made";
  const completing = tool() === "attemptCompletion" || (!tool() && !Array.isArray(object().todos) && !given().steps && !given().plan && !failure());
  if (completing) return open ? "Not complete: " + count(open, "step") + (open === 1 ? " is" : " are") + " still open" : "Complete";
  return "Plan";
}

function draw() {
  if (!call.input && !call.partial && !call.result) return show(node("p", "dim", "Waiting for the plan \u2026"));
  const [before, known] = lists(), after = known ?? [];
  const [steps, gone] = before ? compare(before, after) : [after, []];
  const [words, bar] = progress(after);
  const head = title(after), wrong = call.result && failure();
  show(node("div", "row", node("h1", "", head), after.length ? node("span", "dim", words) : null), after.length ? bar : null);
  if (call.cancelled) show(problem(call.cancelled, "warn"));
  if (wrong) show(problem(wrong[0]), problem(wrong[1], "warn"));
  show(problem(str(given().explanation), "dim"));
  if (steps.length) { const ol = node("ol", "steps"); show(ol); few(ol, steps, step, "step", 100); } else if (call.result && !wrong) show(node("p", "dim", "The list is empty."));
  if (gone.length) {
    const ul = node("ul", "steps gone");
    show(node("details", "", node("summary", "", count(gone.length, "step") + " removed"), ul));
    few(ul, gone, step, "step", 100);
  }
  const unknown = list(object().unknownIds);
  if (unknown.length) show(problem("There is no step with the id " + clip(unknown.map(str).join(", "), 200) + ".", "warn"));
  say(call.result ? head + ". " + words + "." : "");
}
start();
