"use strict";
vegaEmbed(
  document.getElementById("chart"),
  JSON.parse(document.getElementById("chart-data").textContent),
  { renderer: "svg", ast: true, actions: { export: true, source: false, compiled: false, editor: false } },
);
