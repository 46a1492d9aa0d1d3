"use strict";
(() => {
  const AT_ONCE = 25;
  const data = (id) => JSON.parse(document.getElementById(id).textContent);
  const make = (name, className, text) => {
    const element = document.createElement(name);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };

  // Tables: a column's title sorts by it; numbers first from the largest, empty cells last.
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.order === undefined ? cell.textContent : Number(cell.dataset.order);
  };
  const sortBy = (heading) => {
    const head = heading.parentElement;
    const column = [...head.children].indexOf(heading);
    const body = heading.closest("table").tBodies[0];
    const first = heading.classList.contains("number") ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const order = heading.getAttribute("aria-sort") === first ? other : first;
    for (const each of head.children) each.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const compare = (one, two) => {
      const a = key(one, column), b = key(two, column);
      if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
      return sign * (typeof a === "number" ? a - b : a.localeCompare(b));
    };
    body.append(...[...body.rows].sort(compare));
  };
  for (const button of document.querySelectorAll("th button")) {
    button.addEventListener("click", () => sortBy(button.parentElement));
  }

  // Prompts: every text is put in as text, never as markup.
  const prompts = data("prompt-data");
  const list = document.getElementById("list");
  const more = document.getElementById("more");
  const text = document.getElementById("filter-text");
  const choices = {
    model: document.getElementById("filter-model"),
    category: document.getElementById("filter-category"),
    language: document.getElementById("filter-language"),
  };
  let found = [];
  let shown = 0;

  const marked = (parts) => {
    const place = make("div", "text");
    place.dir = "auto";
    place.append(...parts.map((part, at) => (at % 2 ? make("mark", "", part) : part)));
    return place;
  };
  const outcome = (item) =>
    item.refused === null ? `no verdict (${item.unscored_because ?? "unscored"})`
      : item.response_class ?? (item.refused ? "refused" : "answered");
  const response = (item) => {
    const kind = item.refused === null ? "" : item.refused ? " refused" : " answered";
    const place = make("div", "response" + kind);
    const run = item.run ? `, run ${item.run}` : "";
    place.append(make("h4", "", `${item.model}${run}: ${outcome(item)}`));
    const tags = make("div", "tags");
    if (item.decided_by) tags.append(make("span", "", `decided by ${item.decided_by}`));
    if (item.certain === false) tags.append(make("span", "", "not certain"));
    if (item.of > 1) tags.append(make("span", "", `refused in ${item.times} of ${item.of} responses`));
    const link = make("a", "", "open in inspect view");
    link.href = item.link;
    link.target = "_blank";
    link.rel = "noopener noreferrer";
    tags.append(link);
    place.append(tags, marked(item.response.some(Boolean) ? item.response : ["(empty)"]));
    if (item.explanation) place.append(make("p", "small", item.explanation));
    return place;
  };
  const prompt = (item) => {
    const place = make("details", "prompt");
    const head = make("summary");
    const words = make("span", "asked", item.prompt);
    words.dir = "auto";
    const tags = make("span", "tags");
    tags.append(make("b", "", item.said));
    for (const name of ["label", "category", "language", "method", "source"]) {
      if (item[name]) tags.append(make("span", "", item[name]));
    }
    head.append(words, tags);
    place.append(head);
    place.addEventListener("toggle", () => {
      if (place.open && place.children.length === 1) place.append(...item.responses.map(response));
    });
    return place;
  };
  const showMore = () => {
    list.append(...found.slice(shown, shown + AT_ONCE).map(prompt));
    shown = Math.min(shown + AT_ONCE, found.length);
    more.hidden = shown >= found.length;
  };
  const search = () => {
    const wanted = text.value.toLowerCase();
    const { model, category, language } = choices;
    found = prompts.filter((item) =>
      (!category.value || item.category === category.value)
      && (!language.value || item.language === language.value)
      && (!model.value || item.responses.some((one) => one.refused && one.model === model.value))
      && (!wanted || item.prompt.toLowerCase().includes(wanted)
        || item.responses.some((one) => one.response.join("").toLowerCase().includes(wanted))));
    document.getElementById("found").textContent = `${found.length} of ${prompts.length} prompts`;
    list.replaceChildren();
    shown = 0;
    showMore();
  };
  const offer = (select, names) => {
    for (const name of [...new Set(names)].filter(Boolean).sort()) {
      const option = make("option", "", name);
      option.value = name;
      select.append(option);
    }
    select.parentElement.hidden = select.options.length < 3;
    select.addEventListener("change", search);
  };
  offer(choices.model, prompts.flatMap((item) => item.responses.map((one) => one.model)));
  offer(choices.category, prompts.map((item) => item.category));
  offer(choices.language, prompts.map((item) => item.language));
  text.addEventListener("input", search);
  text.form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => {
    const at = shown;
    showMore();
    list.children[at]?.querySelector("summary").focus();
  });
  document.getElementById("browser").hidden = prompts.length === 0;
  search();
})();
