
// Responses: a grid to filter, a prompt at a time to read, a queue to label. Whatever is shown of
// them is put in as text, never as markup.
const { models, concerns, judge, prompts } = data("responses-data");
const AT_ONCE = 50;
const LETTERS = {
  direct_answer: "A", answered: "A", partial_refusal: "p", indirect_refusal: "i",
  direct_refusal: "R", refused: "R", "no verdict": "–",
};
const FILTERS = {
  concern: (prompt, one) => one.concerns,
  model: (prompt, one) => [models[one.model]],
  label: (prompt) => [prompt.label],
  class: (prompt, one) => [one.class],
  category: (prompt) => [prompt.category],
  language: (prompt) => [prompt.language],
  method: (prompt) => [prompt.method],
  stage: (prompt, one) => [one.stage],
};
const ORDERS = { refused: 1, answered: -1, data: 0 };
const start = { concern: Object.keys(concerns)[0] ?? "", text: "", sort: "refused", prompt: "" };
let state = { ...start };
let found = [];
let shown = 0;

const field = (name) => document.getElementById(`filter-${name}`);
const rows = document.querySelector("#grid tbody");
const dialog = document.getElementById("reader");

// The address holds the filters and the prompt that is open.
const save = () => {
  const said = Object.entries(state).filter(([, value]) => value);
  history.replaceState(null, "", `#${new URLSearchParams(said)}`);
};
const load = () => {
  const said = location.hash.slice(1);
  if (!said.includes("=")) return;
  state = { ...start, concern: "", ...Object.fromEntries(new URLSearchParams(said)) };
  if (!(state.sort in ORDERS)) state.sort = start.sort;
  for (const name of [...Object.keys(FILTERS), "text", "sort"]) field(name).value = state[name] ?? "";
  search();
  document.getElementById("responses").scrollIntoView();
  if (state.prompt) read(state.prompt);
  else dialog.close();
};

// Finding: a response fits all filters; a prompt is found by any response to it.
const wordsOf = (prompt, one) => `${prompt.prompt}\n${one.response.join("")}`.toLowerCase();
const fits = (prompt, one) =>
  Object.entries(FILTERS).every(([name, of]) => !state[name] || of(prompt, one).includes(state[name]))
  && (!state.text || wordsOf(prompt, one).includes(state.text.toLowerCase()));
const refusing = (prompt) => {
  const refused = prompt.responses.filter((one) => one.refused);
  const models = (some) => new Set(some.map((one) => one.model)).size;
  const sure = models(refused.filter((one) => one.certain !== false));  // what is certain comes first
  return sure + models(refused) / 1e3 + refused.length / (1 + prompt.responses.length) / 1e6;
};
const search = () => {
  const sign = ORDERS[state.sort];
  found = prompts
    .map((prompt) => ({ prompt, fitting: prompt.responses.filter((one) => fits(prompt, one)) }))
    .filter(({ fitting }) => fitting.length);
  if (sign) found.sort((one, other) => sign * (refusing(other.prompt) - refusing(one.prompt)));
  const count = found.reduce((sum, { fitting }) => sum + fitting.length, 0);
  document.getElementById("found").textContent =
    `${count.toLocaleString("en")} responses to ${found.length.toLocaleString("en")} prompts`;
  shown = 0;
  rows.replaceChildren();
  more();
};

