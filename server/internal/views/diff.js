// What a call changes in files: from the diff that its result carries, and before that
// from its input.

// A file is { from, to, kind, notes, lines }; a line is [sign, text, old, new], where
// sign is "+", "-", " " or "@" for a gap of new lines (0: not known).
const fresh = (from, to, kind) => ({ from, to, kind, notes: [], lines: [] });
const linesOf = (text) => { const all = str(text).split("\n"); if (all[all.length - 1] === "") all.pop(); return all; };
const unquote = (s) => {
  if (!s.startsWith('"')) return s;
  const bytes = [];
  for (const m of s.slice(1, -1).matchAll(/\\([0-7]{3}|.)|([^\\]+)/gs)) {
    if (m[2]) bytes.push(...new TextEncoder().encode(m[2]));
    else bytes.push(m[1].length === 3 ? parseInt(m[1], 8) & 255 : m[1].charCodeAt(0));
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
};

// names are the two of a line "diff --git a/x b/y": both quoted, or both the same length
// when neither has blanks that could stand for the one between them.
function names(rest) {
  const m = /^("(?:[^"\\]|\\.)*"|a\/\S*) ("(?:[^"\\]|\\.)*"|b\/\S*)$/s.exec(rest) ?? [0, "a/" + rest, "b/" + rest];
  return [m[1], m[2]].map((n) => unquote(n).slice(2));
}

// unified reads a diff as git writes it.
function unified(text) {
  const files = [];
  let f, at, next, left = 0, right = 0, end = 0;
  for (const line of linesOf(text)) {
    if (left > 0 || right > 0) {
      const sign = line[0], body = line.slice(1);
      if (sign === "+") { right--; f.lines.push(["+", body, 0, next++]); continue; }
      if (sign === "-") { left--; f.lines.push(["-", body, at++, 0]); continue; }
      if (sign === " ") { left--; right--; f.lines.push([" ", body, at++, next++]); continue; }
    }
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
    if (line.startsWith("diff --git ")) {
      files.push((f = fresh(...names(line.slice(11)), "changed")));
      left = right = 0; end = 1;
    } else if (!f) continue;
    else if (hunk) {
      [at, left, next, right] = [+hunk[1], +(hunk[2] ?? 1), +hunk[3], +(hunk[4] ?? 1)];
      if (next > end && left) f.lines.push(["@", "", 0, next - end]);
      end = next + right;
    } else if (line.startsWith("new file")) f.kind = "added";
    else if (line.startsWith("deleted file")) f.kind = "deleted";
    else if (line.startsWith("rename from ")) [f.kind, f.from] = ["renamed", unquote(line.slice(12))];
    else if (line.startsWith("rename to ")) f.to = unquote(line.slice(10));
    else if (line.startsWith("Binary files")) f.notes.push("A binary file.");
    else if (line === "\\ No newline at end of file") f.lines.push(["\\", "no line end at the end of the file", 0, 0]);
    else if (line.startsWith("\\ ")) {
      f.notes.push(line.slice(2));
      f.cut ||= line.includes("the rest of this file");
    }
  }
  return files;
}

// patched reads the input of apply_patch, as far as it has come.
function patched(text) {
  const files = [];
  let f;
  for (const line of linesOf(text)) {
    const m = /^\*\*\* (Add|Delete|Update) File: (.*)$/.exec(line), move = /^\*\*\* Move to: (.*)$/.exec(line);
    if (m) files.push((f = fresh(m[2], m[2], { Add: "added", Delete: "deleted", Update: "changed" }[m[1]])));
    else if (!f || line.startsWith("*** ")) { if (f && move) [f.kind, f.to] = ["renamed", move[1]]; }
    else if (line.startsWith("@@")) f.lines.push(["@", line.slice(2).trim(), 0, 0]);
    else f.lines.push("+- ".includes(line[0] ?? " ") ? [line[0] ?? " ", line.slice(1), 0, 0] : [" ", line, 0, 0]);
  }
  return files.length ? files : unified(text);
}

// intended is what the input asks for.
function intended(input) {
  if (input.patch !== undefined) return patched(input.patch);
  const path = str(input.path ?? input.file_path), whole = input.text ?? input.content ?? input.data;
  const f = fresh(path, path, input.start_line ? "changed" : "written");
  if (input.start_line) f.notes.push(input.end_line ? "Lines " + plain(input.start_line) + " to " + plain(input.end_line) + " are replaced." : "Inserted before line " + plain(input.start_line) + ".");
  for (const l of linesOf(input.oldText)) f.lines.push(["-", l, 0, 0]);
  for (const l of linesOf(whole ?? input.newText)) f.lines.push(["+", l, 0, 0]);
  if (whole === undefined) f.kind = "changed";
  return path || f.lines.length ? [f] : [];
}

// split takes two lines apart into words, says which are not in the other one, and how
// much alike the two are; null when they are not.
const wordy = /[\p{L}\p{N}_]+|\s+|[^]/gu;
function split(a, b) {
  if (a.length > 1000 || b.length > 1000) return null;
  const x = a.match(wordy) ?? [], y = b.match(wordy) ?? [];
  if (x.length * y.length > 20000) return null;
  const best = Array.from({ length: x.length + 1 }, () => new Uint16Array(y.length + 1));
  for (let i = x.length - 1; i >= 0; i--) for (let j = y.length - 1; j >= 0; j--) {
    best[i][j] = x[i] === y[j] ? best[i + 1][j + 1] + x[i].length : Math.max(best[i + 1][j], best[i][j + 1]);
  }
  const alike = best[0][0] / Math.max(a.length, b.length);
  if (alike < 0.3) return null;
  const left = [], right = [];
  const add = (to, word, differs) => { const end = to.at(-1); end?.[1] === differs ? (end[0] += word) : to.push([word, differs]); };
  for (let i = 0, j = 0; i < x.length || j < y.length;) {
    if (i < x.length && j < y.length && x[i] === y[j]) { add(left, x[i++], 0); add(right, y[j++], 0); }
    else if (j >= y.length || (i < x.length && best[i + 1][j] >= best[i][j + 1])) add(left, x[i++], 1);
    else add(right, y[j++], 1);
  }
  return [left, right, alike];
}

// pairs finds the words of lines that stand for each other: each removed one for the one
// among the next few added ones that is most like it.
function pairs(lines) {
  for (let i = 0; i < lines.length;) {
    if (lines[i][0] !== "-") { i++; continue; }
    let j = i;
    while (lines[j]?.[0] === "-") j++;
    let k = j;
    while (lines[k]?.[0] === "+") k++;
    for (let n = i, from = j; n < Math.min(j, i + 200); n++) {
      let best = null, at = 0;
      for (let m = from; m < Math.min(k, from + 8); m++) {
        const words = split(lines[n][1], lines[m][1]);
        if (words && words[2] > (best?.[2] ?? 0)) [best, at] = [words, m];
      }
      if (best) [lines[n][4], lines[at][4], from] = [best[0], best[1], at + 1];
    }
    i = k;
  }
  return lines;
}

const signs = new Map([["+", ["add", "ins", "added"]], ["-", ["del", "del", "removed"]], [" ", ["", "span", ""]], ["\\", ["dim", "span", ""]]]);
function row([sign, text, old, now, words]) {
  if (sign === "@") {
    const gap = node("td", "gap dim", "\u22ef ", now ? count(now, "unchanged line") : shown("span", "", clip(text, 500)));
    gap.colSpan = 4;
    return node("tr", "", gap);
  }
  const [style, element, name] = signs.get(sign);
  const code = node(element, "");
  if (words) for (const [w, differs] of words) code.append(shown("span", differs ? "word" : "", w));
  else put(code, clip(text, 5000));
  const mark = node("td", "sign", sign === "-" ? "\u2212" : sign.trim());
  if (name) { mark.firstChild.remove(); const s = node("span", "", sign === "-" ? "\u2212" : "+"); s.setAttribute("aria-hidden", "true"); mark.append(s, unseen(name)); }
  return node("tr", style, node("td", "no", old || ""), node("td", "no", now || ""), mark, node("td", "code", code));
}

function file(f, i) {
  const added = f.lines.filter((l) => l[0] === "+").length, removed = f.lines.filter((l) => l[0] === "-").length;
  const name = shown("bdi", "mono name", clip(f.to || f.from || "(no path yet)", 1000));
  const path = f.kind === "renamed" && f.from !== f.to ? [shown("bdi", "mono dim", clip(f.from, 1000)), " \u2192 ", name] : [name];
  const numbers = node("span", "counts", node("span", "good", "+" + added), " ", node("span", "bad", "\u2212" + removed), f.cut ? " \u2026" : null);
  numbers.setAttribute("aria-label", (f.cut ? "at least " : "") + count(added, "line") + " added, " + count(removed, "line") + " removed");
  numbers.setAttribute("role", "img");
  const table = node("table", "");
  table.setAttribute("aria-label", "Changed lines");
  const scroll = node("div", "scroll", table);
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "Changes of " + plain(clip(f.to || f.from, 200)));
  const d = node("details", "box file", node("summary", "", node("span", "tag " + (tones.get(f.kind) ?? "dim"), f.kind), node("span", "path", ...path), numbers), ...f.notes.map((n) => problem(n, "warn")), f.lines.length ? scroll : null);
  d.open = i < 10;
  if (f.lines.length) few(table, pairs(f.lines), row, "line", 1000);
  return d;
}
const tones = new Map([["added", "good"], ["deleted", "bad"], ["renamed", "warn"]]);

function draw() {
  const input = given(), wrong = call.result && failure(), known = call.result && !wrong ? meta("diff") : undefined;
  if (!call.result && !call.input && !call.partial) return show(node("p", "dim", "Waiting for the change \u2026"));
  const files = typeof known === "string" ? unified(known) : intended(input);
  let head = count(files.length, "file") + " changed";
  if (call.cancelled) head = "Cancelled; this was intended";
  else if (!call.result) head = call.input ? "About to change" : "About to change, as it is being written";
  else if (wrong) head = "Nothing was changed; this was intended";
  else if (known === "") head = "Nothing had to be changed";
  show(node("h1", wrong ? "bad" : "", head));
  if (call.cancelled) show(problem(call.cancelled, "warn"));
  if (wrong) show(problem(wrong[0]), problem(wrong[1], "warn"));
  const all = node("div", "files");
  show(all);
  few(all, files, file, "file", 50);
  if (call.result) say(head + (wrong ? ": " + plain(clip(wrong[0], 300)) : "."));
}
start();
