"use strict";
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
for (const button of document.querySelectorAll("thead button")) {
  button.addEventListener("click", () => sortBy(button.parentElement));
}