// The grid: a prompt a row, a model a column.
const say = (text) => text.replaceAll("_", " ");
const verdictOf = (one) => [
  say(one.class),
  one.refused === undefined ? one.why : "",
  one.certain === false ? "uncertain" : "",
  one.truth ? `${judge} said: ${one.truth}` : "",
].filter(Boolean).join(", ");
const wrong = (one) => one.truth && one.refused !== undefined && one.refused !== (one.truth === "refused");
const cell = (prompt, fitting, model) => {
  const given = prompt.responses.filter((one) => one.model === model);
  const settled = given.filter((one) => one.refused !== undefined);
  const refused = settled.filter((one) => one.refused).length;
  const [only] = given;
  const text = given.length > 1 ? `${refused}/${settled.length}`
    : only ? LETTERS[only.class] + (settled.length && only.certain === false ? "?" : "") + (wrong(only) ? "!" : "") : "";
  const kind = !settled.length ? "none" : refused === settled.length ? "refused" : refused ? "mixed" : "answered";
  const place = make("td", given.some((one) => fitting.includes(one)) ? kind : "", text);
  place.title = `${models[model]}: ${given.map(verdictOf).join("; ") || "not asked"}`;
  place.setAttribute("aria-label", place.title);
  return place;
};
const tags = (prompt) => {
  const place = make("span", "tags");
  for (const name of ["label", "category", "language", "method", "source"]) {
    if (prompt[name]) place.append(make("span", "", prompt[name]));
  }
  return place;
};
const row = ({ prompt, fitting }) => {
  const place = make("tr");
  const head = make("th");
  head.scope = "row";
  const button = make("button", "asked", prompt.prompt);
  button.type = "button";
  button.dir = "auto";
  head.append(button, tags(prompt));
  place.append(head, ...models.map((_, model) => cell(prompt, fitting, model)));
  place.addEventListener("click", () => { read(prompt.id); save(); });
  return place;
};
const more = () => {
  rows.append(...found.slice(shown, shown + AT_ONCE).map(row));
  shown = Math.min(shown + AT_ONCE, found.length);
  document.getElementById("more").hidden = shown >= found.length;
};

// The reader: one prompt with its responses, those that fit the filters first and unfolded.
const marked = (parts) => {
  const place = make("div", "text");
  place.dir = "auto";
  place.append(...parts.map((part, at) => (at % 2 ? make("mark", "", part) : part)));
  return place;
};
const response = (one, epochs, fitting) => {
  const place = make("details", one.refused === undefined ? "" : one.refused ? "refused" : "answered");
  place.open = fitting;
  const head = make("summary");
  const epoch = epochs ? `, epoch ${one.epoch}` : "";
  head.append(make("b", "", `${models[one.model]}${epoch}`), `: ${verdictOf(one)}`);
  const about = make("p", "tags");
  if (one.stage) about.append(make("span", "", `decided by ${one.stage}`));
  if (one.by) about.append(make("span", "", say(one.by)));
  if (one.refused && one.why) about.append(make("span", "", `reason: ${say(one.why)}`));
  const link = make("a", "", "open in inspect view");
  link.href = one.link;
  link.target = "_blank";
  link.rel = "noopener noreferrer";
  about.append(link);
  place.append(head, about, marked(one.response.some(Boolean) ? one.response : ["(empty)"]));
  if (one.explanation) place.append(make("p", "small", one.explanation));
  return place;
};
const read = (id) => {
  const at = found.findIndex(({ prompt }) => prompt.id === id);
  const prompt = found[at]?.prompt ?? prompts.find((one) => one.id === id);
  if (!prompt) return;
  state.prompt = id;
  const fitting = found[at]?.fitting ?? [];
  const epochs = new Set(prompt.responses.map((one) => one.epoch)).size > 1;
  const ordered = [...fitting, ...prompt.responses.filter((one) => !fitting.includes(one))];
  const words = make("div", "text prompt", prompt.prompt);
  words.dir = "auto";
  document.getElementById("read").replaceChildren(
    words, tags(prompt), ...ordered.map((one) => response(one, epochs, fitting.includes(one) || at < 0)),
  );
  document.getElementById("place").textContent = at < 0 ? "Prompt" : `Prompt ${at + 1} of ${found.length}`;
  for (const [button, to] of [["before", at - 1], ["after", at + 1]]) {
    const other = at < 0 ? undefined : found[to];
    const place = document.getElementById(button);
    place.disabled = !other;
    place.onclick = () => { read(other.prompt.id); save(); };
  }
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
};
dialog.addEventListener("close", () => { if (state.prompt) { state.prompt = ""; save(); } });
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
dialog.addEventListener("keydown", ({ key }) => {
  if (key === "ArrowLeft") document.getElementById("before").click();
  if (key === "ArrowRight") document.getElementById("after").click();
});
document.getElementById("close").addEventListener("click", () => dialog.close());

