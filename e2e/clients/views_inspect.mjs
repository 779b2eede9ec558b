// What must hold of a view whatever it shows. This runs inside of its frame; it returns
// what does not hold.
export function inspect() {
  const wrong = [];
  const names = new Set("html head meta title style body main p script div span h1 h2 ol ul li details summary table tbody tr td ins del bdi pre code button img figure figcaption section".split(" "));
  const attributes = /^(class|style|role|aria-[a-z]+|tabindex|colspan|open|id|lang|charset|content|http-equiv|name|alt|src)$/;
  for (const e of document.querySelectorAll("*")) {
    if (!names.has(e.localName)) wrong.push("an element " + e.localName);
    for (const a of e.attributes) if (!attributes.test(a.name)) wrong.push(`an attribute ${a.name} of ${e.localName}`);
    if (e.src && !e.src.startsWith("data:image/")) wrong.push("a source " + e.src);
    if (e.localName === "img" && !e.alt) wrong.push("a picture without a text");
    if (e.tabIndex >= 0 && !e.innerText?.trim() && !e.ariaLabel) wrong.push("an unnamed stop of the keyboard: " + e.localName);
    if (e.getAttribute("role") === "region" && !e.ariaLabel) wrong.push("an unnamed region");
  }
  if (document.scripts.length !== 1) wrong.push(document.scripts.length + " scripts");
  if ("pwned" in window) wrong.push("what it shows has run");
  if (document.documentElement.scrollWidth > innerWidth) wrong.push(`wider than its frame: ${document.documentElement.scrollWidth} > ${innerWidth}`);
  const main = document.querySelector("main");
  // Nothing that hides or reorders, nothing that cannot be seen.
  const hidden = /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]|[\u{e0000}-\u{e0fff}]/u.exec(main.textContent);
  if (hidden) wrong.push("a character U+" + hidden[0].codePointAt(0).toString(16));
  // Text stands out from its ground, 3 to 1 at least.
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const pixel = (colour) => {
    if (!known.has(colour)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      known.set(colour, [...canvas.getImageData(0, 0, 1, 1).data]);
    }
    return known.get(colour);
  };
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const texts = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  for (let n = 0; n < 500 && texts.nextNode(); n++) {
    const e = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !e.checkVisibility() || e.closest(".unseen")) continue;
    let ground = e;
    while (ground && pixel(getComputedStyle(ground).backgroundColor)[3] < 255) ground = ground.parentElement;
    const [a, b] = [getComputedStyle(e).color, getComputedStyle(ground ?? document.body).backgroundColor].map((c) => light(pixel(c)));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 3) wrong.push(`contrast ${ratio.toFixed(2)} of ${JSON.stringify(texts.currentNode.data.slice(0, 40))} in ${e.className}`);
    if (parseFloat(getComputedStyle(e).fontSize) < 10) wrong.push("small text " + texts.currentNode.data.slice(0, 40));
  }
  return [...new Set(wrong)].slice(0, 20);
}
