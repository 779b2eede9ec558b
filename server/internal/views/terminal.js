// A command: what was asked for, what it printed, how it ended, what the sandbox kept
// it from, and the pictures that it made.

const quote = (w) => (/^[\w@%+=:,./-]+$/.test(w) ? w : "'" + w.replaceAll("'", "'\\''") + "'");

// asked is the command line, and where it runs.
function command(i) {
  if (i.cmd !== undefined) return [str(i.cmd), i.workdir];
  if (i.session_id !== undefined && i.signal === undefined && tool() !== "kill_session") return [i.chars ? "type " + JSON.stringify(str(i.chars)) : "look at the output", "", i.session_id];
  if (i.session_id !== undefined) return ["end it" + (i.signal ? " with " + str(i.signal) : ""), "", i.session_id];
  if (i.script !== undefined) return [[str(i.script), str(i.args)].join(" ").trim(), "", "skill " + str(i.skill_name)];
  const words = [str(i.command), ...list(i.args).map((a) => quote(str(a)))];
  return [words.join(" "), i.cwd ?? i.workdir, i.skill === undefined ? "" : "skill " + str(i.skill)];
}

// outcome gathers what the various results say.
function outcome() {
  const o = object(), run = meta("run") ?? {}, known = Object.keys(o).length > 0;
  const out = { exit: run.exitCode ?? o.exit_code ?? o.exitCode, ms: run.durationMs ?? o.duration_ms, signal: str(run.signal ?? o.signal), timedOut: run.timedOut || o.timed_out === true, texts: [], notes: [] };
  out.running = o.status === "running";
  if (out.running) out.exit = undefined;
  out.refused = list(run.refused).map(str);
  if (!known) {
    const all = list(call.result.content).map((c) => str(c?.text)).filter(Boolean);
    const e = /\n?\[exit code: (\d+)\]$/.exec(all[0] ?? "");
    if (e) {
      out.exit ??= +e[1];
      all[0] = all[0].slice(0, e.index);
    }
    if (call.result.isError && all.length > 1) out.error = all.shift();
    // What is told below need not stand among the output.
    out.texts = all.map((t) => ["Output", out.refused.reduce((rest, r) => (rest.endsWith(r) ? rest.slice(0, -r.length).trimEnd() : rest), t)]);
    return out;
  }
  if (o.output !== undefined && !(o.output === "Command executed successfully, but produced no output.")) out.texts.push(["Output", str(meta("output") ?? o.output)]);
  out.texts.push(["Standard output", str(o.stdout)], ["Standard error", str(o.stderr)]);
  if (o.error) out.error = str(o.error);
  out.cut = o.truncated || o.stdout_bytes || o.stderr_bytes;
  if (o.needs_input) out.notes.push(o.hint === "password" ? "It waits for a password." : "It waits for input.");
  for (const h of [o.hint, o.sandbox]) if (h && h !== "password" && !out.refused.length) out.notes.push(str(h));
  if (out.refused.length && o.hint && o.hint !== "password") {
    const rest = str(o.hint).split("\n").filter((l) => !out.refused.includes(l)).join("\n");
    if (rest) out.notes.push(rest);
  }
  out.notes.push(...list(o.warnings).map(str), ...list(o.limits_hit).map((l) => "Limit: " + str(l)));
  out.files = list(o.output_files);
  out.saved = list(o.artifact_files);
  return out;
}