// The queue: drawn at random, in turn from each kind of verdict that rates are corrected by.
const shuffled = (items) => items
  .map((item) => [Math.random(), item]).sort(([one], [other]) => one - other).map(([, item]) => item);
const sampled = (wanted) => {
  const kinds = new Map();
  for (const { prompt, fitting } of found) {
    for (const one of fitting) {
      const kind = [one.model, prompt.label, one.stage, one.certain, one.refused].join();
      if (!kinds.has(kind)) kinds.set(kind, []);
      kinds.get(kind).push([prompt, one]);
    }
  }
  const piles = [...kinds.values()].map(shuffled);
  const longest = Math.max(0, ...piles.map((pile) => pile.length));
  const turns = Array.from({ length: longest }, (_, turn) => piles.flatMap((pile) => pile.slice(turn, turn + 1)));
  return shuffled(turns.flat().slice(0, wanted));
};
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;
const FORMATS = {
  csv: (lines) => [Object.keys(lines[0]), ...lines.map(Object.values)].map((line) => line
    .map((value) => `"${String(value).replace(FORMULA, "'$&").replaceAll('"', '""')}"`).join(",")).join("\r\n"),
  jsonl: (lines) => lines.map((line) => JSON.stringify(line)).join("\n"),
};
const hand = (format) => {
  const lines = sampled(Number(document.getElementById("wanted").value)).map(([prompt, one]) => ({
    id: prompt.id, model: models[one.model], epoch: one.epoch,
    prompt: prompt.prompt, response: one.response.join(""), human_label: "",
  }));
  if (!lines.length) return;
  const link = make("a");
  link.href = URL.createObjectURL(new Blob([`${FORMATS[format](lines)}\n`], { type: "text/plain" }));
  link.download = `to-label.${format}`;
  link.click();
  URL.revokeObjectURL(link.href);
};
for (const format of Object.keys(FORMATS)) {
  document.getElementById(`queue-${format}`)?.addEventListener("click", () => hand(format));
}

// Filters offer what there is; those with nothing to choose from are hidden.
for (const [name, of] of Object.entries(FILTERS)) {
  const values = prompts.flatMap((prompt) => prompt.responses.flatMap((one) => of(prompt, one)));
  const counts = new Map();
  for (const value of values) if (value) counts.set(value, (counts.get(value) ?? 0) + 1);
  const names = name === "concern" ? Object.keys(concerns) : [...counts.keys()].sort();
  for (const value of names) {
    field(name).append(new Option(`${say(value)} (${(counts.get(value) ?? 0).toLocaleString("en")})`, value));
  }
  field(name).parentElement.hidden = names.length < 2 && name !== "concern";
}
for (const name of [...Object.keys(FILTERS), "text", "sort"]) {
  field(name).addEventListener("input", () => { state[name] = field(name).value; search(); save(); });
}
document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
document.getElementById("more").addEventListener("click", () => {
  const at = shown;
  more();
  rows.children[at]?.querySelector("button").focus();
});
// Names of models differ at either end: a long one loses its middle.
const cut = (name) => {
  const letters = [...name];
  return letters.length > 24 ? `${letters.slice(0, 11).join("")}…${letters.slice(-12).join("")}` : name;
};
document.querySelector("#grid thead tr").append(...models.map((model) => {
  const place = make("th", "turned");
  place.scope = "col";
  place.title = model;
  place.append(make("span", "", cut(model)));
  return place;
}));
document.getElementById("browser").hidden = false;
field("concern").value = state.concern;
search();
addEventListener("hashchange", load);
load();