// Colours: of the escape sequences only those that colour count; text never has the
// colour of its ground, and nothing is hidden, moved or overwritten.
const sequence = /\x1b\[([0-9;:]*)m|\x1b\[[0-?]*[ -/]*[A-Za-ln-z@\\^_`{|}~]|\x1b[()][0-9A-B]|\x1b[=>78]|\r\n|\r/g;
const cube = (n) => (n < 16 ? n : n < 232 ? [36, 6, 1].map((d) => { const v = Math.floor((n - 16) / d) % 6; return v ? 55 + 40 * v : 0; }) : Array(3).fill(8 + 10 * (n - 232)));
function style(now, codes) {
  const c = codes.replace(/(^|;)(?![34]8:)(\d+):[\d:]*/g, "$1$2").replaceAll("::", ":").split(/[;:]/).map(Number);
  for (let i = 0; i < c.length; i++) {
    const n = c[i], at = n < 40 ? "fg" : "bg";
    if (n === 0) now = {};
    else if (n === 38 || n === 48) {
      const colour = c[i + 1] === 5 ? cube(c[i + 2] & 255) : c.slice(i + 2, i + 5).map((v) => v & 255);
      now = { ...now, [at]: Array.isArray(colour) && colour.length < 3 ? undefined : colour };
      i += c[i + 1] === 5 ? 2 : 4;
    } else if (n >= 30 && n <= 37) now = { ...now, fg: n - 30 };
    else if (n >= 90 && n <= 97) now = { ...now, fg: n - 82 };
    else if (n >= 40 && n <= 47) now = { ...now, bg: n - 40 };
    else if (n >= 100 && n <= 107) now = { ...now, bg: n - 92 };
    else if (n === 39) now = { ...now, fg: undefined };
    else if (n === 49) now = { ...now, bg: undefined };
    else if (n === 22) now = { ...now, bold: false, faint: false };
    else if (n >= 21 && n <= 29) now = { ...now, [["italic", "under", "", "", "back"][n - 23] ?? ""]: false };
    else now = { ...now, [["", "bold", "faint", "italic", "under", "", "", "back"][n] ?? ""]: true };
  }
  return now;
}
const rgb = (c) => (typeof c === "number" ? "var(--c" + c + ")" : "rgb(" + c.join(",") + ")");
function paint(to, text, now) {
  const span = shown("span", ["bold", "faint", "italic", "under", "back"].filter((n) => now[n]).join(" "), text);
  if (now.back) { // both colours are the page's own
  } else if (now.bg !== undefined) {
    const c = now.bg, light = typeof c === "number" ? c > 7 || [2, 3, 6, 7].includes(c) : 0.3 * c[0] + 0.59 * c[1] + 0.11 * c[2] > 128;
    span.style.background = typeof c === "number" ? "var(--g" + c + ")" : rgb(c);
    span.style.color = light ? "#111" : "#fff";
  } else if (now.fg !== undefined) span.style.color = typeof now.fg === "number" ? rgb(now.fg) : "color-mix(in oklab," + rgb(now.fg) + " 45%,var(--text))";
  to.append(span);
}
const plainStyle = (s) => !Object.values(s).some((v) => v !== undefined && v !== false);

const longest = 200000, spans = 5000;
function coloured(to, text) {
  const halves = text.length > longest ? [text.slice(0, longest / 2), text.slice(-longest / 2)] : [text];
  let now = {}, made = 0;
  const add = (part) => part && (plainStyle(now) || ++made > spans ? put(to, part) : paint(to, part, now));
  halves.forEach((half, i) => {
    if (i) to.append(node("span", "warn", "\n\u2026 " + count(text.length - longest, "character") + " of the middle are not shown here \u2026\n"));
    let at = 0;
    for (const m of half.matchAll(sequence)) {
      add(half.slice(at, m.index));
      at = m.index + m[0].length;
      if (m[0][0] === "\r") add("\n");
      else if (m[1] !== undefined) now = style(now, m[1]);
    }
    add(half.slice(at));
  });
  return to;
}

function output([name, text]) {
  const pre = coloured(node("pre", "box out"), text.replace(/[\r\n]+$/, ""));
  pre.tabIndex = 0;
  pre.setAttribute("role", "region");
  pre.setAttribute("aria-label", name);
  return pre;
}

// Pictures come by way of the client: a view loads nothing itself.
const drawn = /^image\/(png|jpeg|gif|webp|bmp)$/, largest = 8 << 20, pictures = new Map();
function picture(to, uri, name) {
  const once = pictures.get(uri) ?? ask("resources/read", { uri });
  pictures.set(uri, once);
  once.then((r) => {
    const c = list(r?.contents)[0], type = str(c?.mimeType), data = str(c?.blob);
    if (!drawn.test(type) || data.length > largest || !/^[A-Za-z0-9+/]+=*$/.test(data)) return;
    const img = node("img", "");
    img.alt = plain(name);
    img.addEventListener("load", measure);
    img.addEventListener("error", () => img.replaceWith(node("p", "dim", "This picture cannot be shown.")));
    img.src = "data:" + type + ";base64," + data;
    to.prepend(img);
  }).catch(() => to.append(node("p", "dim", "The client did not hand this picture over.")));
}
function made(o) {
  const types = new Map(list(o.files).map((f) => [str(f?.name), f]));
  const rows = new Map([...types].map(([name, f]) => [name, { name, size: f.size_bytes, type: str(f.mime_type) }]));
  for (const a of list(o.saved)) {
    const same = [...types.keys()].find((n) => str(a?.name).endsWith(n));
    rows.set(same ?? str(a?.name), { ...rows.get(same), name: same ?? str(a?.name), uri: str(a?.uri) });
  }
  if (!rows.size) return;
  const all = node("ul", "made");
  show(node("h2", "", "Files"), all);
  few(all, [...rows.values()], (f, i) => {
    const fig = node("figure", "", node("figcaption", "row", shown("bdi", "mono", clip(f.name, 500)), node("span", "dim", plain(clip([f.type, Number.isFinite(f.size) ? count(f.size, "byte") : ""].filter(Boolean).join(", "), 100)))));
    const looks = f.type ? drawn.test(f.type) : /\.(png|jpe?g|gif|webp|bmp)$/i.test(f.name);
    if (i < 8 && looks && f.uri.startsWith("artifact://") && able.serverResources) picture(fig, f.uri, f.name);
    return node("li", "", fig);
  }, "file", 50);
}

const took = (ms) => (ms < 1000 ? ms + " ms" : ms < 60000 ? (ms / 1000).toFixed(1) + " s" : Math.floor(ms / 60000) + " min " + Math.floor((ms % 60000) / 1000) + " s");
function ending(o) {
  if (call.cancelled) return ["warn", "cancelled"];
  if (!o) return ["dim", "running \u2026"];
  if (o.timedOut) return ["bad", "timed out"];
  if (o.running) return ["dim", "still running"];
  if (o.signal) return ["bad", "ended by " + plain(clip(o.signal, 40))];
  if (Number.isInteger(o.exit) && o.exit >= 0) return [o.exit ? "bad" : "good", "exit code " + o.exit];
  return call.result.isError || o.error ? ["bad", "not run"] : ["good", "done"];
}

function draw() {
  if (!call.input && !call.partial && !call.result) return show(node("p", "dim", "Waiting for the command \u2026"));
  const [line, dir, whose] = command(given()), o = call.result && outcome(), [tone, end] = ending(o);
  const prompt = node("span", "dim", "$ ");
  prompt.setAttribute("aria-hidden", "true");
  const head = node("div", "row", node("span", "tag " + tone, end), Number.isFinite(o?.ms) ? node("span", "dim", took(o.ms)) : null, dir ? node("span", "dim", "in ", shown("bdi", "mono", clip(str(dir), 500))) : null, whose ? shown("bdi", "dim", clip(str(whose), 200)) : null);
  show(node("h1", "unseen", "Command"), line && node("pre", "line", prompt, shown("span", "", clip(line, 4000))), head);
  if (call.cancelled) show(problem(call.cancelled, "warn"));
  if (o) {
    if (o.error) show(problem(o.error));
    const texts = o.texts.filter(([, t]) => t.trim());
    for (const t of texts) {
      if (texts.length > 1) show(node("h2", "dim", t[0]));
      show(output(t));
    }
    if (!texts.length && !o.error) show(node("p", "dim", "No output."));
    if (o.cut) show(node("p", "dim", "The middle of the output was cut."));
    if (o.refused.length) {
      const ul = node("ul", "refused", ...o.refused.slice(0, 20).map((r) => node("li", "", permit(r))));
      show(node("section", "note warn", node("h2", "", "What the sandbox did not permit, and how to permit it"), ul));
    }
    for (const n of o.notes.slice(0, 20)) show(problem(n, "warn"));
    made(o);
    say("Command: " + end + (o.refused.length ? "; the sandbox refused something." : "."));
  }
}

// permit sets the arguments in a sentence apart, as in --allow-read /etc/hosts.
function permit(sentence) {
  const p = node("span", "");
  for (const part of clip(sentence, 2000).split(/(--[a-z-]+ [^\s,;()]+)/)) {
    p.append(part.startsWith("--") ? shown("code", "flag", part) : shown("span", "", part));
  }
  return p;
}
start();
